//! Events of managed directions and of directions with queues other than drop-tail.

use bentpipe_link::{Direction, Managed, Verdict, Watch};
use bentpipe_types::{PacketRef, PacketStore, Time};

use super::fast::{FastPaths, Scope};
use super::{DirectionSlot, Network, RECEIVING, SENDING};
use crate::Tap;
use crate::schedule::ComponentId;

/// The captures at the two ends of a direction.
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
    /// Returns the next event of a direction that is not a plain drop-tail queue, but not before
    /// `now`.
    pub(super) fn next_event(&self, now: Time) -> Option<Time> {
        match &self.direction {
            Direction::Managed(managed) => managed.next_event().map(|at| at.max(now)),
            Direction::Queued(queued) => queued.next_arrival(),
            Direction::Fifo(_) => None,
        }
    }
}

impl Network {
    /// Handles the direction's schedule entry: its next event, or an earlier one that has moved.
    /// Returns the first packet that arrives; the others are left in `arrived`.
    #[inline(never)]
    pub(super) fn on_managed(&mut self, index: u16) -> Option<PacketRef> {
        let slot = &mut self.directions[usize::from(index)];
        if slot.rare.scheduled != Some(self.now) {
            self.schedule.remove_first();
            return None;
        }
        let held = self.packets.held();
        let mut arrived = std::mem::take(&mut self.arrived);
        self.run_managed(index, |now, managed, packets, watch| {
            managed.on_event(now, packets, watch, &mut arrived);
        });
        // Its entry is still the first: moving it is cheaper than pop and push.
        let slot = &mut self.directions[usize::from(index)];
        slot.rare.scheduled = slot.next_event(self.now);
        self.schedule.first_goes_on(slot.rare.scheduled);
        if self.packets.held() < held {
            // A packet was lost.
            self.last_activity = self.now;
        }
        arrived.reverse();
        self.arrived = arrived;
        self.arrived.pop()
    }

    /// Offers a packet to a direction with a queue other than drop-tail.
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

    /// Enters the next event of such a queue, unless an entry exists: offered packets never make it
    /// earlier.
    #[inline]
    fn schedule_queue(&mut self, index: u16) {
        if self.directions[usize::from(index)].rare.scheduled.is_none() {
            self.reschedule_direction(index);
        }
    }

    /// Makes every event of this direction observable from now on.
    pub(super) fn observe(&mut self, index: u16) {
        FastPaths::disable(self, Scope::Around(index));
        let slot = &mut self.directions[usize::from(index)];
        slot.direction.attend(self.now, &mut self.packets);
        self.reschedule_direction(index);
    }

    /// Enters a direction's next event, unless an entry at least as early exists.
    fn reschedule_direction(&mut self, index: u16) {
        let slot = &mut self.directions[usize::from(index)];
        if let Some(at) = slot.next_event(self.now)
            && slot.rare.scheduled.is_none_or(|scheduled| at < scheduled)
        {
            slot.rare.scheduled = Some(at);
            self.schedule.push(at, ComponentId(index));
        }
    }

    /// Offers a packet to a managed direction.
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

    /// Runs a direction, with probes before and after.
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
            ends: slot.rare.taps,
        };
        let result = run(self.now, managed, &mut self.packets, &mut watch);
        if slot.rare.watched {
            self.probe_queue(index);
        }
        Some(result)
    }
}
