//! Queues that choose, in chains.
//!
//! What such a queue does with a packet depends on what comes after it, until the packet departs. So it is told what
//! will come, and caught up with no later than the next packet comes to the end of its link; then all that it has sent
//! is taken on.

use bentpipe_link::Direction;
use bentpipe_types::{PacketRef, Time};

use super::fetch::NextEnds;
use super::{ANYWHERE, DirectionSlot, Network};

impl DirectionSlot {
    /// Is its queue one of a chain that chooses?
    fn is_chained_queue(&self) -> bool {
        let is_chained = self.upstream != ANYWHERE || self.onward.is_some();
        is_chained && matches!(self.direction, Direction::Queued(_))
    }
}

impl Network {
    /// The chains have been made.
    pub(super) fn find_chained_queues(&mut self) {
        let slots = self.directions.iter().zip(0..);
        let queues = slots.filter(|(slot, _)| slot.is_chained_queue());
        self.chained_queues = queues.map(|(_, index)| index).collect();
    }

    /// A packet will come to a queue that chooses: it is offered there when the queue is caught up with.
    pub(super) fn expect_at_queue(&mut self, index: u16, at: Time, packet: PacketRef) {
        let Direction::Queued(queued) = &mut self.directions[usize::from(index)].direction else {
            debug_assert!(false, "where somebody looks, there is no chain");
            return;
        };
        queued.expect(at, packet);
        self.packet_hops += 1;
        // If it is the last there is, it has been offered when the run ends.
        self.lookahead.last_activity = self.lookahead.last_activity.max(at);
        self.schedule_queue(index);
    }

    /// The entry of a queue that chooses has come up, which is the upstream of others: what leaves it next comes to
    /// its end now, or later. Takes on all that has left it meanwhile, and lets a packet go that leaves the chain now.
    ///
    /// All at once, about a delay's worth: a queue that takes turns mixes the packets of all hosts, and each of these
    /// is told all its own together.
    #[inline(never)]
    pub(super) fn hand_on(&mut self, index: u16) {
        self.schedule.remove_first();
        self.directions[usize::from(index)].seldom.scheduled = None;
        self.catch_up(index, self.now);
        let mut ends = self.is_large().then(NextEnds::new);
        while let Direction::Queued(queued) = &mut self.directions[usize::from(index)].direction
            && let Some((at, packet, length)) = queued.hand_on(&self.packets)
        {
            if let Some(ends) = &mut ends {
                let later = queued.later(NextEnds::EARLY - 1);
                self.fetch_end(ends, index, later);
            }
            self.follow(index, at, packet, length);
        }
        let slot = &self.directions[usize::from(index)];
        if slot.next_exit().is_some_and(|at| at <= self.now) {
            self.leave_chain(index);
        }
        self.schedule_queue(index);
    }

    /// Brings a queue that chooses up to a time.
    fn catch_up(&mut self, index: u16, at: Time) {
        let direction = &mut self.directions[usize::from(index)].direction;
        direction.settle(at, &mut self.packets);
    }

    /// Brings the queues of chains up to a time: somebody asks.
    pub(super) fn settle(&mut self, at: Time) {
        for position in 0..self.chained_queues.len() {
            self.catch_up(self.chained_queues[position], at);
        }
    }
}
