//! Result of a case.

use std::fmt;

use super::Kind;

/// Outcome of two endpoints.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum CaseOutcome {
    /// Both streams are exact, and both ends closed.
    Exact,
    /// An end was reset or gave up.
    Error,
    /// An end waits for something that never arrives, or the outcome is undefined.
    Waiting,
}

/// Result of a case.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counts {
    /// Kind and outcome, or `None` for [`operations`](super::operations).
    pub ending: Option<(Kind, CaseOutcome)>,
    /// Number of events.
    pub events: u64,
    /// Number of packets that the connections sent.
    pub packets: u64,
    /// Number of changed headers that passed the checksums, which 16 bits cannot exclude.
    pub undetected: u64,
}

/// A violated requirement.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The kind of case.
    pub kind: Kind,
    /// The violation, and the state of the connection.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.what)
    }
}

impl std::error::Error for Failure {}
