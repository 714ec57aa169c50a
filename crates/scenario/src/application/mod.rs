//! Applications. Each kind has a file here, which reads its keys, and an entry in the table of
//! [`kinds`].

pub(crate) mod bulk;
pub(crate) mod carousel;
pub(crate) mod checks;
pub(crate) mod datagrams;
pub(crate) mod ftp;
pub(crate) mod kinds;
pub(crate) mod mail;
pub(crate) mod packets;
pub(crate) mod ping;
pub(crate) mod request_response;
pub(crate) mod resolve;
pub(crate) mod schema;
pub(crate) mod serialize;
pub(crate) mod settings;
pub(crate) mod summary;
pub(crate) mod video;
pub(crate) mod video_call;
pub(crate) mod voice;
pub(crate) mod web;
pub(crate) mod words;
