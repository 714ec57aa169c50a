//! Link chains: directions in a row of which each receives all its packets from the previous one.
//!
//! The passage of a packet through a chain of drop-tail directions is computed when it enters the
//! first one: departures, backlog at the next direction, room in its queue. Only the arrival at the
//! chain's end is in the schedule. Later directions are therefore ahead of time: they contain
//! packets that reach them later. Reading the current state leaves these out
//! (`read_outs.rs`).
//!
//! - The order of simultaneous events is that of the plain engine. An arrival within a chain is
//!   visible only to the next direction, which receives from nobody else; and since a packet takes
//!   time to cross a direction, its event at the end is always entered before that time.
//! - A packet that leaves the chain midway (another direction, a refusal by the router, a full
//!   queue) is an event at that direction.
//! - Queues other than drop-tail: `chained_queues.rs`.

use bentpipe_link::{Direction, Fifo, Verdict};
use bentpipe_types::{Address, Bytes, DropReason, PacketRef, Time};

use super::{DirectionSlot, Network, Shortcuts};
use crate::network::chain_routing::{Exit, Fate};
use crate::node::Node;
use crate::router::Refusal;
use crate::schedule::ComponentId;

/// Result of a packet at a direction of a chain.
enum Hop {
    /// It arrives at this time and goes on.
    GoesOn(Time),
    /// The chain ends here.
    Ends,
    /// It leaves the chain, or is queued where the queue selects the next packet.
    Leaves,
}

impl DirectionSlot {
    /// Whether other directions follow it in a chain.
    #[inline(always)]
    pub(super) fn leads_on(&self) -> bool {
        self.chain_routing.is_some()
    }

    /// Returns the queue of an unobserved drop-tail direction, whose packets' times are known when
    /// they are offered.
    pub(super) fn plain(&self) -> Option<&Fifo> {
        match &self.direction {
            Direction::Fifo(fifo) if !self.observed => Some(fifo),
            _ => None,
        }
    }

    /// Whether packets leave the direction as events: all of them, or those that leave its chain
    /// here.
    pub(super) fn has_events(&self) -> bool {
        let leaves = self.next_exit().is_some();
        match (&self.direction, &self.chain_routing) {
            (Direction::Queued(queued), _) => leaves || queued.to_come() > 0,
            (_, Some(_)) => leaves,
            (direction, None) => direction.in_transit() + direction.held_back() > 0,
        }
    }

    /// Returns when a packet next leaves a chain at the end of this direction.
    pub(super) fn next_exit(&self) -> Option<Time> {
        let exits = &self.chain_routing.as_ref()?.exits;
        exits.front().map(|exit| exit.at)
    }

    /// Whether the direction may be a later one of a chain: packets take time to cross it, and
    /// nothing observes it.
    fn may_follow(&self) -> bool {
        match &self.direction {
            Direction::Fifo(fifo) => !self.observed && fifo.takes_time(),
            Direction::Queued(queued) => queued.takes_time(),
            Direction::Managed(_) => false,
        }
    }

    /// Whether other directions may follow it in a chain: everything transmitted arrives, and
    /// nothing observes it.
    fn may_lead(&self) -> bool {
        match &self.direction {
            Direction::Fifo(fifo) => !self.observed && fifo.is_error_free(),
            Direction::Queued(queued) => queued.is_error_free(),
            Direction::Managed(_) => false,
        }
    }
}

impl Network {
    /// Forms chains of the unobserved directions with a single upstream direction, at the start of
    /// the run when probes and captures are known.
    #[cold]
    pub(super) fn make_chains(&mut self) {
        let sampled = self.sampled_directions();
        for (index, upstream) in std::mem::take(&mut self.fast.upstream) {
            let [slot, before] = [index, upstream].map(|each| &self.directions[usize::from(each)]);
            let router = &self.nodes[usize::from(before.to)];
            if before.may_lead()
                && slot.may_follow()
                && matches!(router.node, Node::Router(_))
                && !router.watched
            {
                let slot = &mut self.directions[usize::from(index)];
                slot.upstream = upstream;
                if sampled.contains(&index) && matches!(slot.direction, Direction::Fifo(_)) {
                    slot.begin_recording();
                }
                let before = &mut self.directions[usize::from(upstream)];
                before.chain_routing.get_or_insert_default();
                before.shortcuts.set(Shortcuts::LEADS_ON);
            }
        }
        self.find_chained_queues();
    }

    /// Handles a packet that has entered a drop-tail direction whose queue history is recorded.
    /// Returns false if its arrival at the end of the direction is an ordinary event.
    #[cold]
    #[inline(never)]
    pub(super) fn enqueue_recorded(
        &mut self,
        index: u16,
        arrival: Time,
        packet: PacketRef,
        length: Bytes,
    ) -> bool {
        self.record_offered(index, self.now, length);
        let slot = &mut self.directions[usize::from(index)];
        let Direction::Fifo(fifo) = &mut slot.direction else {
            debug_assert!(false, "only drop-tail queues have a history");
            return false;
        };
        if slot.shortcuts.has(Shortcuts::LEADS_ON) {
            fifo.make_room(self.now);
            self.follow(index, arrival, packet, length);
            return true;
        }
        let runs_ahead = slot.shortcuts.has(Shortcuts::RUNS_AHEAD);
        if runs_ahead && fifo.in_transit() == 1 {
            self.expect(index);
        }
        runs_ahead
    }

    /// Handles the schedule entry of a direction that leads on: of the first packet that leaves the
    /// chain at its end, or of its queue.
    #[inline(never)]
    pub(super) fn on_chain_entry(&mut self, index: u16) {
        let slot = &self.directions[usize::from(index)];
        if matches!(slot.direction, Direction::Fifo(_)) {
            self.on_exit(index);
        } else if slot.rare.scheduled == Some(self.now) {
            self.hand_on(index);
        } else {
            self.schedule.remove_first();
        }
    }

    /// Takes a packet that was queued at the first direction of a chain, and arrives at its end at
    /// `arrival`, on to the end of the chain, to where it leaves it, or to a queue that selects
    /// packets.
    pub(super) fn follow(&mut self, first: u16, arrival: Time, packet: PacketRef, length: Bytes) {
        let destination = self.packets.get(packet).destination.address;
        let counted = self.packets.counts_hops(packet);
        let (mut index, mut at) = (first, arrival);
        loop {
            let Some(chain_routing) = &mut self.directions[usize::from(index)].chain_routing else {
                debug_assert!(false, "it leads on");
                return;
            };
            let next = match chain_routing.towards(destination) {
                Some(next) if !counted => next,
                _ => match self.find_next(index, packet) {
                    Ok(next) => next,
                    Err(fate) => return self.exit(index, at, packet, fate),
                },
            };
            if self.directions[usize::from(next)]
                .shortcuts
                .has(Shortcuts::RECORDED)
            {
                return self.follow_recorded(index, next, at, packet, length);
            }
            match self.hop(index, next, at, packet, length) {
                Hop::GoesOn(arrival) => (index, at) = (next, arrival),
                Hop::Ends | Hop::Leaves => return,
            }
        }
    }

    /// Offers a packet to the next direction of its chain, at this time.
    #[inline(always)]
    fn hop(&mut self, index: u16, next: u16, at: Time, packet: PacketRef, length: Bytes) -> Hop {
        let slot = &mut self.directions[usize::from(next)];
        let Direction::Fifo(fifo) = &mut slot.direction else {
            self.expect_at_queue(next, at, packet);
            return Hop::Leaves;
        };
        let leads_on = slot.chain_routing.is_some();
        if leads_on {
            fifo.make_room(self.now);
        }
        if fifo.offer(at, packet, length) == Verdict::Dropped {
            self.exit(index, at, packet, Fate::Dropped(next));
            return Hop::Leaves;
        }
        self.packet_hops += 1;
        if leads_on {
            return Hop::GoesOn(fifo.last_arrival());
        }
        if fifo.in_transit() == 1 {
            self.expect(next);
        }
        Hop::Ends
    }

    /// [`follow`](Self::follow) for a direction whose queue history is recorded.
    #[cold]
    #[inline(never)]
    fn follow_recorded(
        &mut self,
        index: u16,
        next: u16,
        at: Time,
        packet: PacketRef,
        length: Bytes,
    ) {
        let hop = self.hop(index, next, at, packet, length);
        if let Hop::GoesOn(_) | Hop::Ends = hop {
            self.record_offered(next, at, length);
        }
        if let Hop::GoesOn(arrival) = hop {
            self.follow(next, arrival, packet, length);
        }
    }

    /// Returns the next direction of a packet at the end of another, if it is in the chain.
    #[inline(never)]
    fn find_next(&mut self, index: u16, packet: PacketRef) -> Result<u16, Fate> {
        let slot = &self.directions[usize::from(index)];
        let router = &self.nodes[usize::from(slot.to)];
        let Node::Router(routes) = &router.node else {
            debug_assert!(false, "a chain leads through routers");
            return Err(Fate::Refused(Refusal::Drop(DropReason::NoRoute)));
        };
        let port = routes
            .way(packet, &mut self.packets)
            .map_err(Fate::Refused)?;
        let next = router.ways.behind(port);
        let follows = |slot: &DirectionSlot| slot.upstream == index;
        if !self.directions.get(usize::from(next)).is_some_and(follows) {
            return Err(Fate::Forwarded(port));
        }
        let destination = self.packets.get(packet).destination.address;
        let leads_on = self.directions[usize::from(next)].chain_routing.is_some();
        if let Some(chain_routing) = &mut self.directions[usize::from(index)].chain_routing {
            chain_routing.known.insert(destination, (next, leads_on));
        }
        Ok(next)
    }

    /// Returns the last direction that packets for a destination took through this chain, if any
    /// did.
    #[inline]
    pub(super) fn known_end(&self, first: u16, destination: Address) -> Option<u16> {
        let mut index = first;
        loop {
            let chain_routing = self.directions[usize::from(index)].chain_routing.as_ref()?;
            let (next, leads_on) = chain_routing.known.get(destination)?;
            if !leads_on {
                return Some(next);
            }
            index = next;
        }
    }

    /// Records that a packet will leave the chain at the end of this direction.
    #[inline(never)]
    fn exit(&mut self, index: u16, at: Time, packet: PacketRef, fate: Fate) {
        let Some(chain_routing) = &mut self.directions[usize::from(index)].chain_routing else {
            debug_assert!(false, "it leads on");
            return;
        };
        let is_first = chain_routing.exits.is_empty();
        chain_routing.exits.push_back(Exit { at, packet, fate });
        // Behind a selecting queue the first exit is entered after all packets have been taken on.
        let slot = &self.directions[usize::from(index)];
        if is_first && matches!(slot.direction, Direction::Fifo(_)) {
            self.schedule.push(at, ComponentId(index));
        }
    }

    /// Handles the event of the first packet that leaves a chain at the end of this direction.
    fn on_exit(&mut self, index: u16) {
        let exits = self.directions[usize::from(index)].chain_routing.as_ref();
        let second = exits.and_then(|chain_routing| chain_routing.exits.get(1));
        self.schedule.first_goes_on(second.map(|next| next.at));
        self.leave_chain(index);
    }

    /// Lets the first packet leave the chain at the end of this direction.
    pub(super) fn leave_chain(&mut self, index: u16) {
        let slot = &mut self.directions[usize::from(index)];
        let router = slot.to;
        let exit = slot
            .chain_routing
            .as_mut()
            .and_then(|chain_routing| chain_routing.exits.pop_front());
        let Some(exit) = exit else {
            debug_assert!(false, "the entry is of its first exit");
            return;
        };
        self.packet_hops += 1;
        self.last_activity = self.now;
        match exit.fate {
            Fate::Forwarded(port) => {
                let behind = self.nodes[usize::from(router)].ways.behind(port);
                self.transmit(router, behind, exit.packet);
            }
            Fate::Refused(refusal) => self.refuse(router, exit.packet, refusal),
            Fate::Dropped(next) => {
                if let Direction::Fifo(fifo) = &mut self.directions[usize::from(next)].direction {
                    fifo.count_dropped(1);
                }
                self.packets.release(exit.packet);
            }
        }
    }
}
