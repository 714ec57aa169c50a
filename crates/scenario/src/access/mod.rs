//! Capacity on demand: how a direction gets capacity from a hub, and the carriers that
//! directions share.

pub(crate) mod build;
pub(crate) mod resolve;
pub(crate) mod schema;
pub(crate) mod serialize;
pub(crate) mod settings;
pub(crate) mod summary;
