//! Builds the network of a scenario.

use std::collections::BTreeMap;

use bentpipe_link::Settings;
use bentpipe_sim::{
    ArpSettings, ExternalChannel, FlowQuantity, FlowSettings, LinkQuantity, LinkSettings, Network,
    NetworkBuilder, NodeId, Probe, ProbeTarget, Sampling, Traffic,
};
use bentpipe_tcp::Config;
use bentpipe_types::{Address, Agent, Bytes, IpVersion, Port, RandomStream, Span, Time};

use super::host_timing::HostTiming;
use super::tcp::Ends;
use super::{MANY_RECORDS, RunError, access, classes, direction, gateway};
use crate::quantity::Interval;
use crate::schema::IpName;
use crate::{App, CustomControls, Flow, Gateway, Link, NodeKind, Scenario, Series, Way};

/// Creates an agent for a real host, given its index and its TCP, or returns `None` for an attached
/// node.
pub(super) type AgentFactory<'a> = dyn FnMut(usize, Config) -> Option<Box<dyn Agent + Send>> + 'a;

/// A multicast channel between real hosts: its address, and the indices of its source and members.
pub(super) struct MulticastChannel {
    pub(super) channel: Address,
    pub(super) from: usize,
    pub(super) members: Vec<usize>,
}

/// Builds the network, without probes. Hosts in `outside` are attached nodes, except those for
/// which `put` creates agents.
pub(super) fn network(
    scenario: &Scenario,
    seed: u64,
    custom: &CustomControls,
    outside: &[usize],
    multicast_channels: &[MulticastChannel],
    put: &mut AgentFactory<'_>,
) -> Result<(Network, Vec<NodeId>), RunError> {
    let mut builder = NetworkBuilder::new(seed);
    let mtus = mtus(scenario);
    let mut ends = Ends::default();
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
    let around = direction::NetworkContext {
        fragments: scenario.links.iter().any(|link| link.fragments),
        classes: classes::classes(scenario, outside),
        first_gateway: (scenario.nodes.iter())
            .filter(|node| matches!(node.kind, NodeKind::Host(_)))
            .count() as u16,
    };
    let mut places = access::places(scenario);
    for (index, link) in scenario.links.iter().enumerate() {
        let [first, second] = link.between.map(|end| nodes[end]);
        let mut way = |way: Way| {
            let place = places.remove(&(index, way));
            direction::settings(scenario, link, way, place, &around, seed)
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
                builder.serve(*id, gateway::processing(processing));
            }
        }
        if let NodeKind::Gateway(Gateway::Router { icmp, processing }) = &node.kind {
            if !icmp {
                builder.silence(*id);
            }
            if let Some(processing) = processing {
                builder.serve(*id, gateway::processing(*processing));
            }
        }
    }
    // Real packets have contents.
    let bytes = !outside.is_empty();
    gateway::put(scenario, &nodes, &ports, custom, bytes, &mut builder)?;
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
        let errors = direction::random_errors(&link.forward, &component, seed);
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

/// Returns the traffic of a flow in the engine's type.
pub(super) fn traffic_of(flow: &Flow) -> Traffic {
    match &flow.app {
        App::Bulk { size } => Traffic::bulk(size.map(Bytes::get)),
        App::Other(_, traffic) | App::Mix(_, traffic) => traffic.clone(),
    }
}

/// Returns the start of each flow. Random starts are drawn by the flow's name: another flow changes
/// no other draws.
pub(super) fn starts(scenario: &Scenario, seed: u64) -> Vec<Time> {
    let mut starts: Vec<Time> = Vec::with_capacity(scenario.flows.len());
    let mut before: Option<(&str, Time)> = None;
    for flow in &scenario.flows {
        let alone = || match flow.late {
            None => flow.start,
            Some(late) => {
                // All members of a group receive at once, so their table's name is used.
                let drawn_by = flow.channel.map_or(&*flow.name, |_| &*flow.table);
                flow.start + late.span(&mut RandomStream::new(seed, drawn_by, "late"))
            }
        };
        let start = match flow.wait {
            None => alone(),
            Some(wait) => {
                let last = before.filter(|(table, _)| *table == &*flow.table);
                let from = last.map_or_else(alone, |(_, at)| at);
                from + wait.span(&mut RandomStream::new(seed, &flow.name, "start"))
            }
        };
        before = Some((&flow.table, start));
        starts.push(start);
    }
    starts
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

/// Most flows and links with default probes.
const DEFAULT_PROBES_OF: usize = 8;
/// Most flows with a default probe of goodput, because one figure can show many flows. Above this,
/// the flows of a table are recorded together.
const GOODPUT_OF: usize = 100;

/// Sets the scenario's probes, or the default ones if it names none and `defaults` is set.
///
/// `real_time`: whether the run takes real time, so that its duration is known, and frequent
/// samples would delay packets.
pub(super) fn probe(
    scenario: &Scenario,
    default_probes: bool,
    real_time: bool,
    network: &mut Network,
) {
    let named = &scenario.probes;
    if !named.series.is_empty() {
        let mut probes: Vec<Probe> = named
            .series
            .iter()
            .map(|probe| Probe {
                name: probe.name.clone(),
                target: target(scenario, probe.of),
            })
            .collect();
        if default_probes {
            add_queue_maxima(&mut probes);
        }
        let sampling = match named.interval {
            Interval::Every(interval) => Sampling::Interval(interval),
            Interval::EveryChange => Sampling::EveryChange {
                rates: named.averages_every,
            },
        };
        network.probe(probes, sampling);
    } else if default_probes {
        let probes = choose_default_probes(scenario);
        let sampling = default_sampling(scenario.duration, probes.len(), real_time);
        network.probe(probes, sampling);
    }
}

/// Returns the sampling of default probes: about two thousand points, as many as a plot has pixels.
/// A run may end early, with its last transfer. So the interval is short at first, and doubles when
/// there are twice as many points. If that would exceed [`MANY_RECORDS`], the interval is fixed.
fn default_sampling(duration: Span, probes: usize, real_time: bool) -> Sampling {
    const POINTS: u32 = 2_000;
    const FINEST: Span = Span::from_millis(1);
    let interval = (duration / u64::from(POINTS)).max(FINEST);
    let most = 2 * POINTS;
    if real_time || probes as u64 * u64::from(most + 1) > MANY_RECORDS {
        return Sampling::Interval(interval);
    }
    let halvings = (interval.as_nanos() / FINEST.as_nanos()).ilog2();
    Sampling::AsItLasts {
        finest: interval / (1 << halvings),
        most,
    }
}

/// Adds a series of maxima for each sampled queue length, because the queue may be longer between
/// samples.
fn add_queue_maxima(probes: &mut Vec<Probe>) {
    let of = |quantity| {
        move |probe: &Probe| match probe.target {
            ProbeTarget::Direction(direction, of) if of == quantity => Some(direction),
            _ => None,
        }
    };
    let peaks: Vec<usize> = probes
        .iter()
        .filter_map(of(LinkQuantity::QueueMax))
        .collect();
    let queues: Vec<(usize, String)> = probes
        .iter()
        .filter_map(|probe| Some((of(LinkQuantity::Queue)(probe)?, probe.name.clone())))
        .collect();
    for (direction, name) in queues {
        if !peaks.contains(&direction) {
            probes.push(Probe {
                name: format!("{name}_max"),
                target: ProbeTarget::Direction(direction, LinkQuantity::QueueMax),
            });
        }
    }
}

fn choose_default_probes(scenario: &Scenario) -> Vec<Probe> {
    use FlowQuantity as Of;
    let flow_quantities = [
        Of::CongestionWindow,
        Of::SlowStartThreshold,
        Of::Sent,
        Of::Retransmitted,
        Of::Acknowledged,
        Of::SmoothedRtt,
    ];
    let link_quantities = [
        LinkQuantity::Queue,
        LinkQuantity::QueueMax,
        LinkQuantity::Dropped,
        LinkQuantity::Lost,
    ];
    let of_flow = |index: usize, quantity: Of| Probe {
        name: format!("{}.{}", scenario.flows[index].name, quantity.name()),
        target: ProbeTarget::Flow(index, quantity),
    };
    let mut goodputs = Vec::new();
    let mut first = 0;
    for flows in scenario
        .flows
        .chunk_by(|one, other| one.table == other.table)
    {
        if flows.len() > GOODPUT_OF {
            goodputs.push(Probe {
                name: format!("{}.goodput", flows[0].table),
                target: ProbeTarget::Goodput(first, flows.len()),
            });
        } else {
            let indices = first..first + flows.len();
            goodputs.extend(indices.map(|index| of_flow(index, Of::Goodput)));
        }
        first += flows.len();
    }
    let tables = scenario.flows.iter().map(|flow| &*flow.table);
    let flows = round_robin_by_table(tables, DEFAULT_PROBES_OF)
        .into_iter()
        .flat_map(move |index| flow_quantities.map(|quantity| of_flow(index, quantity)));
    let links = scenario
        .links
        .iter()
        .enumerate()
        .take(DEFAULT_PROBES_OF)
        .flat_map(|(index, link)| {
            let numbered = Way::ALL.iter().filter_map(move |way| {
                let number = scenario.direction_index(index, *way)?;
                Some((number, way))
            });
            numbered.flat_map(move |(number, way)| {
                link_quantities.map(move |quantity| Probe {
                    name: format!("{}.{way}.{}", link.name, quantity.name()),
                    target: ProbeTarget::Direction(number, quantity),
                })
            })
        });
    flows.chain(goodputs).chain(links).collect()
}

/// Chooses at most `most` of the items in `tables`: the first of each table, then the second of
/// each, and so on. Returns their indices in order.
fn round_robin_by_table<'t>(tables: impl Iterator<Item = &'t str>, most: usize) -> Vec<usize> {
    let mut seen = BTreeMap::new();
    let mut chosen: Vec<(usize, usize)> = tables
        .enumerate()
        .map(|(index, table)| {
            let turn: &mut usize = seen.entry(table).or_default();
            *turn += 1;
            (*turn, index)
        })
        .collect();
    chosen.sort_unstable();
    chosen.truncate(most);
    let mut indices: Vec<usize> = chosen.into_iter().map(|(_, index)| index).collect();
    indices.sort_unstable();
    indices
}

/// Returns the probe target of a series.
fn target(scenario: &Scenario, series: Series) -> ProbeTarget {
    match series {
        Series::Flow(flow, of) => ProbeTarget::Flow(flow, of),
        Series::Gateway(node, gauge, _) => ProbeTarget::Node(node, gauge),
        // A direction that does not exist cannot be named: the file would have been refused.
        Series::Link(link, way, of) => ProbeTarget::Direction(
            scenario.direction_index(link, way).unwrap_or(usize::MAX),
            of,
        ),
    }
}
