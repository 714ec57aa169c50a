//! Queue limits.

use bentpipe_types::Bytes;

/// Limit of a queue. The packet in transmission does not count, as in Linux's pfifo.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// This many packets.
    Packets(u64),
    /// This many bytes, IP headers included.
    Bytes(Bytes),
}

impl Limit {
    /// Whether a packet of `length` fits, given the backlog.
    #[must_use]
    pub fn admits(self, packets: u64, bytes: Bytes, length: Bytes) -> bool {
        match self {
            Self::Packets(limit) => packets < limit,
            Self::Bytes(limit) => bytes + length <= limit,
        }
    }

    /// Whether the backlog exceeds the limit.
    #[must_use]
    pub fn is_exceeded(self, packets: u64, bytes: u64) -> bool {
        match self {
            Self::Packets(limit) => packets > limit,
            Self::Bytes(limit) => bytes > limit.get(),
        }
    }
}
