//! Flows: an application at each of two hosts, and the connections between them.

pub(crate) mod build;
pub(crate) mod ends;
pub(crate) mod limited;
pub(crate) mod reachability;
pub(crate) mod resolve;
pub(crate) mod schema;
pub(crate) mod serialize;
pub(crate) mod settings;
pub(crate) mod summary;
pub(crate) mod table_summary;
