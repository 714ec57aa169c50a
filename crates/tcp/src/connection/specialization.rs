//! Preconditions under which the fast paths are compiled.
//!
//! The choice of a fast path ([`FastPath`](super::fast::FastPath)) implies most of what the general
//! path checks. Both paths share the same functions, which are generic over a
//! [`Specialization`]: its constants remove the implied checks at compile time.

/// Facts known at compile time. Each must hold for as long as the function runs.
pub(in crate::connection) trait Specialization {
    /// Several facts hold: the sender [sends only new data](crate::Sender::sends_only_new_data),
    /// something is outstanding, and path MTU discovery is inactive. Neither SACK blocks nor ECN
    /// marks are to be sent. The acknowledgment covers less than was sent.
    const NEW_DATA_ONLY: bool = true;
    /// Recovery [is loss-free](crate::Sender::is_loss_free).
    const LOSS_FREE: bool = false;
    /// The sender may [pace](crate::Sender::is_paced).
    const PACED: bool = false;
    /// The connection [is simple](crate::Connection::is_simple).
    const SIMPLE: bool = false;
}

/// Nothing is known: the general path.
pub(in crate::connection) enum General {}

impl Specialization for General {
    const NEW_DATA_ONLY: bool = false;
    const PACED: bool = true;
}

/// The sender sends only new data.
pub(in crate::connection) enum NewDataOnly {}

impl Specialization for NewDataOnly {}

/// No data is lost, and the sender does not pace.
pub(in crate::connection) enum LossFree {}

impl Specialization for LossFree {
    const LOSS_FREE: bool = true;
}

/// Like [`LossFree`], on a simple connection.
pub(in crate::connection) enum SimpleLossFree {}

impl Specialization for SimpleLossFree {
    const LOSS_FREE: bool = true;
    const SIMPLE: bool = true;
}

/// No data is lost, and the sender may pace.
pub(in crate::connection) enum PacedLossFree {}

impl Specialization for PacedLossFree {
    const LOSS_FREE: bool = true;
    const PACED: bool = true;
}

/// The sender is in fast recovery with SACK, and does not pace.
pub(in crate::connection) enum Recovering {}

impl Specialization for Recovering {}

/// Like [`Recovering`], on a simple connection.
pub(in crate::connection) enum SimpleRecovering {}

impl Specialization for SimpleRecovering {
    const SIMPLE: bool = true;
}

/// The sender is in fast recovery with SACK, and may pace.
pub(in crate::connection) enum PacedRecovering {}

impl Specialization for PacedRecovering {
    const PACED: bool = true;
}
