//! Nodes: hosts and gateways, and what both have.

pub(crate) mod processing;
pub(crate) mod resolve;
pub(crate) mod schema;
pub(crate) mod serialize;
pub(crate) mod settings;
