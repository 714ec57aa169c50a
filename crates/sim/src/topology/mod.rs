//! Description of nodes, links and flows.

mod build;
mod channels;
mod flow;
mod plan;
mod ports;
mod routes;
mod trees;
mod upstream;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use bentpipe_link::{ErrorModel, Settings};
use bentpipe_tcp::Config;
use bentpipe_types::{Address, Agent, Port, Processing, Span};

use crate::Traffic;
use crate::address_resolution::ArpSettings;
use crate::network::MulticastReceiver;
use crate::node::NodeId;
use crate::schedule::COMPONENTS;
pub use flow::{FlowPlan, MakeEnds};
pub use ports::local_ports;

/// Settings of a link with one or two directions.
#[derive(Debug)]
pub struct LinkSettings {
    /// The name; its directions are `NAME.forward` and `NAME.return`.
    pub name: String,
    /// Direction from the first node to the second.
    pub forward: Option<Settings>,
    /// Direction from the second node to the first.
    pub backward: Option<Settings>,
}

/// Settings of a flow.
#[derive(Debug)]
pub struct FlowSettings {
    /// The name.
    pub name: String,
    /// The host that opens connections.
    pub from: NodeId,
    /// The host that accepts them.
    pub to: NodeId,
    /// Start time.
    pub start: Span,
    /// Application.
    pub application: Traffic,
    /// TCP configuration of the opening host.
    pub sender: Arc<Config>,
    /// TCP configuration of the accepting host.
    pub receiver: Arc<Config>,
}

/// Error of building a network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BuildError {
    /// More nodes and link directions than the schedule supports.
    TooLarge,
    /// No path between the ends of a flow.
    NoRoute {
        /// The flow.
        flow: String,
    },
    /// More flows between two hosts than there are ports.
    TooManyFlows {
        /// The flow for which no ports were left.
        flow: String,
    },
    /// A flow's end is not a host.
    NotAHost {
        /// The flow.
        flow: String,
    },
    /// More multicast channels than addresses.
    TooManyChannels,
}

impl std::fmt::Display for BuildError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooLarge => write!(f, "more than {COMPONENTS} nodes and link directions"),
            Self::NoRoute { flow } => write!(f, "flow {flow}: no path between its ends"),
            Self::TooManyFlows { flow } => write!(f, "flow {flow}: its host has no port left"),
            Self::NotAHost { flow } => write!(f, "flow {flow}: both of its ends must be hosts"),
            Self::TooManyChannels => write!(f, "more than {} channels", Address::CHANNELS),
        }
    }
}

impl std::error::Error for BuildError {}

enum NodeKind {
    Host,
    Router,
    Attached,
    Custom(Box<dyn Agent + Send>),
}

struct NodeDraft {
    name: String,
    kind: NodeKind,
    ports: Vec<u16>,
    // MTU by port; empty if none is limited.
    mtus: Vec<u32>,
    // Ports whose links fragment packets.
    dividing: Vec<Port>,
    silent: bool,
    processing: Option<Processing>,
    sleeps: bool,
    draws_wake_ups: bool,
    // Address resolution by port; empty if there is none.
    arp_settings: Vec<Option<ArpSettings>>,
}

struct DirectionDraft {
    name: String,
    from: u16,
    to: u16,
    to_port: Port,
    settings: Settings,
    /// For a broadcast direction: the sending node's port to the first receiver, which is `to`, and
    /// all receivers. Their ports are consecutive.
    broadcast: Option<(Port, Vec<MulticastReceiver>)>,
}

/// Builder of a network.
pub struct NetworkBuilder {
    seed: u64,
    nodes: Vec<NodeDraft>,
    directions: Vec<DirectionDraft>,
    flows: Vec<FlowSettings>,
    /// Factories of the ends of flows that do not use the host's TCP, by flow.
    transports: BTreeMap<usize, MakeEnds>,
    /// Flows of each channel by number.
    channels: Vec<Range<usize>>,
    /// Channels between attached nodes.
    external_channels: Vec<ExternalChannel>,
}

/// A channel whose source and members are outside the network.
#[derive(Clone, Debug)]
pub struct ExternalChannel {
    /// Address of the channel, from [`Address::of_channel`].
    pub channel: Address,
    /// Node where its packets enter.
    pub from: NodeId,
    /// Nodes where they leave.
    pub members: Vec<NodeId>,
}

impl NetworkBuilder {
    /// Creates an empty network with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            nodes: Vec::new(),
            directions: Vec::new(),
            flows: Vec::new(),
            transports: BTreeMap::new(),
            channels: Vec::new(),
            external_channels: Vec::new(),
        }
    }

    /// Adds a host.
    pub fn host(&mut self, name: &str) -> NodeId {
        self.node(name, NodeKind::Host)
    }

    /// Adds a router.
    pub fn router(&mut self, name: &str) -> NodeId {
        self.node(name, NodeKind::Router)
    }

    /// Adds another agent. When the network is built it receives routes to every end of a flow and
    /// to every other such agent.
    pub fn custom(&mut self, name: &str, agent: Box<dyn Agent + Send>) -> NodeId {
        self.node(name, NodeKind::Custom(agent))
    }

    /// Replaces the agent of a node, for agents that need to know their ports.
    pub fn replace(&mut self, node: NodeId, agent: Box<dyn Agent + Send>) {
        self.nodes[usize::from(node.0)].kind = NodeKind::Custom(agent);
    }

    /// Adds a node that represents hosts outside the network: see
    /// [`Network::inject`](crate::Network::inject) and
    /// [`Network::departures`](crate::Network::departures).
    pub fn attached(&mut self, name: &str) -> NodeId {
        self.node(name, NodeKind::Attached)
    }

    /// Sets the MTU of the link at a router's port, IP header included: the router drops longer
    /// packets and sends ICMP errors. Hosts limit their packets on their own links by their `mss`.
    pub fn limit(&mut self, router: NodeId, port: Port, mtu: u32) {
        let mtus = &mut self.nodes[usize::from(router.0)].mtus;
        let index = usize::from(port.0);
        if mtus.len() <= index {
            mtus.resize(index + 1, u32::MAX);
        }
        mtus[index] = mtus[index].min(mtu);
    }

    /// Lets the link at a router's port fragment packets that are too long, where permitted.
    pub fn divides(&mut self, router: NodeId, port: Port) {
        self.nodes[usize::from(router.0)].dividing.push(port);
    }

    /// Adds a processor to a router or host, through which all of its packets pass.
    pub fn serve(&mut self, node: NodeId, processing: Processing) {
        self.nodes[usize::from(node.0)].processing = Some(processing);
    }

    /// Enables the model of wake-up order at a host: see `Host::sleep_when_idle`.
    pub fn sleeps_when_idle(&mut self, host: NodeId) {
        self.nodes[usize::from(host.0)].sleeps = true;
    }

    /// Makes a host that [sleeps when idle](Self::sleeps_when_idle) draw its wake-up delays from
    /// the network's seed: see `Host::draw_wake_ups`.
    pub fn draws_wake_ups(&mut self, host: NodeId) {
        self.nodes[usize::from(host.0)].draws_wake_ups = true;
    }

    /// Enables address resolution (RFC 826) at a node's port. Both ends of the link need it, since
    /// a node without it does not answer.
    pub fn resolve(&mut self, node: NodeId, port: Port, arp_settings: ArpSettings) {
        let all = &mut self.nodes[usize::from(node.0)].arp_settings;
        let index = usize::from(port.0);
        if all.len() <= index {
            all.resize(index + 1, None);
        }
        all[index] = Some(arp_settings);
    }

    /// Disables a router's ICMP errors: packets that are too long are dropped silently.
    pub fn silence(&mut self, router: NodeId) {
        self.nodes[usize::from(router.0)].silent = true;
    }

    fn node(&mut self, name: &str, kind: NodeKind) -> NodeId {
        // Beyond the limit the identifier wraps; `build` then refuses the network.
        let id = NodeId(self.nodes.len() as u16);
        self.nodes.push(NodeDraft {
            name: name.to_owned(),
            kind,
            ports: Vec::new(),
            mtus: Vec::new(),
            dividing: Vec::new(),
            silent: false,
            processing: None,
            sleeps: false,
            draws_wake_ups: false,
            arp_settings: Vec::new(),
        });
        id
    }

    /// Adds a link. Returns its port at each end.
    pub fn link(&mut self, first: NodeId, second: NodeId, link: LinkSettings) -> [Port; 2] {
        let ends = [first, second].map(|node| {
            let ports = &mut self.nodes[usize::from(node.0)].ports;
            ports.push(u16::MAX);
            Port((ports.len() - 1) as u16)
        });
        if let Some(settings) = link.forward {
            let name = format!("{}.forward", link.name);
            self.direction(name, (first, ends[0]), (second, ends[1]), settings);
        }
        if let Some(settings) = link.backward {
            let name = format!("{}.return", link.name);
            self.direction(name, (second, ends[1]), (first, ends[0]), settings);
        }
        ends
    }

    fn direction(
        &mut self,
        name: String,
        (from, from_port): (NodeId, Port),
        (to, to_port): (NodeId, Port),
        settings: Settings,
    ) {
        let index = self.directions.len() as u16;
        self.nodes[usize::from(from.0)].ports[usize::from(from_port.0)] = index;
        self.directions.push(DirectionDraft {
            name,
            from: from.0,
            to: to.0,
            to_port,
            settings,
            broadcast: None,
        });
    }

    /// Adds a one-way broadcast link: each packet is transmitted once and received by all far ends.
    /// Each far end has error models of its own; the errors of `settings` affect all. A packet goes
    /// to the far end that leads to its destination; a multicast packet to all that lead to
    /// members, as copies. Returns the sending node's port to each far end, and the far end's own
    /// port.
    pub fn broadcast(
        &mut self,
        from: NodeId,
        to: Vec<(NodeId, Vec<ErrorModel>)>,
        link: &str,
        settings: Settings,
    ) -> Vec<[Port; 2]> {
        let direction = self.directions.len() as u16;
        let mut port_of = |node: NodeId, behind| {
            let ports = &mut self.nodes[usize::from(node.0)].ports;
            ports.push(behind);
            Port((ports.len() - 1) as u16)
        };
        let mut ports = Vec::with_capacity(to.len());
        let mut receivers = Vec::with_capacity(to.len());
        for (node, errors) in to {
            let own = port_of(from, direction);
            let port = port_of(node, u16::MAX);
            ports.push([own, port]);
            let node = node.0;
            receivers.push(MulticastReceiver { node, port, errors });
        }
        // Without a far end it would not be a link.
        let Some((to, to_port)) = receivers
            .first()
            .map(|receiver| (receiver.node, receiver.port))
        else {
            return ports;
        };
        let first = ports[0][0];
        self.directions.push(DirectionDraft {
            name: format!("{link}.forward"),
            from: from.0,
            to,
            to_port,
            settings,
            broadcast: Some((first, receivers)),
        });
        ports
    }

    /// Adds a flow.
    pub fn flow(&mut self, flow: FlowSettings) {
        self.flows.push(flow);
    }

    /// Adds a flow over another transport than the hosts' TCP: `make` creates its two ends.
    pub fn flow_over(&mut self, flow: FlowSettings, make: MakeEnds) {
        self.transports.insert(self.flows.len(), make);
        self.flows.push(flow);
    }

    /// Adds a multicast channel: datagrams that one host sends once to several (source-specific
    /// multicast, RFC 4607). Each flow is one member's part: they differ in name, destination and
    /// the destination's TCP; everything else is taken from the first.
    pub fn channel(&mut self, flows: Vec<FlowSettings>) {
        let first = self.flows.len();
        self.flows.extend(flows);
        self.channels.push(first..self.flows.len());
    }

    /// Adds the routes of a channel between attached nodes.
    pub fn spread(&mut self, spread: ExternalChannel) {
        self.external_channels.push(spread);
    }
}
