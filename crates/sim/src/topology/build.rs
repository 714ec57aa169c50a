//! Construction of a network from its description.

use std::collections::BTreeMap;

use bentpipe_host::applications::Side;
use bentpipe_host::{Host, Ports};
use bentpipe_tcp::Ranges;
use bentpipe_types::{Address, Agent, RandomStream, Routes, Time, WithProcessor};

use super::channels::ChannelTrees;
use super::plan::Plan;
use super::ports::local_ports;
use super::{
    BuildError, DirectionDraft, FlowPlan, FlowSettings, MakeEnds, NetworkBuilder, NodeDraft,
    NodeKind,
};
use crate::Router;
use crate::attached::Attached;
use crate::network::{DirectionSlot, FlowEnd, FlowSlot, MulticastReceivers, Network, NodeSlot};
use crate::node::{Node, NodeId};
use crate::processing_and_arp::ProcessingAndArp;
use crate::router::Limits;
use crate::schedule::COMPONENTS;

impl NetworkBuilder {
    /// Builds the network.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if the parts contradict each other.
    pub fn build(mut self) -> Result<Network, BuildError> {
        // One more component for the sampler.
        if self.nodes.len() + self.directions.len() + 1 > COMPONENTS {
            return Err(BuildError::TooLarge);
        }
        // The highest addresses are reserved for channels.
        let last = self.nodes.len().saturating_sub(1) as u16;
        if Address(last).channel().is_some() {
            return Err(BuildError::TooLarge);
        }
        let plan = self.plan()?;
        let mut tables = self.routes(&plan.ports, &plan.edges, self.senders())?;
        let upstreams = self.upstreams(&plan, &tables);
        let trees = self.trees(&plan, &mut tables)?;
        let all_receivers = self.all_receivers(&tables, &trees);
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
        let seed = self.seed;
        let mut nodes: Vec<NodeSlot> = (self.nodes.into_iter().zip(tables).zip(0..))
            .map(|((draft, routes), address)| draft.node(routes, Address(address), seed))
            .collect();
        let directions = (self.directions.into_iter().zip(all_receivers))
            .map(|(draft, receivers)| draft.direction(receivers))
            .collect();
        let flows = open_flows(self.flows, self.transports, roles, &mut nodes, seed)?;
        let branches = branches.directions;
        Ok(Network::new(nodes, directions, flows, branches, upstreams))
    }

    /// Returns the pairs of sender and destination.
    fn senders(&self) -> impl Iterator<Item = (u16, u16)> + '_ {
        self.flows.iter().enumerate().flat_map(|(index, flow)| {
            let ends = (flow.from.0, flow.to.0);
            // A channel's members send nothing back.
            let back = (ends.1, ends.0);
            let answers = self.channel_of(index).is_none();
            [Some(ends), Some(back).filter(|_| answers)]
                .into_iter()
                .flatten()
        })
    }

    /// Computes the multicast trees and enters them into the nodes' routes.
    fn trees(&self, plan: &Plan, tables: &mut [Routes]) -> Result<ChannelTrees, BuildError> {
        let mut trees = ChannelTrees::default();
        for (number, flows) in self.channels.iter().enumerate() {
            let address = Address::of_channel(number).ok_or(BuildError::TooManyChannels)?;
            let flows = &self.flows[flows.clone()];
            let Some(source) = flows.first() else {
                continue;
            };
            let members: Vec<u16> = flows.iter().map(|flow| flow.to.0).collect();
            trees.grow(plan, tables, address, source.from.0, &members);
        }
        for each in &self.external_channels {
            let members: Vec<u16> = each.members.iter().map(|member| member.0).collect();
            trees.grow(plan, tables, each.channel, each.from.0, &members);
        }
        Ok(trees)
    }

    /// Returns the receivers of each broadcast direction.
    fn all_receivers(
        &mut self,
        tables: &[Routes],
        trees: &ChannelTrees,
    ) -> Vec<Option<MulticastReceivers>> {
        let mut all_receivers: Vec<Option<MulticastReceivers>> = (self.directions.iter_mut())
            .map(|draft| {
                let (first, receivers) = draft.broadcast.take()?;
                let mut receivers = MulticastReceivers::new(receivers, first);
                receivers.routes(tables[usize::from(draft.from)].clone());
                Some(receivers)
            })
            .collect();
        for (direction, channel, receiver) in trees.takers() {
            if let Some(receivers) = &mut all_receivers[direction] {
                receivers.join(channel, receiver);
            }
        }
        all_receivers
    }

    /// Returns the channel of a flow: its address and its first flow.
    fn channel_of(&self, flow: usize) -> Option<(Address, usize)> {
        let number = self.channels.partition_point(|flows| flows.end <= flow);
        let flows = self
            .channels
            .get(number)
            .filter(|flows| flows.contains(&flow))?;
        Some((Address::of_channel(number)?, flows.start))
    }
}

impl NodeDraft {
    fn node(self, routes: Routes, address: Address, seed: u64) -> NodeSlot {
        let mut node = match self.kind {
            NodeKind::Host => Node::Host(Host::default()),
            NodeKind::Router if !self.mtus.is_empty() => Node::Router(Router::limited(Limits {
                address,
                mtus: self.mtus,
                dividing: self.dividing,
                silent: self.silent,
            })),
            NodeKind::Router => Node::Router(Router::default()),
            NodeKind::Attached => Node::Attached(Attached::default()),
            NodeKind::Custom(agent) => Node::Custom(agent),
        };
        if let (Some(processing), Node::Router(router)) = (self.processing, &mut node) {
            let router = std::mem::take(router);
            node = Node::Custom(Box::new(WithProcessor::new(router, processing)));
        }
        if let Some(host) = node.host_mut().filter(|_| self.sleeps) {
            host.sleep_when_idle();
            if self.draws_wake_ups {
                let stream = |purpose| RandomStream::new(seed, &self.name, purpose);
                host.draw_wake_ups(stream("packet wake-ups"), stream("application wake-ups"));
            }
        }
        let processing = self.processing.filter(|_| node.host().is_some());
        if processing.is_some() || !self.arp_settings.is_empty() {
            let front = ProcessingAndArp::new(node, processing, self.arp_settings);
            node = Node::ProcessingAndArp(Box::new(front));
        }
        node.routes(routes);
        let random = RandomStream::new(seed, &self.name, "agent");
        NodeSlot::new(self.name, node, self.ports, random)
    }
}

impl DirectionDraft {
    fn direction(self, receivers: Option<MulticastReceivers>) -> DirectionSlot {
        match receivers {
            Some(receivers) => DirectionSlot::broadcast(self.name, receivers, self.settings),
            None => DirectionSlot::new(self.name, self.to, self.to_port, self.settings),
        }
    }
}

/// Role of a flow.
enum Role {
    /// A flow with two ends.
    Alone,
    /// The first flow of a channel, whose opener sends to it.
    Source(Address),
    /// A further member's part of a channel, with the opener and its ports.
    Member(Address, FlowEnd, Ports),
}

/// Registers all flows at their hosts. `channels` contains, for parts of a channel, its address and
/// its first flow.
fn open_flows(
    all: Vec<FlowSettings>,
    mut transports: BTreeMap<usize, MakeEnds>,
    channels: Vec<Option<(Address, usize)>>,
    nodes: &mut [NodeSlot],
    seed: u64,
) -> Result<Vec<FlowSlot>, BuildError> {
    let openers = (all.iter()).map(|flow| (flow.from.address(), &flow.application));
    let own_ports = local_ports(openers);
    let mut flows: Vec<FlowSlot> = Vec::with_capacity(all.len());
    for ((settings, ports), channel) in all.into_iter().zip(own_ports).zip(channels) {
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
        let make = transports.remove(&flows.len());
        flows.push(open_flow(settings, make, ports, role, nodes, seed)?);
    }
    Ok(flows)
}

/// Registers a flow's two ends at their hosts.
fn open_flow(
    settings: FlowSettings,
    make: Option<MakeEnds>,
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
    // The ends of another transport may share state, whatever the application does.
    let shares_state = make.is_some() || plan.traffic.shares_state();
    let ends = match make {
        Some(make) => make(&plan),
        None => plan.ends(),
    };
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
        shares_state,
        both: traffic.sender() == Side::Both,
        sender,
        receiver,
    })
}

fn host_mut(nodes: &mut [NodeSlot], node: NodeId) -> Option<&mut Host<Ranges>> {
    nodes.get_mut(usize::from(node.0))?.node_mut().host_mut()
}
