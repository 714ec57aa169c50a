//! How much may wait.

use bentpipe_types::Bytes;

/// How much may wait. The packet being transmitted does not wait: as in ns-2 and in Linux's pfifo,
/// it does not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// This many packets.
    Packets(u64),
    /// This many bytes, IP headers included.
    Bytes(Bytes),
}

impl Limit {
    /// May a packet of `length` wait, when `packets` and `bytes` are waiting already?
    #[must_use]
    pub fn admits(self, packets: u64, bytes: Bytes, length: Bytes) -> bool {
        match self {
            Self::Packets(limit) => packets < limit,
            Self::Bytes(limit) => bytes + length <= limit,
        }
    }

    /// Do more wait than may?
    #[must_use]
    pub fn is_exceeded(self, packets: u64, bytes: u64) -> bool {
        match self {
            Self::Packets(limit) => packets > limit,
            Self::Bytes(limit) => bytes > limit.get(),
        }
    }
}
