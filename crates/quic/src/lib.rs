//! QUIC (RFC 9000) for hosts on both clocks: quinn-proto, without its input and output.
//!
//! quinn-proto is a maintained stack that receives the time and datagrams as arguments. This crate
//! gives it the clock and the random streams of a run, and makes it a transport of applications:
//!
//! * [`Engine`]: an endpoint with its connections and streams. It receives and emits datagrams.
//! * [`QuicApplication`]: an application of a host that runs another application over QUIC. It
//!   exchanges datagrams through the host; the inner [`Application`](bentpipe_host::Application)
//!   does not know which transport it uses. To it, each stream is a connection.
//! * [`session`]: handshakes without cryptography whose packets are as long as those of TLS 1.3
//!   with AES-GCM.
//! * [`WindowRule`]: the window rules of [`bentpipe_tcp`] as congestion controllers of quinn.
//!
//! A host without QUIC has no instruction of this crate.

mod application;
mod clock;
mod connection;
mod content;
mod context;
mod engine;
mod probe_timeouts;
mod random;
pub mod session;
mod settings;
mod window_rule;

pub use application::QuicApplication;
pub use clock::instant;
pub use context::{Quic, QuicContext};
pub use engine::{Engine, MOST_CONNECTIONS, Outgoing};
pub use quinn_proto::congestion::Controller;
pub use settings::{AckFrequency, QuicRule, QuicSettings};
pub use window_rule::WindowRule;
