//! QUIC at hosts.

pub(crate) mod build;
pub(crate) mod resolve;
pub(crate) mod schema;
pub(crate) mod settings;
pub(crate) mod summary;
