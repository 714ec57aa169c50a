//! A host: listeners, a table of connections, their deadlines, and applications.
//!
//! [`Host`] is an [`Agent`](bentpipe_types::Agent) with one implementation for both clocks. It is
//! generic over the payload ([`ConnectionKeys`]): none in a simulation, byte rings for real
//! packets.
//! An [`Application`] is written once and runs on both; it accesses its sockets through a
//! [`SocketContext`].
//! [`Traffic`] describes the applications at the two ends of a flow.

mod account;
mod application;
pub mod applications;
mod connect;
mod connection_keys;
mod cookies;
mod datagram;
mod deadlines;
mod duplicate_detection;
pub mod emodel;
mod fetch_step;
mod host;
mod inline_first;
mod listener;
mod memory;
mod nada;
mod paths;
mod ports;
pub mod report;
mod sequence;
mod socket_api;
mod socket_context;
mod socket_id;
mod table;
pub mod video_opinion;
mod waking;

pub use account::{ApplicationId, Member};
pub use application::{Application, ApplicationProgress, Arrival, TransportState};
pub use applications::Traffic;
pub use bentpipe_types::Distribution;
pub use connect::{Connect, ConnectError, Remote};
pub use connection_keys::{ConnectionKeys, RealKey, SimulatedTable, Table};
pub use datagram::Datagram;
pub use deadlines::Deadlines;
pub use fetch_step::Step;
pub use host::{Counters, HOST_GAUGES, Host, Limits, PROCESSED_HOST_GAUGES};
pub use listener::{FastOpenPolicy, Listener, Taker};
pub use ports::Ports;
pub use report::Report;
pub use sequence::{InitialSequences, Secret};
pub use socket_api::{SocketApi, SocketBackend};
pub use socket_context::SocketContext;
pub use socket_id::SocketId;
pub use table::AddressOf;
