//! The whole scenario: its file, and the network, traffic and probes that come of it.

pub(crate) mod json_schema;
pub(crate) mod kinds;
pub(crate) mod resolve;
pub(crate) mod routes;
pub(crate) mod schema;
pub(crate) mod serialize;
pub(crate) mod settings;
