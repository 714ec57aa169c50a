//! What is counted at a direction.

use bentpipe_types::Span;

use crate::GivenUp;

/// What a direction has done so far.
///
/// Every packet is somewhere: `offered + duplicated + copied = delivered + lost + dropped + removed
/// + undecodable` and what is in the queue and on the link; `delivered + made = passed_on +
/// released` and what the far end holds back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Packets offered to the queue.
    pub offered: u64,
    /// Packets the queue dropped, on their arrival or later.
    pub dropped: u64,
    /// Acknowledgments the queue removed, because a later one stands for them.
    pub removed: u64,
    /// Packets lost to errors.
    pub lost: u64,
    /// Packets that arrived intact and could not be decoded.
    pub undecodable: u64,
    /// Packets that arrived a second time.
    pub duplicated: u64,
    /// Copies beyond the first that were made for all who are to hear a packet.
    pub copied: u64,
    /// Packets that arrived.
    pub delivered: u64,
    /// Bytes that arrived, as they were on the link: IP headers included, or what a framing makes
    /// of them.
    pub delivered_bytes: u64,
    /// Packets that the far end made itself.
    pub made: u64,
    /// Packets that ended at the far end.
    pub released: u64,
    /// Packets that went on to the node: those delivered, where there is no far end.
    pub passed_on: u64,
    /// Most packets that ever waited.
    pub queue_max_packets: u64,
    /// Most bytes that ever waited.
    pub queue_max_bytes: u64,
    /// Time the transmitter was given work for.
    pub busy: Span,
}

impl Counters {
    /// These, and what the queue has given up since it took it.
    pub(crate) fn with(self, given_up: GivenUp) -> Self {
        Self {
            dropped: self.dropped + given_up.dropped,
            removed: self.removed + given_up.removed,
            ..self
        }
    }
}
