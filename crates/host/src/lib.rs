//! A host: listeners, a table of connections, their deadlines, and applications.
//!
//! [`Host`] is an [`Agent`](bentpipe_types::Agent) with one implementation for both clocks. It is
//! generic over the payload ([`Realm`]): none in a simulation, byte rings for real packets. An
//! [`Application`] is written once and runs on both; it accesses its sockets through a [`Desk`].
//! [`Traffic`] describes the applications at the two ends of a flow.

mod account;
mod application;
pub mod applications;
mod connect;
mod cookies;
mod datagram;
mod deadlines;
mod desk;
pub mod emodel;
mod fetch_step;
mod host;
mod listener;
mod memory;
mod nada;
mod numbers;
mod paths;
mod places;
mod ports;
mod realm;
pub mod report;
mod sequence;
mod socket_id;
mod table;
pub mod video_opinion;
mod waking;
mod workplace;

pub use account::{ApplicationId, Member};
pub use application::{Application, Arrival, Standing};
pub use applications::Traffic;
pub use bentpipe_types::Distribution;
pub use connect::{Connect, ConnectError, Remote};
pub use datagram::Datagram;
pub use deadlines::Deadlines;
pub use desk::Desk;
pub use fetch_step::Step;
pub use host::{Counters, HOST_GAUGES, Host, Limits};
pub use listener::{FastOpenPolicy, Listener, Taker};
pub use ports::Ports;
pub use realm::{RealKey, Realm, SimulatedTable, Table};
pub use report::Report;
pub use sequence::{InitialSequences, Secret};
pub use socket_id::SocketId;
pub use table::AddressOf;
pub use workplace::{Workplace, World};
