//! TCP of hosts and gateways.

pub(crate) mod build;
pub(crate) mod congestion;
pub(crate) mod ends;
pub(crate) mod host_timing;
pub(crate) mod resolve;
pub(crate) mod schema;
pub(crate) mod settings;
