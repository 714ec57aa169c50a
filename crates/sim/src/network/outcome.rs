//! Outcome of a run, and verification that every packet is accounted for.

use std::collections::BTreeMap;

use bentpipe_link::Direction;
use bentpipe_tcp::Statistics;
use bentpipe_types::{Address, Agent, Endpoint, Time};

use super::fast::FastPaths;
use super::{FlowEnd, FlowSlot, Network};
use crate::{AgentOutcome, Counts, DirectionOutcome, FlowEndData, FlowOutcome, Outcome, Violation};

/// Flows by the opener's node and first port, with the last port and the server's node.
#[derive(Default)]
struct FlowsByEnds(BTreeMap<(Address, u16), (u16, Address, usize)>);

impl FlowsByEnds {
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
        for slot in &mut self.directions {
            slot.direction.settle(ended, &mut self.packets);
        }
        let by_ends = self.flows_by_ends();
        let (direction_states, packet_hops) = FastPaths::read_outs(self).direction_states(ended);
        let directions = self
            .directions
            .iter()
            .zip(direction_states)
            .map(|(slot, standing)| {
                let (counts, flow_counts) = self.counts(&slot.direction, &by_ends);
                DirectionOutcome {
                    name: slot.rare.name.clone(),
                    counters: standing.counters,
                    utilization: share(standing.busy.as_secs_f64(), ended),
                    in_transit: standing.in_transit as u64,
                    broadcast: slot.rare.receivers.is_some(),
                    counts,
                    flow_counts,
                    classes: slot.direction.classes().to_vec(),
                    access: slot.direction.access(ended),
                }
            })
            .collect();
        Outcome {
            ended,
            packet_hops,
            discards: self.discards,
            flows: self
                .flows
                .iter()
                .map(|flow| self.flow_outcome(flow, ended))
                .collect(),
            directions,
            agents: self.agent_outcomes(),
            series: std::mem::take(&mut self.trace).into_series(),
        }
    }

    fn agent_outcomes(&self) -> Vec<AgentOutcome> {
        let agents = self.nodes.iter().filter(|slot| slot.node.is_custom());
        agents
            .map(|slot| (&slot.name, slot.node.agent()))
            .map(|(name, agent)| {
                let mut counters = Vec::new();
                agent.counters(&mut |name, value| counters.push((name.to_owned(), value)));
                AgentOutcome {
                    name: name.clone(),
                    counters,
                    holdings: agent.holdings(),
                    stream_check: agent.stream_check(),
                }
            })
            .collect()
    }

    /// Returns the counters of a direction's parts: totals, and by flow in the order of flows.
    fn counts(
        &self,
        direction: &Direction,
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
            .map(|(index, counts)| (self.flows[index].name.clone(), counts))
            .collect();
        if !others.is_empty() {
            named.push(("other".to_owned(), others));
        }
        (all, named)
    }

    fn flows_by_ends(&self) -> FlowsByEnds {
        let flows = self.flows.iter().enumerate();
        let ends = flows.map(|(index, flow)| {
            let (first, last) = flow.ports.bounds();
            let ends = (last, flow.destination, index);
            ((Address(flow.opener.0), first), ends)
        });
        FlowsByEnds(ends.collect())
    }

    fn statistics(&self, (node, end): FlowEnd) -> Option<Statistics> {
        self.host(node)?.statistics(end)
    }

    pub(super) fn flow_outcome(&self, flow: &FlowSlot, ended: Time) -> FlowOutcome {
        let tells = |(node, end): FlowEnd| {
            let report = self.host(node).and_then(|host| host.report(end, ended));
            report.unwrap_or_default()
        };
        let datagrams = |(node, end)| self.host(node).map_or(0, |host| host.datagram_bytes(end));
        FlowOutcome::of(FlowEndData {
            multicast: flow.destination.channel().is_some(),
            name: flow.name.clone(),
            start: flow.start,
            size: flow.size,
            both: flow.both,
            sender: self.statistics(flow.sender),
            receiver: self.statistics(flow.receiver),
            datagram_bytes: [datagrams(flow.sender), datagrams(flow.receiver)],
            reports: [tells(flow.opener), tells(flow.server)],
        })
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
        for flow in &self.flows {
            let misplaced = |end| {
                self.statistics(end)
                    .is_some_and(|statistics| statistics.payload_mismatches > 0)
            };
            if misplaced(flow.receiver) || misplaced(flow.sender) {
                found.push(Violation::Stream {
                    flow: flow.name.clone(),
                });
            }
        }
        found
    }
}

fn share(busy_s: f64, ended: Time) -> f64 {
    if ended == Time::ZERO {
        0.0
    } else {
        (busy_s / ended.as_secs_f64()).min(1.0)
    }
}
