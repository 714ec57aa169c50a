//! Chains: directions in a row, of which all but the first get their packets from the one before alone.
//!
//! What enters the first is computed through all of them at once, where they are drop-tail queues, since everything
//! is known: when a packet departs, what waits before it at the next direction, whether it finds room there. Only its
//! arrival at the end of the chain is in the schedule. So the later directions are *ahead*: they have been offered
//! packets that come to them later. Who asks what has happened by now leaves these out ([`Network::standings`]).
//!
//! Nothing else is different, whatever happens at the same nanosecond. What an arrival within a chain does,
//! nobody sees but the next direction and who asks later; nobody else offers anything to that one; and since a
//! packet takes time to cross it, its event at the far end was always entered before that time came. A packet
//! that leaves the chain midway, to a direction that is not of it, because the router refuses it or the next
//! queue has no room, is an event at just that direction, as without chains. For queues that choose, see
//! `chained_queues.rs`.

use std::collections::VecDeque;

use bentpipe_link::{Counters, Direction, Fifo, Verdict};
use bentpipe_types::{Address, ByAddress, Bytes, DropReason, PacketRef, Port, Span, Time};
use rustc_hash::FxHashSet;

use super::passing::Attention;
use super::{ANYWHERE, DirectionSlot, Network};
use crate::node::Node;
use crate::router::Refusal;
use crate::schedule::ComponentId;

/// A packet that leaves a chain before its end.
#[derive(Debug)]
pub(super) struct Exit {
    at: Time,
    packet: PacketRef,
    way: Way,
}

/// Where it goes from the router.
#[derive(Debug)]
enum Way {
    /// Out of this port: the direction there is not of the chain.
    On(Port),
    /// Nowhere.
    Refused(Refusal),
    /// To this direction, whose queue is full by then.
    Dropped(u16),
}

/// What becomes of a packet at a direction of a chain.
enum Hop {
    /// It arrives at the end then, and goes on.
    GoesOn(Time),
    /// The chain ends here.
    Ends,
    /// It leaves the chain, or waits for a queue to choose it.
    Leaves,
}

/// What a direction knows that leads to others.
#[derive(Debug, Default)]
pub(super) struct Onward {
    /// Where the packet before was for, and the direction that it went on to: most go where the one before went.
    last: Option<(Address, u16)>,
    /// The same of all before that went on in the chain, and whether it goes further from there.
    known: ByAddress<(u16, bool)>,
    /// What leaves the chain here, in order; the first is in the schedule.
    exits: VecDeque<Exit>,
}

impl Onward {
    /// The direction that a packet goes on to, if one for there has before.
    #[inline(always)]
    fn towards(&mut self, destination: Address) -> Option<u16> {
        if let Some((last, next)) = self.last
            && last == destination
        {
            return Some(next);
        }
        let (next, _) = self.known.get(destination)?;
        self.last = Some((destination, next));
        Some(next)
    }
}

/// What has become of a direction's packets.
#[derive(Debug)]
pub(super) struct Standing {
    pub(super) counters: Counters,
    pub(super) in_transit: usize,
    /// Time that the transmitter has worked.
    pub(super) busy: Span,
}

impl DirectionSlot {
    /// The queue of one at which nobody looks, and where all is known when a packet is offered.
    pub(super) fn plain(&self) -> Option<&Fifo> {
        match &self.direction {
            Direction::Fifo(fifo) if !self.is_attended() => Some(fifo),
            _ => None,
        }
    }

    /// Packets that come out of it as events: all that are in it, or what leaves its chain here.
    pub(super) fn has_events(&self) -> bool {
        let leaves = self.next_exit().is_some();
        match (&self.direction, &self.onward) {
            (Direction::Queued(queued), _) => leaves || queued.to_come() > 0,
            (_, Some(_)) => leaves,
            (direction, None) => direction.in_transit() + direction.held_back() > 0,
        }
    }

    /// When a packet next leaves a chain at the end of this direction.
    pub(super) fn next_exit(&self) -> Option<Time> {
        let exits = &self.onward.as_ref()?.exits;
        exits.front().map(|exit| exit.at)
    }

    /// May another direction lead to it in a chain? What comes to it takes time to cross it, and nobody looks.
    fn may_follow(&self) -> bool {
        match &self.direction {
            Direction::Fifo(fifo) => !self.is_attended() && fifo.takes_time(),
            Direction::Queued(queued) => queued.takes_time(),
            Direction::Managed(_) => false,
        }
    }

    /// May it lead to others in a chain? All that is transmitted arrives, and nobody looks.
    fn may_lead(&self) -> bool {
        match &self.direction {
            Direction::Fifo(fifo) => !self.is_attended() && fifo.is_error_free(),
            Direction::Queued(queued) => queued.is_error_free(),
            Direction::Managed(_) => false,
        }
    }
}

impl Network {
    /// Without chains, every packet that arrives anywhere is an event, and probes look at each that concerns them: the
    /// same, with more work. For tests; before the run, and before there are probes.
    pub fn without_chains(&mut self) {
        self.upstream.clear();
        self.probes.attend = true;
    }

    /// The run begins, and it is known where probes and taps look: makes chains of the directions that have one
    /// upstream, wherever nobody looks at each packet.
    #[cold]
    pub(super) fn make_chains(&mut self) {
        let sampled = self.sampled_directions();
        for (index, upstream) in std::mem::take(&mut self.upstream) {
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
                    slot.begin_noting();
                }
                let before = &mut self.directions[usize::from(upstream)];
                before.onward.get_or_insert_default();
            }
        }
        self.find_chained_queues();
    }

    /// A packet has been queued at a direction that is the upstream of others, and arrives at its end then: takes it on,
    /// to where its chain ends or it leaves it, or to a queue that chooses.
    pub(super) fn follow(&mut self, first: u16, arrival: Time, packet: PacketRef, length: Bytes) {
        let destination = self.packets.get(packet).destination.address;
        let counted = self.packets.counts_hops(packet);
        let (mut index, mut at) = (first, arrival);
        loop {
            let Some(onward) = &mut self.directions[usize::from(index)].onward else {
                debug_assert!(false, "it leads on");
                return;
            };
            let next = match onward.towards(destination) {
                Some(next) if !counted => next,
                _ => match self.find_next(index, packet) {
                    Ok(next) => next,
                    Err(way) => return self.exit(index, at, packet, way),
                },
            };
            if self.directions[usize::from(next)].attention == Attention::NowAndThen {
                return self.follow_noted(index, next, at, packet, length);
            }
            match self.hop(index, next, at, packet, length) {
                Hop::GoesOn(arrival) => (index, at) = (next, arrival),
                Hop::Ends | Hop::Leaves => return,
            }
        }
    }

    /// A packet comes to the next direction of its chain, at this time.
    #[inline(always)]
    fn hop(&mut self, index: u16, next: u16, at: Time, packet: PacketRef, length: Bytes) -> Hop {
        let slot = &mut self.directions[usize::from(next)];
        let Direction::Fifo(fifo) = &mut slot.direction else {
            self.expect_at_queue(next, at, packet);
            return Hop::Leaves;
        };
        let leads_on = slot.onward.is_some();
        if leads_on {
            fifo.make_room(self.now);
        }
        if fifo.offer(at, packet, length) == Verdict::Dropped {
            self.exit(index, at, packet, Way::Dropped(next));
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

    /// [Follows](Self::follow) a packet from a direction of which it is noted what passes.
    #[cold]
    #[inline(never)]
    fn follow_noted(&mut self, index: u16, next: u16, at: Time, packet: PacketRef, length: Bytes) {
        let hop = self.hop(index, next, at, packet, length);
        if let Hop::GoesOn(_) | Hop::Ends = hop {
            self.note_passing(next, at, length);
        }
        if let Hop::GoesOn(arrival) = hop {
            self.follow(next, arrival, packet, length);
        }
    }

    /// A packet has been offered to a direction, at this time, of which it is noted what passes.
    #[inline(never)]
    pub(super) fn note_passing(&mut self, index: u16, at: Time, length: Bytes) {
        let slot = &mut self.directions[usize::from(index)];
        if let (Some(passing), Direction::Fifo(fifo)) = (&mut slot.seldom.passing, &slot.direction)
        {
            passing.note(self.now, at, fifo, length);
        }
    }

    /// The direction that a packet goes on to from the end of another, if it is of the chain.
    #[inline(never)]
    fn find_next(&mut self, index: u16, packet: PacketRef) -> Result<u16, Way> {
        let slot = &self.directions[usize::from(index)];
        let router = &self.nodes[usize::from(slot.to)];
        let Node::Router(routes) = &router.node else {
            debug_assert!(false, "a chain leads through routers");
            return Err(Way::Refused(Refusal::Drop(DropReason::NoRoute)));
        };
        let port = routes
            .way(packet, &mut self.packets)
            .map_err(Way::Refused)?;
        let next = router.ways.behind(port);
        let follows = |slot: &DirectionSlot| slot.upstream == index;
        if !self.directions.get(usize::from(next)).is_some_and(follows) {
            return Err(Way::On(port));
        }
        let destination = self.packets.get(packet).destination.address;
        let leads_on = self.directions[usize::from(next)].onward.is_some();
        if let Some(onward) = &mut self.directions[usize::from(index)].onward {
            onward.known.insert(destination, (next, leads_on));
        }
        Ok(next)
    }

    /// The direction at the end of this chain that packets for there come to, if any did before.
    #[inline]
    pub(super) fn known_end(&self, first: u16, destination: Address) -> Option<u16> {
        let mut index = first;
        loop {
            let onward = self.directions[usize::from(index)].onward.as_ref()?;
            let (next, leads_on) = onward.known.get(destination)?;
            if !leads_on {
                return Some(next);
            }
            index = next;
        }
    }

    /// A packet will leave the chain at the end of this direction.
    #[inline(never)]
    fn exit(&mut self, index: u16, at: Time, packet: PacketRef, way: Way) {
        let Some(onward) = &mut self.directions[usize::from(index)].onward else {
            debug_assert!(false, "it leads on");
            return;
        };
        let is_first = onward.exits.is_empty();
        onward.exits.push_back(Exit { at, packet, way });
        // Behind a queue that chooses, what is next is entered when all have been taken on.
        let slot = &self.directions[usize::from(index)];
        if is_first && matches!(slot.direction, Direction::Fifo(_)) {
            self.schedule.push(at, ComponentId(index));
        }
    }

    /// The first packet that leaves a chain at the end of this direction has come there.
    #[inline(never)]
    pub(super) fn on_exit(&mut self, index: u16) {
        let exits = self.directions[usize::from(index)].onward.as_ref();
        let second = exits.and_then(|onward| onward.exits.get(1));
        self.schedule.first_goes_on(second.map(|next| next.at));
        self.leave_chain(index);
    }

    /// The first packet that leaves a chain at the end of this direction does so.
    pub(super) fn leave_chain(&mut self, index: u16) {
        let slot = &mut self.directions[usize::from(index)];
        let router = slot.to;
        let exit = slot
            .onward
            .as_mut()
            .and_then(|onward| onward.exits.pop_front());
        let Some(exit) = exit else {
            debug_assert!(false, "the entry is of its first exit");
            return;
        };
        self.packet_hops += 1;
        self.last_activity = self.now;
        match exit.way {
            Way::On(port) => {
                let behind = self.nodes[usize::from(router)].ways.behind(port);
                self.transmit(router, behind, exit.packet);
            }
            Way::Refused(refusal) => self.refuse(router, exit.packet, refusal),
            Way::Dropped(next) => {
                if let Direction::Fifo(fifo) = &mut self.directions[usize::from(next)].direction {
                    fifo.count_dropped(1);
                }
                self.packets.release(exit.packet);
            }
        }
    }

    /// Of each direction, how many packets it has been offered that come to it after now.
    fn ahead(&self) -> Vec<usize> {
        let not_left = |slot: &DirectionSlot| match (&slot.onward, &slot.direction) {
            (Some(_), Direction::Fifo(fifo)) => fifo.arriving_after(self.now).collect(),
            (Some(_), Direction::Queued(queued)) => queued.in_flight().collect(),
            _ => FxHashSet::default(),
        };
        let not_left: Vec<FxHashSet<PacketRef>> = self.directions.iter().map(not_left).collect();
        let ahead = |slot: &DirectionSlot| match &slot.direction {
            Direction::Fifo(fifo) if slot.upstream != ANYWHERE => {
                let before = &not_left[usize::from(slot.upstream)];
                let coming = fifo.arriving_after(self.now);
                coming.take_while(|packet| before.contains(packet)).count()
            }
            Direction::Queued(queued) => queued.expected(),
            _ => 0,
        };
        self.directions.iter().map(ahead).collect()
    }

    /// What has become of the packets of each direction by now, its transmitter's work up to `ended`; and how many
    /// hops packets have made.
    pub(super) fn standings(&self, ended: Time) -> (Vec<Standing>, u64) {
        let ahead = self.ahead();
        let hops = self.packet_hops - ahead.iter().map(|each| *each as u64).sum::<u64>();
        let standing = |(slot, ahead): (&DirectionSlot, usize)| match &slot.direction {
            Direction::Fifo(fifo) => {
                let in_transit = match &slot.onward {
                    Some(onward) => {
                        // One that comes out just now is here still, until its event.
                        let due = onward.exits.iter().take_while(|exit| exit.at <= self.now);
                        fifo.arriving_after(self.now).count() + due.count()
                    }
                    None => fifo.in_transit(),
                } - ahead;
                Standing {
                    counters: fifo.counters_without(ahead, in_transit),
                    in_transit,
                    busy: fifo.busy_without(ahead, ended),
                }
            }
            other => Standing {
                counters: other.counters(),
                in_transit: other.in_transit(),
                busy: other.busy(ended),
            },
        };
        let all = self.directions.iter().zip(ahead).map(standing).collect();
        (all, hops)
    }
}
