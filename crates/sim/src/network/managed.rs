//! Directions that do more than queue and delay: their events, and what comes of them.

use bentpipe_link::{Direction, Managed, Verdict, Watch};
use bentpipe_types::{PacketRef, PacketStore, Time};

use super::{DirectionSlot, Network, RECEIVING, SENDING};
use crate::Tap;
use crate::schedule::ComponentId;

/// The taps at the two ends of one direction.
struct AtTaps<'a> {
    taps: &'a mut [Box<dyn Tap + Send>],
    ends: [Option<u16>; 2],
}

impl Watch for AtTaps<'_> {
    fn sent(&mut self, now: Time, packet: PacketRef, packets: &PacketStore) {
        if let Some(tap) = self.ends[SENDING] {
            self.taps[usize::from(tap)].sent(now, packet, packets);
        }
    }

    fn received(&mut self, now: Time, packet: PacketRef, packets: &PacketStore) {
        if let Some(tap) = self.ends[RECEIVING] {
            self.taps[usize::from(tap)].received(now, packet, packets);
        }
    }
}

impl DirectionSlot {
    /// When a direction next wants to run that is not a drop-tail queue alone: now, if that was before.
    fn next_event(&self, now: Time) -> Option<Time> {
        match &self.direction {
            Direction::Managed(managed) => managed.next_event().map(|at| at.max(now)),
            Direction::Queued(queued) => {
                let all = [self.next_exit(), queued.next_arrival()];
                all.into_iter().flatten().min()
            }
            Direction::Fifo(_) => None,
        }
    }
}

impl Network {
    /// The direction's entry has come up: its next event, or an earlier one that has moved to later.
    /// Returns the first packet that it lets out; the others are left in `arrived`.
    #[inline(never)]
    pub(super) fn on_managed(&mut self, index: u16) -> Option<PacketRef> {
        let slot = &mut self.directions[usize::from(index)];
        if slot.seldom.scheduled != Some(self.now) {
            self.schedule.remove_first();
            return None;
        }
        let held = self.packets.held();
        let mut arrived = std::mem::take(&mut self.arrived);
        self.run_managed(index, |now, managed, packets, watch| {
            managed.on_event(now, packets, watch, &mut arrived);
        });
        // Its entry is the first still: cheaper to move than to take out and put in.
        let slot = &mut self.directions[usize::from(index)];
        slot.seldom.scheduled = slot.next_event(self.now);
        self.schedule.first_goes_on(slot.seldom.scheduled);
        if self.packets.held() < held {
            // A packet was lost.
            self.last_activity = self.now;
        }
        arrived.reverse();
        self.arrived = arrived;
        self.arrived.pop()
    }

    /// Offers a packet to a direction behind a queue that chooses.
    #[inline(never)]
    pub(super) fn transmit_queued(&mut self, index: u16, packet: PacketRef) {
        let Direction::Queued(queued) = &mut self.directions[usize::from(index)].direction else {
            debug_assert!(false, "nothing else has such a queue");
            return;
        };
        if queued.enqueue(self.now, packet, &mut self.packets) == Verdict::Dropped {
            self.packets.release(packet);
        }
        self.schedule_queue(index);
    }

    /// Enters the next event of a queue that chooses, unless an entry is there already: what is offered never makes
    /// it earlier.
    #[inline]
    pub(super) fn schedule_queue(&mut self, index: u16) {
        if self.directions[usize::from(index)]
            .seldom
            .scheduled
            .is_none()
        {
            self.reschedule_direction(index);
        }
    }

    /// Somebody looks at this direction: from now on, what happens there is an event.
    pub(super) fn attend(&mut self, index: u16) {
        self.tell_in_turn_around(index);
        let slot = &mut self.directions[usize::from(index)];
        slot.direction.attend(self.now, &mut self.packets);
        self.reschedule_direction(index);
    }

    /// Enters a direction's next event, unless an entry as early is there already.
    fn reschedule_direction(&mut self, index: u16) {
        let slot = &mut self.directions[usize::from(index)];
        if let Some(at) = slot.next_event(self.now)
            && slot.seldom.scheduled.is_none_or(|scheduled| at < scheduled)
        {
            slot.seldom.scheduled = Some(at);
            self.schedule.push(at, ComponentId(index));
        }
    }

    /// Offers a packet to a direction.
    #[inline(never)]
    pub(super) fn transmit_managed(&mut self, index: u16, packet: PacketRef) {
        let verdict = self.run_managed(index, |now, managed, packets, watch| {
            managed.enqueue(now, packet, packets, watch)
        });
        self.reschedule_direction(index);
        if verdict == Some(Verdict::Dropped) {
            self.packets.release(packet);
        }
    }

    /// Lets a direction run, probes looking before and after.
    fn run_managed<R>(
        &mut self,
        index: u16,
        run: impl FnOnce(Time, &mut Managed, &mut PacketStore, &mut dyn Watch) -> R,
    ) -> Option<R> {
        let slot = &mut self.directions[usize::from(index)];
        let Direction::Managed(managed) = &mut slot.direction else {
            debug_assert!(false, "a drop-tail direction has no such events");
            return None;
        };
        let mut watch = AtTaps {
            taps: &mut self.taps,
            ends: slot.seldom.taps,
        };
        let result = run(self.now, managed, &mut self.packets, &mut watch);
        if slot.seldom.watched {
            self.probe_queue(index);
        }
        Some(result)
    }
}
