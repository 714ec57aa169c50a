//! The hybrid gateway: Asymmetric TCP/IP (gaid1998).
//!
//! Hosts behind it receive by satellite and send by another path, such as a modem. The gateway
//! acknowledges the servers' data on the hosts' behalf and offers the servers a larger window than
//! theirs. It stores the data that the hosts have not acknowledged, and retransmits it itself. The
//! two ends keep their own sequence numbers, ports, options and data.
//!
//! | file | section of gaid1998 |
//! |---|---|
//! | `tracked_connection` | 4.3: how a connection opens and closes |
//! | `from_server` | 4.1: segments of the server: stored, sent on, acknowledged |
//! | `from_host` | 4.2: segments of the host: forwarded with the gateway's acknowledgment number |
//! | `sending` | 3: sending beyond the host's window, retransmission; loss recovery as in TCP |
//! | `relay` | state of an established connection, and its timers |
//! | `segment_store` | the buffer of unacknowledged segments |
//! | `host_path_mtu` | (an addition) a path MTU to the host below the server's segment size |
//!
//! Guarantees to its users (samaraweera1999, section 3.2, names the risks):
//!
//! * It never acknowledges a SYN or FIN that the host has not acknowledged. So a successful close
//!   means that the host has received everything.
//! * The data held is bounded, per connection and in total. The window offered to a server shrinks
//!   as the buffer fills.
//! * RSTs are forwarded.
//! * A host that stops answering is given up after a bounded time, and the server is sent a RST.
//! * Packets other than TCP are forwarded unchanged, and so are connections whose SYN the gateway
//!   has not seen.
//!
//! Fields that it changes in a segment towards the server: the acknowledgment number, the window,
//! the SACK blocks (its own, never the host's, which are about data that the server has already
//! dropped), the echoed timestamp and, in a SYN, the window and the window scale. In a stored
//! segment towards the host: the acknowledgment number, window and timestamps, which are the
//! server's latest.

mod context;
mod from_host;
mod from_server;
mod handshake;
mod management;
mod relay;
mod segment_store;
mod sending;
mod settings;
mod side;
mod totals;
mod tracked_connection;
mod tracking_table;

use std::mem;
use std::sync::Arc;

use bentpipe_tcp::Config;
use bentpipe_types::{
    Agent, Ctx, DropReason, Flags, FlowKey, Gauge, Holdings, IcmpError, Managed, PacketRef, Port,
    Processing, Processor, Routes, Time,
};

use crate::crash::VolatileAgent;
use crate::icmp::IcmpReport;
use crate::refusal_notice::RefusalNotice;
use context::HybridContext;
use side::Side;
use totals::Totals;
use tracked_connection::{Phase, TrackedConnection, Verdict};
use tracking_table::TrackingTable;

pub use settings::{Anticipation, Recovery, Settings};

/// Gauges that probes may read: first those over all connections, then those of the connection with
/// the latest packet.
pub const GAUGES: &[Gauge] = &[
    Gauge::new(
        "buffered",
        "B",
        "Data that the gateway holds, of all connections.",
    ),
    Gauge::new("connections", "connections", "Open connections."),
    Gauge::new("host_window", "B", "Window that the host advertised."),
    Gauge::new(
        "eligible",
        "B",
        "Data held that the host's window allows to send.",
    ),
    Gauge::new(
        "offered_window",
        "B",
        "Window that the gateway advertises to the server.",
    ),
    Gauge::new("received", "B", "Stream offset received from the server."),
    Gauge::new("sent", "B", "Stream offset sent to the host."),
    Gauge::new(
        "acknowledged",
        "B",
        "Stream offset that the host has acknowledged.",
    ),
    Gauge::new(
        "acknowledged_to_server",
        "B",
        "Stream offset that the gateway has acknowledged to the server.",
    ),
    Gauge::new(
        "congestion_window",
        "B",
        "Congestion window towards the host.",
    ),
    Gauge::new("smoothed_rtt", "s", "Smoothed round-trip time to the host."),
    Gauge::new(
        "retransmission_timeout",
        "s",
        "Retransmission timeout towards the host.",
    ),
    Gauge::new(
        "rtt_deviation",
        "s",
        "Mean deviation of the round-trip times to the host.",
    ),
    Processing::GAUGE,
];

/// A gateway that acknowledges on behalf of hybrid hosts.
#[derive(Debug)]
pub struct Hybrid {
    settings: Settings,
    sender: Arc<Config>,
    routes: Routes,
    table: TrackingTable,
    totals: Totals,
    last: Option<u32>,
    refusal_notice: RefusalNotice,
    processor: Option<Processor>,
    /// Whether new connections are forwarded, because the gateway is about to end.
    is_draining: bool,
    /// Connections forwarded for that reason.
    passed_draining: u64,
}

impl Hybrid {
    /// Returns a gateway with these settings.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            sender: settings.sender().into(),
            table: TrackingTable::new(settings.connections),
            processor: settings.processing.map(Processor::new),
            settings,
            routes: Routes::default(),
            totals: Totals::default(),
            last: None,
            refusal_notice: RefusalNotice::default(),
            is_draining: false,
            passed_draining: 0,
        }
    }

    /// Bytes of memory that the connections take, stored packets excluded.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.table.memory()
    }

    /// Returns the end that a packet comes from, given the port that it leaves by; `None` if
    /// neither end is a hybrid host, or both are.
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
            // Both ends are hybrid hosts, or neither is.
            _ => None,
        }
    }

    fn is_closed(&self, slot: u32) -> bool {
        let tracked = self.table.get(slot);
        tracked.is_some_and(|tracked| matches!(tracked.phase, Phase::Closed { .. }))
    }

    /// Returns the tracked connection of a packet. A SYN starts the tracking of a new one.
    fn connection(&mut self, side: Side, reference: PacketRef, cx: &Ctx<'_>) -> Option<u32> {
        let key = FlowKey::of(cx.packets, reference);
        let key = match side {
            Side::Host => key,
            Side::Server => key.reversed(),
        };
        let flags = cx.packets.get(reference).flags;
        // Multipath TCP is not supported. It acknowledges its own data stream in an option of bare
        // ACKs, and its windows refer to that stream. A gateway that acknowledges by TCP's numbers
        // alone would stall it.
        let multipath =
            flags.opens() && (cx.packets.bytes(reference)).is_some_and(bentpipe_wire::is_multipath);
        match self.table.find(&key) {
            Some(slot) if multipath && self.is_closed(slot) => self.table.remove(slot),
            None => {}
            found => return found,
        }
        if multipath {
            return None;
        }
        // A SYN with an ACK belongs to a connection whose first SYN was missed.
        if !flags.has(Flags::SYN) || flags.has(Flags::ACK.with(Flags::RST)) {
            return None;
        }
        if self.is_draining {
            self.passed_draining += 1;
            return None;
        }
        let slot = self
            .table
            .insert(TrackedConnection::new(key, side, reference, cx));
        if slot.is_none() {
            self.totals.refused += 1;
            self.refusal_notice.note_refusal();
        } else {
            self.refusal_notice
                .note_admission(self.table.is_half_empty());
        }
        slot
    }

    fn relay(&self) -> Option<&relay::Relay> {
        match &self.table.get(self.last?)?.phase {
            Phase::Open(relay) => Some(relay),
            _ => None,
        }
    }

    /// Calls a function on a connection, and then arms its timer.
    fn with<T>(
        &mut self,
        slot: u32,
        cx: &mut Ctx<'_>,
        call: impl FnOnce(&mut TrackedConnection, &mut HybridContext<'_, '_>) -> T,
    ) -> Option<T> {
        let tracked = self.table.get_mut(slot)?;
        let port = |address| self.routes.port_towards(address).unwrap_or_default();
        self.totals.toward_host = port(tracked.host.address);
        self.totals.toward_server = port(tracked.server.address);
        let mut context = HybridContext {
            settings: &self.settings,
            sender: &self.sender,
            totals: &mut self.totals,
            cx,
        };
        let outcome = call(tracked, &mut context);
        let at = tracked.next_deadline(&self.settings);
        self.table.arm(slot, at);
        Some(outcome)
    }

    /// Number of packets in the processor's queue.
    fn processing(&self) -> u64 {
        self.processor.as_ref().map_or(0, Processor::packets)
    }

    /// Processes an ICMP "packet too big" error about a segment that the gateway has sent to a
    /// host. Returns true if it is one. The server cannot act on it, since the data was
    /// acknowledged to it already.
    fn handle_too_big(&mut self, packet: PacketRef, cx: &mut Ctx<'_>) -> bool {
        let Some(report) = IcmpReport::read(cx.packets, packet) else {
            return false;
        };
        let IcmpError::TooBig { mtu } = report.error else {
            return false;
        };
        let Some(slot) = report.keys().find_map(|key| self.table.find(&key)) else {
            return false;
        };
        let taken = self.with(slot, cx, |tracked, context| match &mut tracked.phase {
            Phase::Open(relay) => relay.on_too_big(mtu, report.sequence, context),
            _ => false,
        });
        taken == Some(true)
    }

    /// Processes a packet that has left the processor's queue.
    fn handle(&mut self, packet: PacketRef, cx: &mut Ctx<'_>) {
        // RFC 1812 section 5.3.1: a router that forwards a packet decrements its TTL.
        if !cx.packets.hop(packet) {
            cx.discard(packet, DropReason::HopLimit);
            return;
        }
        let destination = cx.packets.get(packet).destination.address;
        let Some(port) = self.routes.port_towards(destination) else {
            cx.discard(packet, DropReason::NoRoute);
            return;
        };
        if !cx.packets.get(packet).is_tcp() && self.handle_too_big(packet, cx) {
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
        let verdict = self.with(slot, cx, |tracked, context| {
            tracked.on_packet(side, packet, context)
        });
        if matches!(verdict, Some(Verdict::Forward) | None) {
            cx.emit(port, packet);
        }
    }
}

impl VolatileAgent for Hybrid {
    fn lose_power(&mut self, cx: &mut Ctx<'_>) -> u64 {
        while let Some(packet) = self.processor.as_mut().and_then(Processor::abandon) {
            cx.discard(packet, DropReason::Down);
        }
        let mut context = HybridContext {
            settings: &self.settings,
            sender: &self.sender,
            totals: &mut self.totals,
            cx,
        };
        let anew = TrackingTable::new(self.settings.connections);
        for mut tracked in mem::replace(&mut self.table, anew).into_connections() {
            if let Phase::Open(relay) = &mut tracked.phase {
                relay.clear(&mut context);
            }
        }
        (self.last, self.refusal_notice) = (None, RefusalNotice::default());
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
            let over = self.with(slot, cx, |tracked, context| {
                if tracked.expires_at(context.settings) <= context.cx.now {
                    tracked.close(context);
                    return true;
                }
                tracked.on_deadline(context);
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

    /// Resets both ends of every connection of which data is held, or whose window scale was
    /// changed. The other connections go on without the gateway.
    fn retire(&mut self, cx: &mut Ctx<'_>) {
        for slot in 0..self.table.end() {
            if self.table.get(slot).is_some() {
                self.with(slot, cx, TrackedConnection::close);
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
        match self.refusal_notice {
            RefusalNotice::None => None,
            RefusalNotice::Refusing | RefusalNotice::RefusingHalfOpen => Some(
                "the connection table is full: new connections are forwarded unchanged (\"connections\" is the limit)",
            ),
            RefusalNotice::AcceptingAgain => Some("the connection table has space again"),
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
            ("from_server.out_of_order", totals.out_of_order),
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
                let limit = relay
                    .send_limit(self.settings.anticipation)
                    .min(relay.receive_next);
                limit.saturating_sub(relay.acknowledged) as f64
            }),
            4 => {
                of_connection(&|relay| relay.window_edge.saturating_sub(relay.receive_next) as f64)
            }
            5 => of_connection(&|relay| bytes(relay.receive_next)),
            6 => of_connection(&|relay| bytes(relay.unsent())),
            7 => of_connection(&|relay| bytes(relay.acknowledged)),
            8 => of_connection(&|relay| bytes(relay.acknowledged_to_server)),
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

    fn managed(&mut self) -> Option<&mut dyn Managed> {
        Some(self)
    }
}

#[cfg(test)]
mod tests;
