//! The maximum backlog.

use std::collections::VecDeque;

/// The maximum backlog in packets and bytes, and the packets that caused it. A queue may contain
/// packets that come later; then the maximum among those that have come is needed.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Most {
    packets: u64,
    bytes: u64,
    /// Packets that raised the maximum, in order. Among packets that have certainly come, only the
    /// last is kept.
    records: VecDeque<Record>,
}

#[derive(Clone, Copy, Debug)]
struct Record {
    /// Number of the packet, from 1.
    by: u64,
    packets: u64,
    bytes: u64,
}

impl Most {
    /// Whether this is a new maximum.
    #[inline]
    pub(crate) fn is_exceeded(&self, packets: u64, bytes: u64) -> bool {
        packets > self.packets || bytes > self.bytes
    }

    /// Records the backlog with packet number `by`; `come` packets have certainly come.
    #[inline(never)]
    pub(crate) fn note(&mut self, by: u64, come: u64, packets: u64, bytes: u64) {
        self.packets = self.packets.max(packets);
        self.bytes = self.bytes.max(bytes);
        while self.records.get(1).is_some_and(|next| next.by <= come) {
            self.records.pop_front();
        }
        self.records.push_back(Record {
            by,
            packets: self.packets,
            bytes: self.bytes,
        });
    }

    /// Returns the maximum among the first `queued` packets.
    pub(crate) fn among(&self, queued: u64) -> (u64, u64) {
        let come = self.records.iter().rev().find(|each| each.by <= queued);
        come.map_or((0, 0), |most| (most.packets, most.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maximum_covers_only_packets_that_have_arrived() {
        let mut most = Most::default();
        assert_eq!(most.among(5), (0, 0));
        for (by, packets, bytes) in [(3, 1, 100), (4, 2, 80), (9, 1, 200)] {
            assert!(most.is_exceeded(packets, bytes));
            most.note(by, 0, packets, bytes);
        }
        assert!(!most.is_exceeded(2, 200));
        let told = [2, 3, 4, 8, 9, 10].map(|queued| most.among(queued));
        let expected = [(0, 0), (1, 100), (2, 100), (2, 100), (2, 200), (2, 200)];
        assert_eq!(told, expected);
        most.note(12, 8, 3, 100);
        assert_eq!(most.records.len(), 3, "what has long come needs one record");
        assert_eq!((most.among(8), most.among(12)), ((2, 100), (3, 200)));
    }
}
