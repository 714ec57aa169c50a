//! Counters of the fast paths, for tests.

/// Fast paths, counted in tests to check that each of them is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TakenPath {
    /// In-order data.
    Text,
    /// Out-of-order data.
    TextAhead,
    /// An acknowledgment of the first outstanding data.
    Acknowledgment,
    /// Like `Acknowledgment`, at a sender that paces or has model-based congestion control.
    PacedAcknowledgment,
    /// A duplicate acknowledgment with SACK blocks, in fast recovery.
    Duplicate,
    /// Like `Duplicate`, at a sender that paces or has model-based congestion control.
    PacedDuplicate,
    /// Any segment in the window that passes every check; SACK blocks are allowed.
    Ordinary,
    /// A write while at least a full segment is unsent.
    Write,
    /// Expiry of the pacing timer.
    Paced,
    /// An acknowledgment of whole segments that were sent once, at a sender that does not pace.
    WholeSegments,
    /// Retransmission of a lost segment with the same properties as the one just retransmitted.
    Alike,
    /// A write while at least a full segment is unsent, from a socket that keeps no bytes.
    Refill,
}

#[cfg(test)]
thread_local! {
    /// Number of times each fast path was taken.
    pub(crate) static TAKEN_PATHS: std::cell::Cell<[u64; 12]> = const { std::cell::Cell::new([0; 12]) };
}

impl TakenPath {
    #[inline(always)]
    pub(super) fn count(self) {
        #[cfg(test)]
        {
            let mut taken = TAKEN_PATHS.get();
            taken[self as usize] += 1;
            TAKEN_PATHS.set(taken);
        }
    }
}
