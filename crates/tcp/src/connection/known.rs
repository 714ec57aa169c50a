//! Preconditions under which the fast paths are compiled.
//!
//! The choice of a fast path ([`Foresight`](super::prediction::Foresight)) implies most of what the
//! general path checks. Both paths share the same functions, which are generic over a [`Known`]:
//! its constants remove the implied checks at compile time.

/// Facts known at compile time. Each must hold for as long as the function runs.
pub(super) trait Known {
    /// Several facts hold: the sender [sends only new data](super::Sender::is_plain), something is
    /// outstanding, and path MTU discovery is inactive. Neither SACK blocks nor ECN marks are to be
    /// sent. The acknowledgment covers less than was sent.
    const PLAIN: bool = true;
    /// Recovery [is loss-free](super::Sender::is_quiet).
    const QUIET: bool = false;
    /// The sender may [pace](super::Sender::is_paced).
    const PACED: bool = false;
    /// The connection [is simple](super::Connection::is_simple).
    const SIMPLE: bool = false;
}

/// Nothing is known: the general path.
pub(super) enum Nothing {}

impl Known for Nothing {
    const PLAIN: bool = false;
    const PACED: bool = true;
}

/// The sender sends only new data.
pub(super) enum Plain {}

impl Known for Plain {}

/// No data is lost, and the sender does not pace.
pub(super) enum Quiet {}

impl Known for Quiet {
    const QUIET: bool = true;
}

/// Like [`Quiet`], on a simple connection.
pub(super) enum SimpleQuiet {}

impl Known for SimpleQuiet {
    const QUIET: bool = true;
    const SIMPLE: bool = true;
}

/// No data is lost, and the sender may pace.
pub(super) enum PacedQuiet {}

impl Known for PacedQuiet {
    const QUIET: bool = true;
    const PACED: bool = true;
}

/// The sender is in fast recovery with SACK, and does not pace.
pub(super) enum Repairing {}

impl Known for Repairing {}

/// Like [`Repairing`], on a simple connection.
pub(super) enum SimpleRepairing {}

impl Known for SimpleRepairing {
    const SIMPLE: bool = true;
}

/// The sender is in fast recovery with SACK, and may pace.
pub(super) enum PacedRepairing {}

impl Known for PacedRepairing {
    const PACED: bool = true;
}
