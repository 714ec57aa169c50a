//! Early random drop: E. Hashem, "Analysis of Random Drop for Gateway Congestion Control", MIT
//! LCS/TR-465, 1989, as described by Floyd and Jacobson (1993, section 3).

use bentpipe_types::{Bytes, PacketRef};

use super::{Backlog, Limit, QueueCtx, QueueDiscipline, Verdict, Waiting};
use crate::Tally;

/// Settings of an early random drop queue.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct EarlyRandomDropSettings {
    /// Limit of the queue.
    pub limit: Limit,
    /// Backlog above which packets are dropped at random.
    pub drop_level: Limit,
    /// Share of arriving packets dropped above it.
    pub drop_probability: f64,
}

/// A queue that drops arriving packets with a fixed probability while its backlog exceeds the drop
/// level.
#[derive(Debug)]
pub struct EarlyRandomDrop {
    settings: EarlyRandomDropSettings,
    waiting: Waiting,
    early: u64,
}

impl EarlyRandomDrop {
    /// Creates an empty queue.
    #[must_use]
    pub fn new(settings: EarlyRandomDropSettings) -> Self {
        Self {
            settings,
            waiting: Waiting::default(),
            early: 0,
        }
    }
}

impl QueueDiscipline for EarlyRandomDrop {
    fn enqueue(&mut self, packet: PacketRef, cx: &mut QueueCtx<'_>) -> Verdict {
        let length = cx.packets.get(packet).length();
        let beyond = match self.settings.drop_level {
            Limit::Packets(level) => self.waiting.packets() >= level,
            Limit::Bytes(level) => self.waiting.bytes() >= level,
        };
        // On an idle link a level of 0 drops nothing: the packet is transmitted at once.
        if beyond && !cx.idle && cx.random.happens(self.settings.drop_probability) {
            self.early += 1;
            return Verdict::Dropped;
        }
        self.waiting
            .offer(packet, length, self.settings.limit, cx.idle)
    }

    fn dequeue(&mut self, _cx: &mut QueueCtx<'_>) -> Option<(PacketRef, Bytes)> {
        self.waiting.pop()
    }

    fn backlog(&self) -> Backlog {
        self.waiting.backlog()
    }

    fn tally(&self, each: &mut Tally<'_>) {
        each(None, "dropped_early", self.early);
    }
}
