//! Drop-tail: first in, first out, up to a limit.

use bentpipe_types::{Bytes, PacketRef};

use super::{Backlog, Limit, QueueCtx, QueueDiscipline, Verdict, Waiting};

/// A drop-tail queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DropTail {
    /// Limit of the queue.
    pub limit: Limit,
}

impl DropTail {
    /// Decides on a packet of `length`, given the backlog.
    #[must_use]
    pub fn enqueue(&self, packets: u64, bytes: Bytes, length: Bytes) -> Verdict {
        if self.limit.admits(packets, bytes, length) {
            Verdict::Queued
        } else {
            Verdict::Dropped
        }
    }
}

/// A drop-tail queue as a [`QueueDiscipline`]. Behaves as [`DropTail`].
#[derive(Debug)]
pub struct DropTailQueue {
    limit: Limit,
    waiting: Waiting,
}

impl DropTailQueue {
    /// Creates an empty queue.
    #[must_use]
    pub fn new(limit: Limit) -> Self {
        Self {
            limit,
            waiting: Waiting::default(),
        }
    }
}

impl QueueDiscipline for DropTailQueue {
    fn enqueue(&mut self, packet: PacketRef, cx: &mut QueueCtx<'_>) -> Verdict {
        let length = cx.packets.get(packet).length();
        self.waiting.offer(packet, length, self.limit, cx.idle)
    }

    fn dequeue(&mut self, _cx: &mut QueueCtx<'_>) -> Option<(PacketRef, Bytes)> {
        self.waiting.pop()
    }

    fn backlog(&self) -> Backlog {
        self.waiting.backlog()
    }
}
