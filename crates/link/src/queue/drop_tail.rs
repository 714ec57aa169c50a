//! Drop-tail: first in, first out, up to a limit.

use bentpipe_types::Bytes;

use super::Verdict;

/// How much may wait. The packet being transmitted does not wait: as in ns-2 and in Linux's pfifo,
/// it does not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// This many packets.
    Packets(u64),
    /// This many bytes, IP headers included.
    Bytes(Bytes),
}

/// A drop-tail queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DropTail {
    /// What may wait.
    pub limit: Limit,
}

impl DropTail {
    /// Decides on a packet of `length`, when `packets` and `bytes` are waiting already.
    #[must_use]
    pub fn enqueue(&self, packets: u64, bytes: Bytes, length: Bytes) -> Verdict {
        let fits = match self.limit {
            Limit::Packets(limit) => packets < limit,
            Limit::Bytes(limit) => bytes + length <= limit,
        };
        if fits {
            Verdict::Queued
        } else {
            Verdict::Dropped
        }
    }
}
