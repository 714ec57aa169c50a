//! Acknowledgments that may be removed.

/// State of a packet that may be removed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Candidate {
    /// Whether the ECN flags changed since the previous candidate.
    pub(super) after_ecn_change: bool,
    /// Whether nothing of its flow was queued between it and the previous candidate.
    pub(super) adjacent: bool,
}
