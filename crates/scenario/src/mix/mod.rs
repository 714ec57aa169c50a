//! Mixes: users who use several applications in sequence.

pub(crate) mod resolve;
pub(crate) mod schema;
