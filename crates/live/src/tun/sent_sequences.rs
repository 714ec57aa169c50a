//! Sequence numbers that flows have reached.

use std::hash::Hasher;
use std::ops::Range;

use rustc_hash::FxHasher;

/// Number of flows that are remembered: a power of two.
const FLOWS: usize = 1 << 13;

/// The sequence number behind the last byte of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Reached {
    /// Hash of addresses and ports, not 0; 0 in an unused entry.
    flow: u64,
    sequence: u32,
}

/// Remembers for the latest flows how far their data has been sent, to tell new data from
/// retransmissions. A flow takes the place of another one with the same slot.
#[derive(Debug)]
pub(super) struct SentSequences {
    flows: Box<[Reached]>,
}

impl Default for SentSequences {
    fn default() -> Self {
        Self {
            flows: vec![Reached::default(); FLOWS].into_boxed_slice(),
        }
    }
}

impl SentSequences {
    /// Records the sequence numbers of a segment, where a SYN counts as one. `key` has the
    /// addresses and the ports. Returns whether the segment is known to have only new data: a
    /// segment of a flow that is not remembered may be a retransmission.
    pub(super) fn record(&mut self, key: &[u8], sequences: Range<u32>, is_first: bool) -> bool {
        let mut hasher = FxHasher::default();
        hasher.write(key);
        let flow = hasher.finish().max(1);
        // The high bits depend on all bytes.
        let reached = &mut self.flows[(flow >> 32) as usize % FLOWS];
        if is_first || reached.flow != flow {
            *reached = Reached {
                flow,
                sequence: sequences.end,
            };
            return false;
        }
        // RFC 9293 section 3.4: sequence numbers are compared modulo 2^32.
        let precedes = |one: u32, other: u32| (one.wrapping_sub(other) as i32) < 0;
        let is_new = !precedes(sequences.start, reached.sequence);
        if precedes(reached.sequence, sequences.end) {
            reached.sequence = sequences.end;
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retransmissions_are_told_from_new_data() {
        let mut sent = SentSequences::default();
        let start = u32::MAX - 5;
        assert!(!sent.record(b"one", start..start.wrapping_add(1), true));
        let at = |bytes: u32| start.wrapping_add(1 + bytes);
        assert!(sent.record(b"one", at(0)..at(10), false));
        // A gap, as of a lost packet of a forwarded flow.
        assert!(sent.record(b"one", at(20)..at(30), false));
        // A retransmission, also one with new data behind it.
        assert!(!sent.record(b"one", at(10)..at(20), false));
        assert!(!sent.record(b"one", at(25)..at(40), false));
        assert!(sent.record(b"one", at(40)..at(50), false));
        // A flow that began before is not known.
        assert!(!sent.record(b"two", 7..8, false));
        assert!(sent.record(b"two", 8..9, false));
        // The same addresses and ports again, with a smaller number.
        assert!(!sent.record(b"two", 2..3, true));
        assert!(sent.record(b"two", 3..4, false));
    }
}
