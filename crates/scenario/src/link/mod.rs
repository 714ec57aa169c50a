//! Links and their directions.

pub(crate) mod build;
pub(crate) mod compression;
pub(crate) mod ends;
pub(crate) mod errors;
pub(crate) mod framing;
pub(crate) mod reach;
pub(crate) mod resolve;
pub(crate) mod schema;
pub(crate) mod serialize;
pub(crate) mod settings;
pub(crate) mod summary;
pub(crate) mod table;
