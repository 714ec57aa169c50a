//! Video in segments (DASH, HLS), each fetched at the highest rate that the path sustains.

use std::sync::Arc;

use bentpipe_tcp::Events;
use bentpipe_types::{Endpoint, Span, Time};

use super::orders::{Order, Orders};
use crate::report::Viewing;
use crate::{Application, ApplicationProgress, Report, SocketApi, SocketBackend, SocketId};

/// Settings of a video.
#[derive(Clone, PartialEq, Debug)]
pub struct VideoSettings {
    /// Duration of a segment.
    pub segment: Span,
    /// Available rates in bits per second, ascending.
    pub ladder: Arc<[u64]>,
    /// Maximum buffer.
    pub buffer: Span,
    /// Buffer at which playback begins, also after a stall.
    pub start_up: Span,
    /// Duration of the video, or `None` until the end of the run.
    pub lasts: Option<Span>,
}

/// Number of segments in the harmonic mean of the throughput, and the share of it that is used:
/// FESTIVE (Jiang, Sekar and Zhang 2012, sections 4.3 and 4.4, with 20 segments).
const SEGMENTS: usize = 5;
const SHARE: f64 = 0.85;
/// Bytes of a request, as for web pages.
const REQUEST: u64 = 400;

/// The player.
#[derive(Debug)]
pub(super) struct Video {
    server: Endpoint,
    settings: VideoSettings,
    orders: Orders,
    socket: Option<(SocketId, u16)>,
    /// The segment being fetched: time of the request, rate, missing bytes.
    fetching: Option<(Time, u64, u64)>,
    /// Seconds per bit of the latest segments.
    pace: [f64; SEGMENTS],
    paces: usize,
    /// Buffer at time `since`, and whether it is playing.
    buffered: Span,
    since: Time,
    plays: bool,
    /// Start of the current stall.
    stalled: Option<Time>,
    start: Time,
    progress: ApplicationProgress,
    viewing: Viewing,
}

impl Video {
    pub(super) fn new(server: Endpoint, settings: VideoSettings, orders: Orders) -> Self {
        Self {
            server,
            settings,
            orders,
            socket: None,
            fetching: None,
            pace: [0.0; SEGMENTS],
            paces: 0,
            buffered: Span::ZERO,
            since: Time::ZERO,
            plays: false,
            stalled: None,
            start: Time::ZERO,
            progress: ApplicationProgress::default(),
            viewing: Viewing::default(),
        }
    }

    /// Returns the rate of the next segment: the lowest one first, then the highest sustained one.
    fn rate(&self) -> u64 {
        let ladder = &self.settings.ladder;
        let lowest = ladder.first().copied().unwrap_or(1);
        let known = self.paces.min(SEGMENTS);
        if known == 0 {
            return lowest;
        }
        let sum: f64 = self.pace[..known].iter().sum();
        let sustained = SHARE * known as f64 / sum;
        let rates = ladder.iter().rev();
        (rates.copied().find(|rate| *rate as f64 <= sustained)).unwrap_or(lowest)
    }

    fn is_whole(&self) -> bool {
        let fetched = self.settings.segment * self.viewing.segments;
        self.settings.lasts.is_some_and(|lasts| fetched >= lasts)
    }

    fn fetch<D: SocketApi>(&mut self, api: &mut D) {
        let Some((socket, port)) = self.socket else {
            return;
        };
        let rate = self.rate();
        if self.viewing.last_rate != 0 && self.viewing.last_rate != rate {
            self.viewing.switches += 1;
        }
        self.viewing.last_rate = rate;
        let bits = rate as f64 * self.settings.segment.as_secs_f64();
        let order = Order {
            request: REQUEST,
            response: ((bits / 8.0) as u64).max(1),
            think: Span::ZERO,
        };
        self.orders.place(port, order);
        self.fetching = Some((api.now(), rate, order.response));
        api.feed(socket, order.request, false);
    }

    /// Advances playback to now.
    fn play(&mut self, now: Time) {
        if self.progress.finished.is_some() {
            return;
        }
        let passed = now.since(self.since);
        self.since = now;
        if !self.plays {
            return;
        }
        if passed < self.buffered || self.is_whole() {
            // Reaching the end of the last segment, slightly late in real time, is not a stall.
            self.viewing.played += passed.min(self.buffered);
            self.buffered = self.buffered.saturating_sub(passed);
            return;
        }
        // The buffer ran empty in between.
        let dry = passed.saturating_sub(self.buffered);
        self.viewing.played += self.buffered;
        self.buffered = Span::ZERO;
        self.plays = false;
        self.viewing.stalls += 1;
        self.stalled = Some(Time::from_nanos(now.as_nanos() - dry.as_nanos()));
    }

    fn fetched<D: SocketApi>(&mut self, api: &mut D) {
        let Some((asked, rate, _)) = self.fetching.take() else {
            return;
        };
        let now = api.now();
        let took = now.since(asked).as_secs_f64().max(1e-9);
        let bits = rate as f64 * self.settings.segment.as_secs_f64();
        self.pace[self.paces % SEGMENTS] = took / bits;
        self.paces += 1;
        self.play(now);
        self.viewing.segments += 1;
        self.viewing.bits += bits;
        self.buffered += self.settings.segment;
        if !self.plays && (self.buffered >= self.settings.start_up || self.is_whole()) {
            self.plays = true;
            match self.stalled.take() {
                Some(since) => self.viewing.stalled += now.since(since),
                None => self.viewing.start_ups.push(now.since(self.start)),
            }
        }
        if self.is_whole() {
            if let Some((socket, _)) = self.socket {
                api.close(socket);
            }
            self.progress.next = Some(now + self.buffered);
            return;
        }
        let room = self.settings.buffer.saturating_sub(self.settings.segment);
        if self.buffered <= room || !self.plays {
            self.fetch(api);
        } else {
            self.progress.next = Some(now + self.buffered.saturating_sub(room));
        }
    }
}

impl<P: SocketBackend> Application<P> for Video {
    fn start(&mut self, api: &mut P::Api<'_, '_>) {
        self.start = api.now();
        self.since = api.now();
        if let Ok(socket) = api.connect(self.server) {
            api.no_delay(socket);
            let port = api.local(socket).map(|end| end.port);
            self.socket = port.map(|port| (socket, port));
        }
    }

    fn on_events(&mut self, socket: SocketId, events: Events, api: &mut P::Api<'_, '_>) {
        if events.has(Events::ESTABLISHED) {
            self.fetch(api);
        }
        let read = api.read(socket, u64::MAX);
        if let Some((_, _, missing)) = &mut self.fetching
            && read > 0
        {
            debug_assert!(read <= *missing, "more than was asked for");
            *missing = missing.saturating_sub(read);
            if *missing == 0 {
                self.fetched(api);
            }
        }
        if events.has(Events::PEER_CLOSED) {
            api.close(socket);
        }
        if events.has(Events::CLOSED) {
            self.socket = None;
            if !self.is_whole() {
                self.progress.next = None;
            }
        }
    }

    fn on_deadline(&mut self, api: &mut P::Api<'_, '_>) {
        if !self.progress.takes_turn(api.now()) {
            return;
        }
        self.play(api.now());
        if self.is_whole() {
            self.progress.finished = Some(api.now());
        } else {
            self.fetch(api);
        }
    }

    fn speaks_first(&self) -> bool {
        true
    }

    fn progress(&self) -> ApplicationProgress {
        self.progress
    }

    fn report(&self, now: Time, report: &mut Report) {
        // At this time: includes playback, or the stall, since the last segment arrived.
        let mut stands = Self {
            settings: self.settings.clone(),
            orders: self.orders.clone(),
            viewing: self.viewing.clone(),
            ..*self
        };
        stands.play(now);
        if let Some(since) = stands.stalled {
            stands.viewing.stalled += now.since(since);
        }
        stands.viewing.fetched = self.settings.segment * self.viewing.segments;
        report.finished = self.progress.finished;
        report.viewing = Some(stands.viewing);
    }
}
