//! A source of packets of random sizes at random times, over UDP, or written to a TCP connection as they
//! come.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bentpipe_tcp::Events;
use bentpipe_types::{Endpoint, Span, Time};

use crate::numbers::Numbers;
use crate::report::Messages;
use crate::{
    Application, Arrival, Datagram, Distribution, Report, SocketId, Standing, Workplace, World,
};

/// What carries the packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// Each is a datagram.
    Udp,
    /// Each is written to one connection.
    Tcp,
}

/// What is sent, and when.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PacketsSettings {
    /// What carries them.
    pub transport: Transport,
    /// Bytes of a packet, headers not counted.
    pub size: Distribution,
    /// Seconds from one to the next.
    pub interval: Distribution,
    /// Seconds for which it is on, and then off, by turns; `None`: on all the time.
    pub bursts: Option<(Distribution, Distribution)>,
    /// How long it goes on; `None`: until the end of the run.
    pub lasts: Option<Span>,
    /// Bytes of a datagram at most: a random size beyond is this.
    pub largest: u16,
}

impl PacketsSettings {
    /// The largest datagram: 65,535 bytes less the headers of IPv4 and UDP.
    pub const LARGEST: u16 = 65_507;
}

/// The messages that were written to a connection and have not been read whole: their bytes, and when.
pub(super) type Written = Arc<Mutex<VecDeque<(u64, Time)>>>;

/// The sending end.
#[derive(Debug)]
pub(super) struct Source {
    receiver: Endpoint,
    settings: PacketsSettings,
    written: Written,
    socket: Option<SocketId>,
    standing: Standing,
    /// When the burst ends.
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

    /// The next packet is to go at `at`, or once the source is on again.
    fn plan<D: Workplace>(&mut self, mut at: Time, desk: &mut D) {
        while let (Some(end), Some((_, off))) = (self.burst_ends, self.settings.bursts)
            && at > end
        {
            // What the burst had left of the interval passes in the next.
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
            // No more than one every nanosecond: the clock has to go on.
            self.plan(at + wait.max(Span::from_nanos(1)), desk);
        }
    }

    fn standing(&self) -> Standing {
        self.standing
    }

    fn report(&self, _: Time, report: &mut Report) {
        // Of what is written to a connection, all will come: it is not over before.
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
    /// Bytes read of the message that is under way.
    read: u64,
    messages: Messages,
    /// Of datagrams, which ones came, and their bytes.
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
        // What the network doubles is one message.
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
