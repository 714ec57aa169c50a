//! What is known of a connection where a way through it is compiled, so that it is not asked there again.
//!
//! Which of the short ways is open says so much of a connection ([`Foresight`](super::prediction::Foresight)) that
//! most of what the full way asks has its answer. So the steps of both are the same functions, compiled for what
//! is known.

/// What is known. What is said here of each holds for as long as the way is gone.
pub(super) trait Known {
    /// The sender [is plain](super::Sender::is_plain), something is outstanding, the path's MTU is not looked after, there
    /// is nothing to be told by SACK blocks or marks, and less is acknowledged than was sent.
    const PLAIN: bool = true;
    /// Recovery [is quiet](super::Sender::is_quiet).
    const QUIET: bool = false;
    /// It may be that this sender [paces](super::Sender::is_paced).
    const PACED: bool = false;
    /// The connection [is simple](super::Connection::is_simple).
    const SIMPLE: bool = false;
}

/// Nothing: the full way.
pub(super) enum Nothing {}

impl Known for Nothing {
    const PLAIN: bool = false;
    const PACED: bool = true;
}

/// There is nothing about what is sent.
pub(super) enum Plain {}

impl Known for Plain {}

/// Nor is anything lost, at a sender that does not pace.
pub(super) enum Quiet {}

impl Known for Quiet {
    const QUIET: bool = true;
}

/// The same, of a connection that is simple.
pub(super) enum SimpleQuiet {}

impl Known for SimpleQuiet {
    const QUIET: bool = true;
    const SIMPLE: bool = true;
}

/// A sender that may pace, of which nothing is lost.
pub(super) enum PacedQuiet {}

impl Known for PacedQuiet {
    const QUIET: bool = true;
    const PACED: bool = true;
}

/// A sender in fast recovery that hears SACK blocks, and does not pace.
pub(super) enum Repairing {}

impl Known for Repairing {}

/// The same, of a connection that is simple.
pub(super) enum SimpleRepairing {}

impl Known for SimpleRepairing {
    const SIMPLE: bool = true;
}

/// A sender in fast recovery that hears SACK blocks, and may pace.
pub(super) enum PacedRepairing {}

impl Known for PacedRepairing {
    const PACED: bool = true;
}
