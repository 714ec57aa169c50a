//! From a description of nodes, links and flows to a network that runs.

mod build;
mod channels;
mod flow;
mod plan;
mod ports;
mod routes;
mod trees;
mod upstream;

use std::ops::Range;
use std::sync::Arc;

use bentpipe_link::{ErrorModel, Settings};
use bentpipe_tcp::Config;
use bentpipe_types::{Address, Agent, Port, Processing, Span};

use crate::Traffic;
use crate::neighbour::Neighbourhood;
use crate::network::Hearer;
use crate::node::NodeId;
use crate::schedule::COMPONENTS;
pub use flow::FlowPlan;
pub use ports::local_ports;

/// A link: two directions, or one.
#[derive(Debug)]
pub struct LinkSettings {
    /// The name; its directions are `NAME.forward` and `NAME.return`.
    pub name: String,
    /// From the first node to the second.
    pub forward: Option<Settings>,
    /// From the second node to the first.
    pub backward: Option<Settings>,
}

/// A flow: an application, and the connection below it.
#[derive(Debug)]
pub struct FlowSettings {
    /// The name.
    pub name: String,
    /// The host that sends; it opens the connection.
    pub from: NodeId,
    /// The host that receives.
    pub to: NodeId,
    /// When it starts.
    pub start: Span,
    /// What sends.
    pub application: Traffic,
    /// The sending host's TCP.
    pub sender: Arc<Config>,
    /// The receiving host's TCP.
    pub receiver: Arc<Config>,
}

/// What is wrong with a network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BuildError {
    /// More nodes and link directions than the scheduler can name.
    TooLarge,
    /// No path leads from a flow's one end to its other.
    NoRoute {
        /// The flow.
        flow: String,
    },
    /// More flows between two hosts than there are ports.
    TooManyFlows {
        /// The flow that found none.
        flow: String,
    },
    /// A flow's end is not a host.
    NotAHost {
        /// The flow.
        flow: String,
    },
    /// More channels than there are addresses for.
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
    // By port; empty: none is limited.
    mtus: Vec<u32>,
    // Those whose links cut what is too long.
    dividing: Vec<Port>,
    silent: bool,
    processing: Option<Processing>,
    sleeps: bool,
    // By port; empty: nobody is asked for a link address.
    neighbourhoods: Vec<Option<Neighbourhood>>,
}

struct DirectionDraft {
    name: String,
    from: u16,
    to: u16,
    to_port: Port,
    settings: Settings,
    /// Of a direction that many hear: the sending node's port towards the first of them, which is `to`, and
    /// all of them. Their ports follow one another.
    broadcast: Option<(Port, Vec<Hearer>)>,
}

/// Describes a network, part by part.
pub struct NetworkBuilder {
    seed: u64,
    nodes: Vec<NodeDraft>,
    directions: Vec<DirectionDraft>,
    flows: Vec<FlowSettings>,
    /// The flows of each channel, by number.
    channels: Vec<Range<usize>>,
    /// Those that are no flows of the network's own.
    spreads: Vec<Spread>,
}

/// A channel whose source and members are outside: its address, the source's node, the members'.
#[derive(Clone, Debug)]
pub struct Spread {
    /// The channel's address: one of [`Address::of_channel`].
    pub channel: Address,
    /// Where its packets come in.
    pub from: NodeId,
    /// Where each of them leaves.
    pub members: Vec<NodeId>,
}

impl NetworkBuilder {
    /// An empty network whose random streams grow from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            nodes: Vec::new(),
            directions: Vec::new(),
            flows: Vec::new(),
            channels: Vec::new(),
            spreads: Vec::new(),
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

    /// Adds any other agent. It is given its routes when the network is built: to every end of a
    /// flow, and to every agent added so.
    pub fn custom(&mut self, name: &str, agent: Box<dyn Agent + Send>) -> NodeId {
        self.node(name, NodeKind::Custom(agent))
    }

    /// Puts another agent in a node's place: for one that has to know its ports, which links have
    /// given the node meanwhile.
    pub fn replace(&mut self, node: NodeId, agent: Box<dyn Agent + Send>) {
        self.nodes[usize::from(node.0)].kind = NodeKind::Custom(agent);
    }

    /// Adds a node that stands for something outside the network: its packets come from there and go
    /// there, [`Network::inject`] and [`Network::departures`].
    pub fn attached(&mut self, name: &str) -> NodeId {
        self.node(name, NodeKind::Attached)
    }

    /// The link at a router's port takes no packets longer than `mtu` bytes, IP header included: the
    /// router drops them, and tells who sent them. (What hosts send on links of their own is for their
    /// `mss` to limit.)
    pub fn limit(&mut self, router: NodeId, port: Port, mtu: u32) {
        let mtus = &mut self.nodes[usize::from(router.0)].mtus;
        let index = usize::from(port.0);
        if mtus.len() <= index {
            mtus.resize(index + 1, u32::MAX);
        }
        mtus[index] = mtus[index].min(mtu);
    }

    /// The link at a router's port cuts what is too long for it, where that may be cut: only the rest is
    /// too long.
    pub fn divides(&mut self, router: NodeId, port: Port) {
        self.nodes[usize::from(router.0)].dividing.push(port);
    }

    /// A router's packets wait for its processor first; so do a host's, those that it sends among them.
    pub fn serve(&mut self, node: NodeId, processing: Processing) {
        self.nodes[usize::from(node.0)].processing = Some(processing);
    }

    /// A host takes the longer to hear what comes the longer nothing has happened there ([`Host::sleep_when_idle`]).
    ///
    /// [`Host::sleep_when_idle`]: bentpipe_host::Host::sleep_when_idle
    pub fn sleeps_when_idle(&mut self, host: NodeId) {
        self.nodes[usize::from(host.0)].sleeps = true;
    }

    /// Before a node sends anything out of a port, it asks who is there (RFC 826). Both ends of the link need
    /// it: who is not told of it understands no question.
    pub fn resolve(&mut self, node: NodeId, port: Port, neighbourhood: Neighbourhood) {
        let all = &mut self.nodes[usize::from(node.0)].neighbourhoods;
        let index = usize::from(port.0);
        if all.len() <= index {
            all.resize(index + 1, None);
        }
        all[index] = Some(neighbourhood);
    }

    /// A router sends no ICMP errors: what is too long for a link vanishes.
    pub fn silence(&mut self, router: NodeId) {
        self.nodes[usize::from(router.0)].silent = true;
    }

    fn node(&mut self, name: &str, kind: NodeKind) -> NodeId {
        // Beyond the limit the name wraps; `build` then refuses the network.
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
            neighbourhoods: Vec::new(),
        });
        id
    }

    /// Adds a link, and returns the port that it has at each of its ends.
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

    /// Adds a one-way link with many far ends: what is sent is transmitted once, and all of them hear it.
    /// Each is given with what loses packets where it stands; the errors of `settings` lose them to all.
    /// A packet goes on to the one that leads to its destination; one of a channel, to all that lead to
    /// members of it, a copy each. Returns the port of the sending node that leads to each, and its own.
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
        let mut hearers = Vec::with_capacity(to.len());
        for (node, errors) in to {
            let own = port_of(from, direction);
            let port = port_of(node, u16::MAX);
            ports.push([own, port]);
            let node = node.0;
            hearers.push(Hearer { node, port, errors });
        }
        // Without a far end it would be no link.
        let Some((to, to_port)) = hearers.first().map(|hearer| (hearer.node, hearer.port)) else {
            return ports;
        };
        let first = ports[0][0];
        self.directions.push(DirectionDraft {
            name: format!("{link}.forward"),
            from: from.0,
            to,
            to_port,
            settings,
            broadcast: Some((first, hearers)),
        });
        ports
    }

    /// Adds a flow.
    pub fn flow(&mut self, flow: FlowSettings) {
        self.flows.push(flow);
    }

    /// Adds a channel: what one host sends as datagrams to several, once (source-specific multicast,
    /// RFC 4607). Each flow is what one member gets: they differ in their names, in whom they lead to and in
    /// that one's TCP; everything else is the first's.
    pub fn channel(&mut self, flows: Vec<FlowSettings>) {
        let first = self.flows.len();
        self.flows.extend(flows);
        self.channels.push(first..self.flows.len());
    }

    /// Adds the ways of a channel between attached nodes.
    pub fn spread(&mut self, spread: Spread) {
        self.spreads.push(spread);
    }
}
