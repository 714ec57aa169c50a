//! Queues other than drop-tail in link chains.
//!
//! Such a queue's decision about a packet depends on later arrivals until the packet departs.
//! Packets are therefore announced to it, and it is brought up to date no later than the next
//! arrival at the end of its link. Everything that it has transmitted by then is taken on through
//! the chain.

use bentpipe_link::Direction;
use bentpipe_types::{PacketRef, Time};

use super::prefetch::NextEnds;
use super::{ANYWHERE, DirectionSlot, Network};
use crate::schedule::ComponentId;

impl DirectionSlot {
    /// Whether the direction is in a chain and has a queue other than drop-tail.
    fn is_chained_queue(&self) -> bool {
        let is_chained = self.upstream != ANYWHERE || self.leads_on();
        is_chained && matches!(self.direction, Direction::Queued(_))
    }
}

impl Network {
    /// Determines these directions after chains have been formed.
    pub(super) fn find_chained_queues(&mut self) {
        let slots = self.directions.iter().zip(0..);
        let queues = slots.filter(|(slot, _)| slot.is_chained_queue());
        self.fast.chained_queues = queues.map(|(_, index)| index).collect();
    }

    /// Announces a packet to the queue, which accepts it when it is brought up to date.
    pub(super) fn expect_at_queue(&mut self, index: u16, at: Time, packet: PacketRef) {
        let Direction::Queued(queued) = &mut self.directions[usize::from(index)].direction else {
            debug_assert!(false, "where somebody looks, there is no chain");
            return;
        };
        queued.expect(at, packet);
        self.packet_hops += 1;
        // The last packet of all will have been offered when the run ends.
        let last_activity = &mut self.fast.lookahead.last_activity;
        *last_activity = (*last_activity).max(at);
        self.schedule_chained_queue(index);
    }

    /// Handles the schedule entry of such a queue. Takes on all packets that it has transmitted,
    /// and lets a packet leave the chain that is due now.
    ///
    /// This covers about one link delay at once. A fair queue mixes the packets of all hosts, but
    /// each host then processes all of its packets together.
    #[inline(never)]
    pub(super) fn hand_on(&mut self, index: u16) {
        self.schedule.remove_first();
        self.directions[usize::from(index)].rare.scheduled = None;
        self.catch_up(index, self.now);
        let mut ends = self.is_large().then(NextEnds::new);
        while let Direction::Queued(queued) = &mut self.directions[usize::from(index)].direction
            && let Some((at, packet, length)) = queued.hand_on(&self.packets)
        {
            if let Some(ends) = &mut ends {
                let later = queued.later(NextEnds::PREFETCH_DISTANCE - 1);
                self.fetch_end(ends, index, later);
            }
            self.follow(index, at, packet, length);
        }
        let slot = &self.directions[usize::from(index)];
        if slot.next_exit().is_some_and(|at| at <= self.now) {
            self.leave_chain(index);
        }
        self.schedule_chained_queue(index);
    }

    /// Enters the next event of such a queue, unless an entry exists: its next arrival, or the next
    /// packet that leaves the chain at its end.
    fn schedule_chained_queue(&mut self, index: u16) {
        let slot = &mut self.directions[usize::from(index)];
        if slot.rare.scheduled.is_some() {
            return;
        }
        let all = [slot.next_exit(), slot.next_event(self.now)];
        if let Some(at) = all.into_iter().flatten().min() {
            slot.rare.scheduled = Some(at);
            self.schedule.push(at, ComponentId(index));
        }
    }

    /// Brings a queue up to a time.
    fn catch_up(&mut self, index: u16, at: Time) {
        let direction = &mut self.directions[usize::from(index)].direction;
        direction.settle(at, &mut self.packets);
    }

    /// Brings all queues of chains up to a time.
    pub(super) fn settle_chained_queues(&mut self, at: Time) {
        for position in 0..self.fast.chained_queues.len() {
            self.catch_up(self.fast.chained_queues[position], at);
        }
    }
}
