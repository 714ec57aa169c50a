//! Gateways. Each kind has a file here, which sets it up, and an entry in the table of [`kinds`].

pub(crate) mod build;
pub(crate) mod counters;
pub(crate) mod dispatch;
pub(crate) mod hybrid;
pub(crate) mod kinds;
pub(crate) mod nat;
pub(crate) mod one_sided;
pub(crate) mod parts;
pub(crate) mod peers;
pub(crate) mod router;
pub(crate) mod schema;
pub(crate) mod settings;
pub(crate) mod split;
pub(crate) mod summary;
pub(crate) mod window_limit;
