//! Recording of [queue histories](crate::network::queue_history::QueueHistory).

use bentpipe_link::Direction;
use bentpipe_types::{Bytes, Time};

use super::{DirectionSlot, Network, Shortcuts};
use crate::probe::LinkQuantity;

impl DirectionSlot {
    /// Starts recording the history, unless every event is observed anyway.
    pub(super) fn begin_recording(&mut self) {
        if !self.observed && !self.shortcuts.has(Shortcuts::RECORDED) {
            self.shortcuts.set(Shortcuts::RECORDED);
            self.rare.history = Some(Box::default());
        }
    }
}

impl Network {
    /// At the start of the run: records the history of unobserved drop-tail directions whose
    /// maximum backlog is sampled.
    #[cold]
    pub(super) fn record_sampled_maxima(&mut self) {
        for (index, quantity) in self.sampled().collect::<Vec<_>>() {
            let slot = &mut self.directions[usize::from(index)];
            if quantity == LinkQuantity::QueueMax && matches!(slot.direction, Direction::Fifo(_)) {
                slot.begin_recording();
            }
        }
    }

    /// Records a packet offered at this time in the direction's queue history.
    #[inline(never)]
    pub(super) fn record_offered(&mut self, index: u16, at: Time, length: Bytes) {
        let slot = &mut self.directions[usize::from(index)];
        if let (Some(history), Direction::Fifo(fifo)) = (&mut slot.rare.history, &slot.direction) {
            history.note(self.now, at, fifo, length);
        }
    }
}
