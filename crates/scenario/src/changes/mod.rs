//! Changes of a link over time, and changes of packets other than losses.

pub(crate) mod outages;
pub(crate) mod resolve;
pub(crate) mod schema;
pub(crate) mod serialize;
