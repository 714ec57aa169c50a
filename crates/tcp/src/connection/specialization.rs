//! Preconditions under which the fast paths are compiled.
//!
//! The choice of a fast path ([`FastPath`](super::header_prediction::FastPath)) implies most of
//! what the general path checks. Both paths share the same functions, which are generic over a
//! [`Specialization`]: its constants remove the implied checks at compile time.

/// Facts known at compile time. Each must hold for as long as the function runs.
pub(super) trait Specialization {
    /// Several facts hold: the sender [sends only new data](super::Sender::sends_only_new_data),
    /// something is outstanding, and path MTU discovery is inactive. Neither SACK blocks nor ECN
    /// marks are to be sent. The acknowledgment covers less than was sent.
    const NEW_DATA_ONLY: bool = true;
    /// Recovery [is loss-free](super::Sender::is_loss_free).
    const LOSS_FREE: bool = false;
    /// The sender may [pace](super::Sender::is_paced).
    const PACED: bool = false;
    /// The connection [is simple](super::Connection::is_simple).
    const SIMPLE: bool = false;
}

/// Nothing is known: the general path.
pub(super) enum General {}

impl Specialization for General {
    const NEW_DATA_ONLY: bool = false;
    const PACED: bool = true;
}

/// The sender sends only new data.
pub(super) enum NewDataOnly {}

impl Specialization for NewDataOnly {}

/// No data is lost, and the sender does not pace.
pub(super) enum LossFree {}

impl Specialization for LossFree {
    const LOSS_FREE: bool = true;
}

/// Like [`LossFree`], on a simple connection.
pub(super) enum SimpleLossFree {}

impl Specialization for SimpleLossFree {
    const LOSS_FREE: bool = true;
    const SIMPLE: bool = true;
}

/// No data is lost, and the sender may pace.
pub(super) enum PacedLossFree {}

impl Specialization for PacedLossFree {
    const LOSS_FREE: bool = true;
    const PACED: bool = true;
}

/// The sender is in fast recovery with SACK, and does not pace.
pub(super) enum Recovering {}

impl Specialization for Recovering {}

/// Like [`Recovering`], on a simple connection.
pub(super) enum SimpleRecovering {}

impl Specialization for SimpleRecovering {
    const SIMPLE: bool = true;
}

/// The sender is in fast recovery with SACK, and may pace.
pub(super) enum PacedRecovering {}

impl Specialization for PacedRecovering {
    const PACED: bool = true;
}
