//! Opening of trunks, and of the connections that they carry.

use std::sync::Arc;

use bentpipe_tcp::{Config, IdleRestart, Opening, Payload, Rings, Socket};
use bentpipe_types::{Ctx, Endpoint, FlowKey, HostAddress, PacketRef, Party, Port, Seq};

use super::super::Confirmation;
use super::super::leg_settings::set_ip_version;
use super::super::unmultiplexed::UnmultiplexedState;
use super::frame::{self, AnswerFrame, OpenFrame, ResetReason};
use super::multiplexed_connection::MultiplexedConnection;
use super::trunk::Trunk;
use super::{FIRST_PORT, GatewayContext, Multiplex, PeerNotice, ReturnedSyn, SynDisposition};

/// Smallest buffer of a trunk in each direction: some frames.
const MIN_BUFFER: u64 = 16 << 10;
/// The send buffers of all trunks take at most this fraction of the gateway's memory, and so do the
/// receive buffers.
const MEMORY_FRACTION: u64 = 8;
/// TCP's protocol number.
const TCP: u8 = 6;

/// A host's request for a connection.
pub(in super::super) struct OpenRequest {
    pub(in super::super) key: FlowKey,
    /// Port that leads to the host.
    pub(in super::super) from: Port,
    /// Initial receive window to offer.
    pub(in super::super) first: u64,
    pub(in super::super) syn: PacketRef,
}

impl<P: Payload> Multiplex<P> {
    /// Opens a multiplexed connection for a host's SYN. Returns the SYN if there is no memory for a
    /// trunk, or if the peer does not answer.
    pub(in super::super) fn open(
        &mut self,
        request: OpenRequest,
        context: &mut GatewayContext<'_>,
        cx: &mut Ctx<'_>,
    ) -> Option<PacketRef> {
        let Some(slot) = self.choose_slot(context, cx) else {
            return Some(request.syn);
        };
        self.open_in_slot(slot, request, context, cx)
    }

    /// Opens a multiplexed connection for a SYN that has waited for a trunk in vain. Only an
    /// established trunk is used; without one, the SYN is returned.
    pub(in super::super) fn open_on_established_trunk(
        &mut self,
        request: OpenRequest,
        context: &mut GatewayContext<'_>,
        cx: &mut Ctx<'_>,
    ) -> Option<PacketRef> {
        let open = |slot: &usize| self.trunks[*slot].as_ref().is_some_and(Trunk::is_usable);
        let slots = (0..self.trunks.len()).filter(open);
        let Some(slot) = slots.min_by_key(|slot| self.streams_on(*slot)) else {
            return Some(request.syn);
        };
        self.open_in_slot(slot, request, context, cx)
    }

    fn open_in_slot(
        &mut self,
        slot: usize,
        request: OpenRequest,
        context: &mut GatewayContext<'_>,
        cx: &mut Ctx<'_>,
    ) -> Option<PacketRef> {
        let OpenRequest {
            key,
            from,
            first,
            syn,
        } = request;
        let Some(stream) = self.trunks[slot].as_mut().and_then(Trunk::allocate_stream) else {
            return Some(syn);
        };
        let fast_open = cx.packets.syn_options(syn).fast_open.is_some();
        let mut carried = MultiplexedConnection::open(key, syn, from, (slot, stream), first, cx);
        // An early answer is not possible with Fast Open, because only the other host can issue a
        // cookie. It also requires that the other gateway is known to be up.
        let there = self.trunks[slot].as_ref().is_some_and(Trunk::is_usable);
        if context.settings.set_up == Confirmation::Early && !fast_open && there {
            carried.answer(&context.host_leg_config(&key, first), None, cx);
        }
        self.add(carried, context, cx);
        self.pump(slot, context, cx);
        None
    }

    pub(super) fn add(
        &mut self,
        mut carried: MultiplexedConnection<P>,
        context: &mut GatewayContext<'_>,
        cx: &mut Ctx<'_>,
    ) {
        carried.hold_fin(context.settings.close, cx);
        let (key, slot, stream) = (carried.key, carried.trunk, carried.stream);
        let index = self.connections.insert(Box::new(carried));
        self.flows.insert(key, index);
        if let Some(trunk) = &mut self.trunks[slot] {
            trunk.streams.insert(stream, index);
        }
        context.budget.change_state((0, context.state_bytes));
        context.counters.opened();
        self.advance(index, context, cx);
    }

    /// Number of streams in a slot, and whether its trunk is yet to be opened. The slot with the
    /// smallest value takes the next stream.
    fn streams_on(&self, slot: usize) -> (usize, bool) {
        match &self.trunks[slot] {
            Some(trunk) => (trunk.streams.len(), false),
            None => (0, true),
        }
    }

    /// Chooses the trunk for a new stream, and opens it if need be: an established one without
    /// streams, or else a new one, or else the one with the fewest streams.
    fn choose_slot(&mut self, context: &mut GatewayContext<'_>, cx: &mut Ctx<'_>) -> Option<usize> {
        if self.peer_absent {
            let existing = self.trunks.iter().position(Option::is_some);
            self.retry_trunk(existing.unwrap_or(0), context, cx);
        } else if let Some(slot) = self.slot_lost.iter().position(|lost| *lost) {
            self.retry_trunk(slot, context, cx);
        }
        if self.all_trunks_suspected() {
            return None;
        }
        let may_open = cx.now >= self.pause_until && !self.peer_absent;
        let usable = |slot: &usize| match &self.trunks[*slot] {
            Some(trunk) if trunk.was_established => trunk.is_usable(),
            Some(trunk) => trunk.wait_deadline.is_some() && !self.peer_absent,
            None => may_open && !self.slot_lost[*slot],
        };
        let slots = (0..self.trunks.len()).filter(usable);
        let slot = slots.min_by_key(|slot| self.streams_on(*slot))?;
        if self.trunks[slot].is_none() {
            self.connect_trunk(slot, context, cx);
        }
        Some(slot)
    }

    /// Tries again to open a trunk to a peer that has not answered, or that was given up there. No
    /// connection waits for it.
    fn retry_trunk(&mut self, slot: usize, context: &mut GatewayContext<'_>, cx: &mut Ctx<'_>) {
        if cx.now < self.pause_until {
            return;
        }
        match &self.trunks[slot] {
            Some(trunk) if !trunk.needs_new_attempt(cx.now) => return,
            Some(_) => self.on_trunk_failure(slot, context, cx),
            None => {}
        }
        self.connect_trunk(slot, context, cx);
        if let Some(trunk) = &mut self.trunks[slot] {
            trunk.wait_deadline = None;
        }
    }

    /// The peer has not answered in time. The handshake goes on, but no connection waits for it any
    /// longer.
    pub(super) fn stop_waiting(
        &mut self,
        slot: usize,
        context: &mut GatewayContext<'_>,
        cx: &mut Ctx<'_>,
    ) {
        if let Some(trunk) = &mut self.trunks[slot] {
            trunk.wait_deadline = None;
        }
        self.mark_absent();
        self.return_unsent_syns(slot, context, cx);
    }

    /// Marks the peer as absent, unless another trunk is usable.
    pub(super) fn mark_absent(&mut self) {
        self.peer_absent = !self.has_usable_trunk();
        if self.peer_absent && !self.notice.is_some_and(PeerNotice::is_about_absence) {
            self.notice = Some(PeerNotice::NoAnswer);
        }
    }

    /// Hands back the SYNs of all streams of a trunk on which nothing was sent yet. The peer cannot
    /// know of these streams.
    pub(super) fn return_unsent_syns(
        &mut self,
        slot: usize,
        context: &mut GatewayContext<'_>,
        cx: &mut Ctx<'_>,
    ) {
        let Some(trunk) = self.trunks[slot]
            .as_mut()
            .filter(|trunk| trunk.has_sent_nothing())
        else {
            return;
        };
        let mut streams: Vec<_> = trunk
            .streams
            .iter()
            .map(|(at, index)| (*at, *index))
            .collect();
        // Sorted, so that the order is the same in every run.
        streams.sort_unstable();
        for (stream, index) in streams {
            let Some(carried) = self.connections.get_mut(index) else {
                continue;
            };
            let (key, from) = (carried.key, carried.port);
            match carried.syn.take() {
                Some(syn) => {
                    self.remove(index, None, context, cx);
                    context.counters.uncount();
                    self.returned_syns.push(ReturnedSyn {
                        key,
                        syn,
                        from,
                        disposition: SynDisposition::Retry,
                    });
                }
                None => self.move_to_alias(index, (slot, stream), context, cx),
            }
        }
    }

    /// Moves a stream to its alias: both hosts have opened the connection at once, and the peer's
    /// stream is on another trunk.
    fn move_to_alias(
        &mut self,
        index: u32,
        (slot, stream): (usize, u32),
        context: &mut GatewayContext<'_>,
        cx: &mut Ctx<'_>,
    ) {
        let Some(carried) = self.connections.get_mut(index) else {
            return;
        };
        let Some((there, number)) = carried.alias.and_then(|(there, _)| {
            let number = self.trunks[there].as_mut()?.allocate_stream()?;
            Some((there, number))
        }) else {
            return;
        };
        (carried.trunk, carried.stream) = (there, number);
        (carried.control_queued, carried.data_queued) = (false, false);
        if let Some(trunk) = &mut self.trunks[slot] {
            trunk.streams.remove(&stream);
        }
        if let Some(trunk) = &mut self.trunks[there] {
            trunk.streams.insert(number, index);
        }
        self.advance(index, context, cx);
        self.pump(there, context, cx);
    }

    /// Returns the TCP settings of a trunk and the memory to reserve for it; `None` if too little
    /// memory is left.
    pub(super) fn trunk_config(&self, context: &GatewayContext<'_>) -> Option<(Arc<Config>, u64)> {
        let mut config = context.settings.facing_tcp.clone();
        if let Some(real) = self.options.real {
            set_ip_version(real.version(), &mut config);
        }
        let part = context.settings.memory / (MEMORY_FRACTION * self.trunks.len() as u64);
        let most = part.max(MIN_BUFFER);
        let send = config
            .send_sizes
            .map_or(config.send_buffer, |sizes| sizes.most);
        config.send_buffer = send.clamp(MIN_BUFFER, most);
        // Received data is read at once, so the receive buffer holds only segments that arrived out
        // of order.
        config.receive_buffer = config.maximum_received().clamp(MIN_BUFFER, most);
        (config.send_sizes, config.receive_sizes) = (None, None);
        if context.settings.warm_path {
            config.idle_restart = IdleRestart::Off;
        }
        // `peer_liveness` sends the probes itself, also while data is outstanding.
        config.keep_alive = None;
        // One incomplete frame is held as well.
        let reserved = config.send_buffer + config.receive_buffer + frame::MAX_FRAME as u64;
        (context.budget.available() / 2 >= reserved).then_some((Arc::new(config), reserved))
    }

    pub(super) fn trunk_endpoints(
        &self,
        slot: usize,
        context: &GatewayContext<'_>,
    ) -> [Endpoint; 2] {
        [context.routes.here(), self.options.peer].map(|address| Endpoint {
            address,
            port: FIRST_PORT + slot as u16,
        })
    }

    /// Returns the arguments for opening a trunk, actively or passively.
    pub(super) fn trunk_opening<'c>(
        &self,
        slot: usize,
        config: &'c Arc<Config>,
        context: &GatewayContext<'_>,
        cx: &mut Ctx<'_>,
    ) -> Opening<'c> {
        let [local, remote] = self.trunk_endpoints(slot, context);
        Opening {
            config,
            local,
            remote,
            egress: context.settings.facing,
            initial_sequence: Seq::new(cx.random.bits() as u32),
        }
    }

    pub(super) fn connect_trunk(
        &mut self,
        slot: usize,
        context: &mut GatewayContext<'_>,
        cx: &mut Ctx<'_>,
    ) {
        let Some((config, reserved)) = self.trunk_config(context) else {
            return;
        };
        self.probe_idle_trunks(cx);
        let opening = self.trunk_opening(slot, &config, context, cx);
        let socket = Socket::connect(&opening, None, cx);
        self.install_trunk(slot, socket, reserved, context, cx);
    }

    pub(super) fn install_trunk(
        &mut self,
        slot: usize,
        socket: Socket<Rings>,
        reserved: u64,
        context: &mut GatewayContext<'_>,
        cx: &Ctx<'_>,
    ) {
        let first = u32::from(self.opens_odd_streams(context));
        context.budget.change((0, reserved), (0, 0));
        context.counters.trunks_opened += 1;
        self.trunks[slot] = Some(Trunk::new(socket, first, reserved, cx.now));
    }

    /// Replaces the node addresses in an open frame between hosts with real addresses by those of
    /// the local nodes that stand for them.
    fn map_to_nodes<'a>(&self, open: &OpenFrame<'a>) -> OpenFrame<'a> {
        let mut open = *open;
        if let (Some(real), Some(_)) = (self.options.real, open.ip) {
            open.source.address = self.options.peer;
            open.destination.address = real.hosts;
        }
        open
    }

    /// Processes an open frame: a host behind the other gateway opens a connection.
    pub(super) fn on_open(
        &mut self,
        (slot, stream): (usize, u32),
        open: &OpenFrame<'_>,
        context: &mut GatewayContext<'_>,
        cx: &mut Ctx<'_>,
    ) {
        let open = &self.map_to_nodes(open);
        let key = reply_key(open);
        let towards = context.routes.port_towards(open.destination.address);
        let towards = towards.filter(|towards| *towards != context.settings.facing);
        let met = match self.flows.get(&key) {
            Some(&index) => self.resolve_conflict(index, (slot, stream), open, context, cx),
            None => self.resolve_unmultiplexed_conflict(&key, (slot, stream), open, context, cx),
        };
        let reason = match met {
            Conflict::SimultaneousOpen => return,
            Conflict::EarlierConnection => Some(ResetReason::EarlierConnection),
            Conflict::None => towards.is_none().then_some(ResetReason::Unreachable),
        };
        self.evict_ended(context, cx);
        let first = context.budget.initial_window(context.state_bytes);
        let reason = reason.or(first.is_none().then_some(ResetReason::NoMemory));
        let (Some(port), Some(first), None) = (towards, first, reason) else {
            context.counters.refused += u64::from(reason == Some(ResetReason::NoMemory));
            if let (Some(trunk), Some(reason)) = (&mut self.trunks[slot], reason) {
                trunk.queue_reset(stream, reason);
            }
            return;
        };
        let config = context.host_leg_config(&key, first);
        let carried =
            MultiplexedConnection::opened(key, open, port, (slot, stream), (&config, first), cx);
        self.add(carried, context, cx);
    }

    /// Resolves a conflict between an open frame and a known connection between the same endpoints.
    fn resolve_conflict(
        &mut self,
        index: u32,
        (slot, stream): (usize, u32),
        open: &OpenFrame<'_>,
        context: &mut GatewayContext<'_>,
        cx: &mut Ctx<'_>,
    ) -> Conflict {
        let Some(carried) = self.connections.get_mut(index) else {
            return Conflict::None;
        };
        if !carried.is_awaiting_answer() {
            // The other gateway no longer has the connection, and would have sent a reset frame if
            // it had been reset. So it has ended there.
            //
            // Here data may still be undelivered: the other host got its FIN acknowledged and may
            // reuse its port, or the SYN is forged. RFC 9293 section 3.10.7.4: a TCP does not
            // accept a SYN before the connection has ended either, and the host retransmits it.
            // RFC 9293 section 3.6.1: in TIME-WAIT it accepts it.
            if !carried.only_time_wait_left() {
                return Conflict::EarlierConnection;
            }
            self.remove(index, None, context, cx);
            context.counters.replaced += 1;
            return Conflict::None;
        }
        // RFC 9293 section 3.5 (simultaneous open): both hosts have sent a SYN, and each gateway
        // has sent an open frame. Each gateway takes the other's open frame as the answer, and goes
        // on sending on the stream that it has opened itself.
        carried.alias = Some((slot, stream));
        if let Some(trunk) = &mut self.trunks[slot] {
            trunk.streams.insert(stream, index);
        }
        let answered = AnswerFrame {
            sequence: open.sequence,
            credit: open.credit,
            taken: 0,
            cookie: None,
        };
        self.on_answer_frame(index, &answered, context, cx);
        Conflict::SimultaneousOpen
    }

    /// Resolves a conflict between an open frame and a connection that this gateway has opened
    /// without a trunk.
    fn resolve_unmultiplexed_conflict(
        &mut self,
        key: &FlowKey,
        (slot, stream): (usize, u32),
        open: &OpenFrame<'_>,
        context: &mut GatewayContext<'_>,
        cx: &mut Ctx<'_>,
    ) -> Conflict {
        match context.unmultiplexed.state(key, open.sequence) {
            UnmultiplexedState::Unknown => return Conflict::None,
            UnmultiplexedState::Ended => {
                context.unmultiplexed.forget(key);
                context.counters.replaced += 1;
                return Conflict::None;
            }
            UnmultiplexedState::Open => {
                context.unmultiplexed.probe(key, cx);
                return Conflict::EarlierConnection;
            }
            UnmultiplexedState::Opening => {}
        }
        // Both hosts have sent a SYN, and only the other gateway has found a trunk. It drops the
        // SYN of this gateway's connection. Nothing was sent over that connection yet, so it moves
        // to the trunk.
        let first = context.budget.initial_window(context.state_bytes);
        let number = self.trunks[slot].as_mut().and_then(Trunk::allocate_stream);
        let (Some(first), Some(number)) = (first, number) else {
            return Conflict::EarlierConnection;
        };
        let Some((syn, port)) = context.unmultiplexed.withdraw(key, cx) else {
            return Conflict::EarlierConnection;
        };
        context.counters.uncount();
        let carried = MultiplexedConnection::open(*key, syn, port, (slot, number), first, cx);
        self.add(carried, context, cx);
        match self.flows.get(key) {
            Some(&index) => self.resolve_conflict(index, (slot, stream), open, context, cx),
            None => Conflict::EarlierConnection,
        }
    }

    pub(super) fn on_answer_frame(
        &mut self,
        index: u32,
        answered: &AnswerFrame,
        context: &mut GatewayContext<'_>,
        cx: &mut Ctx<'_>,
    ) {
        self.update_window_limit(index, context, cx);
        self.cancel_fallback(index, context, cx);
        if let Some(carried) = self.connections.get_mut(index) {
            let config = context.host_leg_config(&carried.key, carried.initial_window);
            carried.on_answer(&config, answered, cx);
            carried.hold_fin(context.settings.close, cx);
        }
        self.advance(index, context, cx);
    }
}

/// Relation of an open frame to a known connection between the same endpoints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Conflict {
    /// There is no such connection.
    None,
    /// It is the same connection, which the host on this side has opened as well.
    SimultaneousOpen,
    /// There is an earlier connection that has not ended.
    EarlierConnection,
}

/// Key of the packets that the answering host sends.
fn reply_key(open: &OpenFrame<'_>) -> FlowKey {
    let hosts = match open.ip {
        Some((source, destination)) => [HostAddress::Ip(source), HostAddress::Ip(destination)],
        None => [open.source, open.destination].map(|end| HostAddress::Node(end.address)),
    };
    let party = |host, port| Party { host, port };
    FlowKey {
        source: party(hosts[1], open.destination.port),
        destination: party(hosts[0], open.source.port),
        protocol: TCP,
    }
}
