//! Gateways.

pub(crate) mod build;
pub(crate) mod counters;
pub(crate) mod hybrid;
pub(crate) mod one_sided;
pub(crate) mod parts;
pub(crate) mod resolve;
pub(crate) mod schema;
pub(crate) mod serialize;
pub(crate) mod settings;
pub(crate) mod summary;
pub(crate) mod window_limit;
