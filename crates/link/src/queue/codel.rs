//! CoDel: K. Nichols, V. Jacobson, A. McGregor, J. Iyengar, "Controlled Delay Active Queue
//! Management", RFC 8289. Where the RFC leaves a choice (the initial count, marks), it follows
//! Linux's `codel_impl.h`.

mod control;

use bentpipe_types::{Bytes, PacketRef};

pub use control::DelayBounds;
pub(super) use control::{DelayControl, DelayState, Line, Taken};

use super::{Backlog, GivenUp, Limit, QueueCtx, QueueDiscipline, TimedWaiting, Verdict};
use crate::Tally;

/// Settings of a CoDel queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CodelSettings {
    /// Limit of the queue.
    pub limit: Limit,
    /// Target and interval.
    pub bounds: DelayBounds,
}

/// First in, first out. While the shortest delay of an interval is above the target, packets are
/// dropped at dequeue at decreasing intervals.
#[derive(Debug)]
pub struct Codel {
    limit: Limit,
    waiting: TimedWaiting,
    control: DelayControl,
    state: DelayState,
    overlimit: u64,
}

impl Codel {
    /// Creates an empty queue.
    #[must_use]
    pub fn new(settings: CodelSettings) -> Self {
        Self {
            limit: settings.limit,
            waiting: TimedWaiting::default(),
            control: DelayControl::new(settings.bounds),
            state: DelayState::default(),
            overlimit: 0,
        }
    }
}

impl Line for TimedWaiting {
    fn take(&mut self) -> Option<Taken> {
        self.pop()
    }

    fn bytes(&self) -> u64 {
        TimedWaiting::bytes(self).get()
    }
}

impl QueueDiscipline for Codel {
    fn enqueue(&mut self, packet: PacketRef, cx: &mut QueueCtx<'_>) -> Verdict {
        let length = cx.packets.get(packet).length();
        if !cx.idle && self.waiting.is_full_for(length, self.limit) {
            self.overlimit += 1;
            return Verdict::Dropped;
        }
        self.waiting.push(cx.now, packet, length);
        Verdict::Queued
    }

    fn dequeue(&mut self, cx: &mut QueueCtx<'_>) -> Option<(PacketRef, Bytes)> {
        self.control
            .dequeue(&mut self.state, &mut self.waiting, cx.now, cx.packets)
    }

    fn backlog(&self) -> Backlog {
        self.waiting.backlog()
    }

    fn given_up(&self) -> GivenUp {
        GivenUp {
            dropped: self.control.dropped(),
            removed: 0,
        }
    }

    fn tally(&self, each: &mut Tally<'_>) {
        each(None, "dropped_for_delay", self.control.dropped());
        each(None, "dropped_at_limit", self.overlimit);
        each(None, "marked", self.control.marked());
    }
}

#[cfg(test)]
mod tests;
