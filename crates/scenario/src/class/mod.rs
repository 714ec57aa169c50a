//! Traffic classes, for queues that know classes.

pub(crate) mod build;
pub(crate) mod resolve;
pub(crate) mod schema;
pub(crate) mod serialize;
pub(crate) mod settings;
pub(crate) mod summary;
