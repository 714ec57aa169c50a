//! The engine: a network of hosts, routers and links with a simulated clock.
//!
//! [`NetworkBuilder`] describes a network; [`Network`] runs it and reports the outcome of every
//! flow and link direction. The same seed gives the same run on every machine.

mod attached;
mod processing_and_arp;
mod address_resolution;
mod network;
mod node;
mod outcome;
mod probe;
mod router;
mod schedule;
mod tap;
mod topology;

pub use bentpipe_host::report;
pub use bentpipe_host::{Distribution, Ports, Report, Traffic, applications};
pub use address_resolution::ArpSettings;
pub use network::{Departure, Network, Progress};
pub use node::NodeId;
pub use outcome::{
    AgentOutcome, Counts, DirectionOutcome, FlowOutcome, FlowState, FlowEndData, Outcome, Violation,
};
pub use probe::{FlowQuantity, LinkQuantity, Probe, ProbeTarget, Sampling};
pub use router::Router;
pub use tap::{End, Tap};
pub use topology::{
    BuildError, FlowPlan, FlowSettings, LinkSettings, NetworkBuilder, ExternalChannel, local_ports,
};
