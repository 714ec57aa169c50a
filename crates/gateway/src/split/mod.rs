//! A gateway that splits connections (karir1999, RFC 3135 section 2.1.1).
//!
//! It ends every TCP connection that it sees begin, and makes another one on each side, with the
//! addresses, the ports and the initial sequence numbers of the hosts: neither of them can tell. Only
//! the part over the link that the gateway is there for needs that link's settings. One gateway is
//! enough; of two, one at each end of the link, each splits what the other has split already.
//!
//! | file | what |
//! |---|---|
//! | `pair` | a connection's two legs, and what goes from one to the other |
//! | `pairs` | all of them: those at which something happens, and those at rest |
//! | `budget` | memory: what may be promised, and to whom |
//! | `legs` | the legs' TCP: most have the same |
//! | `paths` | what a connection learns from earlier ones |
//! | `multiplex` | all connections of two gateways over few persistent ones |
//! | `counters` | what a result and a probe see |
//!
//! **What a stream's bytes pass.** They come in order at one leg, and are at once the next bytes that
//! the other leg has to send. The window that the gateway offers a sender is the room that is left: if
//! the other side is slow, the sender is, and nothing is ever dropped for want of room.
//!
//! **What is confirmed, and when.** A byte is acknowledged when the gateway has it. The end of a stream
//! is acknowledged when the other side has acknowledged it, and with it every byte before it; so that a
//! sender that closes and sees its close confirmed knows what it knows without a gateway.

mod budget;
mod counters;
mod legs;
mod multiplex;
mod pair;
mod pairs;
mod paths;
mod settings;
#[cfg(test)]
mod tests;

use std::mem;
use std::sync::Arc;

use bentpipe_tcp::{Config, Payload, Ranges, reset_reply};
use bentpipe_types::{
    Agent, Ctx, DropReason, Flags, FlowKey, Gauge, Holdings, PacketRef, Port, Processor, Routes,
    StreamCheck, Time,
};
use rustc_hash::FxHashMap;

use crate::crash::Volatile;
use crate::deadlines::Deadlines;
use crate::icmp::Complaint;
use budget::{Budget, SPLIT_STATE};
use counters::{Counters, Sums};
use legs::{Kind, LegSettings};
use multiplex::{Around, Multiplex};
use pair::{Next, OPENER, Opened, Pair, RESPONDER};
use pairs::Pairs;
use paths::PathMemory;

pub use bentpipe_types::Processing;
pub use counters::GAUGES;
pub use settings::{Answer, Multiplexing, REST_AFTER, Settings};

/// Flows that are known to pass, at most: more, and all are forgotten.
const MOST_PASSED: usize = 1 << 16;

/// A gateway that splits connections. `P`: where the bytes of its streams are.
#[derive(Debug)]
pub struct Split<P = Ranges> {
    settings: Settings,
    routes: Routes,
    pairs: Pairs<P>,
    /// By the key of arriving packets: the pair, and at which of its legs they arrive.
    flows: FxHashMap<FlowKey, (u32, usize)>,
    /// The last packet's: with one flow, or in a burst, the next one's too.
    last: Option<(FlowKey, u32, usize)>,
    /// Connections that were let pass though they might have been split: their SYN may come again.
    passed: FxHashMap<FlowKey, ()>,
    deadlines: Deadlines,
    budget: Budget,
    processor: Option<Processor>,
    paths: PathMemory,
    leg_settings: LegSettings,
    /// Legs that go out at the facing link and aren't over.
    facing_legs: usize,
    multiplex: Option<Box<Multiplex<P>>>,
    counters: Counters,
}

impl<P: Payload> Split<P> {
    /// A gateway that has seen nothing yet.
    #[must_use]
    pub fn new(mut settings: Settings) -> Self {
        for tcp in [&mut settings.facing_tcp, &mut settings.host_tcp] {
            // What has been promised is all that there is room for, whatever else Linux would take.
            tcp.habits.takes_whole_segments = false;
        }
        Self {
            budget: Budget::new(settings.memory),
            processor: settings.processing.map(Processor::new),
            multiplex: (settings.multiplex)
                .map(|with| Box::new(Multiplex::new(with.peer, with.connections))),
            pairs: Pairs::new(settings.facing, settings.rest_after),
            settings,
            routes: Routes::default(),
            flows: FxHashMap::default(),
            last: None,
            passed: FxHashMap::default(),
            deadlines: Deadlines::default(),
            paths: PathMemory::default(),
            leg_settings: LegSettings::default(),
            facing_legs: 0,
            counters: Counters::default(),
        }
    }

    /// Is there nothing left of all that it has split, not even TIME-WAIT? (Persistent connections to
    /// another gateway are not the hosts'.)
    #[must_use]
    pub fn is_forgotten(&self) -> bool {
        self.pairs.len() == 0 && self.multiplex.as_ref().is_none_or(|all| all.is_forgotten())
    }

    /// Bytes that a connection counts besides its streams.
    #[must_use]
    pub const fn state_bytes() -> usize {
        const {
            // Both keys' entries in the table, and the deadline.
            assert!(size_of::<Pair<P>>() + 2 * (size_of::<FlowKey>() + 16) + 48 <= SPLIT_STATE);
        }
        SPLIT_STATE
    }

    fn find(&mut self, key: &FlowKey) -> Option<(u32, usize)> {
        if let Some((last, index, side)) = &self.last
            && last == key
        {
            return Some((*index, *side));
        }
        let (index, side) = *self.flows.get(key)?;
        self.last = Some((*key, index, side));
        Some((index, side))
    }

    /// Packets that the processor has not done with.
    fn processing(&self) -> u64 {
        self.processor.as_ref().map_or(0, Processor::packets)
    }

    /// A packet that the processor is done with.
    fn handle(&mut self, from: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
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
        let record = cx.packets.get(packet);
        let opens = record.flags.has(Flags::SYN)
            && !record
                .flags
                .has(Flags::ACK.with(Flags::RST).with(Flags::FIN));
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
            // From beyond the link, of a connection that is carried here: the other gateway has forgotten
            // it. This host's stream is another one than that which the other has.
            (None, None) if from == facing && multiplex.find(&key.reversed()).is_some() => {
                if cx.packets.get(packet).flags.has(Flags::SYN) {
                    cx.packets.release(packet);
                } else {
                    reset_reply(packet, from, cx);
                }
                None
            }
            (None, None) => Some(packet),
        }
    }

    /// Does something with what persistent connections carry.
    fn streams<R>(
        &mut self,
        cx: &mut Ctx<'_>,
        act: impl FnOnce(&mut Multiplex<P>, &mut Around<'_>, &mut Ctx<'_>) -> R,
    ) -> Option<R> {
        let multiplex = self.multiplex.as_mut()?;
        let mut around = Around {
            settings: &self.settings,
            routes: &self.routes,
            leg_settings: &mut self.leg_settings,
            budget: &mut self.budget,
            counters: &mut self.counters,
            state: Multiplex::<P>::state_bytes() as u64,
        };
        let result = act(multiplex, &mut around, cx);
        while let Some(back) = self.multiplex.as_mut().and_then(|all| all.take_returned()) {
            let first = self.budget.first(Self::state_bytes() as u64);
            match first.filter(|_| back.splits) {
                Some(first) => {
                    let facing = self.settings.facing;
                    self.open(back.key, back.from, facing, first, back.syn, cx);
                }
                None => {
                    self.remember_passed(back.key);
                    self.forward(back.syn, cx);
                }
            }
        }
        Some(result)
    }

    /// What is not for a leg goes on as it is.
    fn forward(&mut self, packet: PacketRef, cx: &mut Ctx<'_>) {
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
        if pair.is_over() && pair.is_followed_by(side, sequence) {
            self.remove(index, cx);
            self.counters.followed += 1;
            self.consider(key, from, packet, cx);
            return;
        }
        self.for_leg(index, side, packet, cx);
    }

    /// A SYN of a connection that is not known.
    fn consider(&mut self, key: FlowKey, from: Port, syn: PacketRef, cx: &mut Ctx<'_>) {
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
        let Some(first) = self.budget.first(Self::state_bytes() as u64) else {
            self.counters.refused += 1;
            self.remember_passed(key);
            self.forward(syn, cx);
            return;
        };
        let syn = if towards == self.settings.facing && self.multiplex.is_some() {
            let open = |all: &mut Multiplex<P>, around: &mut Around<'_>, cx: &mut Ctx<'_>| {
                all.open(key, back, first, syn, around, cx)
            };
            match self.streams(cx, open).flatten() {
                // There is no memory for a persistent connection: it has a part of its own.
                Some(syn) => syn,
                None => return,
            }
        } else {
            syn
        };
        self.open(key, back, towards, first, syn, cx);
    }

    /// A connection is split.
    fn open(
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
        // Fast Open's cookies are the other side's to give.
        if self.settings.set_up == Answer::Early && !fast_open {
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

    fn remember_passed(&mut self, key: FlowKey) {
        if self.passed.len() >= MOST_PASSED {
            self.passed.clear();
        }
        self.passed.insert(key, ());
    }

    /// Before anything is done with a pair: so much may be promised to its streams from now on.
    fn prepare(&mut self, index: u32, cx: &mut Ctx<'_>) {
        if let Some(pair) = self.pairs.get_mut(index) {
            pair.allow(&self.budget, cx);
        }
    }

    /// Lets a pair do what it can, and sees to what has become of it.
    fn settle(&mut self, index: u32, cx: &mut Ctx<'_>) {
        self.establish(index, cx);
        let Some(pair) = self.pairs.get_mut(index) else {
            return;
        };
        let next = pair.go_on(&self.settings, &mut self.budget, &mut self.paths, cx);
        self.see_to(index, next, cx);
    }

    #[inline]
    fn see_to(&mut self, index: u32, next: Next, cx: &mut Ctx<'_>) {
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

    fn abort(&mut self, index: u32, cx: &mut Ctx<'_>) {
        if let Some(pair) = self.pairs.get_mut(index) {
            pair.abort(cx);
        }
        self.remove(index, cx);
    }

    /// Forgets a pair.
    fn remove(&mut self, index: u32, cx: &mut Ctx<'_>) {
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

impl<P: Payload> Volatile for Split<P> {
    fn lose_power(&mut self, cx: &mut Ctx<'_>) -> u64 {
        let waiting = self.pairs.awake().filter_map(|pair| pair.syn);
        let carried = self.multiplex.iter().flat_map(|all| all.carried());
        for packet in waiting.chain(carried.filter_map(|one| one.syn)) {
            cx.discard(packet, DropReason::Down);
        }
        while let Some(packet) = self.processor.as_mut().and_then(Processor::abandon) {
            cx.discard(packet, DropReason::Down);
        }
        let sums = Sums::of_all(self);
        let lost = self.counters.lost(sums);
        let anew = Self::new(self.settings.clone());
        let before = mem::replace(self, anew);
        self.routes = before.routes;
        self.counters = before.counters;
        self.budget.remember(&before.budget);
        lost
    }
}

impl<P: Payload> Agent for Split<P> {
    fn routes(&mut self, routes: Routes) {
        self.routes = routes;
    }

    fn on_packet(&mut self, from: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        let Some(processor) = &mut self.processor else {
            self.handle(from, packet, cx);
            return;
        };
        if let Some(packet) = processor.offer(from, packet, cx.now) {
            self.counters.packets_dropped += 1;
            cx.discard(packet, DropReason::Busy);
        }
    }

    fn on_deadline(&mut self, cx: &mut Ctx<'_>) {
        while let Some((from, packet)) = self
            .processor
            .as_mut()
            .and_then(|processor| processor.take(cx.now))
        {
            self.handle(from, packet, cx);
        }
        self.pairs.now = cx.now;
        while let Some(index) = self.deadlines.due(cx.now) {
            let idle_timeout = self.settings.idle_timeout;
            let Some(pair) = self.pairs.get_mut(index) else {
                continue;
            };
            if !pair.over && cx.now.since(pair.touched) >= idle_timeout {
                self.counters.idle += 1;
                self.abort(index, cx);
                continue;
            }
            self.prepare(index, cx);
            if let Some(pair) = self.pairs.get_mut(index) {
                pair.on_deadline(cx);
            }
            self.settle(index, cx);
        }
        if self.multiplex.is_some() {
            self.streams(cx, Multiplex::on_deadline);
        }
        self.pairs.put_to_rest();
    }

    /// Both sides of every connection are reset. What one side has had acknowledged and the other has not got is
    /// nowhere but here; and of what holds nothing, the ends have never heard each other's timestamps (RFC 7323
    /// section 5.3) and window scales. (Streams over persistent connections end when the other gateway misses
    /// these.)
    fn retire(&mut self, cx: &mut Ctx<'_>) {
        self.pairs.now = cx.now;
        for index in 0..self.pairs.end() {
            if let Some(pair) = self.pairs.get_mut(index)
                && !pair.over
            {
                pair.aborted = true;
                self.abort(index, cx);
            }
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        let processed = self.processor.as_ref().and_then(Processor::next);
        let streams = self.multiplex.as_ref().and_then(|all| all.next_deadline());
        let pairs = self.deadlines.next();
        let rest = self.pairs.next_look();
        [processed, pairs, streams, rest]
            .into_iter()
            .flatten()
            .min()
    }

    fn holdings(&self) -> Holdings {
        let syns = self.pairs.awake().filter(|pair| pair.syn.is_some()).count() as u64;
        let carried = self.multiplex.as_ref().map_or(0, |all| all.syns());
        Holdings {
            packets: syns + carried + self.processing(),
            bytes: self.budget.held,
        }
    }

    fn counters(&self, visit: &mut dyn FnMut(&str, u64)) {
        self.counters.tell(self, visit);
    }

    fn gauges(&self) -> &'static [Gauge] {
        GAUGES
    }

    fn gauge(&self, index: usize) -> f64 {
        counters::gauge(self, index)
    }

    fn stream_check(&self) -> StreamCheck {
        self.counters.check(self)
    }

    fn is_quiet(&self) -> bool {
        self.counters.open == 0
            && self.processing() == 0
            && self.multiplex.as_ref().is_none_or(|all| all.is_quiet())
    }
}
