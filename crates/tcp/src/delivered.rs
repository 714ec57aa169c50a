//! How much has reached the peer.

use serde::{Deserialize, Serialize};

/// Counts delivered bytes where only cumulative acknowledgments and their duplicates tell: Westwood's
/// AckedCount (Grieco and Mascolo 2004; Linux's westwood_acked_count).
///
/// Each duplicate tells of one segment that has arrived out of order. The acknowledgment that later
/// covers it must not count it again.
#[derive(Debug, Default, Serialize, Deserialize)]
#[repr(C)]
pub(crate) struct Delivered {
    // Counted by duplicates, and not yet acknowledged.
    ahead: u64,
    total: u64,
}

impl Delivered {
    /// Bytes delivered since the start.
    #[inline]
    pub(crate) const fn total(&self) -> u64 {
        self.total
    }

    /// With SACK, it is known.
    #[inline]
    pub(crate) fn add(&mut self, bytes: u64) {
        self.total += bytes;
    }

    /// A duplicate acknowledgment.
    pub(crate) fn on_duplicate(&mut self, segment: u64) {
        self.total += segment;
        self.ahead += segment;
    }

    /// `acknowledged` bytes are newly acknowledged.
    #[inline]
    pub(crate) fn on_acknowledged(&mut self, acknowledged: u64, segment: u64) {
        if self.ahead == 0 {
            self.total += acknowledged;
            return;
        }
        // At least what filled the hole is new.
        let new = acknowledged
            .saturating_sub(self.ahead)
            .max(segment.min(acknowledged));
        self.total += new;
        self.ahead = self.ahead.saturating_sub(acknowledged - new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_counts_twice() {
        let mut delivered = Delivered::default();
        delivered.on_acknowledged(5_000, 1000);
        assert_eq!(delivered.total(), 5_000);
        // Ten segments, of which the first and the sixth are lost.
        for _ in 0..8 {
            delivered.on_duplicate(1000);
        }
        assert_eq!(delivered.total(), 13_000);
        delivered.on_acknowledged(5_000, 1000);
        assert_eq!(delivered.total(), 14_000);
        delivered.on_acknowledged(5_000, 1000);
        assert_eq!(delivered.total(), 15_000);
        delivered.on_acknowledged(2_000, 1000);
        assert_eq!(delivered.total(), 17_000);
    }
}
