//! The life cycle of a split connection, from the SYN to its removal.

use std::sync::Arc;

use bentpipe_tcp::{Config, Payload};
use bentpipe_types::{ConnectionChange, Ctx, DropReason, FlowKey, PacketRef, Port};

use super::admission::HalfOpenRoom;
use super::counters::record_round_trips;
use super::multiplex::{GatewayContext, Multiplex, OpenRequest};
use super::settings::LegType;
use super::split_connection::{NextStep, OPENER, RESPONDER, ResponderOutcome, SplitConnection};
use super::{Confirmation, Split};

/// Limit of remembered SYNs that were forwarded. When it is reached, all are forgotten.
const MAX_FORWARDED_SYNS: usize = 1 << 16;

impl<P: Payload> Split<P> {
    /// Processes the SYN of an unknown connection: decides whether it is split.
    pub(super) fn handle_new_syn(
        &mut self,
        key: FlowKey,
        from: Port,
        syn: PacketRef,
        cx: &mut Ctx<'_>,
    ) {
        // A retransmitted SYN belongs to the same connection. It is not decided or counted again.
        let sequence = cx.packets.get(syn).sequence;
        if self.forwarded_syns.get(&key) == Some(&sequence) {
            self.forward(syn, cx);
            return;
        }
        let settings = &self.settings;
        let wanted = settings
            .only
            .as_ref()
            .is_none_or(|only| only.contains(&key))
            && !settings
                .except
                .as_ref()
                .is_some_and(|except| except.contains(&key));
        if wanted && self.is_draining {
            self.counters.passed_draining += 1;
            log_passed(&key, "the gateway is draining");
            self.remember_forwarded(key, syn, cx);
            self.forward(syn, cx);
            return;
        }
        let towards = self
            .routes
            .port_towards(cx.packets.get(syn).destination.address);
        // Port for answers to the SYN. With one-way links it differs from the port that the SYN
        // arrived on.
        let back = self
            .routes
            .port_towards(cx.packets.get(syn).source.address)
            .unwrap_or(from);
        let Some(towards) = towards.filter(|towards| wanted && *towards != back) else {
            self.counters.passed += 1;
            log_passed(&key, "its class is not split");
            self.remember_forwarded(key, syn, cx);
            self.forward(syn, cx);
            return;
        };
        self.evict_ended(cx);
        self.budget.set_suspended(self.pairs.suspended());
        let Some(first) = self.budget.initial_window(Self::state_bytes() as u64) else {
            self.counters.refused += 1;
            tracing::warn!(
                opener = %key.source,
                responder = %key.destination,
                reason = "no memory left",
                "a connection is forwarded unsplit"
            );
            self.refusal_notice.note_refusal();
            self.remember_forwarded(key, syn, cx);
            self.forward(syn, cx);
            return;
        };
        if !self.admits(&key, cx) {
            self.counters.refused += 1;
            self.counters.refused_half_open += 1;
            self.refusal_notice.note_half_open_refusal();
            self.remember_forwarded(key, syn, cx);
            self.forward(syn, cx);
            return;
        }
        let is_ample = !self.budget.is_low() && !self.admission.is_crowded();
        self.refusal_notice.note_admission(is_ample);
        let syn = if towards == self.settings.facing && self.multiplex.is_some() {
            let request = OpenRequest {
                key,
                from: back,
                first,
                syn,
            };
            let open = |all: &mut Multiplex<P>,
                        context: &mut GatewayContext<'_>,
                        cx: &mut Ctx<'_>| { all.open(request, context, cx) };
            match self.with_multiplex(cx, open).flatten() {
                // No trunk is available, for want of memory or because the peer does not answer.
                // The connection is split without one.
                Some(syn) => syn,
                None => return,
            }
        } else {
            syn
        };
        self.open(key, back, towards, first, syn, cx);
    }

    /// Removes connections in TIME-WAIT while memory is short, before a new connection is split.
    fn evict_ended(&mut self, cx: &mut Ctx<'_>) {
        while self.budget.is_low()
            && let Some(index) = self.ended.take()
        {
            if self.pairs.get_mut(index).is_some_and(|pair| pair.has_ended) {
                self.remove(index, cx);
            }
        }
        if self.budget.is_low() && self.multiplex.is_some() {
            self.with_multiplex(cx, Multiplex::evict_ended);
        }
    }

    /// Returns true if the limits of half-open connections and of the source permit one more. Gives
    /// up the oldest half-open one if need be.
    fn admits(&mut self, key: &FlowKey, cx: &mut Ctx<'_>) -> bool {
        let of_source = self.admission.of_source(key);
        let most = self.settings.source_connections.unwrap_or(u32::MAX);
        if of_source >= most || !(self.budget).allows_source(of_source, Self::state_bytes() as u64)
        {
            return false;
        }
        loop {
            match self.admission.half_open_room(key) {
                HalfOpenRoom::Free => return true,
                HalfOpenRoom::SourceFull => return false,
                HalfOpenRoom::Full => {}
            }
            let Some(index) = self.admission.take_oldest(cx.now) else {
                return false;
            };
            let oldest = self.pairs.get_active(index);
            if let Some(key) = oldest.filter(|one| one.is_half_open).map(|one| one.key) {
                self.admission.give_up(key);
                self.counters.given_up += 1;
                self.remove(index, cx);
            }
        }
    }

    /// Splits a connection.
    pub(super) fn open(
        &mut self,
        key: FlowKey,
        back: Port,
        towards: Port,
        first: u64,
        syn: PacketRef,
        cx: &mut Ctx<'_>,
    ) {
        // The gateway is a hop for the SYN, so that a traceroute by SYNs shows the routers beyond.
        if !cx.packets.hop(syn) {
            cx.discard(syn, DropReason::HopLimit);
            return;
        }
        let fast_open = cx.packets.syn_options(syn).fast_open.is_some();
        let config = self.config(&key, towards, first);
        let secret = self.settings.secret;
        let ports = [back, towards];
        let mut pair = SplitConnection::open(key, syn, ports, &config, first, secret, cx);
        // An early answer is not possible with Fast Open, because only the other host can issue a
        // cookie. A connection that may still move to a trunk is not answered early either, as
        // moving is possible only before the host is answered (see `unmultiplexed`).
        let may_join = self.multiplex.is_some() && towards == self.settings.facing;
        if self.settings.set_up == Confirmation::Early && !fast_open && !may_join {
            let config = self.config(&key, back, first);
            pair.answer(&config, secret, cx);
        }
        pair.hold_fins(self.settings.close, cx);
        self.facing_legs += self.legs_facing(&pair.ports);
        let index = self.pairs.insert(pair);
        self.flows.insert(key, (index, OPENER));
        self.flows.insert(key.reversed(), (index, RESPONDER));
        self.last = None;
        self.admission.opened(&key, index, cx.now);
        self.note_change(index, Some(key));
        self.budget.change_state((0, Self::state_bytes() as u64));
        self.counters.opened();
        tracing::debug!(
            opener = %key.source,
            responder = %key.destination,
            "a connection is split"
        );
        self.advance(index, cx);
    }

    fn legs_facing(&self, ports: &[Port; 2]) -> usize {
        ports
            .iter()
            .filter(|port| **port == self.settings.facing)
            .count()
    }

    /// Returns the TCP settings of a new leg at `port`, with the initial receive window `first`.
    fn config(&mut self, key: &FlowKey, port: Port, first: u64) -> Arc<Config> {
        let facing = port == self.settings.facing;
        let kind = if facing {
            LegType::Facing
        } else {
            LegType::Host
        };
        let mut config = self.leg_settings.of(kind, key, first, &self.settings);
        if self.settings.warm_path && facing {
            self.paths.apply(&mut config, self.facing_legs);
        }
        config
    }

    /// Notes that a connection is forwarded, so that retransmissions of its SYN are as well.
    pub(super) fn remember_forwarded(&mut self, key: FlowKey, syn: PacketRef, cx: &Ctx<'_>) {
        if self.forwarded_syns.len() >= MAX_FORWARDED_SYNS {
            self.forwarded_syns.clear();
        }
        let sequence = cx.packets.get(syn).sequence;
        self.forwarded_syns.insert(key, sequence);
    }

    /// Updates the window limits of a connection from the memory that is left now. Called before
    /// anything else is done with it.
    pub(super) fn update_window_limit(&mut self, index: u32, cx: &mut Ctx<'_>) {
        if let Some(pair) = self.pairs.get_mut(index) {
            pair.update_window_limits(&self.budget, cx);
        }
    }

    /// Advances a connection as far as possible, and handles its new state.
    pub(super) fn advance(&mut self, index: u32, cx: &mut Ctx<'_>) {
        self.establish(index, cx);
        let Some(pair) = self.pairs.get_mut(index) else {
            return;
        };
        let next = pair.advance_and_account(&self.settings, &mut self.budget, &mut self.paths, cx);
        if pair.is_half_open && !pair.is_opening() {
            pair.is_half_open = false;
            let key = pair.key;
            self.admission.completed(&key);
        }
        self.apply_step(index, next, cx);
    }

    #[inline]
    pub(super) fn apply_step(&mut self, index: u32, next: NextStep, cx: &mut Ctx<'_>) {
        match next {
            NextStep::RunAt(None) => {}
            NextStep::RunAt(Some(at)) => self.deadlines.arm(index, at),
            NextStep::Remove => self.remove(index, cx),
            NextStep::MarkEnded => {
                self.end(index);
                let Some(pair) = self.pairs.get_mut(index) else {
                    return;
                };
                let next = pair.next_step(&self.settings);
                self.ended.add(index, cx.now);
                self.apply_step(index, next, cx);
            }
        }
    }

    /// Answers the host's SYN once the other host has answered.
    fn establish(&mut self, index: u32, cx: &mut Ctx<'_>) {
        let Some(pair) = self.pairs.get_mut(index) else {
            return;
        };
        if pair.syn.is_none() {
            return;
        }
        let (key, port, first) = (pair.key, pair.ports[OPENER], pair.initial_window);
        let config = self.config(&key, port, first);
        let Some(pair) = self.pairs.get_mut(index) else {
            return;
        };
        match pair.answer_syn(&config, self.settings.secret, cx) {
            ResponderOutcome::Pending => {}
            ResponderOutcome::AnswerFrame => pair.hold_fins(self.settings.close, cx),
            ResponderOutcome::Refused => {
                self.counters.refused_by_host += 1;
                log_failed(&key, "the host refuses it");
            }
            ResponderOutcome::Unreachable => {
                self.counters.unreachable += 1;
                log_failed(&key, "the host does not answer");
            }
        }
    }

    /// Marks a connection as ended: only TIME-WAIT is left.
    fn end(&mut self, index: u32) {
        let facing = self.settings.facing;
        let Some(pair) = self.pairs.get_mut(index) else {
            return;
        };
        pair.has_ended = true;
        record_round_trips(&mut self.counters.round_trips, pair, facing);
        // TIME-WAIT lasts a minute and needs no buffers, for which `memory_budget` counts nothing.
        for leg in pair.legs.iter_mut().flatten() {
            leg.shrink();
        }
        for (leg, port) in pair.legs.iter().zip(pair.ports) {
            if port == facing {
                self.facing_legs -= 1;
                if let Some(leg) = leg
                    && self.settings.warm_path
                {
                    self.paths.learn(leg.connection(), pair.largest_window);
                }
            }
        }
        self.counters.ended(pair.aborted);
        if pair.aborted {
            log_failed(&pair.key, "one side was reset");
        } else if pair.legs[OPENER].is_some() {
            let received = |side: usize| {
                let leg = pair.legs[side].as_ref();
                leg.map_or(0, |leg| leg.connection().received_offset())
            };
            tracing::debug!(
                opener = %pair.key.source,
                responder = %pair.key.destination,
                from_opener_bytes = received(OPENER),
                from_responder_bytes = received(RESPONDER),
                "a connection has ended"
            );
        }
    }

    pub(super) fn abort(&mut self, index: u32, cx: &mut Ctx<'_>) {
        if let Some(pair) = self.pairs.get_mut(index) {
            pair.abort(cx);
        }
        self.remove(index, cx);
    }

    fn note_change(&mut self, index: u32, key: Option<FlowKey>) {
        if let Some(changes) = &mut self.changes {
            changes.push(ConnectionChange { index, key });
        }
    }

    /// Removes a connection.
    pub(super) fn remove(&mut self, index: u32, cx: &mut Ctx<'_>) {
        if self
            .pairs
            .get_mut(index)
            .is_some_and(|pair| !pair.has_ended)
        {
            self.end(index);
        }
        let Some(pair) = self.pairs.remove(index) else {
            return;
        };
        // It was restored, if it was suspended.
        self.budget.set_suspended(self.pairs.suspended());
        if let Some(syn) = pair.syn {
            cx.packets.release(syn);
        }
        for stream in &pair.streams {
            self.budget
                .change_stream((stream.promised, 0), (stream.reserved, 0), (stream.held, 0));
        }
        self.budget.change_state((Self::state_bytes() as u64, 0));
        if pair.is_half_open {
            self.admission.completed(&pair.key);
        }
        self.admission.removed(&pair.key);
        self.note_change(index, None);
        self.counters.removed(&pair, self.settings.facing);
        self.flows.remove(&pair.key);
        self.flows.remove(&pair.key.reversed());
        self.last = None;
        self.deadlines.disarm(index);
    }
}

fn log_passed(key: &FlowKey, reason: &str) {
    tracing::debug!(
        opener = %key.source,
        responder = %key.destination,
        reason,
        "a connection is forwarded unsplit"
    );
}

fn log_failed(key: &FlowKey, reason: &str) {
    tracing::info!(
        opener = %key.source,
        responder = %key.destination,
        reason,
        "a connection has failed"
    );
}
