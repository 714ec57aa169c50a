//! Outcome of a run, and verification that every packet is accounted for.

use std::collections::BTreeMap;

use bentpipe_host::Host;
use bentpipe_link::Direction;
use bentpipe_tcp::{Ranges, Statistics};
use bentpipe_types::{Address, Agent, Endpoint, Time};

use super::fast::{DirectionState, FastPaths};
use super::{DirectionSlot, FlowEnd, FlowSlot, Network, NodeSlot};
use crate::{AgentOutcome, Counts, DirectionOutcome, FlowEndData, FlowOutcome, Outcome, Violation};

/// Flows by the opener's node and first port, with the last port and the server's node.
#[derive(Default)]
pub(super) struct FlowsByEnds(BTreeMap<(Address, u16), (u16, Address, usize)>);

impl FlowsByEnds {
    pub(super) fn new(flows: &[FlowSlot]) -> Self {
        let ends = flows.iter().enumerate().map(|(index, flow)| {
            let (first, last) = flow.ports.bounds();
            let ends = (last, flow.destination, index);
            ((Address(flow.opener.0), first), ends)
        });
        Self(ends.collect())
    }

    /// Returns the flow of packets between two endpoints, in either direction.
    fn of(&self, source: Endpoint, destination: Endpoint) -> Option<usize> {
        let between = |opener: Endpoint, server: Endpoint| {
            let end = (opener.address, opener.port);
            let (first, (last, node, flow)) = self.0.range(..=end).next_back()?;
            let matches = first.0 == end.0 && end.1 <= *last && *node == server.address;
            matches.then_some(*flow)
        };
        between(source, destination).or_else(|| between(destination, source))
    }
}

impl Network {
    /// Returns the outcome so far, and removes the recorded series.
    ///
    /// A debug build verifies that every packet is accounted for.
    #[must_use]
    pub fn outcome(&mut self) -> Outcome {
        debug_assert_eq!(self.violations(), [], "not every packet is accounted for");
        let ended = self.ended.unwrap_or(self.now);
        let by_ends = FlowsByEnds::new(&self.flows);
        let flows = std::mem::take(&mut self.flows);
        let (directions, packet_hops) = self.direction_outcomes(ended, &flows, &by_ends, |_| true);
        self.flows = flows;
        Outcome {
            ended,
            packet_hops,
            discards: self.discards,
            flows: self
                .flows
                .iter()
                .map(|flow| self.flow_outcome(flow, ended))
                .collect(),
            directions: directions.into_iter().flatten().collect(),
            agents: self.agent_outcomes(),
            series: std::mem::take(&mut self.trace).into_series(),
        }
    }

    /// Returns the outcomes of the selected directions, and the number of packet-hops.
    pub(super) fn direction_outcomes(
        &mut self,
        ended: Time,
        flows: &[FlowSlot],
        by_ends: &FlowsByEnds,
        is_selected: impl Fn(usize) -> bool,
    ) -> (Vec<Option<DirectionOutcome>>, u64) {
        for slot in &mut self.directions {
            slot.direction.settle(ended, &mut self.packets);
        }
        let (direction_states, packet_hops) = FastPaths::read_outs(self).direction_states(ended);
        let outcome = |((slot, standing), index): ((&DirectionSlot, DirectionState), usize)| {
            if !is_selected(index) {
                return None;
            }
            let (counts, flow_counts) = counts(&slot.direction, flows, by_ends);
            Some(DirectionOutcome {
                name: slot.rare.name.clone(),
                counters: standing.counters,
                utilization: share(standing.busy.as_secs_f64(), ended),
                in_transit: standing.in_transit as u64,
                broadcast: slot.rare.receivers.is_some(),
                counts,
                flow_counts,
                classes: slot.direction.classes().to_vec(),
                access: slot.direction.access(ended),
            })
        };
        let all = self.directions.iter().zip(direction_states).zip(0..);
        (all.map(outcome).collect(), packet_hops)
    }

    fn agent_outcomes(&self) -> Vec<AgentOutcome> {
        let nodes = self.nodes.iter();
        nodes.filter_map(NodeSlot::agent_outcome).collect()
    }

    fn statistics(&self, (node, end): FlowEnd) -> Option<Statistics> {
        self.host(node)?.statistics(end)
    }

    pub(super) fn flow_outcome(&self, flow: &FlowSlot, ended: Time) -> FlowOutcome {
        flow_outcome(flow, ended, |node| self.host(node))
    }

    /// Returns packets that are not accounted for and bytes at wrong offsets. Empty unless the
    /// engine has a fault.
    #[must_use]
    pub fn violations(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        let mut all_in_transit = 0;
        let (direction_states, _) = FastPaths::read_outs(self).direction_states(self.now);
        for (slot, standing) in self.directions.iter().zip(direction_states) {
            let counters = standing.counters;
            let in_transit = standing.in_transit as u64;
            let held_back = slot.direction.held_back() as u64;
            all_in_transit += in_transit + held_back;
            let left = counters.delivered
                + counters.lost
                + counters.dropped
                + counters.removed
                + counters.undecodable;
            if counters.offered + counters.duplicated + counters.copied != left + in_transit
                || counters.delivered + counters.made
                    != counters.passed_on + counters.released + held_back
            {
                found.push(Violation::Direction {
                    name: slot.rare.name.clone(),
                    counters,
                    in_transit,
                    held_back,
                });
            }
        }
        let mut at_nodes = self.departed.len() as u64;
        for slot in &self.nodes {
            at_nodes += slot.node.holdings().packets;
            let check = slot.node.stream_check();
            if check.mismatches > 0 {
                found.push(Violation::Agent {
                    name: slot.name.clone(),
                    check,
                });
            }
        }
        let held = self.packets.references();
        if held != all_in_transit + at_nodes {
            found.push(Violation::Store {
                held,
                in_transit: all_in_transit,
                at_nodes,
            });
        }
        found.extend(stream_violations(&self.flows, |end| self.statistics(end)));
        found
    }
}

impl NodeSlot {
    /// Returns the outcome of an agent.
    pub(super) fn agent_outcome(&self) -> Option<AgentOutcome> {
        let agent = self.node.is_custom().then(|| self.node.agent())?;
        let mut counters = Vec::new();
        agent.counters(&mut |name, value| counters.push((name.to_owned(), value)));
        Some(AgentOutcome {
            name: self.name.clone(),
            counters,
            holdings: agent.holdings(),
            stream_check: agent.stream_check(),
        })
    }
}

/// Returns the outcome of a flow whose hosts are found by `host`.
pub(super) fn flow_outcome<'a>(
    flow: &FlowSlot,
    ended: Time,
    host: impl Fn(u16) -> Option<&'a Host<Ranges>>,
) -> FlowOutcome {
    let report = |(node, end): FlowEnd| host(node).and_then(|host| host.report(end, ended));
    let datagrams = |(node, end)| host(node).map_or(0, |host| host.datagram_bytes(end));
    let statistics = |(node, end): FlowEnd| host(node)?.statistics(end);
    FlowOutcome::of(FlowEndData {
        multicast: flow.destination.channel().is_some(),
        name: flow.name.clone(),
        start: flow.start,
        size: flow.size,
        both: flow.both,
        sender: statistics(flow.sender),
        receiver: statistics(flow.receiver),
        datagram_bytes: [datagrams(flow.sender), datagrams(flow.receiver)],
        reports: [flow.opener, flow.server].map(|end| report(end).unwrap_or_default()),
    })
}

/// Returns the flows with bytes at wrong offsets.
pub(super) fn stream_violations<'f>(
    flows: &'f [FlowSlot],
    statistics: impl Fn(FlowEnd) -> Option<Statistics> + 'f,
) -> impl Iterator<Item = Violation> + 'f {
    flows.iter().filter_map(move |flow| {
        let misplaced =
            |end| statistics(end).is_some_and(|statistics| statistics.payload_mismatches > 0);
        (misplaced(flow.receiver) || misplaced(flow.sender)).then(|| Violation::Stream {
            flow: flow.name.clone(),
        })
    })
}

/// Returns the counters of a direction's parts: totals, and by flow in the order of flows.
fn counts(
    direction: &Direction,
    flows: &[FlowSlot],
    by_ends: &FlowsByEnds,
) -> (Counts, Vec<(String, Counts)>) {
    let mut all = Counts::new();
    let mut by_flow: BTreeMap<usize, Counts> = BTreeMap::new();
    let mut others = Counts::new();
    direction.tally(&mut |flow, name, value| {
        let counts = match flow {
            None => &mut all,
            Some(flow) => match by_ends.of(flow.source, flow.destination) {
                Some(index) => by_flow.entry(index).or_default(),
                None => &mut others,
            },
        };
        // Two parts may have a counter of the same name.
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum += value,
            None => counts.push((name, value)),
        }
    });
    let mut named: Vec<(String, Counts)> = by_flow
        .into_iter()
        .map(|(index, counts)| (flows[index].name.clone(), counts))
        .collect();
    if !others.is_empty() {
        named.push(("other".to_owned(), others));
    }
    (all, named)
}

fn share(busy_s: f64, ended: Time) -> f64 {
    if ended == Time::ZERO {
        0.0
    } else {
        (busy_s / ended.as_secs_f64()).min(1.0)
    }
}
