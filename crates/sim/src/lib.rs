//! The engine: a network of hosts, routers and links with a simulated clock.
//!
//! [`NetworkBuilder`] describes a network; [`Network`] runs it and reports the outcome of every
//! flow and link direction. The same seed gives the same run on every machine.

mod address_resolution;
mod attached;
mod network;
mod node;
mod outcome;
mod probe;
mod processing_and_arp;
mod router;
mod schedule;
mod tap;
mod topology;

pub use address_resolution::ArpSettings;
pub use bentpipe_host::report;
pub use bentpipe_host::{Distribution, HOST_GAUGES, Ports, Report, Traffic, applications};
pub use network::{Departure, Network, Progress};
pub use node::NodeId;
pub use outcome::{
    AgentOutcome, Counts, DirectionOutcome, FlowEndData, FlowOutcome, FlowState, Outcome, Violation,
};
pub use probe::{FlowQuantity, LinkQuantity, Probe, ProbeTarget, Sampling};
pub use router::Router;
pub use tap::{End, Tap};
pub use topology::{
    BuildError, ExternalChannel, FlowPlan, FlowSettings, LinkSettings, NetworkBuilder, local_ports,
};
