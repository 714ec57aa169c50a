//! Reduction of acknowledgments on a slow link.

pub(crate) mod build;
pub(crate) mod resolve;
pub(crate) mod schema;
pub(crate) mod serialize;
pub(crate) mod settings;
