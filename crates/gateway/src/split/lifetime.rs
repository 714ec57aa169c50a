//! From a SYN to when a connection is forgotten.

use std::sync::Arc;

use bentpipe_tcp::{Config, Payload};
use bentpipe_types::{Ctx, FlowKey, PacketRef, Port};

use super::legs::Kind;
use super::multiplex::{Around, Asks, Multiplex};
use super::pair::{Next, OPENER, Opened, Pair, RESPONDER};
use super::{Answer, Split};

/// Flows that are known to pass, at most: more, and all are forgotten.
const MOST_PASSED: usize = 1 << 16;

impl<P: Payload> Split<P> {
    /// A SYN of a connection that is not known.
    pub(super) fn consider(&mut self, key: FlowKey, from: Port, syn: PacketRef, cx: &mut Ctx<'_>) {
        let settings = &self.settings;
        let wanted = settings
            .only
            .as_ref()
            .is_none_or(|only| only.contains(&key))
            && !settings
                .except
                .as_ref()
                .is_some_and(|except| except.contains(&key));
        let towards = self
            .routes
            .port_towards(cx.packets.get(syn).destination.address);
        // Where what it is answered goes: not always where it came from, if links are one-way.
        let back = self
            .routes
            .port_towards(cx.packets.get(syn).source.address)
            .unwrap_or(from);
        let Some(towards) = towards.filter(|towards| wanted && *towards != back) else {
            self.counters.passed += 1;
            self.forward(syn, cx);
            return;
        };
        if !self.passed.is_empty() && self.passed.contains_key(&key) {
            self.forward(syn, cx);
            return;
        }
        self.make_room(cx);
        let Some(first) = self.budget.first(Self::state_bytes() as u64) else {
            self.counters.refused += 1;
            self.room.turned_away();
            self.remember_passed(key);
            self.forward(syn, cx);
            return;
        };
        self.room.found(!self.budget.is_short());
        let syn = if towards == self.settings.facing && self.multiplex.is_some() {
            let asks = Asks {
                key,
                from: back,
                first,
                syn,
            };
            let open = |all: &mut Multiplex<P>, around: &mut Around<'_>, cx: &mut Ctx<'_>| {
                all.open(asks, around, cx)
            };
            match self.streams(cx, open).flatten() {
                // There is no memory for a persistent connection, or nobody at its other end: it has a part of its own.
                Some(syn) => syn,
                None => return,
            }
        } else {
            syn
        };
        self.open(key, back, towards, first, syn, cx);
    }

    /// One more connection is to be split. Those that are over make room, while there is little.
    fn make_room(&mut self, cx: &mut Ctx<'_>) {
        while self.budget.is_short()
            && let Some(index) = self.ended.take()
        {
            if self.pairs.get_mut(index).is_some_and(|pair| pair.over) {
                self.remove(index, cx);
            }
        }
        if self.budget.is_short() && self.multiplex.is_some() {
            self.streams(cx, Multiplex::make_room);
        }
    }

    /// A connection is split.
    pub(super) fn open(
        &mut self,
        key: FlowKey,
        back: Port,
        towards: Port,
        first: u64,
        syn: PacketRef,
        cx: &mut Ctx<'_>,
    ) {
        let fast_open = cx.packets.syn_options(syn).fast_open.is_some();
        let config = self.config(&key, towards, first);
        let mut pair = Pair::open(key, syn, [back, towards], &config, first, cx);
        // Fast Open's cookies are the other side's to give. And what may still have to go over a persistent connection
        // (`apart`) has said nothing to its host.
        let may_join = self.multiplex.is_some() && towards == self.settings.facing;
        if self.settings.set_up == Answer::Early && !fast_open && !may_join {
            let config = self.config(&key, back, first);
            pair.answer(&config, cx);
        }
        pair.hold_closes(self.settings.close, cx);
        self.facing_legs += self.legs_facing(&pair.ports);
        let index = self.pairs.insert(pair);
        self.flows.insert(key, (index, OPENER));
        self.flows.insert(key.reversed(), (index, RESPONDER));
        self.last = None;
        let state = Self::state_bytes() as u64;
        self.budget.change((0, state), (0, 0));
        self.counters.opened();
        self.settle(index, cx);
    }

    fn legs_facing(&self, ports: &[Port; 2]) -> usize {
        ports
            .iter()
            .filter(|port| **port == self.settings.facing)
            .count()
    }

    /// The TCP of a new leg that goes out at `port` and offers `first` at first.
    fn config(&mut self, key: &FlowKey, port: Port, first: u64) -> Arc<Config> {
        let facing = port == self.settings.facing;
        let kind = if facing { Kind::Facing } else { Kind::Host };
        let mut config = self.leg_settings.of(kind, key, first, &self.settings);
        if self.settings.warm_path && facing {
            self.paths.apply(&mut config, self.facing_legs);
        }
        config
    }

    pub(super) fn remember_passed(&mut self, key: FlowKey) {
        if self.passed.len() >= MOST_PASSED {
            self.passed.clear();
        }
        self.passed.insert(key, ());
    }

    /// Before anything is done with a pair: so much may be promised to its streams from now on.
    pub(super) fn prepare(&mut self, index: u32, cx: &mut Ctx<'_>) {
        if let Some(pair) = self.pairs.get_mut(index) {
            pair.allow(&self.budget, cx);
        }
    }

    /// Lets a pair do what it can, and sees to what has become of it.
    pub(super) fn settle(&mut self, index: u32, cx: &mut Ctx<'_>) {
        self.establish(index, cx);
        let Some(pair) = self.pairs.get_mut(index) else {
            return;
        };
        let next = pair.go_on(&self.settings, &mut self.budget, &mut self.paths, cx);
        self.see_to(index, next, cx);
    }

    #[inline]
    pub(super) fn see_to(&mut self, index: u32, next: Next, cx: &mut Ctx<'_>) {
        match next {
            Next::At(None) => {}
            Next::At(Some(at)) => self.deadlines.arm(index, at),
            Next::Gone => self.remove(index, cx),
            Next::Over => {
                self.end(index);
                let Some(pair) = self.pairs.get_mut(index) else {
                    return;
                };
                let next = pair.next(&self.settings);
                self.ended.add(index, cx.now);
                self.see_to(index, next, cx);
            }
        }
    }

    /// Answers a SYN if the other side has.
    fn establish(&mut self, index: u32, cx: &mut Ctx<'_>) {
        let Some(pair) = self.pairs.get_mut(index) else {
            return;
        };
        if pair.syn.is_none() {
            return;
        }
        let (key, port, first) = (pair.key, pair.ports[OPENER], pair.first);
        let config = self.config(&key, port, first);
        let Some(pair) = self.pairs.get_mut(index) else {
            return;
        };
        match pair.opened(&config, cx) {
            Opened::Waits => {}
            Opened::Answered => pair.hold_closes(self.settings.close, cx),
            Opened::Refused => self.counters.refusals += 1,
            Opened::Unreachable => self.counters.unreachable += 1,
        }
    }

    /// Nothing more will come of a pair but what TIME-WAIT is for.
    fn end(&mut self, index: u32) {
        let facing = self.settings.facing;
        let Some(pair) = self.pairs.get_mut(index) else {
            return;
        };
        pair.over = true;
        // TIME-WAIT lasts a minute, and needs no bytes; `memory` counts none.
        for leg in pair.legs.iter_mut().flatten() {
            leg.shrink();
        }
        for (leg, port) in pair.legs.iter().zip(pair.ports) {
            if port == facing {
                self.facing_legs -= 1;
                if let Some(leg) = leg
                    && self.settings.warm_path
                {
                    self.paths.learn(leg.connection(), pair.widest);
                }
            }
        }
        self.counters.ended(pair.aborted);
    }

    pub(super) fn abort(&mut self, index: u32, cx: &mut Ctx<'_>) {
        if let Some(pair) = self.pairs.get_mut(index) {
            pair.abort(cx);
        }
        self.remove(index, cx);
    }

    /// Forgets a pair.
    pub(super) fn remove(&mut self, index: u32, cx: &mut Ctx<'_>) {
        if self.pairs.get_mut(index).is_some_and(|pair| !pair.over) {
            self.end(index);
        }
        let Some(pair) = self.pairs.remove(index) else {
            return;
        };
        if let Some(syn) = pair.syn {
            cx.packets.release(syn);
        }
        for stream in &pair.streams {
            self.budget.change((stream.promised, 0), (stream.held, 0));
        }
        self.budget.change((Self::state_bytes() as u64, 0), (0, 0));
        self.counters.removed(&pair, self.settings.facing);
        self.flows.remove(&pair.key);
        self.flows.remove(&pair.key.reversed());
        self.last = None;
        self.deadlines.disarm(index);
    }
}
