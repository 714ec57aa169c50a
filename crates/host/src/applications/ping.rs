//! Echoes: periodic requests, and their response times.

use bentpipe_tcp::Events;
use bentpipe_types::{Endpoint, Span, Time};

use crate::numbers::Numbers;
use crate::report::Echoes;
use crate::{Application, Arrival, Datagram, Report, SocketId, Standing, Workplace, World};

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
    standing: Standing,
    answered: Numbers,
    echoes: Echoes,
}

impl Ping {
    pub(super) fn new(server: Endpoint, settings: PingSettings) -> Self {
        Self {
            server,
            settings,
            standing: Standing::default(),
            answered: Numbers::default(),
            echoes: Echoes::default(),
        }
    }

    fn all_sent(&self) -> bool {
        self.settings.count == Some(self.echoes.sent)
    }

    fn ask<D: Workplace>(&mut self, desk: &mut D) {
        let now = desk.now();
        let datagram = Datagram {
            length: self.settings.size,
            number: self.echoes.sent,
            sent: now,
        };
        match self.settings.by {
            EchoBy::Icmp => desk.ping(self.server, datagram),
            EchoBy::Udp => desk.send(self.server, datagram),
        };
        self.echoes.sent += 1;
        let wait = if self.all_sent() {
            LINGER
        } else {
            // The clock has to advance.
            self.settings.interval.max(Span::from_nanos(1))
        };
        self.standing.next = Some(now + wait);
    }
}

impl<P: World> Application<P> for Ping {
    fn start(&mut self, desk: &mut P::Desk<'_, '_>) {
        self.ask(desk);
    }

    fn on_events(&mut self, _: SocketId, _: Events, _: &mut P::Desk<'_, '_>) {}

    fn on_datagram(&mut self, Arrival { datagram, .. }: Arrival, desk: &mut P::Desk<'_, '_>) {
        if datagram.number >= self.echoes.sent || !self.answered.note(datagram.number) {
            return;
        }
        let time = desk.now().since(datagram.sent);
        self.echoes.received += 1;
        self.echoes.bytes += u64::from(datagram.length);
        self.echoes.times.record(time);
        self.standing.latest = Some(time);
        if self.all_sent() && self.echoes.received == self.echoes.sent {
            self.standing.next = None;
            self.standing.finished.get_or_insert(desk.now());
        }
    }

    fn on_deadline(&mut self, desk: &mut P::Desk<'_, '_>) {
        if self.standing.takes_turn(desk.now()) {
            if self.all_sent() {
                self.standing.finished = Some(desk.now());
            } else {
                self.ask(desk);
            }
        }
    }

    fn standing(&self) -> Standing {
        self.standing
    }

    fn datagram_bytes(&self) -> u64 {
        self.echoes.bytes
    }

    fn report(&self, _: Time, report: &mut Report) {
        report.finished = self.standing.finished;
        report.echoes = Some(self.echoes.clone());
    }
}

/// The other end, which returns UDP datagrams. The host itself answers ICMP requests.
#[derive(Debug)]
pub(super) struct EchoServer;

impl<P: World> Application<P> for EchoServer {
    fn on_events(&mut self, _: SocketId, _: Events, _: &mut P::Desk<'_, '_>) {}

    fn on_datagram(&mut self, arrival: Arrival, desk: &mut P::Desk<'_, '_>) {
        desk.send_from(arrival.to, arrival.from, arrival.datagram);
    }
}
