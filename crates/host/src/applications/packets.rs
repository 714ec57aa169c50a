//! A source of packets with random sizes at random times, over UDP or written to a TCP connection.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bentpipe_tcp::Events;
use bentpipe_types::{Endpoint, Span, Time};

use crate::numbers::Numbers;
use crate::report::Messages;
use crate::{
    Application, Arrival, Datagram, Distribution, Report, SocketId, Standing, Workplace, World,
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
    standing: Standing,
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
            standing: Standing::default(),
            burst_ends: None,
            ends: None,
            sent: 0,
        }
    }

    fn begin<D: Workplace>(&mut self, desk: &mut D) {
        let now = desk.now();
        self.ends = self.settings.lasts.map(|lasts| now + lasts);
        self.burst(now, desk);
        let wait = self.settings.interval.span(desk.random());
        self.plan(now + wait, desk);
    }

    fn burst<D: Workplace>(&mut self, from: Time, desk: &mut D) {
        if let Some((on, _)) = self.settings.bursts {
            self.burst_ends = Some(from + on.span(desk.random()));
        }
    }

    /// Schedules the next packet at `at`, or at the start of the next on period.
    fn plan<D: Workplace>(&mut self, mut at: Time, desk: &mut D) {
        while let (Some(end), Some((_, off))) = (self.burst_ends, self.settings.bursts)
            && at > end
        {
            // The rest of the interval elapses in the next on period.
            let again = end + off.span(desk.random());
            at = again + at.since(end);
            self.burst(again, desk);
            if self.ends.is_some_and(|ends| again >= ends) {
                break;
            }
        }
        self.standing.next = Some(at);
        if self.ends.is_some_and(|ends| at >= ends) {
            self.standing.next = self.ends;
        }
    }

    fn send<D: Workplace>(&mut self, desk: &mut D) {
        let size = self.settings.size.bytes(desk.random());
        let now = desk.now();
        match (self.settings.transport, self.socket) {
            (Transport::Udp, _) => {
                let datagram = Datagram {
                    length: size.min(u64::from(self.settings.largest)) as u16,
                    number: self.sent,
                    sent: now,
                };
                desk.send(self.receiver, datagram);
            }
            (Transport::Tcp, Some(socket)) => {
                if let Ok(mut written) = self.written.lock() {
                    written.push_back((size, now));
                }
                desk.feed(socket, size, false);
            }
            (Transport::Tcp, None) => return,
        }
        self.sent += 1;
    }
}

impl<P: World> Application<P> for Source {
    fn start(&mut self, desk: &mut P::Desk<'_, '_>) {
        match self.settings.transport {
            Transport::Udp => self.begin(desk),
            Transport::Tcp => self.socket = desk.connect(self.receiver).ok(),
        }
    }

    fn on_events(&mut self, socket: SocketId, events: Events, desk: &mut P::Desk<'_, '_>) {
        if events.has(Events::ESTABLISHED) {
            self.begin(desk);
        }
        if events.has(Events::PEER_CLOSED) {
            desk.close(socket);
        }
        if events.has(Events::CLOSED) {
            self.standing.next = None;
            self.socket = None;
        }
    }

    fn on_deadline(&mut self, desk: &mut P::Desk<'_, '_>) {
        let now = desk.now();
        while let Some(at) = self.standing.next
            && at <= now
        {
            if self.ends.is_some_and(|ends| at >= ends) {
                self.standing.next = None;
                self.standing.finished = Some(now);
                if let Some(socket) = self.socket {
                    desk.feed(socket, 0, true);
                }
                return;
            }
            self.send(desk);
            let wait = self.settings.interval.span(desk.random());
            // At most one per nanosecond, so that the clock advances.
            self.plan(at + wait.max(Span::from_nanos(1)), desk);
        }
    }

    fn standing(&self) -> Standing {
        self.standing
    }

    fn report(&self, _: Time, report: &mut Report) {
        // Everything written to a connection will arrive; the source is not finished before.
        let is_there = self.written.lock().is_ok_and(|written| written.is_empty());
        report.finished = self.standing.finished.filter(|_| is_there);
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
    numbers: Numbers,
    bytes: u64,
    standing: Standing,
}

impl Receiver {
    pub(super) fn new(written: Written) -> Self {
        Self {
            written,
            read: 0,
            messages: Messages::default(),
            numbers: Numbers::default(),
            bytes: 0,
            standing: Standing::default(),
        }
    }

    fn received(&mut self, bytes: u64, sent: Time, now: Time) {
        let delay = now.since(sent);
        self.messages.last = Some(now);
        self.messages.received += 1;
        self.messages.bytes += bytes;
        self.messages.delays.record(delay);
        self.standing.latest = Some(delay);
    }
}

impl<P: World> Application<P> for Receiver {
    fn on_events(&mut self, socket: SocketId, events: Events, desk: &mut P::Desk<'_, '_>) {
        self.read += desk.read(socket, u64::MAX);
        let written = Arc::clone(&self.written);
        if let Ok(mut written) = written.lock() {
            while let Some((size, sent)) = written.front().copied()
                && size <= self.read
            {
                written.pop_front();
                self.read -= size;
                self.received(size, sent, desk.now());
            }
        }
        if events.has(Events::PEER_CLOSED) {
            desk.close(socket);
        }
    }

    fn on_datagram(&mut self, Arrival { datagram, .. }: Arrival, desk: &mut P::Desk<'_, '_>) {
        // Duplicates count once.
        if self.numbers.note(datagram.number) {
            self.bytes += u64::from(datagram.length);
            self.received(u64::from(datagram.length), datagram.sent, desk.now());
        }
    }

    fn standing(&self) -> Standing {
        self.standing
    }

    fn datagram_bytes(&self) -> u64 {
        self.bytes
    }

    fn report(&self, _: Time, report: &mut Report) {
        report.messages = Some(self.messages.clone());
    }
}
