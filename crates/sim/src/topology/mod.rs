//! From a description of nodes, links and flows to a network that runs.

mod channels;
mod flow;
mod routes;
mod trees;
mod upstream;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use bentpipe_host::applications::Side;
use bentpipe_host::{Host, Ports};
use bentpipe_link::{ErrorModel, Settings};
use bentpipe_tcp::{Config, Ranges};
use bentpipe_types::{Address, Agent, Port, Processing, RandomStream, Routes, Served, Span, Time};

use crate::attached::Attached;
use crate::front::Front;
use crate::neighbour::Neighbourhood;
use crate::network::{Audience, DirectionSlot, FlowEnd, FlowSlot, Hearer, Network, NodeSlot};
use crate::node::{Node, NodeId};
use crate::router::Limits;
use crate::schedule::COMPONENTS;
use crate::{Router, Traffic};
use channels::ChannelTrees;
pub use flow::FlowPlan;
use routes::{Map, NoRoutes};
use trees::Edge;

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

/// The port on which receivers of bulk transfers listen: local ports lie above it.
const LISTENING_PORT: u16 = 5001;
/// The first of the ports from which senders open (RFC 6335 section 6).
const FIRST_EPHEMERAL_PORT: u16 = 49152;

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

    /// The directions over which packets go from the one node of each pair to the other, by their numbers
    /// in the order in which links were added: the routes that the network will have.
    ///
    /// # Errors
    ///
    /// [`BuildError`], where a pair is not joined, or the network is too large.
    pub fn paths(&self, pairs: &[(NodeId, NodeId)]) -> Result<Vec<Vec<usize>>, BuildError> {
        let plan = self.plan()?;
        let ends: Vec<(u16, u16)> = pairs.iter().map(|(from, to)| (from.0, to.0)).collect();
        let tables = self.routes(&plan.ports, &plan.edges, ends.iter().copied())?;
        let path = |&(from, to): &(u16, u16)| plan.path(&tables, from, to);
        Ok(ends.iter().map(path).collect())
    }

    /// What routes are found in: a step from node to node for each direction, and for each further far end
    /// of one that has many.
    fn plan(&self) -> Result<Plan, BuildError> {
        let mut ports: Vec<Vec<u16>> = self.nodes.iter().map(|node| node.ports.clone()).collect();
        let step = |direction: &DirectionDraft, to: u16| Edge {
            from: direction.from,
            to,
            delay: direction.settings.delay,
        };
        let mut edges: Vec<Edge> = (self.directions.iter())
            .map(|direction| step(direction, direction.to))
            .collect();
        let mut directions: Vec<u16> = (0..edges.len()).map(|index| index as u16).collect();
        let mut ends = vec![0; edges.len()];
        for (index, direction) in self.directions.iter().enumerate() {
            let Some((first, hearers)) = &direction.broadcast else {
                continue;
            };
            for (number, hearer) in hearers.iter().enumerate().skip(1) {
                let port = usize::from(first.0) + number;
                ports[usize::from(direction.from)][port] = edges.len() as u16;
                edges.push(step(direction, hearer.node));
                directions.push(index as u16);
                ends.push(number as u16);
            }
        }
        if edges.len() >= COMPONENTS {
            return Err(BuildError::TooLarge);
        }
        Ok(Plan {
            ports,
            edges,
            directions,
            ends,
        })
    }

    /// Every node's routes to the nodes that are sent to, and to those whose kind may send anywhere. `ends`
    /// are who sends, and to whom.
    fn routes(
        &self,
        ports: &[Vec<u16>],
        edges: &[Edge],
        ends: impl Iterator<Item = (u16, u16)>,
    ) -> Result<Vec<Routes>, BuildError> {
        // For each node that packets are sent to: who sends there.
        let mut destinations: BTreeMap<u16, Vec<u16>> = BTreeMap::new();
        for (from, to) in ends {
            destinations.entry(to).or_default().push(from);
        }
        for (index, node) in self.nodes.iter().enumerate() {
            if matches!(node.kind, NodeKind::Custom(_) | NodeKind::Attached) {
                destinations.entry(index as u16).or_default();
            }
        }
        let forwards: Vec<bool> = self
            .nodes
            .iter()
            .map(|node| !matches!(node.kind, NodeKind::Host | NodeKind::Attached))
            .collect();
        let tables = Map::new(ports, edges, &forwards).tables(&destinations);
        tables.map_err(|error| match error {
            NoRoutes::TooLarge => BuildError::TooLarge,
            NoRoutes::CutOff(one, other) => BuildError::NoRoute {
                flow: self.flow_between(one, other),
            },
        })
    }

    /// The channel that a flow is of: its address, and its first flow.
    fn channel_of(&self, flow: usize) -> Option<(Address, usize)> {
        let number = self.channels.partition_point(|flows| flows.end <= flow);
        let flows = self
            .channels
            .get(number)
            .filter(|flows| flows.contains(&flow))?;
        Some((Address::of_channel(number)?, flows.start))
    }

    /// The first flow between two nodes, either way.
    fn flow_between(&self, one: u16, other: u16) -> String {
        let ends = [(one, other), (other, one)];
        let mut flows = self.flows.iter();
        let flow = flows.find(|flow| ends.contains(&(flow.from.0, flow.to.0)));
        flow.map_or_else(String::new, |flow| flow.name.clone())
    }

    /// The network, ready to run.
    ///
    /// # Errors
    ///
    /// [`BuildError`], where the parts don't fit together.
    pub fn build(mut self) -> Result<Network, BuildError> {
        // One more for the sampler of the probes.
        if self.nodes.len() + self.directions.len() + 1 > COMPONENTS {
            return Err(BuildError::TooLarge);
        }
        // The last addresses are channels'.
        let last = self.nodes.len().saturating_sub(1) as u16;
        if Address(last).channel().is_some() {
            return Err(BuildError::TooLarge);
        }
        let plan = self.plan()?;
        let seed = self.seed;
        let ends = self.flows.iter().enumerate().flat_map(|(index, flow)| {
            let ends = (flow.from.0, flow.to.0);
            // From a channel's members nothing comes back.
            let back = (ends.1, ends.0);
            [
                Some(ends),
                Some(back).filter(|_| self.channel_of(index).is_none()),
            ]
        });
        let mut tables = self.routes(&plan.ports, &plan.edges, ends.flatten())?;
        let upstreams = self.upstreams(&plan, &tables);
        let mut trees = ChannelTrees::default();
        for (number, members) in self.channels.iter().enumerate() {
            let address = Address::of_channel(number).ok_or(BuildError::TooManyChannels)?;
            let members: Vec<u16> = self.flows[members.clone()]
                .iter()
                .map(|flow| flow.to.0)
                .collect();
            let Some(source) = self.flows.get(self.channels[number].start) else {
                continue;
            };
            trees.grow(&plan, &mut tables, address, source.from.0, &members);
        }
        for each in &self.spreads {
            let members: Vec<u16> = each.members.iter().map(|member| member.0).collect();
            trees.grow(&plan, &mut tables, each.channel, each.from.0, &members);
        }
        let mut audiences: Vec<Option<Audience>> = (self.directions.iter_mut())
            .map(|draft| {
                let (first, hearers) = draft.broadcast.take()?;
                let mut audience = Audience::new(hearers, first);
                audience.routes(tables[usize::from(draft.from)].clone());
                Some(audience)
            })
            .collect();
        for (direction, channel, hearer) in trees.takers() {
            if let Some(audience) = &mut audiences[direction] {
                audience.takes(channel, hearer);
            }
        }
        let roles: Vec<_> = (0..self.flows.len())
            .map(|flow| self.channel_of(flow))
            .collect();
        let branches = trees.branches(self.directions.len());
        if self.directions.len() + branches.ports.len() >= COMPONENTS {
            return Err(BuildError::TooLarge);
        }
        for (node, behind) in branches.ports {
            self.nodes[usize::from(node)].ports.push(behind);
        }
        let mut nodes: Vec<NodeSlot> = self
            .nodes
            .into_iter()
            .zip(tables)
            .enumerate()
            .map(|(index, (draft, routes))| {
                let mut node = match draft.kind {
                    NodeKind::Host => Node::Host(Host::default()),
                    NodeKind::Router if !draft.mtus.is_empty() => {
                        Node::Router(Router::limited(Limits {
                            address: Address(index as u16),
                            mtus: draft.mtus,
                            dividing: draft.dividing,
                            silent: draft.silent,
                        }))
                    }
                    NodeKind::Router => Node::Router(Router::default()),
                    NodeKind::Attached => Node::Attached(Attached::default()),
                    NodeKind::Custom(agent) => Node::Custom(agent),
                };
                if let (Some(processing), Node::Router(router)) = (draft.processing, &mut node) {
                    let router = std::mem::take(router);
                    node = Node::Custom(Box::new(Served::new(router, processing)));
                }
                let processing = draft.processing.filter(|_| node.host().is_some());
                if processing.is_some() || !draft.neighbourhoods.is_empty() {
                    let front = Front::new(node, processing, draft.neighbourhoods);
                    node = Node::Front(Box::new(front));
                }
                node.routes(routes);
                let random = RandomStream::new(seed, &draft.name, "agent");
                NodeSlot::new(draft.name, node, draft.ports, random)
            })
            .collect();
        let directions = self
            .directions
            .into_iter()
            .zip(audiences)
            .map(|(draft, audience)| match audience {
                Some(audience) => DirectionSlot::broadcast(draft.name, audience, draft.settings),
                None => DirectionSlot::new(draft.name, draft.to, draft.to_port, draft.settings),
            })
            .collect();
        let openers = (self.flows.iter()).map(|flow| (flow.from.address(), &flow.application));
        let own_ports = local_ports(openers);
        let mut flows: Vec<FlowSlot> = Vec::with_capacity(self.flows.len());
        for ((settings, ports), channel) in self.flows.into_iter().zip(own_ports).zip(roles) {
            let Some(ports) = ports else {
                let flow = settings.name;
                return Err(BuildError::TooManyFlows { flow });
            };
            let role = match channel {
                None => Role::Alone,
                Some((address, first)) => match flows.get(first) {
                    None => Role::Source(address),
                    Some(first) => Role::Member(address, first.opener, first.ports),
                },
            };
            flows.push(open_flow(settings, ports, role, &mut nodes, seed)?);
        }
        let branches = branches.directions;
        Ok(Network::new(nodes, directions, flows, branches, upstreams))
    }
}

/// What routes are found in.
struct Plan {
    /// Of every node, what is behind its ports: a number of `edges`, or `u16::MAX`.
    ports: Vec<Vec<u16>>,
    /// Steps from node to node.
    edges: Vec<Edge>,
    /// The direction that each step is over, and to which of its far ends, by number.
    directions: Vec<u16>,
    ends: Vec<u16>,
}

impl Plan {
    /// The directions over which packets go from one node to another, by these routes.
    fn path(&self, tables: &[Routes], from: u16, to: u16) -> Vec<usize> {
        let mut path = Vec::new();
        let mut node = from;
        // A route that goes in circles is longer than there are directions.
        while node != to && path.len() < self.edges.len() {
            let port = tables[usize::from(node)].port_towards(Address(to));
            let edge = port.map_or(u16::MAX, |port| {
                self.ports[usize::from(node)][usize::from(port.0)]
            });
            let Some(direction) = self.directions.get(usize::from(edge)) else {
                break;
            };
            path.push(usize::from(*direction));
            node = self.edges[usize::from(edge)].to;
        }
        path
    }
}

/// What a flow is among others.
enum Role {
    /// It has two ends.
    Alone,
    /// Its opener sends to a channel.
    Source(Address),
    /// Its server is one more to get what that opener sends, from those ports.
    Member(Address, FlowEnd, Ports),
}

/// Local ports of one host, handed out to its flows.
#[derive(Clone, Copy, Debug)]
struct LocalPorts {
    next: u16,
}

impl LocalPorts {
    const fn new() -> Self {
        Self {
            next: FIRST_EPHEMERAL_PORT,
        }
    }

    /// The next `count` ports: through the ephemeral ones first, then the registered ones below them.
    fn take(&mut self, count: u16) -> Option<Ports> {
        let more = count.max(1) - 1;
        let is_low = self.next < FIRST_EPHEMERAL_PORT;
        let last = match self.next.checked_add(more) {
            Some(last) if is_low && last >= FIRST_EPHEMERAL_PORT => return None,
            Some(last) => last,
            None => {
                self.next = LISTENING_PORT + 1;
                LISTENING_PORT + 1 + more
            }
        };
        let ports = Ports::range(self.next, last);
        self.next = last.checked_add(1).unwrap_or(LISTENING_PORT + 1);
        Some(ports)
    }
}

/// The ports that each flow's connections are opened from, by the flows' openers and what they do, in
/// order; `None` from where on a host has none left. Where a host's flows would like more than there are,
/// those that can do with fewer share what is left.
#[must_use]
pub fn local_ports<'a>(flows: impl Iterator<Item = (Address, &'a Traffic)>) -> Vec<Option<Ports>> {
    let flows: Vec<(Address, &Traffic)> = flows.collect();
    let mut wishes: BTreeMap<u16, Wishes> = BTreeMap::new();
    for (from, traffic) in &flows {
        wishes.entry(from.0).or_default().add(traffic);
    }
    let mut hosts: BTreeMap<u16, LocalPorts> = BTreeMap::new();
    let of = |(from, traffic): (Address, &Traffic)| {
        let count = wishes.entry(from.0).or_default().granted(traffic);
        let host = hosts.entry(from.0).or_insert_with(LocalPorts::new);
        host.take(count)
    };
    flows.into_iter().map(of).collect()
}

/// The ports that the flows of a host would like to have.
#[derive(Clone, Copy, Default)]
struct Wishes {
    all: u64,
    /// Of `all`, those of flows that can do with fewer, and how many such flows there are.
    elastic: u64,
    elastic_flows: u64,
}

impl Wishes {
    fn add(&mut self, traffic: &Traffic) {
        let wish = u64::from(traffic.ports_needed());
        self.all += wish;
        if traffic.least_ports() < traffic.ports_needed() {
            self.elastic += wish;
            self.elastic_flows += 1;
        }
    }

    fn granted(&self, traffic: &Traffic) -> u16 {
        let (least, wish) = (traffic.least_ports(), traffic.ports_needed());
        let there = u64::from(u16::MAX - LISTENING_PORT);
        if least == wish || self.all <= there {
            return wish;
        }
        let left = there.saturating_sub(self.all - self.elastic);
        // One range less: none lies across the first ephemeral port.
        let share = left / (self.elastic_flows + 1);
        u16::try_from(share).unwrap_or(wish).clamp(least, wish)
    }
}

/// Registers a flow's two ends at their hosts.
fn open_flow(
    settings: FlowSettings,
    ports: Ports,
    role: Role,
    nodes: &mut [NodeSlot],
    seed: u64,
) -> Result<FlowSlot, BuildError> {
    let FlowSettings {
        name,
        from,
        to,
        start,
        application: traffic,
        sender,
        receiver,
    } = settings;
    let (channel, first, ports) = match role {
        Role::Alone => (None, None, ports),
        Role::Source(channel) => (Some(channel), None, ports),
        Role::Member(channel, opener, ports) => (Some(channel), Some(opener), ports),
    };
    let plan = FlowPlan {
        name,
        from: from.address(),
        to: to.address(),
        channel,
        opens: Time::ZERO + start,
        traffic,
        ports,
        seed,
    };
    let no_host = || BuildError::NotAHost {
        flow: plan.name.clone(),
    };
    let ends = plan.ends();
    let host = host_mut(nodes, from).ok_or_else(no_host)?;
    let opener = match first {
        Some(opener) => opener,
        None => (from.0, plan.add_opener(host, sender, ends.opener)),
    };
    let host = host_mut(nodes, to).ok_or_else(no_host)?;
    let server = (to.0, plan.add_server(host, receiver, ends.server));
    let destination = plan.server().address;
    let FlowPlan {
        name,
        opens,
        traffic,
        ..
    } = plan;
    let [sender, receiver] = match traffic.sender() {
        Side::Opener => [opener, server],
        Side::Server => [server, opener],
        Side::Both => [opener, server],
    };
    Ok(FlowSlot {
        name,
        start: opens,
        size: traffic.size(),
        opener,
        server,
        destination,
        ports,
        measures: match traffic.measured_at() {
            Side::Server => server.0,
            Side::Opener | Side::Both => opener.0,
        },
        both: traffic.sender() == Side::Both,
        sender,
        receiver,
    })
}

fn host_mut(nodes: &mut [NodeSlot], node: NodeId) -> Option<&mut Host<Ranges>> {
    nodes.get_mut(usize::from(node.0))?.node_mut().host_mut()
}
