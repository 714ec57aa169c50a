//! Echoes: periodic requests, and their response times.

use bentpipe_tcp::Events;
use bentpipe_types::{Endpoint, Span, Time};

use crate::duplicate_detection::DuplicateDetection;
use crate::report::Echoes;
use crate::{
    Application, ApplicationProgress, Arrival, Datagram, Report, SocketApi, SocketBackend, SocketId,
};

/// Protocol of the requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EchoBy {
    /// ICMP (RFC 792, RFC 4443): every host answers.
    Icmp,
    /// UDP (RFC 862): the flow's other end answers.
    Udp,
}

/// Settings of echoes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PingSettings {
    /// Protocol of the requests.
    pub by: EchoBy,
    /// Bytes of data without headers.
    pub size: u16,
    /// Interval.
    pub interval: Span,
    /// Number of requests, or `None` until the end of the run.
    pub count: Option<u64>,
}

/// Time to wait for the last response, as in Linux's `ping`.
const LINGER: Span = Span::from_secs(10);

/// The requesting end.
#[derive(Debug)]
pub(super) struct Ping {
    server: Endpoint,
    settings: PingSettings,
    progress: ApplicationProgress,
    answered: DuplicateDetection,
    echoes: Echoes,
}

impl Ping {
    pub(super) fn new(server: Endpoint, settings: PingSettings) -> Self {
        Self {
            server,
            settings,
            progress: ApplicationProgress::default(),
            answered: DuplicateDetection::default(),
            echoes: Echoes::default(),
        }
    }

    fn all_sent(&self) -> bool {
        self.settings.count == Some(self.echoes.sent)
    }

    fn ask<D: SocketApi>(&mut self, api: &mut D) {
        let now = api.now();
        let datagram = Datagram {
            length: self.settings.size,
            number: self.echoes.sent,
            sent: now,
        };
        match self.settings.by {
            EchoBy::Icmp => api.ping(self.server, datagram),
            EchoBy::Udp => api.send(self.server, datagram),
        };
        self.echoes.sent += 1;
        let wait = if self.all_sent() {
            LINGER
        } else {
            // The clock has to advance.
            self.settings.interval.max(Span::from_nanos(1))
        };
        self.progress.next = Some(now + wait);
    }
}

impl<P: SocketBackend> Application<P> for Ping {
    fn start(&mut self, api: &mut P::Api<'_, '_>) {
        self.ask(api);
    }

    fn on_events(&mut self, _: SocketId, _: Events, _: &mut P::Api<'_, '_>) {}

    fn on_datagram(&mut self, Arrival { datagram, .. }: Arrival, api: &mut P::Api<'_, '_>) {
        if datagram.number >= self.echoes.sent || !self.answered.note(datagram.number) {
            return;
        }
        let time = api.now().since(datagram.sent);
        self.echoes.received += 1;
        self.echoes.bytes += u64::from(datagram.length);
        self.echoes.times.record(time);
        self.progress.latest = Some(time);
        if self.all_sent() && self.echoes.received == self.echoes.sent {
            self.progress.next = None;
            self.progress.finished.get_or_insert(api.now());
        }
    }

    fn on_deadline(&mut self, api: &mut P::Api<'_, '_>) {
        if self.progress.takes_turn(api.now()) {
            if self.all_sent() {
                self.progress.finished = Some(api.now());
            } else {
                self.ask(api);
            }
        }
    }

    fn progress(&self) -> ApplicationProgress {
        self.progress
    }

    fn datagram_bytes(&self) -> u64 {
        self.echoes.bytes
    }

    fn report(&self, _: Time, report: &mut Report) {
        report.finished = self.progress.finished;
        report.echoes = Some(self.echoes.clone());
    }
}

/// The other end, which returns UDP datagrams. The host itself answers ICMP requests.
#[derive(Debug)]
pub(super) struct EchoServer;

impl<P: SocketBackend> Application<P> for EchoServer {
    fn on_events(&mut self, _: SocketId, _: Events, _: &mut P::Api<'_, '_>) {}

    fn on_datagram(&mut self, arrival: Arrival, api: &mut P::Api<'_, '_>) {
        api.send_from(arrival.to, arrival.from, arrival.datagram);
    }
}
