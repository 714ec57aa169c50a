//! What is counted of acknowledgments, per flow and in all.

use bentpipe_link::{Flow, Tally};

use super::Kept;

/// What a queue has done with acknowledgments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AckCounters {
    /// Packets taken in, acknowledgments and others.
    pub queued: u64,
    /// Packets dropped for want of room.
    pub dropped: u64,
    /// Acknowledgments removed: a later one stands for them.
    pub removed: u64,
    /// Bytes of those removed, headers and all.
    pub removed_bytes: u64,
    /// Of those removed, duplicates beyond the three that mark a loss, whose SACK blocks a later
    /// duplicate covers.
    pub duplicates_removed: u64,
    /// Acknowledgments that carry a count of those removed in their favour.
    pub compacted: u64,
    kept: [u64; Kept::ALL.len()],
}

impl AckCounters {
    /// How many were kept for this reason. Reasons that need a successor count once per pair.
    #[must_use]
    pub fn kept(&self, reason: Kept) -> u64 {
        self.kept[reason as usize]
    }

    pub(crate) fn keep(&mut self, reason: Kept) {
        self.kept[reason as usize] += 1;
    }

    pub(crate) fn tally(&self, flow: Option<Flow>, each: &mut Tally<'_>) {
        each(flow, "acks_removed", self.removed);
        each(flow, "ack_bytes_removed", self.removed_bytes);
        each(flow, "duplicate_acks_removed", self.duplicates_removed);
        each(flow, "acks_compacted", self.compacted);
        for reason in Kept::ALL {
            each(flow, reason.name(), self.kept(reason));
        }
    }
}
