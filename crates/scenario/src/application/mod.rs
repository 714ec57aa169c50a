//! Applications: each has a file here, which reads its keys, and an entry in a table.

pub(crate) mod datagrams;
pub(crate) mod resolve;
pub(crate) mod schema;
pub(crate) mod serialize;
pub(crate) mod settings;
pub(crate) mod summary;
