//! A carousel: files sent repeatedly in datagrams to all listeners, as in DVB data carousels (ETSI
//! EN 301 192) and FLUTE (RFC 6726). There is no feedback; a lost part is received in the next
//! turn.

use std::collections::BTreeMap;

use bentpipe_tcp::Events;
use bentpipe_types::{BitRate, Bytes, Endpoint, Span, Time};

use crate::duplicate_detection::DuplicateDetection;
use crate::report::{Messages, Transfers};
use crate::{
    Application, ApplicationProgress, Arrival, Datagram, Report, SocketApi, SocketBackend, SocketId,
};

/// Settings of a carousel.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CarouselSettings {
    /// Bytes of a file, above zero.
    pub size: u64,
    /// Bytes of it per datagram, above zero; the last one has the rest.
    pub datagram: u16,
    /// Rate in bits per second while a file is sent, without headers.
    pub rate: BitRate,
    /// Number of times that each file is sent in direct succession; at least one.
    pub turns: u64,
    /// Interval between the starts of files, at least the duration of all turns.
    pub interval: Span,
    /// Number of files, or `None` until the end of the run.
    pub count: Option<u64>,
}

impl CarouselSettings {
    /// Returns the number of datagrams of a file.
    #[must_use]
    pub fn datagrams(&self) -> u64 {
        self.size.div_ceil(u64::from(self.datagram)).max(1)
    }

    /// Returns the duration of all turns of a file.
    #[must_use]
    pub fn length(&self) -> Span {
        self.rate
            .transmission_time(Bytes::new(self.size.saturating_mul(self.turns)))
    }

    /// Returns the number of datagrams of a file in all turns.
    fn sent_for_each(&self) -> u64 {
        self.datagrams() * self.turns
    }

    /// Returns the time from a file's start to the datagram with this number.
    fn after(&self, number: u64) -> Span {
        let (turn, part) = (number / self.datagrams(), number % self.datagrams());
        let before = turn * self.size + part * u64::from(self.datagram);
        self.rate.transmission_time(Bytes::new(before))
    }

    /// Returns the bytes in the datagram with this part of a file.
    fn length_of(&self, part: u64) -> u16 {
        let left = self.size - part * u64::from(self.datagram);
        u16::try_from(left).map_or(self.datagram, |left| left.min(self.datagram))
    }
}

/// The sending end.
#[derive(Debug)]
pub(super) struct Station {
    to: Endpoint,
    settings: CarouselSettings,
    /// Start of the current file.
    began: Time,
    /// Number of the next datagram among all of all files.
    number: u64,
    progress: ApplicationProgress,
}

impl Station {
    pub(super) fn new(to: Endpoint, settings: CarouselSettings) -> Self {
        Self {
            to,
            settings,
            began: Time::ZERO,
            number: 0,
            progress: ApplicationProgress::default(),
        }
    }

    /// Returns the file of the next datagram, and its number within the file.
    fn place(&self) -> (u64, u64) {
        let each = self.settings.sent_for_each();
        (self.number / each, self.number % each)
    }
}

impl<P: SocketBackend> Application<P> for Station {
    fn start(&mut self, api: &mut P::Api<'_, '_>) {
        self.began = api.now();
        self.progress.next = Some(self.began);
    }

    fn on_events(&mut self, _: SocketId, _: Events, _: &mut P::Api<'_, '_>) {}

    fn on_deadline(&mut self, api: &mut P::Api<'_, '_>) {
        let now = api.now();
        while let Some(at) = self.progress.next
            && at <= now
        {
            let (_, place) = self.place();
            let part = place % self.settings.datagrams();
            let datagram = Datagram {
                length: self.settings.length_of(part),
                number: self.number,
                sent: now,
            };
            api.send(self.to, datagram);
            self.number += 1;
            let (file, place) = self.place();
            if place == 0 {
                if self.settings.count.is_some_and(|count| file >= count) {
                    self.progress.next = None;
                    self.progress.finished = Some(now);
                    return;
                }
                self.began += self.settings.interval;
            }
            // At most one per nanosecond, so that the clock advances.
            let next = self.began + self.settings.after(place);
            self.progress.next = Some(next.max(at + Span::from_nanos(1)));
        }
    }

    fn progress(&self) -> ApplicationProgress {
        self.progress
    }

    fn report(&self, _: Time, report: &mut Report) {
        let each = self.settings.sent_for_each();
        report.finished = self.progress.finished;
        report.messages = Some(Messages {
            sent: self.number,
            ..Messages::default()
        });
        report.files = Some(Transfers {
            begun: self.number.div_ceil(each),
            ..Transfers::default()
        });
    }
}

/// Number of files that a receiver tracks at once: the current one, and the previous one, parts of
/// which may still be in flight.
const FILES: usize = 2;

/// Received parts of a file: one bit per datagram.
#[derive(Debug)]
struct Parts {
    there: Box<[u64]>,
    missing: u64,
}

impl Parts {
    fn none(of: u64) -> Self {
        let words = usize::try_from(of.div_ceil(64)).unwrap_or(usize::MAX);
        Self {
            there: vec![0; words].into(),
            missing: of,
        }
    }

    /// Records a part. Returns false if it had been received.
    fn note(&mut self, part: u64) -> bool {
        let bit = 1 << (part % 64);
        let Some(word) = self.there.get_mut((part / 64) as usize) else {
            return false;
        };
        let is_new = *word & bit == 0;
        *word |= bit;
        self.missing -= u64::from(is_new);
        is_new
    }
}

/// The receiving end.
#[derive(Debug)]
pub(super) struct Listener {
    settings: CarouselSettings,
    numbers: DuplicateDetection,
    messages: Messages,
    files: BTreeMap<u64, Parts>,
    /// Files before this one are no longer tracked.
    first: u64,
    done: Transfers,
    /// Bytes of files, each counted once.
    bytes: u64,
    progress: ApplicationProgress,
}

impl Listener {
    pub(super) fn new(settings: CarouselSettings) -> Self {
        Self {
            settings,
            numbers: DuplicateDetection::default(),
            messages: Messages::default(),
            files: BTreeMap::new(),
            first: 0,
            done: Transfers::default(),
            bytes: 0,
            progress: ApplicationProgress::default(),
        }
    }

    fn take(&mut self, datagram: Datagram, now: Time) {
        let each = self.settings.sent_for_each();
        let (file, place) = (datagram.number / each, datagram.number % each);
        if file < self.first {
            return;
        }
        let parts = self.settings.datagrams();
        let of_file = self.files.entry(file).or_insert_with(|| Parts::none(parts));
        if of_file.note(place % parts) {
            self.bytes += u64::from(datagram.length);
            if of_file.missing == 0 {
                // The file began this long before the datagram was sent.
                let time = now.since(datagram.sent) + self.settings.after(place);
                self.done.times.push(time);
                self.done.bytes += self.settings.size;
                self.progress.latest = Some(time);
            }
        }
        while self.files.len() > FILES
            && let Some((oldest, _)) = self.files.pop_first()
        {
            self.first = oldest + 1;
        }
    }
}

impl<P: SocketBackend> Application<P> for Listener {
    fn on_events(&mut self, _: SocketId, _: Events, _: &mut P::Api<'_, '_>) {}

    fn on_datagram(&mut self, Arrival { datagram, .. }: Arrival, api: &mut P::Api<'_, '_>) {
        // Duplicates count once.
        if self.numbers.note(datagram.number) {
            let now = api.now();
            self.messages.last = Some(now);
            self.messages.received += 1;
            self.messages.bytes += u64::from(datagram.length);
            self.messages.delays.record(now.since(datagram.sent));
            self.take(datagram, now);
        }
    }

    fn progress(&self) -> ApplicationProgress {
        self.progress
    }

    fn datagram_bytes(&self) -> u64 {
        self.bytes
    }

    fn report(&self, _: Time, report: &mut Report) {
        report.messages = Some(self.messages.clone());
        report.files = Some(self.done.clone());
    }
}
