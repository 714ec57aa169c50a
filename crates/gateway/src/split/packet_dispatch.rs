//! Dispatch of arriving packets to connections and legs.

use bentpipe_tcp::{Payload, reset_reply};
use bentpipe_types::{Ctx, DropReason, Flags, FlowKey, PacketRef, Port};

use super::Split;
use super::multiplex::{GatewayContext, Multiplex, OpenRequest, ReturnedSyn, SynDisposition};
use super::split_connection::OPENER;
use super::unmultiplexed::UnmultiplexedTable;
use crate::icmp::IcmpReport;

impl<P: Payload> Split<P> {
    /// Processes a packet that no rate limit holds back.
    pub(super) fn process(&mut self, from: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        let Some(processor) = &mut self.processor else {
            self.handle(from, packet, cx);
            return;
        };
        if let Some(packet) = processor.offer(from, packet, cx.now) {
            self.counters.packets_dropped += 1;
            cx.discard(packet, DropReason::Busy);
        }
    }

    /// Processes a packet that has left the processor's queue.
    pub(super) fn handle(&mut self, from: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        self.pairs.now = cx.now;
        if !cx.packets.get(packet).is_tcp() {
            self.handle_non_tcp(packet, cx);
            return;
        }
        let key = FlowKey::of(cx.packets, packet);
        let packet = if self.multiplex.is_some() {
            match self.dispatch_multiplexed(&key, from, packet, cx) {
                Some(packet) => packet,
                None => return,
            }
        } else {
            packet
        };
        let opens = cx.packets.get(packet).flags.opens();
        match self.find(&key) {
            Some((index, side)) if opens => {
                self.handle_known_syn(index, side, key, from, packet, cx)
            }
            Some((index, side)) => self.dispatch_to_leg(index, side, packet, cx),
            None if opens => self.handle_new_syn(key, from, packet, cx),
            None if self.admission.answers_given_up(&key)
                && cx.packets.get(packet).flags.has(Flags::SYN) =>
            {
                self.counters.early_packets += 1;
                cx.packets.release(packet);
            }
            None => self.forward(packet, cx),
        }
    }

    /// Processes a packet that is not TCP: an ICMP error about a segment of a leg, or a packet to
    /// forward.
    fn handle_non_tcp(&mut self, packet: PacketRef, cx: &mut Ctx<'_>) {
        let Some(report) = IcmpReport::read(cx.packets, packet) else {
            self.forward(packet, cx);
            return;
        };
        let handled = self.with_multiplex(cx, |all, context, cx| all.on_icmp(&report, context, cx));
        if handled == Some(true) {
            self.counters.icmp_errors += 1;
            cx.packets.release(packet);
            return;
        }
        let Some((index, side)) = report.keys().find_map(|key| self.find(&key)) else {
            self.forward(packet, cx);
            return;
        };
        self.counters.icmp_errors += 1;
        self.update_window_limit(index, cx);
        let mut waits = false;
        if let Some(pair) = self.pairs.get_mut(index) {
            pair.on_icmp(side, &report, cx);
            waits = pair.syn.is_some();
        }
        self.advance(index, cx);
        if waits {
            // The unanswered SYN has the host's own sequence numbers, so the ICMP error is
            // forwarded to that host.
            self.forward(packet, cx);
        } else {
            cx.packets.release(packet);
        }
    }

    /// Processes a packet of a trunk or of a multiplexed connection. Returns any other packet.
    fn dispatch_multiplexed(
        &mut self,
        key: &FlowKey,
        from: Port,
        packet: PacketRef,
        cx: &mut Ctx<'_>,
    ) -> Option<PacketRef> {
        let multiplex = self.multiplex.as_ref()?;
        let trunk = multiplex.trunk_of(&self.routes, packet, cx);
        let carried = multiplex.find(key);
        let facing = self.settings.facing;
        match (trunk, carried) {
            (Some(slot), _) => {
                self.counters.packets_split += 1;
                self.with_multiplex(cx, |all, context, cx| {
                    all.on_trunk_packet(slot, packet, context, cx);
                });
                None
            }
            (None, Some(index)) => self.with_multiplex(cx, |all, context, cx| {
                all.on_host_packet(index, packet, context, cx)
            })?,
            (None, None) if from == facing && multiplex.find(&key.reversed()).is_some() => {
                self.handle_packet_from_beyond(key, packet, cx)
            }
            (None, None) => Some(packet),
        }
    }

    /// Processes a packet from beyond the link, between the endpoints of a multiplexed connection.
    ///
    /// Either the other gateway has forgotten that connection, and forwards a packet of an earlier
    /// one. Or it opens the connection without a trunk, and does not know the stream yet. Returns
    /// the packet if it belongs to, or opens, a connection without a trunk.
    fn handle_packet_from_beyond(
        &mut self,
        key: &FlowKey,
        packet: PacketRef,
        cx: &mut Ctx<'_>,
    ) -> Option<PacketRef> {
        let is_answered =
            |all: &mut Multiplex<P>, context: &mut GatewayContext<'_>, cx: &mut Ctx<'_>| {
                all.on_fallback_answer(&key.reversed(), packet, context, cx)
            };
        if self.with_multiplex(cx, is_answered) == Some(true) {
            return Some(packet);
        }
        let record = cx.packets.get(packet);
        let (flags, sequence) = (record.flags, record.sequence);
        if !flags.has(Flags::SYN) {
            // The connection has a fallback connection as well. A packet of that one, before its
            // answer or after a lost answer, is for that leg to process.
            if self.flows.contains_key(key) {
                return Some(packet);
            }
            reset_reply(packet, self.settings.facing, cx);
            return None;
        }
        let yields =
            |all: &mut Multiplex<P>, context: &mut GatewayContext<'_>, cx: &mut Ctx<'_>| {
                all.yields_to_new_connection(&key.reversed(), sequence, context, cx)
            };
        if flags.opens() && self.with_multiplex(cx, yields) == Some(true) {
            return Some(packet);
        }
        cx.packets.release(packet);
        None
    }

    /// Calls a function on the multiplexing state, and then handles the connections to remove and
    /// the SYNs to take back.
    pub(super) fn with_multiplex<R>(
        &mut self,
        cx: &mut Ctx<'_>,
        act: impl FnOnce(&mut Multiplex<P>, &mut GatewayContext<'_>, &mut Ctx<'_>) -> R,
    ) -> Option<R> {
        let multiplex = self.multiplex.as_mut()?;
        let mut unmultiplexed = UnmultiplexedTable {
            pairs: &mut self.pairs,
            flows: &self.flows,
            removed: Vec::new(),
        };
        let mut context = GatewayContext {
            settings: &self.settings,
            routes: &self.routes,
            leg_settings: &mut self.leg_settings,
            budget: &mut self.budget,
            counters: &mut self.counters,
            state_bytes: Multiplex::<P>::state_bytes() as u64,
            unmultiplexed: &mut unmultiplexed,
        };
        let result = act(multiplex, &mut context, cx);
        for index in unmultiplexed.removed {
            self.remove(index, cx);
        }
        while let Some(returned) = self.multiplex.as_mut().and_then(|all| all.take_returned()) {
            self.handle_returned_syn(returned, cx);
        }
        Some(result)
    }

    /// Handles a SYN that no trunk can carry.
    fn handle_returned_syn(&mut self, returned: ReturnedSyn, cx: &mut Ctx<'_>) {
        let ReturnedSyn {
            key,
            from,
            syn,
            disposition,
        } = returned;
        let first = self.budget.initial_window(Self::state_bytes() as u64);
        let first = match (disposition, first) {
            (SynDisposition::Retry, Some(first)) => first,
            (SynDisposition::OpenFallback, Some(first)) if !self.flows.contains_key(&key) => {
                self.open(key, from, self.settings.facing, first, syn, cx);
                return;
            }
            (SynDisposition::OpenFallback, _) => {
                cx.packets.release(syn);
                return;
            }
            (SynDisposition::Forward, _) | (SynDisposition::Retry, None) => {
                self.remember_forwarded(key, syn, cx);
                self.forward(syn, cx);
                return;
            }
        };
        let request = OpenRequest {
            key,
            from,
            first,
            syn,
        };
        let open = |all: &mut Multiplex<P>, context: &mut GatewayContext<'_>, cx: &mut Ctx<'_>| {
            all.open_on_established_trunk(request, context, cx)
        };
        if let Some(syn) = self.with_multiplex(cx, open).flatten() {
            self.open(key, from, self.settings.facing, first, syn, cx);
        }
    }

    /// Forwards a packet unchanged.
    pub(super) fn forward(&mut self, packet: PacketRef, cx: &mut Ctx<'_>) {
        self.counters.packets_passed += 1;
        if !cx.packets.hop(packet) {
            cx.discard(packet, DropReason::HopLimit);
            return;
        }
        match self
            .routes
            .port_towards(cx.packets.get(packet).destination.address)
        {
            Some(port) => cx.emit(port, packet),
            None => cx.discard(packet, DropReason::NoRoute),
        }
    }

    /// Processes a packet, other than a SYN, of a split connection.
    #[inline]
    fn dispatch_to_leg(&mut self, index: u32, side: usize, packet: PacketRef, cx: &mut Ctx<'_>) {
        let Some(pair) = self.pairs.get_mut(index) else {
            debug_assert!(false, "a key without its pair");
            cx.packets.release(packet);
            return;
        };
        if side == OPENER && pair.legs[OPENER].is_none() {
            self.handle_early_packet(index, packet, cx);
            return;
        }
        self.counters.packets_split += 1;
        pair.update_window_limits(&self.budget, cx);
        if self.budget.is_overcommitted()
            && !pair.has_memory_for(side, cx.packets.get(packet), &self.budget)
        {
            // Its acknowledgment is processed. The host retransmits the data.
            self.counters.payloads_dropped += 1;
            cx.packets.cut(packet, 0, 0);
            let record = cx.packets.get_mut(packet);
            record.flags = record.flags.without(Flags::FIN);
        }
        pair.on_packet(side, packet, cx);
        if pair.is_half_open {
            self.advance(index, cx);
            return;
        }
        // Fast path for nearly all packets: the connection is looked up only once.
        let next = pair.advance_and_account(&self.settings, &mut self.budget, &mut self.paths, cx);
        self.apply_step(index, next, cx);
    }

    /// Processes a packet from the opening host before its SYN was answered.
    fn handle_early_packet(&mut self, index: u32, packet: PacketRef, cx: &mut Ctx<'_>) {
        let Some(pair) = self.pairs.get_mut(index) else {
            return;
        };
        let record = cx.packets.get(packet);
        // The number after the SYN's acknowledges, or resets, an answer that the gateway has not
        // seen. Linux resets it, because it echoes the gateway's timestamp and not the host's.
        let follows_syn = record.sequence == pair.syn_sequence + 1;
        if follows_syn && (record.flags.has(Flags::ACK) || record.flags.has(Flags::RST)) {
            self.counters.answers_around += 1;
            tracing::warn!(
                opener = %pair.key.source,
                responder = %pair.key.destination,
                "an answer took a path around the gateway: routes are asymmetric"
            );
        }
        if follows_syn && record.flags.has(Flags::RST) {
            // The host has given up. The RST is forwarded, so that the other host resets the
            // connection as well.
            self.remove(index, cx);
            self.forward(packet, cx);
            return;
        }
        // The packet is old or forged, or the other host's answer took a path around the gateway.
        // That was an answer to the gateway's SYN, with the gateway's options, so the connection
        // cannot work.
        self.counters.early_packets += 1;
        cx.packets.release(packet);
    }

    /// Processes a SYN of a known connection.
    fn handle_known_syn(
        &mut self,
        index: u32,
        side: usize,
        key: FlowKey,
        from: Port,
        packet: PacketRef,
        cx: &mut Ctx<'_>,
    ) {
        let sequence = cx.packets.get(packet).sequence;
        let Some(pair) = self.pairs.get_mut(index) else {
            return;
        };
        if side == OPENER && pair.syn.is_some() && pair.legs[OPENER].is_none() {
            // A retransmission needs no action: the gateway retransmits its own SYN. Of two
            // different SYNs one is forged, and the host resets the connection that it did not
            // open.
            if sequence == pair.syn_sequence {
                pair.last_activity_at = cx.now;
            }
            cx.packets.release(packet);
            return;
        }
        if pair.is_replaced_by(side, sequence) {
            if pair.only_time_wait_left() {
                self.remove(index, cx);
                self.counters.replaced += 1;
                self.handle_new_syn(key, from, packet, cx);
                return;
            }
            if pair.leg_has_ended(side) {
                // The other host has not received the end of the old connection yet. This host
                // retransmits its SYN.
                cx.packets.release(packet);
                return;
            }
        }
        self.dispatch_to_leg(index, side, packet, cx);
    }
}
