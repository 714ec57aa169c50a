//! The handshake beside that of rustls, and applications over paths: one binary, a module per
//! subject.

mod handshake;
mod path;
