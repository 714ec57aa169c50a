//! The engine: a network of hosts, routers and links with a simulated clock.
//!
//! [`NetworkBuilder`] describes a network; [`Network`] runs it and reports the outcome of every
//! flow and link direction. The same seed gives the same run on every machine.
//!
//! A download over a satellite (`examples/own_node.rs` adds a node of its own):
//!
//! ```
//! use bentpipe_link::{DropTail, Limit, Settings};
//! use bentpipe_sim::{FlowSettings, FlowState, LinkSettings, NetworkBuilder, Traffic};
//! use bentpipe_tcp::Config;
//! use bentpipe_types::{BitRate, Span, Time};
//!
//! let direction = || {
//!     let rate = BitRate::new(5_000_000).expect("not zero");
//!     let queue = DropTail { limit: Limit::Packets(1_000) };
//!     Settings::new(rate, Span::from_millis(250), queue)
//! };
//! let mut builder = NetworkBuilder::new(1);
//! let [server, client] = ["server", "client"].map(|name| builder.host(name));
//! let satellite = LinkSettings {
//!     name: "satellite".to_owned(),
//!     forward: Some(direction()),
//!     backward: Some(direction()),
//! };
//! builder.link(server, client, satellite);
//! builder.flow(FlowSettings {
//!     name: "download".to_owned(),
//!     from: server,
//!     to: client,
//!     start: Span::ZERO,
//!     application: Traffic::bulk(Some(100_000)),
//!     sender: Config::default().into(),
//!     receiver: Config::default().into(),
//! });
//! let mut network = builder.build()?;
//! network.run_until(Time::ZERO + Span::from_secs(60));
//! let flow = &network.outcome().flows[0];
//! assert_eq!(flow.state, FlowState::Finished);
//! assert_eq!(flow.bytes_delivered(), 100_000);
//! # Ok::<(), bentpipe_sim::BuildError>(())
//! ```

mod address_resolution;
mod attached;
mod network;
mod node;
mod outcome;
mod probe;
mod processing_and_arp;
mod router;
mod schedule;
mod stand_in;
mod tap;
mod topology;

pub use address_resolution::ArpSettings;
pub use bentpipe_host::report;
pub use bentpipe_host::{
    Distribution, HOST_GAUGES, PROCESSED_HOST_GAUGES, Ports, Report, Traffic, applications,
};
pub use network::{Departure, Network, Parts, Progress, Undivided, WallClock, WindowTimes};
pub use node::NodeId;
pub use outcome::{
    AgentOutcome, Counts, DirectionOutcome, FlowEndData, FlowOutcome, FlowState, Outcome, Violation,
};
pub use probe::{FlowQuantity, KnownQuantity, LinkQuantity, Probe, ProbeTarget, Sampling};
pub use router::Router;
pub use tap::{End, Tap};
pub use topology::{
    BuildError, ExternalChannel, FlowPlan, FlowSettings, LinkSettings, MakeEnds, NetworkBuilder,
    local_ports,
};
