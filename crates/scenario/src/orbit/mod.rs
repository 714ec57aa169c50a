//! Constellations, sites, and paths of links over satellites.

pub(crate) mod path;
pub(crate) mod report;
pub(crate) mod resolve;
pub(crate) mod schema;
pub(crate) mod serialize;
pub(crate) mod settings;
pub(crate) mod variation;
