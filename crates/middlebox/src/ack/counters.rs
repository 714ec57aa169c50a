//! Counters of acknowledgments, per flow and in total.

use bentpipe_link::{Flow, Tally};

use super::KeepReason;

/// Counters of a queue that removes acknowledgments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AckCounters {
    /// Packets accepted, acknowledgments and others.
    pub queued: u64,
    /// Packets dropped because the queue was full.
    pub dropped: u64,
    /// Acknowledgments removed because a later one replaces them.
    pub removed: u64,
    /// Bytes of the removed acknowledgments, headers included.
    pub removed_bytes: u64,
    /// Removed duplicates beyond the three that signal a loss, whose SACK blocks a later duplicate
    /// covers.
    pub duplicates_removed: u64,
    /// Acknowledgments sent with a count of those that they replace.
    pub compacted: u64,
    kept: [u64; KeepReason::ALL.len()],
}

impl AckCounters {
    /// Returns how many acknowledgments were kept for this reason. Reasons that concern two packets
    /// count once per pair.
    #[must_use]
    pub fn kept(&self, reason: KeepReason) -> u64 {
        self.kept[reason as usize]
    }

    pub(crate) fn keep(&mut self, reason: KeepReason) {
        self.kept[reason as usize] += 1;
    }

    pub(crate) fn tally(&self, flow: Option<Flow>, each: &mut Tally<'_>) {
        each(flow, "acks_removed", self.removed);
        each(flow, "ack_bytes_removed", self.removed_bytes);
        each(flow, "duplicate_acks_removed", self.duplicates_removed);
        each(flow, "acks_compacted", self.compacted);
        for reason in KeepReason::ALL {
            each(flow, reason.name(), self.kept(reason));
        }
    }
}
