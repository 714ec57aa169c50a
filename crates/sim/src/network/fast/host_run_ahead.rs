//! Hosts that run ahead.
//!
//! All packets for a host behind a single drop-tail direction are known as soon as they are offered
//! to that direction. The host therefore processes them at once, at their own times, ahead of the
//! rest of the network. It processes its deadlines in between, and after the last packet as far as
//! nothing can arrive before them. Its packets are offered at the right time to its only outgoing
//! direction, which nobody else uses. An event remains where that direction leads to a router that
//! others reach as well; two hosts on one link need none.
//!
//! This is the conservative lookahead of parallel simulation (Chandy and Misra, 1979; Bryant, 1977)
//! on one processor. It saves schedule operations, and a host's state is loaded into the cache once
//! for many packets.

use bentpipe_host::Host;
use bentpipe_link::{Arrival, Direction, Fifo, Verdict};
use bentpipe_types::{Agent, Bytes, Ctx, PacketRef, Port, Room, Span, Time};

use super::prefetch::{NextConnections, NextEnds, RECORD_DISTANCE};
use super::{ANYWHERE, DirectionSlot, Network, NodeSlot, Shortcuts};
use crate::node::Node;
use crate::schedule::{ComponentId, Schedule};

/// Maximum step of the horizon. Progress reports read the clock, which is the time that all nodes
/// have reached.
const STEP: Span = Span::from_secs(1);

/// Number of events after which hosts process what has arrived for them, unless required earlier.
/// Few enough that the packets are still in the cache, and many enough to prefetch some hosts while
/// others run.
const EVENTS_PER_BATCH: u32 = 1024;

/// With fewer packets in the network, prefetching costs more than it saves (1% of a run with small
/// windows).
const FEW_PACKETS: usize = 256;

/// Number of packets into a chain after which they are passed on.
const CHAIN_BATCH: usize = 256;

/// State of the lookahead: directions with packets for hosts, and the horizon.
#[derive(Debug, Default)]
pub(super) struct Lookahead {
    /// Whether hosts that can run ahead have been determined.
    begun: bool,
    /// Whether there are any.
    runs_ahead: bool,
    /// Events up to and including this time may be processed.
    pub(super) horizon: Time,
    /// Directions with packets to deliver up to the horizon.
    ready: Vec<u16>,
    /// Directions with packets to deliver later, each with the first arrival; unordered.
    later: Vec<(Time, u16)>,
    /// Lower bound of the arrivals of all these directions.
    earliest: Time,
    /// Number of events since hosts last ran.
    events: u32,
    /// Time of the last activity at a host that ran ahead.
    pub(super) last_activity: Time,
    /// Packets that a host has sent into the first direction of a chain, with their arrival times
    /// there. They are passed on through the chain after the host has run. Otherwise empty.
    pass_on: Vec<(Time, PacketRef, Bytes)>,
}

impl Lookahead {
    /// Handles a packet that entered an empty drop-tail direction: its host runs ahead, or an event
    /// is entered.
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
            self.register_arrival(index, arrival);
        } else {
            schedule.push(arrival, ComponentId(index));
        }
    }

    /// Registers a direction whose first packet arrives `at` this time.
    #[inline(always)]
    pub(super) fn register_arrival(&mut self, index: u16, at: Time) {
        self.earliest = self.earliest.min(at);
        self.ready.push(index);
    }

    /// Whether packets beyond the horizon remain to be delivered.
    pub(super) fn has_later_arrivals(&self) -> bool {
        !self.later.is_empty()
    }

    /// Returns the first arrival that remains to be delivered.
    pub(super) fn next_arrival(&self) -> Option<Time> {
        let ready = (!self.ready.is_empty()).then_some(self.earliest);
        self.later.iter().map(|(at, _)| *at).chain(ready).min()
    }

    /// Offers the packets that a host has sent to its only outgoing direction.
    #[inline(always)]
    fn offer_sent<const LEADS_ON: bool>(
        &mut self,
        schedule: &mut Schedule,
        outgoing_index: u16,
        ahead: bool,
        outgoing: &mut Fifo,
        at: Time,
        cx: &mut Ctx<'_>,
    ) {
        let mut position = 0;
        while let Some((port, packet)) = cx.outbox.get(position).copied() {
            position += 1;
            debug_assert_eq!(port, Port(0), "it has one port");
            if LEADS_ON {
                outgoing.make_room(at);
            }
            let length = cx.packets.get(packet).length();
            if outgoing.enqueue(at, packet, length) == Verdict::Dropped {
                cx.packets.release(packet);
                position = drop_not_shorter(outgoing, length, position, cx);
            } else if LEADS_ON {
                let goes_on = (outgoing.last_arrival(), packet, length);
                self.pass_on.push(goes_on);
            } else if outgoing.in_transit() == 1 {
                self.expect(schedule, outgoing_index, ahead, outgoing);
            }
        }
        cx.outbox.clear();
        debug_assert_eq!(cx.room.unmade, 0, "a packet without room was created");
    }

    /// After the horizon has moved: makes directions ready, in the order of memory.
    fn get_ready(&mut self) {
        let mut later = std::mem::take(&mut self.later);
        later.retain(|(at, index)| {
            let waits = *at > self.horizon;
            if !waits {
                self.register_arrival(*index, *at);
            }
            waits
        });
        self.later = later;
        self.ready.sort_unstable();
    }

    /// Whether hosts must run now: before the first scheduled event that is not earlier than their
    /// arrivals, since their packets may precede it, or after some events. Otherwise an event is
    /// next.
    #[inline(always)]
    pub(super) fn must_run_hosts(&mut self, first: Option<(Time, ComponentId)>) -> bool {
        if self.ready.is_empty() {
            return false;
        }
        self.events += 1;
        self.events > EVENTS_PER_BATCH || first.is_none_or(|(at, _)| at >= self.earliest)
    }
}

/// After the queue has dropped a packet of this length: drops the packets that the host sent after
/// it, from this position up to the first shorter one, and counts those that the host did not
/// create. Returns the position of the shorter one.
#[inline(never)]
fn drop_not_shorter(outgoing: &mut Fifo, length: Bytes, from: usize, cx: &mut Ctx<'_>) -> usize {
    outgoing.count_dropped(std::mem::take(&mut cx.room.unmade));
    let rest = cx.outbox.get(from..).unwrap_or_default();
    for (number, (_, packet)) in rest.iter().enumerate() {
        // In a window that overflows the queue, the first packets have left the cache.
        if let Some((_, later)) = rest.get(number + 8) {
            cx.packets.prefetch(*later);
        }
        if cx.packets.get(*packet).length() < length {
            return from + number;
        }
        outgoing.count_dropped(1);
        cx.packets.release(*packet);
    }
    cx.outbox.len()
}

impl DirectionSlot {
    /// Whether its host runs ahead.
    #[inline(always)]
    pub(in crate::network) fn runs_ahead(&self) -> bool {
        self.shortcuts.has(Shortcuts::RUNS_AHEAD)
    }
}

impl NodeSlot {
    /// Returns the only outgoing direction of a host that can run ahead as far as it alone is
    /// concerned.
    fn only_direction(&self) -> Option<u16> {
        let Node::Host(host) = &self.node else {
            return None;
        };
        let alone = self.ways.others.is_empty() && !self.watched && host.keeps_to_packets();
        alone.then_some(self.ways.first)
    }
}

impl Network {
    /// Prepares to run up to `until`.
    pub(super) fn begin_lookahead(&mut self, until: Time) {
        if !self.fast.lookahead.begun {
            self.fast.lookahead.begun = true;
            self.find_hosts_that_run_ahead();
        }
        self.fast.lookahead.horizon = self.fast.lookahead.horizon.min(until);
    }

    /// Determines the hosts that can run ahead, at the start of the run when probes and captures
    /// are known.
    #[cold]
    fn find_hosts_that_run_ahead(&mut self) {
        let is_broadcast = self
            .directions
            .iter()
            .any(|slot| slot.rare.receivers.is_some());
        let is_attached = |slot: &NodeSlot| matches!(slot.node, Node::Attached(_));
        if is_broadcast || self.nodes.iter().any(is_attached) {
            return;
        }
        // For each node, the direction that leads to it, if there is exactly one.
        let mut incoming = vec![(0_u32, 0_u16); self.nodes.len()];
        for (slot, index) in self.directions.iter().zip(0..) {
            let (count, last) = &mut incoming[usize::from(slot.to)];
            (*count, *last) = (*count + 1, index);
        }
        for (node, (count, index)) in self.nodes.iter().zip(incoming) {
            let slot = |index: u16| self.directions.get(usize::from(index));
            let takes_time = |slot: &DirectionSlot| slot.plain().is_some_and(Fifo::takes_time);
            let outgoing = node.only_direction().and_then(slot);
            let unrecorded =
                outgoing.filter(|outgoing| !outgoing.shortcuts.has(Shortcuts::RECORDED));
            let may_send = unrecorded.is_some_and(takes_time);
            if count == 1 && slot(index).is_some_and(takes_time) && may_send {
                let slot = &mut self.directions[usize::from(index)];
                slot.shortcuts.set(Shortcuts::RUNS_AHEAD);
                self.fast.lookahead.runs_ahead = true;
            }
        }
    }

    /// Handles a packet that entered an empty drop-tail direction: its host runs ahead, or an event
    /// is entered.
    #[inline(always)]
    pub(super) fn expect(&mut self, index: u16) {
        let slot = &self.directions[usize::from(index)];
        if let Direction::Fifo(fifo) = &slot.direction {
            let runs_ahead = slot.runs_ahead();
            (self.fast.lookahead).expect(&mut self.schedule, index, runs_ahead, fifo);
        }
    }

    /// Runs all ready hosts for at most this many events. Returns the remaining number.
    #[inline(never)]
    pub(super) fn run_all_hosts(&mut self, mut left: u64) -> u64 {
        let is_large = self.is_large();
        while left > 0
            && let Some(index) = self.fast.lookahead.ready.pop()
        {
            if is_large {
                self.fetch_for(&self.fast.lookahead.ready);
            }
            let to = self.directions[usize::from(index)].to;
            left = if self.host(to).is_some_and(Host::sleeps) {
                self.run_host::<true>(index, left)
            } else {
                self.run_host::<false>(index, left)
            };
        }
        let lookahead = &mut self.fast.lookahead;
        lookahead.events = 0;
        if lookahead.ready.is_empty() {
            lookahead.earliest = Time::NEVER;
        }
        left
    }

    /// Runs a host for the arrivals of a direction up to the horizon, in at most this many events,
    /// each at its own time. Processes the host's deadlines in between, and after the last packet
    /// as far as nothing else can arrive before. Returns the remaining number of events. `SLEEPS`
    /// is whether the host models wake-up order ([`Host::sleeps`]).
    #[inline(never)]
    pub(super) fn run_host<const SLEEPS: bool>(&mut self, index: u16, budget: u64) -> u64 {
        let to = self.directions[usize::from(index)].to;
        let quiet = self.nothing_arrives_before(index);
        let outgoing_index = self.nodes[usize::from(to)].ways.first;
        let onto = self.directions.get(usize::from(outgoing_index));
        let leads_on = onto.is_some_and(DirectionSlot::leads_on);
        let outgoing = onto.and_then(|slot| slot.plain());
        let cramped = outgoing.is_some_and(Fifo::is_cramped);
        let most = outgoing.map_or(u64::MAX, Fifo::most_at_once);
        let mut connections = self.next_connections(index);
        let mut left = budget;
        let next = loop {
            let before = left;
            let next = match (leads_on, &mut connections) {
                (false, None) if cramped => {
                    self.deliver_packets::<false, true, SLEEPS>(index, to, most, None, &mut left)
                }
                (false, None) => {
                    self.deliver_packets::<false, false, SLEEPS>(index, to, most, None, &mut left)
                }
                (true, None) => {
                    self.deliver_packets::<true, false, SLEEPS>(index, to, most, None, &mut left)
                }
                (false, many) => {
                    let many = many.as_mut();
                    self.deliver_packets::<false, false, SLEEPS>(index, to, most, many, &mut left)
                }
                (true, many) => {
                    let many = many.as_mut();
                    self.deliver_packets::<true, false, SLEEPS>(index, to, most, many, &mut left)
                }
            };
            if left < before {
                self.note_activity_at(to);
            }
            let goes_on = self.fast.lookahead.pass_on.len() >= CHAIN_BATCH;
            let met = if goes_on || left == 0 {
                None
            } else {
                self.process_deadline_ahead(to, next.unwrap_or(quiet), leads_on, most)
            };
            if let Some(sends) = met {
                left -= 1;
                if sends {
                    self.note_activity_at(to);
                }
            }
            if goes_on {
                self.pass_on(outgoing_index);
            } else if met.is_none() {
                break next;
            }
        };
        if leads_on {
            self.pass_on(outgoing_index);
        }
        match next {
            Some(at) if at > self.fast.lookahead.horizon => {
                self.fast.lookahead.later.push((at, index));
            }
            Some(_) => self.fast.lookahead.ready.push(index),
            None => (),
        }
        self.reschedule(to);
        left
    }

    /// Records activity at a node by its own clock.
    fn note_activity_at(&mut self, node: u16) {
        let clock = self.nodes[usize::from(node)].clock;
        self.fast.lookahead.last_activity = self.fast.lookahead.last_activity.max(clock);
    }

    /// Returns a time before which nothing arrives at the end of this direction except what was
    /// already offered: anything offered to the first direction of its chain from now on arrives
    /// later.
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

    /// Delivers the next packets of this direction to the host, as long as only packets are due and
    /// the host's packets enter no chain. Returns when the next packet arrives, if one does.
    ///
    /// Does what [`arrive`](Self::arrive), [`deliver`](Self::deliver), [`call`](Self::call) and
    /// [`transmit`](Self::transmit) do without probes, but updates the host's deadline only once at
    /// the end. At most `most` of the packets that the host sends in one call have [`Room`]; with
    /// `LIMITED_ROOM` that is computed anew before each call.
    #[inline(always)]
    fn deliver_packets<const LEADS_ON: bool, const LIMITED_ROOM: bool, const SLEEPS: bool>(
        &mut self,
        index: u16,
        to: u16,
        most: u64,
        mut connections: Option<&mut NextConnections>,
        left: &mut u64,
    ) -> Option<Time> {
        let node = &mut self.nodes[usize::from(to)];
        let outgoing_index = node.ways.first;
        let places = [usize::from(index), usize::from(outgoing_index)];
        let Ok([from, onto]) = self.directions.get_disjoint_mut(places) else {
            debug_assert!(false, "a host's two directions are one");
            return None;
        };
        let (Node::Host(host), Direction::Fifo(incoming), Direction::Fifo(outgoing)) =
            (&mut node.node, &mut from.direction, &mut onto.direction)
        else {
            debug_assert!(false, "only hosts between drop-tail directions run ahead");
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
        let many_come = cx.packets.held() > FEW_PACKETS;
        let mut next = incoming.first();
        while let Some(head) = next {
            let at = head.arrival;
            let is_due = |deadline: Time| deadline.max(node.clock) < at;
            let stops = at > self.fast.lookahead.horizon
                || *left == 0
                || LEADS_ON && self.fast.lookahead.pass_on.len() >= CHAIN_BATCH;
            // At the same time, arrivals precede deadlines.
            if stops || host.next_deadline().is_some_and(is_due) {
                break;
            }
            *left -= 1;
            (cx.now, node.clock) = (at, at);
            if LIMITED_ROOM {
                cx.room.packets = outgoing.most_at(at);
            }
            if let Some(connections) = &mut connections {
                connections.fetch_further(incoming, host, cx.packets);
            }
            let arrival = incoming.take(head);
            if many_come && let Some(packet) = incoming.behind_first(RECORD_DISTANCE - 1) {
                cx.packets.prefetch(packet);
            }
            next = incoming.first();
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
            (self.fast.lookahead).offer_sent::<LEADS_ON>(
                &mut self.schedule,
                outgoing_index,
                onto.shortcuts.has(Shortcuts::RUNS_AHEAD),
                outgoing,
                at,
                &mut cx,
            );
        }
        next.map(|head| head.arrival)
    }

    /// Processes the next deadline of a host that runs ahead, if it is before `until` and not
    /// beyond the horizon. Returns whether the host sent anything.
    #[inline(never)]
    fn process_deadline_ahead(
        &mut self,
        to: u16,
        until: Time,
        leads_on: bool,
        most: u64,
    ) -> Option<bool> {
        let node = &mut self.nodes[usize::from(to)];
        let is_due = |at: &Time| *at < until && *at <= self.fast.lookahead.horizon;
        let at = node.deadline().filter(is_due)?;
        node.clock = at;
        let outgoing_index = node.ways.first;
        let onto = self.directions.get_mut(usize::from(outgoing_index))?;
        let (Node::Host(host), Direction::Fifo(outgoing)) = (&mut node.node, &mut onto.direction)
        else {
            debug_assert!(false, "only hosts between drop-tail directions run ahead");
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
        let (lookahead, schedule) = (&mut self.fast.lookahead, &mut self.schedule);
        if leads_on {
            lookahead.offer_sent::<true>(
                schedule,
                outgoing_index,
                onto.shortcuts.has(Shortcuts::RUNS_AHEAD),
                outgoing,
                at,
                &mut cx,
            );
        } else {
            lookahead.offer_sent::<false>(
                schedule,
                outgoing_index,
                onto.shortcuts.has(Shortcuts::RUNS_AHEAD),
                outgoing,
                at,
                &mut cx,
            );
        }
        Some(sends)
    }

    /// Passes a host's packets on behind the first direction of their chain. The network's clock is
    /// still before they were sent: a later direction must not have transmitted packets that it
    /// transmits only afterwards.
    fn pass_on(&mut self, outgoing_index: u16) {
        let mut pass_on = std::mem::take(&mut self.fast.lookahead.pass_on);
        let mut ends = self.is_large().then(NextEnds::new);
        for (position, (arrival, packet, length)) in pass_on.iter().copied().enumerate() {
            if let Some(ends) = &mut ends {
                let later = pass_on.get(position + NextEnds::PREFETCH_DISTANCE);
                self.fetch_end(ends, outgoing_index, later.map(|(_, packet, _)| *packet));
            }
            self.follow(outgoing_index, arrival, packet, length);
        }
        pass_on.clear();
        self.fast.lookahead.pass_on = pass_on;
    }

    /// After all events up to the horizon: moves the horizon, if anything remains to be done up to
    /// `until`.
    #[inline(never)]
    pub(super) fn move_horizon(&mut self, until: Time) -> bool {
        let event = self.schedule.first().map(|(at, _)| at);
        let later = self.fast.lookahead.later.iter().map(|(at, _)| *at);
        let next = later.chain(event).min();
        let Some(first) = next.filter(|at| *at <= until) else {
            return false;
        };
        let bounds = [Some(until), self.next_sample()];
        self.fast.lookahead.horizon = bounds.into_iter().flatten().fold(first + STEP, Time::min);
        debug_assert!(self.fast.lookahead.horizon >= first, "it moves on");
        self.fast.lookahead.get_ready();
        true
    }

    /// Disables the fast path for hosts at both ends of a direction that is observed from now on.
    pub(super) fn disable_run_ahead_around(&mut self, index: u16) {
        if !self.fast.lookahead.runs_ahead {
            return;
        }
        for other in 0..self.directions.len() as u16 {
            let node = self
                .nodes
                .get(usize::from(self.directions[usize::from(other)].to));
            if other == index || node.is_some_and(|node| node.ways.first == index) {
                self.disable_run_ahead(other);
            }
        }
    }

    /// Turns arrivals from this direction into events.
    fn disable_run_ahead(&mut self, index: u16) {
        let slot = &mut self.directions[usize::from(index)];
        let ready = &mut self.fast.lookahead.ready;
        let runs_ahead = slot.runs_ahead();
        slot.shortcuts.clear(Shortcuts::RUNS_AHEAD);
        if runs_ahead
            && let Direction::Fifo(fifo) = &slot.direction
            && let Some(at) = fifo.next_arrival()
        {
            ready.retain(|ready| *ready != index);
            self.fast
                .lookahead
                .later
                .retain(|(_, later)| *later != index);
            self.schedule.push(at, ComponentId(index));
        }
    }

    /// Turns all arrivals into events, for an external clock.
    pub(super) fn disable_all_run_ahead(&mut self) {
        self.fast.lookahead.begun = true;
        if std::mem::take(&mut self.fast.lookahead.runs_ahead) {
            for index in 0..self.directions.len() {
                self.disable_run_ahead(index as u16);
            }
        }
    }
}
