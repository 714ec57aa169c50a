//! Multicast groups of hosts.

pub(crate) mod resolve;
pub(crate) mod schema;
