//! A source of packets with random sizes at random times, over UDP or written to a TCP connection.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bentpipe_tcp::Events;
use bentpipe_types::{Endpoint, Span, Time};

use crate::duplicate_detection::DuplicateDetection;
use crate::report::Messages;
use crate::{
    Application, ApplicationProgress, Arrival, Datagram, Distribution, Report, SocketApi,
    SocketBackend, SocketId,
};

/// Transport protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// Each packet is a datagram.
    Udp,
    /// Each packet is written to one connection.
    Tcp,
}

/// Settings of a source.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PacketsSettings {
    /// Transport protocol.
    pub transport: Transport,
    /// Bytes of a packet without headers.
    pub size: Distribution,
    /// Seconds between packets.
    pub interval: Distribution,
    /// Seconds of alternating on and off periods, or `None` for always on.
    pub bursts: Option<(Distribution, Distribution)>,
    /// Duration, or `None` until the end of the run.
    pub lasts: Option<Span>,
    /// Maximum bytes of a datagram; larger random sizes are reduced to it.
    pub largest: u16,
}

impl PacketsSettings {
    /// Maximum payload of a datagram: 65,535 bytes without the headers of IPv4 and UDP.
    pub const LARGEST: u16 = 65_507;
}

/// Messages written to a connection and not completely read: bytes and time of writing.
pub(super) type Written = Arc<Mutex<VecDeque<(u64, Time)>>>;

/// The sending end.
#[derive(Debug)]
pub(super) struct Source {
    receiver: Endpoint,
    settings: PacketsSettings,
    written: Written,
    socket: Option<SocketId>,
    progress: ApplicationProgress,
    /// End of the on period.
    burst_ends: Option<Time>,
    ends: Option<Time>,
    sent: u64,
}

impl Source {
    pub(super) fn new(receiver: Endpoint, settings: PacketsSettings, written: Written) -> Self {
        Self {
            receiver,
            settings,
            written,
            socket: None,
            progress: ApplicationProgress::default(),
            burst_ends: None,
            ends: None,
            sent: 0,
        }
    }

    fn begin<D: SocketApi>(&mut self, api: &mut D) {
        let now = api.now();
        self.ends = self.settings.lasts.map(|lasts| now + lasts);
        self.burst(now, api);
        let wait = self.settings.interval.span(api.random());
        self.plan(now + wait, api);
    }

    fn burst<D: SocketApi>(&mut self, from: Time, api: &mut D) {
        if let Some((on, _)) = self.settings.bursts {
            self.burst_ends = Some(from + on.span(api.random()));
        }
    }

    /// Schedules the next packet at `at`, or at the start of the next on period.
    fn plan<D: SocketApi>(&mut self, mut at: Time, api: &mut D) {
        while let (Some(end), Some((_, off))) = (self.burst_ends, self.settings.bursts)
            && at > end
        {
            // The rest of the interval elapses in the next on period.
            let again = end + off.span(api.random());
            at = again + at.since(end);
            self.burst(again, api);
            if self.ends.is_some_and(|ends| again >= ends) {
                break;
            }
        }
        self.progress.next = Some(at);
        if self.ends.is_some_and(|ends| at >= ends) {
            self.progress.next = self.ends;
        }
    }

    fn send<D: SocketApi>(&mut self, api: &mut D) {
        let size = self.settings.size.bytes(api.random());
        let now = api.now();
        match (self.settings.transport, self.socket) {
            (Transport::Udp, _) => {
                let datagram = Datagram {
                    length: size.min(u64::from(self.settings.largest)) as u16,
                    number: self.sent,
                    sent: now,
                };
                api.send(self.receiver, datagram);
            }
            (Transport::Tcp, Some(socket)) => {
                if let Ok(mut written) = self.written.lock() {
                    written.push_back((size, now));
                }
                api.feed(socket, size, false);
            }
            (Transport::Tcp, None) => return,
        }
        self.sent += 1;
    }
}

impl<P: SocketBackend> Application<P> for Source {
    fn start(&mut self, api: &mut P::Api<'_, '_>) {
        match self.settings.transport {
            Transport::Udp => self.begin(api),
            Transport::Tcp => self.socket = api.connect(self.receiver).ok(),
        }
    }

    fn on_events(&mut self, socket: SocketId, events: Events, api: &mut P::Api<'_, '_>) {
        if events.has(Events::ESTABLISHED) {
            self.begin(api);
        }
        if events.has(Events::PEER_CLOSED) {
            api.close(socket);
        }
        if events.has(Events::CLOSED) {
            self.progress.next = None;
            self.socket = None;
        }
    }

    fn on_deadline(&mut self, api: &mut P::Api<'_, '_>) {
        let now = api.now();
        while let Some(at) = self.progress.next
            && at <= now
        {
            if self.ends.is_some_and(|ends| at >= ends) {
                self.progress.next = None;
                self.progress.finished = Some(now);
                if let Some(socket) = self.socket {
                    api.feed(socket, 0, true);
                }
                return;
            }
            self.send(api);
            let wait = self.settings.interval.span(api.random());
            // At most one per nanosecond, so that the clock advances.
            self.plan(at + wait.max(Span::from_nanos(1)), api);
        }
    }

    fn progress(&self) -> ApplicationProgress {
        self.progress
    }

    fn report(&self, _: Time, report: &mut Report) {
        // Everything written to a connection will arrive; the source is not finished before.
        let is_there = self.written.lock().is_ok_and(|written| written.is_empty());
        report.finished = self.progress.finished.filter(|_| is_there);
        report.messages = Some(Messages {
            sent: self.sent,
            ..Messages::default()
        });
    }
}

/// The receiving end.
#[derive(Debug)]
pub(super) struct Receiver {
    written: Written,
    /// Bytes read of the current message.
    read: u64,
    messages: Messages,
    /// Received datagrams, and their bytes.
    numbers: DuplicateDetection,
    bytes: u64,
    progress: ApplicationProgress,
}

impl Receiver {
    pub(super) fn new(written: Written) -> Self {
        Self {
            written,
            read: 0,
            messages: Messages::default(),
            numbers: DuplicateDetection::default(),
            bytes: 0,
            progress: ApplicationProgress::default(),
        }
    }

    fn received(&mut self, bytes: u64, sent: Time, now: Time) {
        let delay = now.since(sent);
        self.messages.last = Some(now);
        self.messages.received += 1;
        self.messages.bytes += bytes;
        self.messages.delays.record(delay);
        self.progress.latest = Some(delay);
    }
}

impl<P: SocketBackend> Application<P> for Receiver {
    fn on_events(&mut self, socket: SocketId, events: Events, api: &mut P::Api<'_, '_>) {
        self.read += api.read(socket, u64::MAX);
        let written = Arc::clone(&self.written);
        if let Ok(mut written) = written.lock() {
            while let Some((size, sent)) = written.front().copied()
                && size <= self.read
            {
                written.pop_front();
                self.read -= size;
                self.received(size, sent, api.now());
            }
        }
        if events.has(Events::PEER_CLOSED) {
            api.close(socket);
        }
    }

    fn on_datagram(&mut self, Arrival { datagram, .. }: Arrival, api: &mut P::Api<'_, '_>) {
        // Duplicates count once.
        if self.numbers.note(datagram.number) {
            self.bytes += u64::from(datagram.length);
            self.received(u64::from(datagram.length), datagram.sent, api.now());
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
    }
}
