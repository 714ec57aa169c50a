//! The hybrid gateway: Asymmetric TCP/IP (gaid1998).
//!
//! Hosts behind it receive by satellite and send by another way, a modem's say. It acknowledges the
//! servers' data on their behalf, offers the servers a larger window than theirs, keeps what they have
//! not acknowledged, and sends it again itself. Both ends stay what they are: sequence numbers, ports,
//! options and contents are theirs.
//!
//! | file | gaid1998 |
//! |---|---|
//! | `tracked` | 4.3: how a connection opens, what becomes of it |
//! | `from_server` | 4.1: segments of the server: kept, sent on, acknowledged |
//! | `from_host` | 4.2: segments of the host: forwarded with the gateway's acknowledgment number |
//! | `sending` | 3: beyond the host's window, again after the timeout; the paper's future: as a TCP does |
//! | `relay` | what is known of both ends of an established connection, and its timers |
//! | `store` | the unacknowledged segments buffer |
//! | `narrow` | (not there:) a way to the host that takes shorter packets than the server sends |
//!
//! What it owes its users (and samaraweera1999, section 3.2, names): it never acknowledges a SYN or a
//! FIN that the host has not, so that a close that succeeds means that the host has everything; what
//! it holds is bounded per connection and in all, and the window that it offers shrinks as it fills;
//! RSTs pass; a host that vanishes is given up after a bounded time, and the server told; what is not
//! TCP, and connections that it did not see begin, pass untouched.
//!
//! What it changes in a segment: to the server, acknowledgment number, window, SACK blocks (its own,
//! never the host's: those are of what the server is rid of), the timestamp that is echoed, and, in a
//! SYN, the window and the window scale; to the host, in what it held, what the server has said since.

mod from_host;
mod from_server;
mod narrow;
mod relay;
mod sending;
mod settings;
mod store;
mod table;
mod totals;
mod tracked;

use std::mem;
use std::sync::Arc;

use bentpipe_tcp::Config;
use bentpipe_types::{
    Agent, Ctx, DropReason, Flags, FlowKey, Gauge, Holdings, IcmpError, PacketRef, Port, Processor,
    Routes, Time,
};

use crate::crash::Volatile;
use crate::icmp::Complaint;
use crate::room::Room;
use table::Table;
use totals::Totals;
use tracked::{Fate, Hall, Phase, Side, Tracked};

pub use settings::{Anticipation, Recovery, Settings};

/// What probes may look at: first of all connections together, then of the one heard of last.
pub const GAUGES: &[Gauge] = &[
    gauge("buffered", "B"),
    gauge("connections", "connections"),
    gauge("host_window", "B"),
    gauge("eligible", "B"),
    gauge("offered_window", "B"),
    gauge("received", "B"),
    gauge("sent", "B"),
    gauge("acknowledged", "B"),
    gauge("acknowledged_to_server", "B"),
    gauge("congestion_window", "B"),
    gauge("smoothed_rtt", "s"),
    gauge("retransmission_timeout", "s"),
    gauge("rtt_deviation", "s"),
    gauge("processing", "packets"),
];

const fn gauge(name: &'static str, unit: &'static str) -> Gauge {
    Gauge { name, unit }
}

/// A hybrid gateway.
#[derive(Debug)]
pub struct Hybrid {
    settings: Settings,
    sender: Arc<Config>,
    routes: Routes,
    table: Table,
    totals: Totals,
    last: Option<u32>,
    room: Room,
    processor: Option<Processor>,
}

impl Hybrid {
    /// A gateway with these settings.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            sender: settings.sender().into(),
            table: Table::new(settings.connections),
            processor: settings.processing.map(Processor::new),
            settings,
            routes: Routes::default(),
            totals: Totals::default(),
            last: None,
            room: Room::default(),
        }
    }

    /// Bytes of memory that its connections take, the packets that it holds aside.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.table.memory()
    }

    /// Which end a packet comes from, and the port that it goes on by; `None`: neither end is a host
    /// of this gateway's.
    fn side(&self, reference: PacketRef, port: Port, cx: &Ctx<'_>) -> Option<Side> {
        let packet = cx.packets.get(reference);
        if !packet.is_tcp() {
            return None;
        }
        let towards = self.settings.facing.contains(&port);
        let source = self.routes.port_towards(packet.source.address);
        let from = source.is_some_and(|port| self.settings.facing.contains(&port));
        match (from, towards) {
            (true, false) => Some(Side::Host),
            (false, true) => Some(Side::Server),
            // Between two hosts of the gateway's, or none.
            _ => None,
        }
    }

    fn is_over(&self, slot: u32) -> bool {
        let tracked = self.table.get(slot);
        tracked.is_some_and(|tracked| matches!(tracked.phase, Phase::Over { .. }))
    }

    /// The connection that a packet belongs to, if it is, or is to be, tracked.
    fn connection(&mut self, side: Side, reference: PacketRef, cx: &Ctx<'_>) -> Option<u32> {
        let key = FlowKey::of(cx.packets, reference);
        let key = match side {
            Side::Host => key,
            Side::Server => key.reversed(),
        };
        let flags = cx.packets.get(reference).flags;
        // Multipath TCP acknowledges its own stream by options of acknowledgments that say nothing else, and counts windows from
        // there: who answers on behalf of a host, by TCP's numbers alone, would hold it up for ever.
        let multipath =
            flags.opens() && (cx.packets.bytes(reference)).is_some_and(bentpipe_wire::is_multipath);
        match self.table.find(&key) {
            Some(slot) if multipath && self.is_over(slot) => self.table.remove(slot),
            None => {}
            found => return found,
        }
        if multipath {
            return None;
        }
        // A SYN that is acknowledged already is of a connection whose beginning was missed.
        if !flags.has(Flags::SYN) || flags.has(Flags::ACK.with(Flags::RST)) {
            return None;
        }
        let slot = self.table.insert(Tracked::new(key, side, reference, cx));
        if slot.is_none() {
            self.totals.refused += 1;
            self.room.turned_away();
        } else {
            self.room.found(self.table.is_half_empty());
        }
        slot
    }

    fn relay(&self) -> Option<&relay::Relay> {
        match &self.table.get(self.last?)?.phase {
            Phase::Open(relay) => Some(relay),
            _ => None,
        }
    }

    /// Calls a connection, and arms its deadline.
    fn with<T>(
        &mut self,
        slot: u32,
        cx: &mut Ctx<'_>,
        call: impl FnOnce(&mut Tracked, &mut Hall<'_, '_>) -> T,
    ) -> Option<T> {
        let tracked = self.table.get_mut(slot)?;
        let port = |address| self.routes.port_towards(address).unwrap_or_default();
        self.totals.toward_host = port(tracked.host.address);
        self.totals.toward_server = port(tracked.server.address);
        let mut hall = Hall {
            settings: &self.settings,
            sender: &self.sender,
            totals: &mut self.totals,
            cx,
        };
        let outcome = call(tracked, &mut hall);
        let at = tracked.next_deadline(&self.settings);
        self.table.arm(slot, at);
        Some(outcome)
    }

    /// Packets that the processor has not done with.
    fn processing(&self) -> u64 {
        self.processor.as_ref().map_or(0, Processor::packets)
    }

    /// Is this an ICMP error that says that a segment is too long which the gateway has sent to a host? Its sender, for
    /// whom it is, can do nothing about what it has been told to be there.
    fn is_told_too_big(&mut self, packet: PacketRef, cx: &mut Ctx<'_>) -> bool {
        let Some(complaint) = Complaint::read(cx.packets, packet) else {
            return false;
        };
        let IcmpError::TooBig { mtu } = complaint.error else {
            return false;
        };
        let Some(slot) = complaint.keys().find_map(|key| self.table.find(&key)) else {
            return false;
        };
        let taken = self.with(slot, cx, |tracked, hall| match &mut tracked.phase {
            Phase::Open(relay) => relay.too_big(mtu, complaint.sequence, hall),
            _ => false,
        });
        taken == Some(true)
    }

    /// A packet that the processor is done with.
    fn handle(&mut self, packet: PacketRef, cx: &mut Ctx<'_>) {
        // RFC 1812 section 5.3.1: whoever sends a packet on takes a hop off.
        if !cx.packets.hop(packet) {
            cx.discard(packet, DropReason::HopLimit);
            return;
        }
        let destination = cx.packets.get(packet).destination.address;
        let Some(port) = self.routes.port_towards(destination) else {
            cx.discard(packet, DropReason::NoRoute);
            return;
        };
        if !cx.packets.get(packet).is_tcp() && self.is_told_too_big(packet, cx) {
            cx.packets.release(packet);
            return;
        }
        let Some(side) = self.side(packet, port, cx) else {
            self.totals.passed += 1;
            cx.emit(port, packet);
            return;
        };
        let Some(slot) = self.connection(side, packet, cx) else {
            self.totals.passed += 1;
            cx.emit(port, packet);
            return;
        };
        self.last = Some(slot);
        let fate = self.with(slot, cx, |tracked, hall| {
            tracked.on_packet(side, packet, hall)
        });
        if matches!(fate, Some(Fate::Passes) | None) {
            cx.emit(port, packet);
        }
    }
}

impl Volatile for Hybrid {
    fn lose_power(&mut self, cx: &mut Ctx<'_>) -> u64 {
        while let Some(packet) = self.processor.as_mut().and_then(Processor::abandon) {
            cx.discard(packet, DropReason::Down);
        }
        let mut hall = Hall {
            settings: &self.settings,
            sender: &self.sender,
            totals: &mut self.totals,
            cx,
        };
        let anew = Table::new(self.settings.connections);
        for mut tracked in mem::replace(&mut self.table, anew).into_tracked() {
            if let Phase::Open(relay) = &mut tracked.phase {
                relay.clear(&mut hall);
            }
        }
        (self.last, self.room) = (None, Room::default());
        debug_assert_eq!((self.totals.bytes, self.totals.packets), (0, 0));
        mem::take(&mut self.totals.open)
    }
}

impl Agent for Hybrid {
    fn routes(&mut self, routes: Routes) {
        self.routes = routes;
    }

    fn on_packet(&mut self, from: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        let Some(processor) = &mut self.processor else {
            self.handle(packet, cx);
            return;
        };
        if let Some(packet) = processor.offer(from, packet, cx.now) {
            self.totals.dropped += 1;
            cx.discard(packet, DropReason::Busy);
        }
    }

    fn on_deadline(&mut self, cx: &mut Ctx<'_>) {
        while let Some((_, packet)) = (self.processor.as_mut()).and_then(|each| each.take(cx.now)) {
            self.handle(packet, cx);
        }
        while let Some(slot) = self.table.due(cx.now) {
            let over = self.with(slot, cx, |tracked, hall| {
                if tracked.forgotten_at(hall.settings) <= hall.cx.now {
                    tracked.forget(hall);
                    return true;
                }
                tracked.on_deadline(hall);
                false
            });
            if over == Some(true) {
                self.table.remove(slot);
            }
            debug_assert!(
                self.table
                    .get(slot)
                    .is_none_or(|tracked| { tracked.next_deadline(&self.settings) > cx.now }),
                "a deadline that stays"
            );
        }
    }

    /// Both ends are told that it is over of every connection of which something is held, or whose windows would be
    /// misunderstood; the others go on by themselves.
    fn retire(&mut self, cx: &mut Ctx<'_>) {
        for slot in 0..self.table.end() {
            if self.table.get(slot).is_some() {
                self.with(slot, cx, Tracked::forget);
                self.table.remove(slot);
            }
        }
        self.last = None;
    }

    fn next_deadline(&self) -> Option<Time> {
        let processed = self.processor.as_ref().and_then(Processor::next);
        match (processed, self.table.next_deadline()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn remark(&self) -> Option<&'static str> {
        match self.room {
            Room::Enough => None,
            Room::Full => Some(
                "there is no room for more connections: nobody answers for their hosts (\"connections\" says how many there may be)",
            ),
            Room::Again => Some("there is room for connections again"),
        }
    }

    fn holdings(&self) -> Holdings {
        Holdings {
            packets: self.totals.packets + self.processing(),
            bytes: self.totals.bytes,
        }
    }

    fn counters(&self, visit: &mut dyn FnMut(&str, u64)) {
        let totals = &self.totals;
        for (name, value) in [
            ("connections.tracked", totals.tracked),
            ("connections.refused", totals.refused),
            ("connections.given_up", totals.given_up),
            ("connections.reset", totals.resets),
            ("connections.open", totals.open),
            ("bytes_held.now", totals.bytes),
            ("bytes_held.max", totals.bytes_maximum),
            ("bytes_held.max_of_one", totals.connection_maximum),
            ("to_host.segments", totals.segments),
            ("to_host.retransmissions", totals.retransmissions),
            ("to_host.timeouts", totals.timeouts),
            ("to_host.beyond_window", totals.beyond_window),
            ("to_host.parts", totals.parts),
            ("to_host.icmp_errors", totals.icmp_errors),
            ("to_host.window_probes", totals.probes),
            ("from_server.duplicates", totals.duplicates),
            ("from_server.out_of_order", totals.ahead),
            ("from_server.no_room", totals.no_room),
            ("acknowledgments.made", totals.acknowledgments),
            ("acknowledgments.consumed", totals.consumed),
            ("packets_passed", totals.passed),
        ] {
            visit(name, value);
        }
        if self.processor.is_some() {
            visit("packets_dropped", totals.dropped);
        }
    }

    fn gauges(&self) -> &'static [Gauge] {
        GAUGES
    }

    fn gauge(&self, index: usize) -> f64 {
        let of_connection =
            |value: &dyn Fn(&relay::Relay) -> f64| self.relay().map_or(f64::NAN, value);
        let bytes = |position: u64| position.saturating_sub(1) as f64;
        match index {
            0 => self.totals.bytes as f64,
            1 => self.totals.open as f64,
            2 => of_connection(&|relay| relay.host_window as f64),
            3 => of_connection(&|relay| {
                let limit = relay.limit(self.settings.anticipation).min(relay.next);
                limit.saturating_sub(relay.acknowledged) as f64
            }),
            4 => of_connection(&|relay| relay.edge.saturating_sub(relay.next) as f64),
            5 => of_connection(&|relay| bytes(relay.next)),
            6 => of_connection(&|relay| bytes(relay.unsent())),
            7 => of_connection(&|relay| bytes(relay.acknowledged)),
            8 => of_connection(&|relay| bytes(relay.told)),
            9 => of_connection(&|relay| {
                let sender = relay.sender.as_ref();
                sender.map_or(f64::NAN, |sender| sender.congestion_window() as f64)
            }),
            10 => of_connection(&|relay| {
                let rtt = relay
                    .sender
                    .as_ref()
                    .and_then(|sender| sender.smoothed_rtt());
                rtt.map_or(f64::NAN, |rtt| rtt.as_secs_f64())
            }),
            11 => of_connection(&|relay| {
                let sender = relay.sender.as_ref();
                sender.map_or(f64::NAN, |sender| sender.rto().as_secs_f64())
            }),
            12 => of_connection(&|relay| {
                let sender = relay.sender.as_ref();
                let deviation = sender.and_then(|sender| sender.rtt_deviation());
                deviation.map_or(f64::NAN, |deviation| deviation.as_secs_f64())
            }),
            13 => self.processing() as f64,
            _ => f64::NAN,
        }
    }

    fn is_quiet(&self) -> bool {
        self.totals.packets == 0 && self.totals.open == 0 && self.processing() == 0
    }
}

#[cfg(test)]
mod tests;
