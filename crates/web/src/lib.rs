//! The simulator for web pages.
//!
//! Compiled to WebAssembly, this crate is a module without imports: [`exports`] has the functions
//! that a page calls. An [`Engine`] answers [requests](Request) in JSON. It holds runs, each of
//! which advances in steps, so that a page can show progress and stop.
//!
//! - [`engine`]: requests, and the runs that they start.
//! - [`reduce`]: series at the resolution of a plot.
//! - [`edit`]: changes of a scenario's text that keep its comments.
//! - [`packets`]: packets as lines of text.

pub mod edit;
pub mod engine;
pub mod exports;
pub mod packets;
pub mod reduce;

pub use engine::{Engine, Request};
