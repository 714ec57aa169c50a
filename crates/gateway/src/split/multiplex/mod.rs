//! Multiplexing: the connections of many hosts over a few persistent TCP connections between two
//! gateways.
//!
//! Two gateways that face each other across the satellite link open persistent connections
//! ("trunks") between themselves and carry the hosts' connections as streams on them. A host's
//! connection then opens without a handshake over the satellite, and starts with a congestion
//! window that is already open. The price is head-of-line blocking: a segment lost on a trunk
//! delays everything behind it on the same trunk, whichever stream it belongs to.
//!
//! | file | contents |
//! |---|---|
//! | `frame` | the frames that the gateways exchange, as bytes |
//! | `frame_io` | reading and writing frames on a trunk |
//! | `trunk` | one persistent connection |
//! | `multiplexed_connection` | a host's connection: its leg, its stream, the stream's credit |
//! | `connection_setup` | how trunks and the connections that they carry open |
//! | `peer_liveness` | whether the other gateway is alive |
//! | `fallback` | separate connections for streams that were opened to a gateway that may be down |
//!
//! Each trunk has a number and uses the same port at both ends. The gateway that first needs it
//! opens it; if both open it at once, the result is still one connection (RFC 9293 section 3.5). A
//! trunk stays open. When it fails, the hosts of all connections that it carries are reset, and the
//! next connection opens it again.

mod connection_setup;
mod fallback;
mod frame;
mod frame_io;
mod multiplexed_connection;
mod peer_liveness;
mod peer_probing;
mod trunk;

use std::sync::Arc;

use bentpipe_tcp::{Config, KeepAlive, PassiveFastOpen, Payload, Rings, Socket, reset_reply};
use bentpipe_types::{
    Ctx, Flags, FlowKey, HostAddress, PacketRef, Port, Routes, Seq, Span, StreamCheck, Time,
};
use rustc_hash::FxHashMap;

use super::counters::Counters;
use super::ended_connections::EndedConnections;
use super::leg_settings::LegSettingsCache;
use super::memory_budget::{MULTIPLEXED_STATE, MemoryBudget};
use super::settings::LegType;
use super::unmultiplexed::UnmultiplexedConnections;
use super::{Multiplexing, Settings};
use crate::deadlines::Deadlines;
use crate::icmp::IcmpReport;
use crate::slab::Slab;
use frame::ResetReason;
use multiplexed_connection::{FROM_HOST, OpenOutcome, TO_HOST};
use trunk::Trunk;

pub(super) use connection_setup::OpenRequest;
pub(super) use multiplexed_connection::MultiplexedConnection;

/// Port of the first trunk, at both ends. The other trunks use the following ports. (The number is
/// that of RFC 3135, which assigns no port.)
const FIRST_PORT: u16 = 3135;
/// Pause before a gateway that has refused a trunk is asked for another.
const REFUSAL_PAUSE: Span = Span::from_secs(60);
/// Bytes read from a trunk at a time.
const READ_CHUNK: usize = 64 << 10;

/// The parts of the gateway that multiplexing uses.
pub(super) struct GatewayContext<'a> {
    pub(super) settings: &'a Settings,
    pub(super) routes: &'a Routes,
    pub(super) leg_settings: &'a mut LegSettingsCache,
    pub(super) budget: &'a mut MemoryBudget,
    pub(super) counters: &'a mut Counters,
    /// Split connections that no trunk carries.
    pub(super) unmultiplexed: &'a mut dyn UnmultiplexedConnections,
    /// Bytes of state that one multiplexed connection takes.
    pub(super) state_bytes: u64,
}

impl GatewayContext<'_> {
    /// Returns the TCP settings of a new leg to a host, with the initial receive window `first`.
    fn host_leg_config(&mut self, key: &FlowKey, first: u64) -> Arc<Config> {
        (self.leg_settings).of(LegType::MultiplexedConnection, key, first, self.settings)
    }
}

/// A host's SYN that no trunk can carry after all.
#[derive(Debug)]
pub(super) struct ReturnedSyn {
    pub(super) key: FlowKey,
    pub(super) syn: PacketRef,
    /// Port that it arrived on.
    pub(super) from: Port,
    pub(super) disposition: SynDisposition,
}

/// How the gateway handles a returned SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SynDisposition {
    /// Retry on another trunk, or split the connection without one. The other gateway has not been
    /// told of it.
    Retry,
    /// Forward it unsplit. The other gateway has no memory for the connection.
    Forward,
    /// Also open a connection without a trunk, in parallel to the stream. The other gateway was
    /// told of the stream, and may be down.
    OpenFallback,
}

/// State of the other gateway that the operator should know of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PeerNotice {
    NoAnswer,
    Silent,
    Lost,
    Restarted,
    Recovered,
    PeerUsesMore,
    RefusesMore,
    RefusesAll,
}

impl PeerNotice {
    /// Returns true if the notice says that the other gateway is, or was, not there.
    const fn is_about_absence(self) -> bool {
        matches!(
            self,
            Self::NoAnswer | Self::Silent | Self::Lost | Self::Restarted
        )
    }

    const fn text(self) -> &'static str {
        match self {
            Self::NoAnswer => {
                "the other gateway does not answer: until it does, connections are split without persistent connections"
            }
            Self::Silent => {
                "the other gateway is silent: until it answers, connections are split without persistent connections"
            }
            Self::Lost => {
                "the other gateway was silent for too long: the connections carried over persistent ones were reset"
            }
            Self::Restarted => {
                "the other gateway has ended or restarted: the connections carried over a persistent one were reset"
            }
            Self::Recovered => {
                "the other gateway answers: connections are carried over persistent ones"
            }
            Self::PeerUsesMore => {
                "the other gateway opens more persistent connections than \"multiplex\" allows here: set the same value at both gateways"
            }
            Self::RefusesMore => {
                "the other gateway refuses some of the persistent connections: its \"multiplex\" is smaller, or it has no memory left"
            }
            Self::RefusesAll => {
                "the other gateway refuses persistent connections: it has no memory left for them, or \"--address\" there is an address of the machine itself"
            }
        }
    }
}

/// This gateway's side of the trunks to its peer.
#[derive(Debug)]
pub(super) struct Multiplex<P> {
    options: Multiplexing,
    /// When the peer is probed.
    keep_alive: KeepAlive,
    /// Whether a SYN has to announce that this gateway has restarted.
    announce_restart: bool,
    trunks: Vec<Option<Trunk>>,
    /// For each slot, whether its last trunk was given up because the peer was silent. New
    /// connections do not wait for a new trunk there until one is established.
    slot_lost: Vec<bool>,
    connections: Slab<Box<MultiplexedConnection<P>>>,
    /// Multiplexed connection by the key of packets from the host on this side.
    flows: FxHashMap<FlowKey, u32>,
    deadlines: Deadlines,
    ended: EndedConnections,
    /// SYNs that no trunk can carry, for the gateway to handle.
    returned_syns: Vec<ReturnedSyn>,
    /// No trunk is opened before this time: the peer has refused one, for want of memory or for
    /// another reason, or has just not answered.
    pause_until: Time,
    /// The peer did not answer the last time. New trunks are still attempted, but no connection
    /// waits for them.
    peer_absent: bool,
    /// Latest notice for the operator.
    notice: Option<PeerNotice>,
    scratch: Vec<u8>,
}

impl<P: Payload> Multiplex<P> {
    /// Returns the state with no trunk open.
    pub(super) fn new(with: Multiplexing, settings: &Settings) -> Self {
        Self {
            options: with,
            keep_alive: (settings.facing_tcp.keep_alive).unwrap_or(peer_liveness::KEEP_ALIVE),
            // A process that has just started has no record of the trunks of an earlier one.
            announce_restart: with.real.is_some(),
            trunks: (0..with.connections).map(|_| None).collect(),
            slot_lost: vec![false; with.connections],
            connections: Slab::default(),
            flows: FxHashMap::default(),
            deadlines: Deadlines::default(),
            ended: EndedConnections::new([&settings.host_tcp; 2]),
            returned_syns: Vec::new(),
            pause_until: Time::ZERO,
            peer_absent: false,
            notice: None,
            scratch: Vec::new(),
        }
    }

    /// Returns the addresses of this gateway and of the peer, as both gateways see them.
    fn gateway_addresses(&self, context: &GatewayContext<'_>) -> [HostAddress; 2] {
        match self.options.real {
            Some(real) => [real.own, real.peer].map(HostAddress::Ip),
            None => [context.routes.here(), self.options.peer].map(HostAddress::Node),
        }
    }

    /// Returns true if this gateway opens the streams with odd numbers. The other one opens the
    /// even ones.
    fn opens_odd_streams(&self, context: &GatewayContext<'_>) -> bool {
        let [here, there] = self.gateway_addresses(context);
        here > there
    }

    /// Bytes of memory charged for a connection, its stream's bytes excluded.
    pub(super) const fn state_bytes() -> usize {
        const {
            assert!(
                size_of::<MultiplexedConnection<P>>() + 2 * (size_of::<FlowKey>() + 16) + 48
                    <= MULTIPLEXED_STATE
            );
        }
        MULTIPLEXED_STATE
    }

    /// Returns true if no connection is left, not even one in TIME-WAIT.
    pub(super) fn has_no_connections(&self) -> bool {
        self.connections.len() == 0 && self.flows.is_empty()
    }

    /// Memory reserved for all trunks.
    #[cfg(test)]
    pub(super) fn reserved(&self) -> u64 {
        self.trunks
            .iter()
            .flatten()
            .map(|trunk| trunk.reserved)
            .sum()
    }

    /// Writes bytes that may be no valid frame to a trunk.
    #[cfg(test)]
    pub(super) fn write_raw(&mut self, slot: usize, bytes: &[u8], cx: &mut Ctx<'_>) {
        self.trunks[slot]
            .as_mut()
            .expect("it is open")
            .write(bytes, true, cx);
    }

    /// Returns the multiplexed connections.
    pub(super) fn connections(&self) -> impl Iterator<Item = &MultiplexedConnection<P>> {
        self.connections.iter().map(Box::as_ref)
    }

    /// Returns the sockets of the trunks.
    pub(super) fn trunks(&self) -> impl Iterator<Item = &Socket<Rings>> {
        self.trunks.iter().flatten().map(|trunk| &trunk.socket)
    }

    /// Returns true if no trunk has work of its own. Trunks stay open without streams and go on
    /// probing the peer; the last acknowledgment on one may be delayed.
    pub(super) fn is_quiet(&self) -> bool {
        let mut trunks = self.trunks.iter().flatten();
        trunks.all(|trunk| trunk.socket.has_no_work() && !trunk.liveness.is_probing())
    }

    /// Number of SYNs held.
    pub(super) fn syns(&self) -> u64 {
        self.connections
            .iter()
            .filter(|one| one.syn.is_some())
            .count() as u64
    }

    /// Takes one of the SYNs that no trunk can carry.
    pub(super) fn take_returned(&mut self) -> Option<ReturnedSyn> {
        self.returned_syns.pop()
    }

    /// Latest notice for the operator, in one line.
    pub(super) fn notice(&self) -> Option<&'static str> {
        self.notice.map(PeerNotice::text)
    }

    /// Returns the number of the trunk that a packet belongs to. It may be beyond this gateway's
    /// own trunks, if the peer is configured with more.
    pub(super) fn trunk_of(
        &self,
        routes: &Routes,
        packet: PacketRef,
        cx: &Ctx<'_>,
    ) -> Option<usize> {
        let record = cx.packets.get(packet);
        let (source, destination) = (record.source, record.destination);
        let slot = usize::from(destination.port.checked_sub(FIRST_PORT)?);
        (destination.address == routes.here()
            && source.address == self.options.peer
            && source.port == destination.port
            && cx.packets.ip(packet).is_none())
        .then_some(slot)
    }

    /// A SYN has arrived over the link, for a connection that the peer opens without a trunk.
    /// Returns true if this gateway has no connection between the same endpoints, or only one in
    /// TIME-WAIT, which it removes.
    pub(super) fn yields_to_new_connection(
        &mut self,
        key: &FlowKey,
        sequence: Seq,
        context: &mut GatewayContext<'_>,
        cx: &mut Ctx<'_>,
    ) -> bool {
        let Some(index) = self.find(key) else {
            return true;
        };
        let carried = self.connections.get_mut(index);
        let over = carried
            .is_none_or(|one| one.only_time_wait_left() && one.is_replaced_by_peer(sequence));
        if over {
            self.remove(index, None, context, cx);
            context.counters.replaced += 1;
        }
        over
    }

    /// Returns the multiplexed connection that a host's packet belongs to.
    #[inline]
    pub(super) fn find(&self, key: &FlowKey) -> Option<u32> {
        self.flows.get(key).copied()
    }

    /// Shuts the gateway down: resets all connections and trunks.
    pub(super) fn retire(&mut self, context: &mut GatewayContext<'_>, cx: &mut Ctx<'_>) {
        for index in 0..self.connections.end() {
            let Some(carried) = self.connections.get_mut(index) else {
                continue;
            };
            if !carried.has_ended {
                carried.aborted = true;
                carried.abort(cx);
                if let Some(syn) = carried.syn.take() {
                    reset_reply(syn, carried.port, cx);
                }
            }
            self.remove(index, None, context, cx);
        }
        // Closed trunks stay in the table, so that the results still count them.
        for trunk in self.trunks.iter_mut().flatten() {
            trunk.socket.abort(cx);
            context.budget.change((trunk.reserved, 0), (trunk.held, 0));
            (trunk.reserved, trunk.held) = (0, 0);
        }
    }

    /// Time of the next timer.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        let trunks = self.trunks.iter().flatten();
        let trunks = trunks.flat_map(|trunk| [trunk.socket.next_deadline(), trunk.wait_deadline]);
        let looks = self.deadlines.next().into_iter().chain(self.next_check());
        trunks.flatten().chain(looks).min()
    }

    /// Processes a packet of a trunk, and consumes it.
    pub(super) fn on_trunk_packet(
        &mut self,
        slot: usize,
        packet: PacketRef,
        context: &mut GatewayContext<'_>,
        cx: &mut Ctx<'_>,
    ) {
        if slot >= self.trunks.len() {
            if cx.packets.get(packet).flags.has(Flags::SYN) {
                self.notice = Some(PeerNotice::PeerUsesMore);
            }
            reset_reply(packet, context.settings.facing, cx);
            return;
        }
        let begins = |trunk: &Trunk| trunk.is_established_by(cx.packets.get(packet));
        if self.trunks[slot].as_ref().is_some_and(begins) {
            self.write_frames(slot, context, cx);
        }
        if let Some(trunk) = &mut self.trunks[slot] {
            trunk.liveness.on_arrival(cx.now);
            trunk.socket.on_packet(packet, cx);
            self.on_trunk_event(slot, context, cx);
            return;
        }
        let flags = cx.packets.get(packet).flags;
        let opens = flags.has(Flags::SYN) && !flags.has(Flags::ACK.with(Flags::RST));
        let Some((config, reserved)) = self.trunk_config(context).filter(|_| opens) else {
            reset_reply(packet, context.settings.facing, cx);
            return;
        };
        let opening = self.trunk_opening(slot, &config, context, cx);
        let socket = Socket::accept(&opening, packet, PassiveFastOpen::Ignore, cx);
        self.install_trunk(slot, socket, reserved, context, cx);
        self.on_trunk_event(slot, context, cx);
    }

    /// Processes a packet from the host of a multiplexed connection, and consumes it. A SYN that
    /// opens a new connection between the same endpoints is returned instead.
    pub(super) fn on_host_packet(
        &mut self,
        index: u32,
        packet: PacketRef,
        context: &mut GatewayContext<'_>,
        cx: &mut Ctx<'_>,
    ) -> Option<PacketRef> {
        let record = cx.packets.get(packet);
        let (flags, sequence) = (record.flags, record.sequence);
        let opens = flags.opens();
        let carried = self.connections.get_mut(index)?;
        let slot = carried.trunk;
        if carried.syn.is_some() {
            // The SYN is not answered yet. A retransmission of it needs no action: the other
            // gateway retransmits its own SYN.
            let own = sequence == carried.syn_sequence;
            if opens && own {
                carried.last_activity_at = cx.now;
            }
            if !opens && flags.has(Flags::RST) && sequence == carried.syn_sequence + 1 {
                // The host has given up.
                self.cancel_fallback(index, context, cx);
                self.remove(index, Some(ResetReason::Reset), context, cx);
                self.pump(slot, context, cx);
            } else if !opens {
                context.counters.early_packets += 1;
            }
            cx.packets.release(packet);
            return None;
        }
        if opens && carried.only_time_wait_left() && carried.is_replaced_by(sequence) {
            self.remove(index, None, context, cx);
            context.counters.replaced += 1;
            return Some(packet);
        }
        context.counters.packets_split += 1;
        self.update_window_limit(index, context, cx);
        if let Some(carried) = self.connections.get_mut(index) {
            carried.on_packet(packet, cx);
        }
        self.advance(index, context, cx);
        self.pump(slot, context, cx);
        None
    }

    /// Processes an ICMP error. Returns true if it is about a segment of a trunk or of a leg to a
    /// host.
    pub(super) fn on_icmp(
        &mut self,
        report: &IcmpReport,
        context: &mut GatewayContext<'_>,
        cx: &mut Ctx<'_>,
    ) -> bool {
        let [here, there] = self.gateway_addresses(context);
        let slot = (report.port_between(here, there))
            .and_then(|port| port.checked_sub(FIRST_PORT))
            .map(usize::from);
        if let Some(slot) = slot
            && self.trunks.get(slot).is_some_and(Option::is_some)
        {
            self.on_trunk_icmp(slot, report, context, cx);
            return true;
        }
        let Some(index) = report.keys().find_map(|key| self.find(&key)) else {
            return false;
        };
        self.update_window_limit(index, context, cx);
        let Some(carried) = self.connections.get_mut(index) else {
            return false;
        };
        let slot = carried.trunk;
        if let Some(leg) = &mut carried.leg {
            leg.on_icmp(report.error, report.sequence, cx);
        }
        self.advance(index, context, cx);
        self.pump(slot, context, cx);
        true
    }

    /// Runs the timers that have expired.
    pub(super) fn on_deadline(&mut self, context: &mut GatewayContext<'_>, cx: &mut Ctx<'_>) {
        self.check_liveness(context, cx);
        for slot in 0..self.trunks.len() {
            if let Some(trunk) = &mut self.trunks[slot]
                && trunk.socket.next_deadline().is_some_and(|at| at <= cx.now)
            {
                trunk.socket.on_deadline(cx);
                self.on_trunk_event(slot, context, cx);
            }
            let until = self.trunks[slot]
                .as_ref()
                .and_then(|trunk| trunk.wait_deadline);
            if until.is_some_and(|until| until <= cx.now) {
                self.stop_waiting(slot, context, cx);
            }
        }
        while let Some(index) = self.deadlines.due(cx.now) {
            let Some(carried) = self.connections.get_mut(index) else {
                continue;
            };
            let slot = carried.trunk;
            if !carried.has_ended
                && cx.now.since(carried.last_activity_at) >= context.settings.idle_timeout
            {
                context.counters.idle += 1;
                carried.abort(cx);
                self.cancel_fallback(index, context, cx);
                self.remove(index, Some(ResetReason::Reset), context, cx);
            } else {
                self.update_window_limit(index, context, cx);
                if let Some(carried) = self.connections.get_mut(index) {
                    carried.on_deadline(cx);
                }
                self.advance(index, context, cx);
            }
            self.pump(slot, context, cx);
        }
    }

    /// Updates the window limit of a connection's host from the memory that is left now. Called
    /// before anything else is done with the connection.
    fn update_window_limit(&mut self, index: u32, context: &GatewayContext<'_>, cx: &mut Ctx<'_>) {
        if let Some(carried) = self.connections.get_mut(index) {
            let allowed = context.budget.allowed(carried.promised[FROM_HOST]);
            carried.limit_window(allowed, cx);
        }
    }

    /// Advances a connection as far as possible, then updates its memory accounting, its queue
    /// entries and its timer.
    fn advance(&mut self, index: u32, context: &mut GatewayContext<'_>, cx: &mut Ctx<'_>) {
        let Some(carried) = self.connections.get_mut(index) else {
            return;
        };
        let failed = match carried.open_outcome() {
            OpenOutcome::Failed(reason) => Some(reason),
            OpenOutcome::Pending | OpenOutcome::AnswerFrame => {
                (!carried.propagate_fins(cx)).then_some(ResetReason::Reset)
            }
        };
        if let Some(reason) = failed {
            match reason {
                ResetReason::Refused => context.counters.refused_by_host += 1,
                ResetReason::Unreachable => context.counters.unreachable += 1,
                ResetReason::Reset | ResetReason::NoMemory | ResetReason::EarlierConnection => {
                    carried.aborted = true
                }
            }
            self.remove(index, Some(reason), context, cx);
            return;
        }
        carried.send_window_update(cx);
        update_budget(carried, context.budget);
        // The peer's credit comes out of the memory that is left now.
        let most = context.settings.most_to_host();
        let allowed = context.budget.allowed(carried.promised[TO_HOST]);
        carried.grant_credit(allowed.min(most));
        update_budget(carried, context.budget);
        let ends = !carried.has_ended && carried.only_time_wait_left();
        if ends {
            carried.has_ended = true;
            context.counters.ended(carried.aborted);
            // Neither gateway sends anything more for this stream.
            for (slot, stream) in carried.streams() {
                if let Some(trunk) = &mut self.trunks[slot] {
                    trunk.streams.remove(&stream);
                }
            }
        }
        if carried.is_gone() {
            self.remove(index, None, context, cx);
            return;
        }
        if ends {
            self.ended.add(index, cx.now);
        }
        if let Some(trunk) = &mut self.trunks[carried.trunk] {
            if !carried.control_queued && carried.has_control_frames() {
                carried.control_queued = true;
                trunk.control_queue.push_back(carried.stream);
            }
            if !carried.data_queued && carried.has_data() {
                carried.data_queued = true;
                trunk.data_queue.push_back(carried.stream);
            }
        }
        let idle =
            (!carried.has_ended).then(|| carried.last_activity_at + context.settings.idle_timeout);
        let deadline = match (carried.next_deadline(), idle) {
            (Some(deadline), Some(idle)) => Some(deadline.min(idle)),
            (deadline, idle) => deadline.or(idle),
        };
        if let Some(at) = deadline {
            self.deadlines.arm(index, at);
        }
    }

    /// Removes connections in TIME-WAIT while memory is short, before a new connection is opened.
    pub(super) fn evict_ended(&mut self, context: &mut GatewayContext<'_>, cx: &mut Ctx<'_>) {
        while context.budget.is_low()
            && let Some(index) = self.ended.take()
        {
            if self
                .connections
                .get_mut(index)
                .is_some_and(|one| one.has_ended)
            {
                self.remove(index, None, context, cx);
            }
        }
    }

    /// Removes a connection. With `reason`, the peer is sent a reset frame.
    fn remove(
        &mut self,
        index: u32,
        reason: Option<ResetReason>,
        context: &mut GatewayContext<'_>,
        cx: &mut Ctx<'_>,
    ) {
        let Some(carried) = self.connections.remove(index) else {
            return;
        };
        if !carried.has_ended {
            context.counters.ended(carried.aborted);
        }
        if let Some(syn) = carried.syn {
            cx.packets.release(syn);
        }
        for stream in [FROM_HOST, TO_HOST] {
            let (promised, held) = (carried.promised[stream], carried.held[stream]);
            context.budget.change((promised, 0), (held, 0));
        }
        context.budget.change_state((context.state_bytes, 0));
        let check = StreamCheck {
            ranges: carried.checked,
            mismatches: carried.mismatches,
        };
        context
            .counters
            .multiplexed_ended(carried.leg.as_ref(), check);
        if self.flows.get(&carried.key) == Some(&index) {
            self.flows.remove(&carried.key);
        }
        for (slot, stream) in carried.streams() {
            let Some(trunk) = &mut self.trunks[slot] else {
                continue;
            };
            if trunk.streams.get(&stream) != Some(&index) {
                continue;
            }
            trunk.streams.remove(&stream);
            if let Some(reason) = reason.filter(|_| stream == carried.stream) {
                trunk.pending_resets.push_back((stream, reason));
            }
        }
        self.deadlines.disarm(index);
    }
}

/// Updates the memory accounting of a connection.
fn update_budget<P: Payload>(carried: &mut MultiplexedConnection<P>, budget: &mut MemoryBudget) {
    for stream in [FROM_HOST, TO_HOST] {
        let (promised, held) = carried.promised_and_held(stream);
        let before = (carried.promised[stream], carried.held[stream]);
        budget.change((before.0, promised), (before.1, held));
        (carried.promised[stream], carried.held[stream]) = (promised, held);
    }
}
