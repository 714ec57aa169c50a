//! Counters of a direction.

use bentpipe_types::Span;

use crate::GivenUp;

/// Counters of a direction.
///
/// Invariants: `offered + duplicated + copied = delivered + lost + dropped + removed + undecodable`
/// plus packets in the queue and on the link; `delivered + made = passed_on + released` plus
/// packets held by the far end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Packets offered to the queue.
    pub offered: u64,
    /// Packets dropped by the queue, on arrival or later.
    pub dropped: u64,
    /// Acknowledgments removed by the queue because a later one replaces them.
    pub removed: u64,
    /// Packets lost to errors.
    pub lost: u64,
    /// Packets that arrived intact and could not be decoded.
    pub undecodable: u64,
    /// Packets that arrived a second time.
    pub duplicated: u64,
    /// Additional copies for the receivers of a broadcast direction.
    pub copied: u64,
    /// Packets that arrived.
    pub delivered: u64,
    /// Bytes that arrived, with IP headers or as changed by a framing.
    pub delivered_bytes: u64,
    /// Packets created by the far end.
    pub made: u64,
    /// Packets that ended at the far end.
    pub released: u64,
    /// Packets passed on to the node; without a far end, those delivered.
    pub passed_on: u64,
    /// Maximum backlog in packets.
    pub queue_max_packets: u64,
    /// Maximum backlog in bytes.
    pub queue_max_bytes: u64,
    /// Total transmission time of all packets.
    pub busy: Span,
}

impl Counters {
    /// Returns the counters of a direction that was [split](crate::Direction::split_propagation),
    /// from those of its sending and its receiving half.
    #[must_use]
    pub fn of_halves(sending: Self, receiving: Self) -> Self {
        Self {
            lost: receiving.lost,
            delivered: receiving.delivered,
            delivered_bytes: receiving.delivered_bytes,
            passed_on: receiving.passed_on,
            ..sending
        }
    }

    /// Returns these counters with the packets that the queue gave up after accepting them.
    pub(crate) fn with(self, given_up: GivenUp) -> Self {
        Self {
            dropped: self.dropped + given_up.dropped,
            removed: self.removed + given_up.removed,
            ..self
        }
    }
}
