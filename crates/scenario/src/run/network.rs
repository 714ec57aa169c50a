//! Builds the network of a scenario.

use std::sync::Arc;

use bentpipe_link::Settings;
use bentpipe_sim::{
    ArpSettings, ExternalChannel, FlowSettings, LinkSettings, Network, NetworkBuilder, NodeId,
};
use bentpipe_tcp::Config;
use bentpipe_types::{Address, Agent, IpVersion, Port, Time};

use crate::access::build::access_terminals;
use crate::class::build::engine_classes;
use crate::custom::CustomControls;
use crate::flow::build::{starts, traffic_of};
use crate::gateway::build::put_gateways;
use crate::ip::IpName;
use crate::link::build::{NetworkContext, direction_settings};
use crate::link::errors::error_model;
use crate::link::settings::{Link, Way};
use crate::node::processing::engine_processing;
use crate::node::settings::NodeKind;
use crate::quic::build::{QuicEnd, quic_ends};
use crate::run::error::RunError;
use crate::scenario::settings::Scenario;
use crate::tcp::ends::TcpEnds;
use crate::tcp::host_timing::HostTiming;

/// Creates an agent for a real host, given its index and its TCP, or returns `None` for an attached
/// node.
pub(crate) type AgentFactory<'a> = dyn FnMut(usize, Config) -> Option<Box<dyn Agent + Send>> + 'a;

/// A multicast channel between real hosts: its address, and the indices of its source and members.
pub(crate) struct MulticastChannel {
    pub(crate) channel: Address,
    pub(crate) from: usize,
    pub(crate) members: Vec<usize>,
}

/// Builds the network, without probes. Hosts in `outside` are attached nodes, except those for
/// which `put` creates agents.
pub(crate) fn build_network(
    scenario: &Scenario,
    seed: u64,
    custom: &CustomControls,
    outside: &[usize],
    multicast_channels: &[MulticastChannel],
    put: &mut AgentFactory<'_>,
) -> Result<(Network, Vec<NodeId>), RunError> {
    let mut builder = NetworkBuilder::new(seed);
    let mtus = mtus(scenario);
    let mut ends = TcpEnds::default();
    // Hosts that run by the wall clock have their own timing.
    let timing = HostTiming {
        scenario,
        seed,
        drawn: outside.is_empty(),
    };
    let mut tcp_of =
        |node: usize| ends.tcp_of(scenario, node, mtus[node], custom, timing.clock(node));
    let mut nodes = Vec::with_capacity(scenario.nodes.len());
    for (index, node) in scenario.nodes.iter().enumerate() {
        nodes.push(match &node.kind {
            NodeKind::Host(_) if outside.contains(&index) => {
                match put(index, Config::clone(&*tcp_of(index)?)) {
                    Some(agent) => builder.custom(&node.name, agent),
                    None => builder.attached(&node.name),
                }
            }
            NodeKind::Host(_) => builder.host(&node.name),
            // Other gateways are put in its place once links have given it ports.
            NodeKind::Gateway(_) => builder.router(&node.name),
        });
    }
    let mut ports = Vec::with_capacity(scenario.links.len());
    let around = NetworkContext {
        fragments: scenario.links.iter().any(|link| link.fragments),
        classes: engine_classes(scenario, outside),
        first_gateway: (scenario.nodes.iter())
            .filter(|node| matches!(node.kind, NodeKind::Host(_)))
            .count() as u16,
    };
    let mut places = access_terminals(scenario);
    for (index, link) in scenario.links.iter().enumerate() {
        let [first, second] = link.between.map(|end| nodes[end]);
        let mut way = |way: Way| {
            let place = places.remove(&(index, way));
            direction_settings(scenario, link, way, place, &around, seed)
        };
        if link.broadcast {
            ports.push(broadcast(
                scenario,
                link,
                &nodes,
                way(Way::Forward),
                seed,
                &mut builder,
            ));
            continue;
        }
        let (forward, backward) = (way(Way::Forward), way(Way::Return));
        let [first_port, second_port] = builder.link(
            first,
            second,
            LinkSettings {
                name: link.name.clone(),
                forward,
                backward,
            },
        );
        if let Some(mtu) = link.mtu {
            builder.limit(first, first_port, mtu);
            builder.limit(second, second_port, mtu);
            if link.fragments {
                builder.divides(first, first_port);
                builder.divides(second, second_port);
            }
        }
        // Real hosts use point-to-point devices, without address resolution.
        if let Some(arp) = link.arp.filter(|_| outside.is_empty()) {
            for (own, port, other) in [(first, first_port, second), (second, second_port, first)] {
                let neighbourhood = ArpSettings {
                    own: own.address(),
                    other: other.address(),
                    version: match scenario.ip {
                        IpName::V4 => IpVersion::V4,
                        IpName::V6 => IpVersion::V6,
                    },
                    timeout: arp.timeout,
                    queue_packets: arp.queue_packets as usize,
                };
                builder.resolve(own, port, neighbourhood);
            }
        }
        ports.push([vec![first_port], vec![second_port]]);
    }
    for (index, (node, id)) in scenario.nodes.iter().zip(&nodes).enumerate() {
        if let NodeKind::Host(host) = &node.kind {
            // In real time, hosts have their real timing.
            if host.tcp.has_linux_quirks() && outside.is_empty() {
                builder.sleeps_when_idle(*id);
                if timing.is_drawn(index) {
                    builder.draws_wake_ups(*id);
                }
            }
            if let Some(processing) = host.processing {
                builder.serve(*id, engine_processing(processing));
            }
        }
    }
    // Real packets have contents.
    let bytes = !outside.is_empty();
    put_gateways(scenario, &nodes, &ports, custom, bytes, &mut builder)?;
    let starts = starts(scenario, seed);
    let mut channel = (None, Vec::new());
    for (flow, start) in scenario.flows.iter().zip(starts) {
        if flow.channel != channel.0 && !channel.1.is_empty() {
            builder.channel(std::mem::take(&mut channel.1));
        }
        channel.0 = flow.channel;
        let settings = FlowSettings {
            name: flow.name.clone(),
            from: nodes[flow.from],
            to: nodes[flow.to],
            start: start.since(Time::ZERO) + timing.lateness(flow),
            application: traffic_of(flow),
            sender: tcp_of(flow.from)?,
            receiver: tcp_of(flow.to)?,
        };
        match flow.channel {
            Some(_) => channel.1.push(settings),
            None if flow.quic => {
                let end = |node: usize, tcp: &Arc<Config>| QuicEnd {
                    settings: scenario.quic_of(node),
                    tcp: Arc::clone(tcp),
                    saved: scenario.saved_path_of(node),
                    mtu: mtus[node],
                };
                let ends = [
                    end(flow.from, &settings.sender),
                    end(flow.to, &settings.receiver),
                ];
                let make = quic_ends(ends, custom)?;
                builder.flow_over(settings, make);
            }
            None => builder.flow(settings),
        }
    }
    if !channel.1.is_empty() {
        builder.channel(channel.1);
    }
    for each in multicast_channels {
        builder.spread(ExternalChannel {
            channel: each.channel,
            from: nodes[each.from],
            members: each.members.iter().map(|member| nodes[*member]).collect(),
        });
    }
    let network = builder
        .build()
        .map_err(|error| RunError::Request(format!("{}: {error}", scenario.name)))?;
    Ok((network, nodes))
}

/// Adds a broadcast channel. Returns the ports that lead to each receiver, and the receivers' own
/// ports.
fn broadcast(
    scenario: &Scenario,
    link: &Link,
    nodes: &[NodeId],
    settings: Option<Settings>,
    seed: u64,
    builder: &mut NetworkBuilder,
) -> [Vec<Port>; 2] {
    let Some(settings) = settings else {
        debug_assert!(false, "a link has a forward direction");
        return Default::default();
    };
    let hearers = link.far_ends().map(|end| {
        // The random stream depends on the receiver's name: another receiver changes no other
        // draws.
        let component = format!("{}.{}", link.name, scenario.nodes[end].name);
        let errors = error_model(&link.forward, &component, seed);
        (nodes[end], errors.into_iter().collect())
    });
    let hearers: Vec<_> = hearers.collect();
    let first = nodes[link.between[0]];
    let ports = builder.broadcast(first, hearers, &link.name, settings);
    let (own, theirs): (Vec<Port>, Vec<Port>) = ports.iter().map(|[own, its]| (*own, *its)).unzip();
    if let Some(mtu) = link.mtu {
        for port in &own {
            builder.limit(first, *port, mtu);
        }
    }
    [own, theirs]
}

/// Returns for every node the longest packet that all of its links take unfragmented, or `None`
/// without a limit. It takes one pass, because there may be as many links as nodes.
fn mtus(scenario: &Scenario) -> Vec<Option<u32>> {
    let mut mtus: Vec<Option<u32>> = vec![None; scenario.nodes.len()];
    for link in &scenario.links {
        let Some(mtu) = link.whole_mtu() else {
            continue;
        };
        for end in link.ends() {
            mtus[end] = Some(mtus[end].map_or(mtu, |least| least.min(mtu)));
        }
    }
    mtus
}
