//! One network on several processors.
//!
//! [`Network::split`] divides a network at directions with a long constant delay. Each part has its
//! own schedule, packets and clock, and runs on its own thread. All parts run for a window of time
//! that is no longer than the smallest delay between them, and then exchange packets. A packet that
//! one part sends to another within a window arrives after that window. This is conservative
//! synchronous simulation (Nicol, 1993, "The cost of conservative synchronization in parallel
//! discrete event simulations").
//!
//! Contract:
//! - Equal to: one network, byte for byte. Nodes and directions keep their numbers, which order
//!   simultaneous events, and their random streams.
//! - A direction between two parts is split in two
//!   ([`Direction::split_propagation`](bentpipe_link::Direction::split_propagation)): queue and
//!   transmitter are in the part of the sender, arrivals and errors in that of the receiver.
//! - In one part: both ends of a flow whose applications share state, such as the content of
//!   requests, and all terminals with capacity on demand.
//! - Not divided: networks with attached nodes, probes or captures, whose state belongs to an
//!   instant of the whole network.
//! - End: a run may end at the deadline of an agent (`Network::may_end_now`). If a part is quiet at
//!   such a deadline, all parts stop, and it is decided whether the whole network was quiet then.
//! - Tests: `tests/parts.rs` compares random networks with undivided ones.

mod part;
mod partition;
mod windows;

use bentpipe_host::Host;
use bentpipe_link::{Counters, Direction};
use bentpipe_tcp::{Ranges, Statistics};
use bentpipe_types::{Discards, RandomStream, Time};

use super::fast::FastPaths;
use super::{DirectionSlot, FlowEnd, FlowSlot, MANY, Network, NodeSlot, Progress};
use crate::node::Node;
use crate::{AgentOutcome, Outcome, Violation};
use partition::Partition;
use windows::{Stop, Windows};
pub use windows::{WallClock, WindowTimes};

/// Why a network is not divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Undivided {
    /// Nothing separates its nodes: no direction has a constant delay of a millisecond or more, all
    /// flow ends are on one side, or applications share state across such a direction.
    Connected,
    /// It has nodes that stand for real hosts.
    Attached,
    /// Probes or captures observe it.
    Observed,
    /// It has routers that fragment packets.
    Fragments,
}

impl std::fmt::Display for Undivided {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Connected => "no link with a constant delay divides its flows",
            Self::Attached => "it has real hosts",
            Self::Observed => "series or captures are recorded",
            Self::Fragments => "its routers fragment packets",
        })
    }
}

/// A network whose parts run on several processors.
pub struct Parts {
    networks: Vec<Network>,
    flows: Vec<FlowSlot>,
    part_of: Vec<usize>,
    /// For each direction, the parts of its sender and of its receiver.
    ends: Vec<(usize, usize)>,
    windows: Windows,
    ended: Option<Time>,
}

impl Network {
    /// Divides the network into at most this many parts, before its run.
    ///
    /// # Errors
    ///
    /// The whole network, and why it is not divided.
    pub fn split(self, parts: usize) -> Result<Parts, (Box<Self>, Undivided)> {
        let reason = if (self.nodes.iter()).any(|slot| matches!(slot.node, Node::Attached(_))) {
            Undivided::Attached
        } else if !self.taps.is_empty() || self.has_probes() {
            Undivided::Observed
        } else if (self.nodes.iter())
            .any(|slot| matches!(&slot.node, Node::Router(router) if router.divides()))
        {
            Undivided::Fragments
        } else if let Some(partition) = self.partition(parts) {
            return Ok(Parts::new(self, partition));
        } else {
            Undivided::Connected
        };
        Err((Box::new(self), reason))
    }
}

impl Parts {
    fn new(mut whole: Network, partition: Partition) -> Self {
        let Partition {
            part_of,
            parts,
            window,
        } = partition;
        let senders = whole.senders();
        let ends: Vec<(usize, usize)> = (whole.directions.iter().zip(&senders))
            .map(|(slot, from)| {
                let from = part_of.get(usize::from(*from)).copied();
                let to = part_of.get(usize::from(slot.to)).copied();
                let sending = from.or(to).unwrap_or(0);
                (sending, to.unwrap_or(sending))
            })
            .collect();
        let unused = RandomStream::new(0, "", "");
        let mut nodes: Vec<Vec<NodeSlot>> = Vec::new();
        nodes.resize_with(parts, || Vec::with_capacity(part_of.len()));
        for (slot, owner) in whole.nodes.into_iter().zip(&part_of) {
            let mut slot = Some(slot);
            for (part, nodes) in nodes.iter_mut().enumerate() {
                let own = slot.take_if(|_| part == *owner);
                nodes.push(own.map_or_else(
                    || NodeSlot::standing_in(unused.clone()),
                    NodeSlot::not_scheduled,
                ));
            }
        }
        let mut directions: Vec<Vec<DirectionSlot>> = Vec::new();
        directions.resize_with(parts, || Vec::with_capacity(ends.len()));
        for ((mut slot, (sending, receiving)), index) in
            whole.directions.into_iter().zip(&ends).zip(0..)
        {
            let (to, port) = (slot.to, slot.to_port);
            let halves = (sending != receiving)
                .then(|| slot.direction.split_propagation())
                .flatten();
            let arrivals = halves.map(|(arrivals, delay)| {
                let far = &mut nodes[*sending][usize::from(to)];
                if let Node::StandIn(far) = far.node_mut() {
                    far.add(port, index, delay);
                }
                DirectionSlot::of(String::new(), to, port, arrivals)
            });
            let (mut slot, mut arrivals) = (Some(slot), arrivals);
            for (part, directions) in directions.iter_mut().enumerate() {
                let own = if part == *sending {
                    slot.take()
                } else if part == *receiving {
                    arrivals.take()
                } else {
                    None
                };
                directions.push(own.unwrap_or_else(|| {
                    // A broadcast direction has no single far node.
                    let to = if to == MANY {
                        senders[usize::from(index)]
                    } else {
                        to
                    };
                    DirectionSlot::of(String::new(), to, port, Direction::unused())
                }));
            }
        }
        let upstream = whole.fast.take_upstream();
        let networks: Vec<Network> = (nodes.into_iter().zip(directions).enumerate())
            .map(|(part, (nodes, directions))| {
                let chained = upstream.iter().filter(|(next, before)| {
                    ends[usize::from(*next)].0 == part && ends[usize::from(*before)].1 == part
                });
                let chained = chained.copied().collect();
                Network::new(
                    nodes,
                    directions,
                    Vec::new(),
                    whole.branches.clone(),
                    chained,
                )
            })
            .collect();
        let crossing = |(sending, receiving): &(usize, usize)| sending != receiving;
        let arrivals = |part| {
            (ends.iter().zip(0..))
                .filter(|(ends, _)| crossing(ends) && ends.1 == part)
                .map(|(_, index)| index)
                .collect()
        };
        Self {
            windows: Windows::new(window, (0..parts).map(arrivals).collect()),
            networks,
            flows: std::mem::take(&mut whole.flows),
            part_of,
            ends,
            ended: None,
        }
    }

    /// Returns the number of parts.
    #[must_use]
    pub fn count(&self) -> usize {
        self.networks.len()
    }

    /// Measures windows in the rest of the run, in which only one part runs at a time.
    pub fn measure_windows(&mut self, clock: WallClock) {
        self.windows.times = Some((WindowTimes::default(), clock));
    }

    /// Returns the measured times of windows.
    #[must_use]
    pub fn window_times(&self) -> Option<WindowTimes> {
        self.windows.times.map(|(times, _)| times)
    }

    /// Returns the time up to which all parts have run.
    #[must_use]
    pub fn now(&self) -> Time {
        self.networks
            .iter()
            .fold(Time::ZERO, |now, part| now.max(part.now))
    }

    /// Returns the number of packets queued, in flight or held by nodes.
    #[must_use]
    pub fn packets_held(&self) -> usize {
        self.networks.iter().map(Network::packets_held).sum()
    }

    /// Processes events up to and including `until`, and at the end of the window in which the
    /// `budget` of events is used up, returns [`Progress::Running`].
    pub fn run(&mut self, until: Time, budget: u64) -> Progress {
        loop {
            let (networks, windows) = (&mut self.networks, &mut self.windows);
            let stops = windows::run(networks, windows, &self.part_of, until, budget);
            let paused = |(stop, part): (&Stop, usize)| match stop {
                Stop::Paused(pause, last) => pause.map(|pause| (pause, part, *last)),
                Stop::Budget | Stop::Ended => None,
            };
            let first = stops.iter().zip(0..).filter_map(paused).min();
            if stops.iter().any(|stop| matches!(stop, Stop::Budget)) {
                return Progress::Running;
            }
            match first {
                Some((pause, part, last)) if !self.was_quiet_at(pause.at) => {
                    self.windows.resume(part, pause, last);
                }
                _ => break,
            }
        }
        self.end(until);
        Progress::Ended
    }

    /// As `Network::end`.
    fn end(&mut self, until: Time) {
        let latest = self.now();
        for network in &mut self.networks {
            network.now = latest;
            FastPaths::catch_up(network, until);
        }
        let over = self.networks.iter().all(Network::nothing_is_scheduled);
        let quiet = || self.networks.iter().all(Network::part_is_quiet) && !self.flows.is_empty();
        let ended = if over || quiet() {
            let last_end = (self.flows.iter())
                .filter_map(|flow| self.flow_outcome(flow, latest).ended)
                .fold(Time::ZERO, Time::max);
            self.networks
                .iter()
                .fold(last_end, |at, network| at.max(network.last_activity))
        } else {
            until
        };
        let clocks = self.networks.iter();
        let now = clocks.fold(ended, |now, network| {
            now.max(FastPaths::read_outs(network).latest_clock())
        });
        for network in &mut self.networks {
            network.now = now;
            network.ended = Some(ended);
        }
        self.ended = Some(ended);
    }

    /// Returns the outcome so far, as [`Network::outcome`].
    #[must_use]
    pub fn outcome(&mut self) -> Outcome {
        debug_assert_eq!(self.violations(), [], "not every packet is accounted for");
        let ended = self.ended.unwrap_or_else(|| self.now());
        let mut packet_hops = 0;
        let mut discards = Discards::default();
        let mut outcomes = Vec::with_capacity(self.networks.len());
        let by_ends = super::outcome::FlowsByEnds::new(&self.flows);
        for (part, network) in self.networks.iter_mut().enumerate() {
            let has_half = |index: usize| {
                let (sending, receiving) = self.ends[index];
                sending == part || receiving == part
            };
            let (directions, hops) =
                network.direction_outcomes(ended, &self.flows, &by_ends, has_half);
            outcomes.push(directions);
            // A packet that leaves for another part arrives there.
            packet_hops += hops;
            discards.add(&network.discards);
        }
        let mut directions = Vec::with_capacity(self.ends.len());
        for (index, (sending, receiving)) in self.ends.iter().enumerate() {
            let Some(mut outcome) = outcomes[*sending][index].take() else {
                continue;
            };
            if sending != receiving
                && let Some(arrivals) = outcomes[*receiving][index].take()
            {
                packet_hops -= outcome.counters.delivered;
                outcome.counters = Counters::of_halves(outcome.counters, arrivals.counters);
                outcome.in_transit += arrivals.in_transit;
            }
            directions.push(outcome);
        }
        Outcome {
            ended,
            packet_hops,
            discards,
            flows: (self.flows.iter())
                .map(|flow| self.flow_outcome(flow, ended))
                .collect(),
            directions,
            agents: self.agent_outcomes(),
            series: Vec::new(),
        }
    }

    /// Returns packets that are not accounted for and bytes at wrong offsets, as
    /// [`Network::violations`].
    #[must_use]
    pub fn violations(&self) -> Vec<Violation> {
        let parts = self.networks.iter().flat_map(Network::violations);
        let statistics = |end| self.statistics(end);
        let streams = super::outcome::stream_violations(&self.flows, statistics);
        parts.chain(streams).collect()
    }

    fn agent_outcomes(&self) -> Vec<AgentOutcome> {
        let nodes = self.part_of.iter().enumerate();
        nodes
            .filter_map(|(node, part)| self.networks[*part].nodes[node].agent_outcome())
            .collect()
    }

    /// Whether the run is over at a part's deadline, at which that part is quiet: whether all
    /// others were quiet at that time. Events that they have processed since change no result.
    fn was_quiet_at(&self, at: Time) -> bool {
        let last_end = || {
            let ends = self.flows.iter();
            ends.filter_map(|flow| self.flow_outcome(flow, at).ended)
                .fold(Time::ZERO, Time::max)
        };
        !self.flows.is_empty()
            && (self.networks.iter()).all(|part| part.part_is_quiet() && part.last_activity <= at)
            && last_end() <= at
    }

    fn host(&self, node: u16) -> Option<&Host<Ranges>> {
        self.networks[self.part_of[usize::from(node)]].host(node)
    }

    fn statistics(&self, (node, end): FlowEnd) -> Option<Statistics> {
        self.host(node)?.statistics(end)
    }

    fn flow_outcome(&self, flow: &FlowSlot, ended: Time) -> crate::FlowOutcome {
        super::outcome::flow_outcome(flow, ended, |node| self.host(node))
    }
}
