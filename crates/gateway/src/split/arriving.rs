//! Whose a packet is that comes.

use bentpipe_tcp::{Payload, reset_reply};
use bentpipe_types::{Ctx, DropReason, Flags, FlowKey, PacketRef, Port};

use super::Split;
use super::apart::OwnParts;
use super::multiplex::{Around, Asks, Multiplex, Returned, Way};
use super::pair::OPENER;
use crate::icmp::Complaint;

impl<P: Payload> Split<P> {
    /// A packet that the processor is done with.
    pub(super) fn handle(&mut self, from: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        self.pairs.now = cx.now;
        if !cx.packets.get(packet).is_tcp() {
            self.not_tcp(packet, cx);
            return;
        }
        let key = FlowKey::of(cx.packets, packet);
        let packet = if self.multiplex.is_some() {
            match self.for_stream(&key, from, packet, cx) {
                Some(packet) => packet,
                None => return,
            }
        } else {
            packet
        };
        let opens = cx.packets.get(packet).flags.opens();
        match self.find(&key) {
            Some((index, side)) if opens => self.syn_again(index, side, key, from, packet, cx),
            Some((index, side)) => self.for_leg(index, side, packet, cx),
            None if opens => self.consider(key, from, packet, cx),
            None => self.forward(packet, cx),
        }
    }

    /// What is not TCP goes on, unless it is an ICMP error about a segment of a leg.
    fn not_tcp(&mut self, packet: PacketRef, cx: &mut Ctx<'_>) {
        let Some(complaint) = Complaint::read(cx.packets, packet) else {
            self.forward(packet, cx);
            return;
        };
        let told = self.streams(cx, |all, around, cx| all.on_icmp(&complaint, around, cx));
        if told == Some(true) {
            self.counters.icmp_errors += 1;
            cx.packets.release(packet);
            return;
        }
        let Some((index, side)) = complaint.keys().find_map(|key| self.find(&key)) else {
            self.forward(packet, cx);
            return;
        };
        self.counters.icmp_errors += 1;
        self.prepare(index, cx);
        let mut waits = false;
        if let Some(pair) = self.pairs.get_mut(index) {
            pair.on_icmp(side, &complaint, cx);
            waits = pair.syn.is_some();
        }
        self.settle(index, cx);
        if waits {
            // What becomes of its SYN the host hears as without a gateway: the SYN that went on has its
            // numbers.
            self.forward(packet, cx);
        } else {
            cx.packets.release(packet);
        }
    }

    /// A packet, where gateways carry connections over persistent ones. Handed back, if it is of neither
    /// kind.
    fn for_stream(
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
                self.streams(cx, |all, around, cx| {
                    all.on_trunk_packet(slot, packet, around, cx);
                });
                None
            }
            (None, Some(index)) => self.streams(cx, |all, around, cx| {
                all.on_host_packet(index, packet, around, cx)
            })?,
            (None, None) if from == facing && multiplex.find(&key.reversed()).is_some() => {
                self.answer_beyond(key, packet, cx)
            }
            (None, None) => Some(packet),
        }
    }

    /// A packet from beyond the link, of a connection that is carried here. The other gateway has forgotten it: this host's
    /// stream is another one than that which the other has. Or it opens one with a part of its own, and has not been told
    /// yet of this one. Handed back, if that one begins here.
    fn answer_beyond(
        &mut self,
        key: &FlowKey,
        packet: PacketRef,
        cx: &mut Ctx<'_>,
    ) -> Option<PacketRef> {
        let give_way = |all: &mut Multiplex<P>, around: &mut Around<'_>, cx: &mut Ctx<'_>| {
            all.gives_way(&key.reversed(), packet, around, cx)
        };
        if self.streams(cx, give_way) == Some(true) {
            return Some(packet);
        }
        let record = cx.packets.get(packet);
        let (flags, sequence) = (record.flags, record.sequence);
        if !flags.has(Flags::SYN) {
            // It opens over a part beside its stream as well: what comes over that before the answer, which was late or
            // lost, is the part's to judge.
            if self.flows.contains_key(key) {
                return Some(packet);
            }
            reset_reply(packet, self.settings.facing, cx);
            return None;
        }
        let make_way = |all: &mut Multiplex<P>, around: &mut Around<'_>, cx: &mut Ctx<'_>| {
            all.makes_way(&key.reversed(), sequence, around, cx)
        };
        if flags.opens() && self.streams(cx, make_way) == Some(true) {
            return Some(packet);
        }
        cx.packets.release(packet);
        None
    }

    /// Does something with what persistent connections carry.
    pub(super) fn streams<R>(
        &mut self,
        cx: &mut Ctx<'_>,
        act: impl FnOnce(&mut Multiplex<P>, &mut Around<'_>, &mut Ctx<'_>) -> R,
    ) -> Option<R> {
        let multiplex = self.multiplex.as_mut()?;
        let mut apart = OwnParts {
            pairs: &mut self.pairs,
            flows: &self.flows,
            gone: Vec::new(),
        };
        let mut around = Around {
            settings: &self.settings,
            routes: &self.routes,
            leg_settings: &mut self.leg_settings,
            budget: &mut self.budget,
            counters: &mut self.counters,
            state: Multiplex::<P>::state_bytes() as u64,
            apart: &mut apart,
        };
        let result = act(multiplex, &mut around, cx);
        for index in apart.gone {
            self.remove(index, cx);
        }
        while let Some(back) = self.multiplex.as_mut().and_then(|all| all.take_returned()) {
            self.take_back(back, cx);
        }
        Some(result)
    }

    /// A SYN comes back from the persistent connections.
    fn take_back(&mut self, back: Returned, cx: &mut Ctx<'_>) {
        let Returned {
            key,
            from,
            syn,
            way,
        } = back;
        let first = self.budget.first(Self::state_bytes() as u64);
        let first = match (way, first) {
            (Way::Anew, Some(first)) => first,
            (Way::Beside, Some(first)) if !self.flows.contains_key(&key) => {
                self.open(key, from, self.settings.facing, first, syn, cx);
                return;
            }
            (Way::Beside, _) => {
                cx.packets.release(syn);
                return;
            }
            (Way::Passes, _) | (Way::Anew, None) => {
                self.remember_passed(key);
                self.forward(syn, cx);
                return;
            }
        };
        let asks = Asks {
            key,
            from,
            first,
            syn,
        };
        let open = |all: &mut Multiplex<P>, around: &mut Around<'_>, cx: &mut Ctx<'_>| {
            all.open_now(asks, around, cx)
        };
        if let Some(syn) = self.streams(cx, open).flatten() {
            self.open(key, from, self.settings.facing, first, syn, cx);
        }
    }

    /// What is not for a leg goes on as it is.
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

    /// A packet that is no SYN, of a connection that is split.
    #[inline]
    fn for_leg(&mut self, index: u32, side: usize, packet: PacketRef, cx: &mut Ctx<'_>) {
        let Some(pair) = self.pairs.get_mut(index) else {
            debug_assert!(false, "a key without its pair");
            cx.packets.release(packet);
            return;
        };
        if side == OPENER && pair.legs[OPENER].is_none() {
            self.early_word(index, packet, cx);
            return;
        }
        self.counters.packets_split += 1;
        pair.allow(&self.budget, cx);
        pair.on_packet(side, packet, cx);
        if pair.syn.is_some() {
            self.settle(index, cx);
            return;
        }
        // Nearly every packet: the connection is looked up once.
        let next = pair.go_on(&self.settings, &mut self.budget, &mut self.paths, cx);
        self.see_to(index, next, cx);
    }

    /// The side that opens has something to say before it was answered.
    fn early_word(&mut self, index: u32, packet: PacketRef, cx: &mut Ctx<'_>) {
        let Some(pair) = self.pairs.get_mut(index) else {
            return;
        };
        let record = cx.packets.get(packet);
        if record.flags.has(Flags::RST) && record.sequence == pair.syn_sequence + 1 {
            // It has given up, and the other side should know.
            self.remove(index, cx);
            self.forward(packet, cx);
            return;
        }
        // Old, or forged; or the other side's answer has gone another way than through here, and it
        // was to our SYN, with our options: nothing can be made of that.
        self.counters.early_words += 1;
        cx.packets.release(packet);
    }

    /// A SYN of a connection that is known.
    fn syn_again(
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
            // Our own SYN goes again when its time comes. If it is another one than the first, one
            // of the two is forged: the side that opens will reset what it didn't ask for.
            if sequence == pair.syn_sequence {
                pair.touched = cx.now;
            }
            cx.packets.release(packet);
            return;
        }
        if pair.is_followed_by(side, sequence) {
            if pair.is_over() {
                self.remove(index, cx);
                self.counters.followed += 1;
                self.consider(key, from, packet, cx);
                return;
            }
            if pair.has_ended(side) {
                // The other host has still to hear what was confirmed to this one, which sends its SYN again.
                cx.packets.release(packet);
                return;
            }
        }
        self.for_leg(index, side, packet, cx);
    }
}
