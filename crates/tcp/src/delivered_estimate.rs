//! Estimate of the data delivered to the peer.

use serde::{Deserialize, Serialize};

/// Counts delivered bytes from cumulative acknowledgments and duplicates: Westwood's AckedCount
/// (Grieco and Mascolo 2004; Linux's westwood_acked_count).
///
/// Each duplicate stands for one segment received out of order. The acknowledgment that later
/// covers it must not count it again.
#[derive(Debug, Default, Serialize, Deserialize)]
#[repr(C)]
pub(crate) struct DeliveredEstimate {
    // Counted by duplicates, and not yet acknowledged.
    ahead: u64,
    total: u64,
}

impl DeliveredEstimate {
    /// Bytes delivered since the start.
    #[inline]
    pub(crate) const fn total(&self) -> u64 {
        self.total
    }

    /// Adds delivered bytes reported by SACK.
    #[inline]
    pub(crate) fn add(&mut self, bytes: u64) {
        self.total += bytes;
    }

    /// Counts a duplicate acknowledgment.
    pub(crate) fn on_duplicate(&mut self, segment: u64) {
        self.total += segment;
        self.ahead += segment;
    }

    /// Counts an acknowledgment of `acknowledged` new bytes.
    #[inline]
    pub(crate) fn on_acknowledged(&mut self, acknowledged: u64, segment: u64) {
        if self.ahead == 0 {
            self.total += acknowledged;
            return;
        }
        // At least the segment that filled the gap is new.
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
    fn no_data_counts_twice() {
        let mut delivered = DeliveredEstimate::default();
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
