//! Common parts of all kinds of gateway.

use bentpipe_gateway::{ConnectionClass, CrashingAgent, VolatileAgent};
use bentpipe_sim::{NetworkBuilder, NodeId};
use bentpipe_types::{Agent, Gauge, Port, Time};
use serde::Serialize;
use serde_json::{Value, json};
use std::net::IpAddr;

use crate::custom::CustomControls;
use crate::fault::Fault;
use crate::gateway::parts::{Crash, GatewayContext};
use crate::gateway::schema::GatewayFile;
use crate::quantity::port::PortRange;
use crate::run::error::RunError;
use crate::station_error::StationError;

/// The settings of a kind of gateway, with every default filled in.
pub(crate) trait GatewaySettings: Sized {
    /// Properties for closed forms and advice.
    const FACTS: GatewayFacts;

    /// The quantities that probes can record, and the connections that they are about, as the
    /// reference says; `None` without any besides those of a processor.
    const PROBES: Option<(&'static str, &'static [Gauge])> = None;

    /// Resolves the table of the gateway of this name, which is the node with this index.
    fn resolve(
        name: &str,
        file: &GatewayFile,
        node: usize,
        around: &GatewayContext<'_>,
    ) -> Result<Self, Fault>;

    /// Returns the settings as results give them: an object.
    fn measured(&self, names: &Names<'_>) -> Value;

    /// Puts the gateway into the network, at the place of a router.
    fn put(&self, place: &Place<'_>, builder: &mut NetworkBuilder) -> Result<(), RunError>;

    /// Converts the gateway to one between two real links.
    fn between_real_links(&self, station: &mut RealLinks<'_>) -> Result<Self, StationError>;

    /// Returns the quantities that probes can record.
    fn gauges(&self) -> &'static [Gauge] {
        Self::PROBES.map_or(&[], |(_, gauges)| gauges)
    }

    /// Whether both directions of every connection have to pass it.
    fn needs_both_directions(&self) -> bool {
        false
    }
}

/// Properties of a kind of gateway for closed forms and advice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct GatewayFacts {
    /// Whether it ends connections, so that each side has its own.
    pub ends_connections: bool,
    /// Whether it acknowledges on behalf of hosts, and sees whole segments to any address.
    pub acknowledges: bool,
}

impl GatewayFacts {
    /// Whether it does more than route.
    #[must_use]
    pub fn acts_on_connections(self) -> bool {
        self.ends_connections || self.acknowledges
    }
}

/// Names of the nodes and links of a scenario, by index.
pub(crate) struct Names<'a> {
    pub(crate) node: &'a dyn Fn(usize) -> &'a str,
    pub(crate) link: &'a dyn Fn(usize) -> &'a str,
}

/// Place of a gateway in the network.
pub(crate) struct Place<'a> {
    /// Its own node.
    pub(crate) node: NodeId,
    /// All nodes, in the order of the scenario's.
    pub(crate) nodes: &'a [NodeId],
    /// Its ports on the link with an index.
    pub(crate) ports: &'a dyn Fn(usize) -> Vec<Port>,
    /// The longest packet that its links take: only the link with an index if the second argument
    /// is true, and only the others if it is false.
    pub(crate) mtu: &'a dyn Fn(usize, bool) -> Option<u32>,
    pub(crate) custom: &'a CustomControls,
    /// Whether it stores the contents of streams, as for real packets.
    pub(crate) bytes: bool,
}

/// The two real links of a gateway, with the settings that have another meaning there.
pub(crate) struct RealLinks<'a> {
    /// Name of the gateway.
    pub(crate) name: &'a str,
    /// Indices in the file: the two links, each of which may be two one-way links.
    pub(crate) own: &'a [(usize, Option<usize>)],
    /// Names of all links.
    pub(crate) link: &'a dyn Fn(usize) -> &'a str,
    pub(crate) addresses: Option<Addresses>,
    /// Notes about settings that have no effect.
    pub(crate) notes: &'a mut Vec<String>,
}

impl RealLinks<'_> {
    /// Returns which of the two links has this index in the file.
    pub(crate) fn facing(&self, of: usize) -> Result<usize, StationError> {
        let is_faced = |link: &(usize, Option<usize>)| link.0 == of || link.1 == Some(of);
        self.own.iter().position(is_faced).ok_or_else(|| {
            let link = (self.link)(of);
            let message = format!("the gateway is there for the link \"{link}\", and that is none of the two; expected an interface for it");
            StationError::new(format!("gateways.{}.facing", self.name), message)
        })
    }

    /// Notes that the time of a processor has no effect.
    pub(crate) fn note_processing(&mut self) {
        self.notes.push(format!(
            "gateways.{}.processing: no effect, a real processor takes its own time",
            self.name
        ));
    }
}

/// The addresses of a gateway's persistent connections. Each belongs to the network of its side,
/// but to no machine there. So routers send packets for it to the gateway's machine, and that
/// machine's kernel does not take them for its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Addresses {
    /// Address of this gateway.
    pub own: IpAddr,
    /// Address of the other gateway.
    pub peer: IpAddr,
}

/// Selects connections.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TrafficClass {
    /// Destination ports, or `None` for all.
    pub ports: Option<Vec<PortRange>>,
    /// Indices of nodes at either end, ascending, or `None` for all.
    pub hosts: Option<Vec<usize>>,
    /// Prefixes of real addresses at either end, with their lengths, or `None` for all.
    pub prefixes: Option<Vec<(IpAddr, u8)>>,
}

/// Boxes the gateway, with its crashes if it has any.
pub(crate) fn with_crashes<A: VolatileAgent + Send + 'static>(
    agent: A,
    crashes: &[Crash],
) -> Box<dyn Agent + Send> {
    if crashes.is_empty() {
        return Box::new(agent);
    }
    let each = |crash: &Crash| bentpipe_gateway::Crash {
        at: Time::ZERO + crash.at,
        duration: crash.lasts,
    };
    Box::new(CrashingAgent::new(agent, crashes.iter().map(each)))
}

/// Returns a class in the engine. Only real hosts (`real`) have addresses.
pub(crate) fn class_of(class: &TrafficClass, nodes: &[NodeId], real: bool) -> ConnectionClass {
    ConnectionClass {
        ports: (class.ports.as_ref()).map(|ports| {
            ports
                .iter()
                .map(|range| (range.first, range.last))
                .collect()
        }),
        hosts: class.hosts.as_ref().map(|hosts| {
            let address = |index: &usize| nodes[*index].address().into();
            hosts.iter().map(address).collect()
        }),
        prefixes: (class.prefixes.as_ref())
            .filter(|_| real)
            .map(|prefixes| prefixes.iter().copied().collect()),
    }
}

pub(crate) fn crashes_data(crashes: &[Crash]) -> Value {
    let each = |crash: &Crash| json!({ "at_s": crash.at.as_secs_f64(), "lasts_s": crash.lasts.as_secs_f64() });
    crashes.iter().map(each).collect()
}
