//! Hosts that are told ahead: what arrives at a host that hears one drop-tail direction alone is known as soon as
//! it is offered there, and nothing can come to the host before it.
//!
//! So the host is told at its own time, which runs ahead of everybody else's: its deadlines first that are
//! earlier, as they would come, and after the last packet those that are before any other can come. It is told soon, some events together, and in any case before the first event that is no
//! sooner than what it is told. What it sends is offered at that time to the one direction that it sends to, which
//! nobody else does; only where that leads to a router that others reach, too, is it an event, in its turn among
//! all others, and with two hosts at a link none is. It is the conservative lookahead of parallel simulation (Chandy
//! and Misra, 1979; Bryant, 1977), with one processor: what it saves is the schedule, and a host's state is fetched for
//! many packets at once.
//!
//! Nobody looks at a host or at its two directions before the others have come to the same time: hosts are told up to
//! a horizon, which is no later than the end of the run and the next look of the probes. A host that probes watch at
//! each event is not told ahead, nor one whose applications know of their peers by other means than packets, nor
//! where a tap looks.

use bentpipe_host::Host;
use bentpipe_link::{Arrival, Direction, Fifo, Verdict};
use bentpipe_types::{Agent, Bytes, Ctx, PacketRef, Port, Room, Span, Time};

use super::fetch::{NextConnections, NextEnds};
use super::passing::Attention;
use super::{ANYWHERE, DirectionSlot, Network, NodeSlot};
use crate::node::Node;
use crate::schedule::{ComponentId, Schedule};

/// How far the horizon moves at once, where nothing else bounds it: who shows progress reads the clock, and the
/// clock is where all have come to.
const STEP: Span = Span::from_secs(1);

/// So many events may happen before hosts are told what has come to them meanwhile, if nothing asks for it sooner:
/// few enough that the packets are in the cache still, and enough for what some hosts need to come from memory while
/// others are told.
const TOGETHER: u32 = 1024;

/// So many packets before one comes to a host, its headers are asked for from memory: where as many are under way as a long
/// link holds, they have left the cache meanwhile, and one packet is told in less time than they take to come.
pub(super) const EARLY: u64 = 6;

/// So few packets, in all the network, are in the cache still: asking for each of them costs more than it saves, 1% of a
/// run whose window losses keep small.
const FEW: usize = 256;

/// As soon as a host has said so much into a chain, it goes on.
const MOST_GO_ON: usize = 256;

/// Who is to be told what, and up to when.
#[derive(Debug, Default)]
pub(super) struct Lookahead {
    /// Looked for hosts that can be told ahead.
    begun: bool,
    /// Found one.
    tells: bool,
    /// All that happens up to and including then may happen.
    pub(super) horizon: Time,
    /// Directions with something to tell up to then.
    ready: Vec<u16>,
    /// Directions with something to tell later, each with the first arrival, in no order.
    later: Vec<(Time, u16)>,
    /// Nothing that they have to tell arrives sooner.
    earliest: Time,
    /// Events since somebody was told something.
    events: u32,
    /// When something last happened at a host that was told ahead.
    pub(super) last_activity: Time,
    /// What a host has said, into the first direction of a chain, and when it arrives at the end of that: what is taken
    /// on through the chain once the host has been told some. Empty in between.
    go_on: Vec<(Time, PacketRef, Bytes)>,
}

impl Lookahead {
    /// A packet has come into a drop-tail direction that was empty: its host is told `ahead`, or it is an event.
    #[inline(always)]
    pub(super) fn expect(
        &mut self,
        schedule: &mut Schedule,
        index: u16,
        ahead: bool,
        direction: &Fifo,
    ) {
        let arrival = direction.last_arrival();
        if ahead {
            self.is_to_tell(index, arrival);
        } else {
            schedule.push(arrival, ComponentId(index));
        }
    }

    /// A direction has something to tell, `at` this time at first.
    #[inline(always)]
    pub(super) fn is_to_tell(&mut self, index: u16, at: Time) {
        self.earliest = self.earliest.min(at);
        self.ready.push(index);
    }

    /// Has it something to tell beyond the horizon?
    pub(super) fn tells_later(&self) -> bool {
        !self.later.is_empty()
    }

    /// A host has sent something: it is offered to the one direction that it sends to.
    #[inline(always)]
    fn take_said<const LEADS_ON: bool>(
        &mut self,
        schedule: &mut Schedule,
        way: u16,
        ahead: bool,
        said: &mut Fifo,
        at: Time,
        cx: &mut Ctx<'_>,
    ) {
        let mut position = 0;
        while let Some((port, packet)) = cx.outbox.get(position).copied() {
            position += 1;
            debug_assert_eq!(port, Port(0), "it has one port");
            if LEADS_ON {
                said.make_room(at);
            }
            let length = cx.packets.get(packet).length();
            if said.enqueue(at, packet, length) == Verdict::Dropped {
                cx.packets.release(packet);
                position = drop_no_shorter(said, length, position, cx);
            } else if LEADS_ON {
                let goes_on = (said.last_arrival(), packet, length);
                self.go_on.push(goes_on);
            } else if said.in_transit() == 1 {
                self.expect(schedule, way, ahead, said);
            }
        }
        cx.outbox.clear();
        debug_assert_eq!(cx.room.unmade, 0, "one was made that has no place");
    }

    /// The horizon has moved: who is to be told something up to there is told it in the order of memory.
    fn get_ready(&mut self) {
        let mut later = std::mem::take(&mut self.later);
        later.retain(|(at, index)| {
            let waits = *at > self.horizon;
            if !waits {
                self.is_to_tell(*index, *at);
            }
            waits
        });
        self.later = later;
        self.ready.sort_unstable();
    }

    /// Is it time to tell hosts what they are to be told? Before the first event in the schedule that is no sooner than
    /// what arrives at them, since what they do may come before it; or after some events. If not, there is an event.
    #[inline(always)]
    pub(super) fn is_time_to_tell(&mut self, first: Option<(Time, ComponentId)>) -> bool {
        if self.ready.is_empty() {
            return false;
        }
        self.events += 1;
        self.events > TOGETHER || first.is_none_or(|(at, _)| at >= self.earliest)
    }
}

/// The queue has just dropped a packet that is so long: it drops those that a host has said after it, from this position on,
/// up to the first that is shorter, and those that it knew to be dropped and did not make. Returns the position of the shorter
/// one.
#[inline(never)]
fn drop_no_shorter(said: &mut Fifo, length: Bytes, from: usize, cx: &mut Ctx<'_>) -> usize {
    said.count_dropped(std::mem::take(&mut cx.room.unmade));
    let rest = cx.outbox.get(from..).unwrap_or_default();
    for (number, (_, packet)) in rest.iter().enumerate() {
        // Of a window that overflows the queue, so many that the first have left the cache.
        if let Some((_, later)) = rest.get(number + 8) {
            cx.packets.prefetch(*later);
        }
        if cx.packets.get(*packet).length() < length {
            return from + number;
        }
        said.count_dropped(1);
        cx.packets.release(*packet);
    }
    cx.outbox.len()
}

impl NodeSlot {
    /// The direction that it sends to, of a host that can be told ahead by what is known of it alone.
    fn lone_way(&self) -> Option<u16> {
        let Node::Host(host) = &self.node else {
            return None;
        };
        let alone = self.ways.others.is_empty() && !self.watched && host.keeps_to_packets();
        alone.then_some(self.ways.first)
    }
}

impl Network {
    /// Without it, what arrives at any host is an event in its turn: the same, with more work. For tests; before the run.
    pub fn without_lookahead(&mut self) {
        self.lookahead.begun = true;
    }

    /// The network is to run up to `until`.
    pub(super) fn begin_lookahead(&mut self, until: Time) {
        if !self.lookahead.begun {
            self.lookahead.begun = true;
            self.find_hosts_to_tell();
        }
        self.lookahead.horizon = self.lookahead.horizon.min(until);
    }

    /// The run begins, and it is known where probes and taps look.
    #[cold]
    fn find_hosts_to_tell(&mut self) {
        let is_broadcast = self
            .directions
            .iter()
            .any(|slot| slot.seldom.audience.is_some());
        let is_attached = |slot: &NodeSlot| matches!(slot.node, Node::Attached(_));
        if is_broadcast || self.nodes.iter().any(is_attached) {
            return;
        }
        // Of each node, the direction that leads to it, if there is one alone.
        let mut heard = vec![(0_u32, 0_u16); self.nodes.len()];
        for (slot, index) in self.directions.iter().zip(0..) {
            let (count, last) = &mut heard[usize::from(slot.to)];
            (*count, *last) = (*count + 1, index);
        }
        for (node, (count, index)) in self.nodes.iter().zip(heard) {
            let slot = |index: u16| self.directions.get(usize::from(index));
            let takes_time = |slot: &DirectionSlot| slot.plain().is_some_and(Fifo::takes_time);
            // What a host says is noted by nobody.
            let said = node.lone_way().and_then(slot);
            let unnoted = said.filter(|said| said.attention == Attention::Nobody);
            if count == 1 && slot(index).is_some_and(takes_time) && unnoted.is_some_and(takes_time)
            {
                self.directions[usize::from(index)].ahead = true;
                self.lookahead.tells = true;
            }
        }
    }

    /// Tells hosts what they are to be told, in at most so many events. Returns how many of them are left.
    #[inline(never)]
    pub(super) fn tell_all(&mut self, mut left: u64) -> u64 {
        let is_large = self.is_large();
        while left > 0
            && let Some(index) = self.lookahead.ready.pop()
        {
            if is_large {
                self.fetch_for(&self.lookahead.ready);
            }
            let to = self.directions[usize::from(index)].to;
            left = if self.host(to).is_some_and(Host::sleeps) {
                self.tell::<true>(index, left)
            } else {
                self.tell::<false>(index, left)
            };
        }
        let lookahead = &mut self.lookahead;
        lookahead.events = 0;
        if lookahead.ready.is_empty() {
            lookahead.earliest = Time::NEVER;
        }
        left
    }

    /// Tells a host what arrives from a direction up to the horizon, in at most so many events: each at its time, and
    /// deadlines of the host's own at theirs, those after the last packet as far as nothing else can come before. Returns
    /// how many events are left. `SLEEPS`: the host does ([`Host::sleeps`]); the others' loops ask nothing about it.
    #[inline(never)]
    pub(super) fn tell<const SLEEPS: bool>(&mut self, index: u16, budget: u64) -> u64 {
        let to = self.directions[usize::from(index)].to;
        let quiet = self.nothing_arrives_before(index);
        let way = self.nodes[usize::from(to)].ways.first;
        let onto = self.directions.get(usize::from(way));
        let leads_on = onto.is_some_and(|slot| slot.onward.is_some());
        let said = onto.and_then(|slot| slot.plain());
        let cramped = said.is_some_and(Fifo::is_cramped);
        let most = said.map_or(u64::MAX, Fifo::most_at_once);
        let mut connections = self.next_connections(index);
        let mut left = budget;
        let next = loop {
            let before = left;
            let next = match (leads_on, &mut connections) {
                (false, None) if cramped => {
                    self.tell_packets::<false, true, SLEEPS>(index, to, most, None, &mut left)
                }
                (false, None) => {
                    self.tell_packets::<false, false, SLEEPS>(index, to, most, None, &mut left)
                }
                (true, None) => {
                    self.tell_packets::<true, false, SLEEPS>(index, to, most, None, &mut left)
                }
                (false, many) => {
                    let many = many.as_mut();
                    self.tell_packets::<false, false, SLEEPS>(index, to, most, many, &mut left)
                }
                (true, many) => {
                    let many = many.as_mut();
                    self.tell_packets::<true, false, SLEEPS>(index, to, most, many, &mut left)
                }
            };
            if left < before {
                self.note_activity_at(to);
            }
            let goes_on = self.lookahead.go_on.len() >= MOST_GO_ON;
            let met = if goes_on || left == 0 {
                None
            } else {
                self.meet_deadline_ahead(to, next.unwrap_or(quiet), leads_on, most)
            };
            if let Some(sends) = met {
                left -= 1;
                if sends {
                    self.note_activity_at(to);
                }
            }
            if goes_on {
                self.go_on(way);
            } else if met.is_none() {
                break next;
            }
        };
        if leads_on {
            self.go_on(way);
        }
        match next {
            Some(at) if at > self.lookahead.horizon => {
                self.lookahead.later.push((at, index));
            }
            Some(_) => self.lookahead.ready.push(index),
            None => (),
        }
        self.reschedule(to);
        left
    }

    /// Something has happened at a node, by its own clock.
    fn note_activity_at(&mut self, node: u16) {
        let clock = self.nodes[usize::from(node)].clock;
        self.lookahead.last_activity = self.lookahead.last_activity.max(clock);
    }

    /// A time before which nothing comes to the end of this direction but what has been offered to it already: what is
    /// offered from now on to the first of its chain comes later.
    fn nothing_arrives_before(&self, index: u16) -> Time {
        let slot = &self.directions[usize::from(index)];
        let offered = match slot.upstream {
            ANYWHERE => self.now,
            upstream => self.nothing_arrives_before(upstream),
        };
        match &slot.direction {
            Direction::Fifo(fifo) => fifo.arrives_after(offered),
            Direction::Queued(queued) => queued.arrives_after(offered),
            Direction::Managed(_) => offered,
        }
    }

    /// Tells a host what arrives next from this direction, and what comes after that, as long as only packets come and
    /// what the host sends leads to no chain. Returns when the next packet arrives, if one does.
    ///
    /// What [`arrive`](Self::arrive), [`deliver`](Self::deliver), [`call`](Self::call) and
    /// [`transmit`](Self::transmit) do where nobody looks, but that nobody else need know of the host's next deadline
    /// before it has been told all. Of what the host says at once, `most` may have [`Room`]; `CRAMPED`: that is worked out
    /// anew whenever it may say something.
    #[inline(always)]
    fn tell_packets<const LEADS_ON: bool, const CRAMPED: bool, const SLEEPS: bool>(
        &mut self,
        index: u16,
        to: u16,
        most: u64,
        mut connections: Option<&mut NextConnections>,
        left: &mut u64,
    ) -> Option<Time> {
        let node = &mut self.nodes[usize::from(to)];
        let way = node.ways.first;
        let places = [usize::from(index), usize::from(way)];
        let Ok([from, onto]) = self.directions.get_disjoint_mut(places) else {
            debug_assert!(false, "a host does not hear what it says");
            return None;
        };
        let (Node::Host(host), Direction::Fifo(heard), Direction::Fifo(said)) =
            (&mut node.node, &mut from.direction, &mut onto.direction)
        else {
            debug_assert!(false, "nobody else is told ahead");
            return None;
        };
        let mut cx = Ctx {
            now: self.now,
            packets: &mut self.packets,
            random: &mut node.random,
            outbox: &mut self.outbox,
            discards: &mut self.discards,
            room: Room::of(most),
        };
        let many_come = cx.packets.held() > FEW;
        let mut next = heard.first();
        while let Some(head) = next {
            let at = head.arrival;
            let is_due = |deadline: Time| deadline.max(node.clock) < at;
            let stops = at > self.lookahead.horizon
                || *left == 0
                || LEADS_ON && self.lookahead.go_on.len() >= MOST_GO_ON;
            // (At the same time, what arrives comes first.)
            if stops || host.next_deadline().is_some_and(is_due) {
                break;
            }
            *left -= 1;
            (cx.now, node.clock) = (at, at);
            if CRAMPED {
                cx.room.packets = said.most_at(at);
            }
            if let Some(connections) = &mut connections {
                connections.fetch_further(heard, host, cx.packets);
            }
            let arrival = heard.take(head);
            if many_come && let Some(packet) = heard.behind_first(EARLY - 1) {
                cx.packets.prefetch(packet);
            }
            next = heard.first();
            match arrival {
                Arrival::Delivered(packet) => {
                    self.packet_hops += 1;
                    if SLEEPS {
                        host.hear_when_awake(from.to_port, packet, &mut cx);
                    } else {
                        host.hear(from.to_port, packet, &mut cx);
                    }
                }
                Arrival::Lost(packet) => cx.packets.release(packet),
            }
            (self.lookahead).take_said::<LEADS_ON>(
                &mut self.schedule,
                way,
                onto.ahead,
                said,
                at,
                &mut cx,
            );
        }
        next.map(|head| head.arrival)
    }

    /// A host that is told ahead meets its next deadline, if that is before `until` and not beyond the horizon. If so: has
    /// it sent anything?
    #[inline(never)]
    fn meet_deadline_ahead(
        &mut self,
        to: u16,
        until: Time,
        leads_on: bool,
        most: u64,
    ) -> Option<bool> {
        let node = &mut self.nodes[usize::from(to)];
        let is_due = |at: &Time| *at < until && *at <= self.lookahead.horizon;
        let at = node.deadline().filter(is_due)?;
        node.clock = at;
        let way = node.ways.first;
        let onto = self.directions.get_mut(usize::from(way))?;
        let (Node::Host(host), Direction::Fifo(said)) = (&mut node.node, &mut onto.direction)
        else {
            debug_assert!(false, "nobody else is told ahead");
            return None;
        };
        let mut cx = Ctx {
            now: at,
            packets: &mut self.packets,
            random: &mut node.random,
            outbox: &mut self.outbox,
            discards: &mut self.discards,
            room: Room::of(most),
        };
        host.on_deadline(&mut cx);
        let sends = !cx.outbox.is_empty();
        let (lookahead, schedule) = (&mut self.lookahead, &mut self.schedule);
        if leads_on {
            lookahead.take_said::<true>(schedule, way, onto.ahead, said, at, &mut cx);
        } else {
            lookahead.take_said::<false>(schedule, way, onto.ahead, said, at, &mut cx);
        }
        Some(sends)
    }

    /// What a host has said goes on behind the first direction of its chain. It is still the time before it said that, as
    /// what a direction further on is offered finds there only what has not departed before it comes.
    fn go_on(&mut self, way: u16) {
        let mut go_on = std::mem::take(&mut self.lookahead.go_on);
        let mut ends = self.is_large().then(NextEnds::new);
        for (position, (arrival, packet, length)) in go_on.iter().copied().enumerate() {
            if let Some(ends) = &mut ends {
                let later = go_on.get(position + NextEnds::EARLY);
                self.fetch_end(ends, way, later.map(|(_, packet, _)| *packet));
            }
            self.follow(way, arrival, packet, length);
        }
        go_on.clear();
        self.lookahead.go_on = go_on;
    }

    /// All has happened up to the horizon: moves it, if anything more is to happen up to `until`.
    #[inline(never)]
    pub(super) fn look_further(&mut self, until: Time) -> bool {
        let event = self.schedule.first().map(|(at, _)| at);
        let told = self.lookahead.later.iter().map(|(at, _)| *at);
        let next = told.chain(event).min();
        let Some(first) = next.filter(|at| *at <= until) else {
            return false;
        };
        let bounds = [Some(until), self.next_look()];
        self.lookahead.horizon = bounds.into_iter().flatten().fold(first + STEP, Time::min);
        debug_assert!(self.lookahead.horizon >= first, "it moves on");
        self.lookahead.get_ready();
        true
    }

    /// Somebody looks at this direction from now on: at a host at either end of it, everything comes in its turn.
    pub(super) fn tell_in_turn_around(&mut self, index: u16) {
        if !self.lookahead.tells {
            return;
        }
        for other in 0..self.directions.len() as u16 {
            let node = self
                .nodes
                .get(usize::from(self.directions[usize::from(other)].to));
            if other == index || node.is_some_and(|node| node.ways.first == index) {
                self.tell_in_turn(other);
            }
        }
    }

    /// From now on, what arrives from this direction is an event in its turn.
    fn tell_in_turn(&mut self, index: u16) {
        let slot = &mut self.directions[usize::from(index)];
        let ready = &mut self.lookahead.ready;
        if std::mem::take(&mut slot.ahead)
            && let Direction::Fifo(fifo) = &slot.direction
            && let Some(at) = fifo.next_arrival()
        {
            ready.retain(|ready| *ready != index);
            self.lookahead.later.retain(|(_, later)| *later != index);
            self.schedule.push(at, ComponentId(index));
        }
    }

    /// Who runs the network by another clock wants everything in its turn.
    pub(super) fn tell_all_in_turn(&mut self) {
        self.lookahead.begun = true;
        if std::mem::take(&mut self.lookahead.tells) {
            for index in 0..self.directions.len() {
                self.tell_in_turn(index as u16);
            }
        }
    }
}
