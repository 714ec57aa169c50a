//! The engine: takes the next event, and does what it says.

mod account;
mod ahead;
mod audience;
mod chain;
mod chained_queues;
mod fetch;
mod hop;
mod managed;
mod outside;
mod passing;
mod probing;
mod segments;
mod slots;

use bentpipe_host::{ApplicationId, Host, Ports};
use bentpipe_tcp::{Connection, Ranges};
use bentpipe_types::{
    Address, Agent, Discards, Gauge, Outbox, PacketRef, PacketStore, Port, Time, Trace,
};

use crate::Tap;
use crate::node::NodeId;
use crate::schedule::Schedule;
use crate::tap::End;
use ahead::Lookahead;
use probing::Probes;
use slots::{ANYWHERE, RECEIVING, SENDING};

pub(crate) use audience::{Audience, Hearer, MANY};
pub use outside::Departure;
pub(crate) use slots::{DirectionSlot, NodeSlot};

/// An application, by its node and its number there.
pub(crate) type FlowEnd = (u16, ApplicationId);

/// A flow: which two applications it is made of.
#[derive(Clone, Debug)]
pub(crate) struct FlowSlot {
    pub(crate) name: String,
    pub(crate) start: Time,
    pub(crate) size: Option<u64>,
    /// The one that opens connections, and the one that is spoken to.
    pub(crate) opener: FlowEnd,
    pub(crate) server: FlowEnd,
    /// Where the opener's packets go: to the server's node, or a channel.
    pub(crate) destination: Address,
    /// Local ports of the opener's: nobody else's there.
    pub(crate) ports: Ports,
    /// The node of the end that measures how long things take.
    pub(crate) measures: u16,
    /// Either end sends as much as the other.
    pub(crate) both: bool,
    /// The one that sends most, and the other.
    pub(crate) sender: FlowEnd,
    pub(crate) receiver: FlowEnd,
}

/// Is there more to run?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// The budget is used up; the run goes on.
    Running,
    /// The end is reached, or nothing is left to happen.
    Ended,
}

/// A network that runs.
pub struct Network {
    now: Time,
    schedule: Schedule,
    packets: PacketStore,
    nodes: Vec<NodeSlot>,
    directions: Vec<DirectionSlot>,
    flows: Vec<FlowSlot>,
    /// Where the ways of packets part that are for several: the directions that each goes to.
    branches: Vec<Box<[u16]>>,
    /// Used again for every packet that many hear.
    hearers: Vec<(u16, Port)>,
    outbox: Outbox,
    /// What a managed direction has let out and nobody has been given yet, the first last; empty
    /// between events.
    arrived: Vec<PacketRef>,
    trace: Trace,
    probes: Probes,
    taps: Vec<Box<dyn Tap + Send>>,
    discards: Discards,
    packet_hops: u64,
    /// When a packet last arrived or was lost, or a node last did something on its own.
    last_activity: Time,
    ended: Option<Time>,
    /// What has arrived at attached nodes and nobody has taken yet.
    departed: Vec<Departure>,
    /// Directions that get all their packets from one other, and that one: what chains are made of, which is done
    /// when the run begins.
    upstream: Vec<(u16, u16)>,
    /// Directions of chains whose queues choose: what has become of what came to them is known once they are caught
    /// up with.
    chained_queues: Vec<u16>,
    lookahead: Lookahead,
}

impl Default for Network {
    /// A network of nothing.
    fn default() -> Self {
        Self::new(Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new())
    }
}

impl Network {
    pub(crate) fn new(
        nodes: Vec<NodeSlot>,
        directions: Vec<DirectionSlot>,
        flows: Vec<FlowSlot>,
        branches: Vec<Box<[u16]>>,
        upstream: Vec<(u16, u16)>,
    ) -> Self {
        let mut network = Self {
            now: Time::ZERO,
            schedule: Schedule::default(),
            packets: PacketStore::default(),
            nodes,
            directions,
            flows,
            branches,
            hearers: Vec::new(),
            outbox: Outbox::new(),
            arrived: Vec::new(),
            trace: Trace::default(),
            probes: Probes::default(),
            taps: Vec::new(),
            discards: Discards::default(),
            packet_hops: 0,
            last_activity: Time::ZERO,
            ended: None,
            departed: Vec::new(),
            upstream,
            chained_queues: Vec::new(),
            lookahead: Lookahead::default(),
        };
        for index in 0..network.nodes.len() {
            network.reschedule(index as u16);
        }
        network
    }

    /// The index of a link direction: `satellite.forward`.
    #[must_use]
    pub fn direction_named(&self, name: &str) -> Option<usize> {
        self.directions
            .iter()
            .position(|slot| slot.seldom.name == name)
    }

    /// The index of a node.
    #[must_use]
    pub fn node_named(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|slot| slot.name == name)
    }

    /// What a probe may look at in a node, by index.
    #[must_use]
    pub fn gauges(&self, node: usize) -> &'static [Gauge] {
        self.nodes.get(node).map_or(&[], |slot| slot.node.gauges())
    }

    /// The index of a flow.
    #[must_use]
    pub fn flow_named(&self, name: &str) -> Option<usize> {
        self.flows.iter().position(|slot| slot.name == name)
    }

    /// A node's name.
    #[must_use]
    pub fn node_name(&self, node: NodeId) -> &str {
        &self.nodes[usize::from(node.0)].name
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Packets queued, in flight or held by nodes.
    #[must_use]
    pub fn packets_held(&self) -> usize {
        self.packets.held()
    }

    /// Lets `tap` see what one end of a link sends and receives.
    pub fn tap(&mut self, link: &str, end: End, tap: Box<dyn Tap + Send>) {
        let (sent, received) = match end {
            End::First => ("forward", "return"),
            End::Second => ("return", "forward"),
        };
        let number = self.taps.len() as u16;
        self.taps.push(tap);
        for index in 0..self.directions.len() {
            let slot = &mut self.directions[index];
            let direction = slot.seldom.name.strip_prefix(link);
            let direction = direction.and_then(|s| s.strip_prefix('.'));
            let end = match direction {
                Some(direction) if direction == sent => SENDING,
                Some(direction) if direction == received => RECEIVING,
                _ => continue,
            };
            slot.set_tap(end, Some(number));
            self.attend(index as u16);
        }
    }

    /// Takes the taps back, to close what they write.
    pub fn take_taps(&mut self) -> Vec<Box<dyn Tap + Send>> {
        for slot in &mut self.directions {
            slot.set_tap(SENDING, None);
            slot.set_tap(RECEIVING, None);
        }
        std::mem::take(&mut self.taps)
    }

    /// Runs up to and including `until`, or `budget` events, whichever comes first.
    pub fn run(&mut self, until: Time, budget: u64) -> Progress {
        self.begin();
        self.begin_lookahead(until);
        let sampler = self.sampler();
        let nodes = self.directions.len() as u16;
        let is_large = self.is_large();
        let mut left = budget;
        loop {
            if left == 0 {
                return Progress::Running;
            }
            let horizon = self.lookahead.horizon;
            let first = self.schedule.first().filter(|(at, _)| *at <= horizon);
            if self.lookahead.is_time_to_tell(first) {
                left = self.tell_all(left);
                continue;
            }
            let Some((at, component)) = first else {
                if self.look_further(until) {
                    continue;
                }
                return self.end(until);
            };
            debug_assert!(at >= self.now, "time runs forward");
            left -= 1;
            self.now = at;
            if is_large {
                self.fetch_next_arrivals();
            }
            if component.0 < nodes {
                self.on_arrival(component.0);
            } else if component != sampler {
                let node = component.0 - nodes;
                if self.may_be_over_at(node) && self.may_end_now() {
                    return self.end(until);
                }
                self.on_deadline(node);
            } else if self.nothing_is_scheduled() || self.may_end_now() {
                return self.end(until);
            } else {
                self.sample();
            }
        }
    }

    /// The first time that it runs: it is known now where probes and taps look.
    #[inline]
    fn begin(&mut self) {
        if !std::mem::replace(&mut self.probes.settled, true) {
            self.settle_probes();
            self.make_chains();
        }
    }

    /// Runs up to and including `until`.
    pub fn run_until(&mut self, until: Time) {
        while self.run(until, u64::MAX) == Progress::Running {}
    }

    fn end(&mut self, until: Time) -> Progress {
        self.settle(until);
        // Where nothing is left but connections in TIME-WAIT, and those that are kept alive, the run was over when
        // something last happened.
        let quiet = self.nothing_is_scheduled() || self.is_quiet();
        let ended = if quiet {
            let last_activity = self.last_activity.max(self.lookahead.last_activity);
            self.last_end().max(last_activity)
        } else {
            until
        };
        // A host that was told ahead may have met a deadline since, at which it had nothing to send.
        let clocks = self.nodes.iter().map(|slot| slot.clock);
        self.now = clocks.fold(self.now.max(ended), Time::max);
        self.ended = Some(ended);
        self.finish_probes(ended);
        Progress::Ended
    }

    /// Is this the deadline of an agent, and no packet anywhere but at nodes? Then it may be one of those that are
    /// no work ([`Agent::is_quiet`]), and the run over. What an agent has counted and holds is what its result says, and has
    /// to be the same whether a probe has looked meanwhile or not; of hosts, nothing is said that such a deadline changes.
    fn may_be_over_at(&self, node: u16) -> bool {
        self.nodes[usize::from(node)].node.is_custom() && self.nothing_in_transit()
    }

    /// Whether nothing is scheduled but the next sample of the probes. Such a run is over: without probes it would
    /// have ended for want of events.
    fn nothing_is_scheduled(&self) -> bool {
        let samples = usize::from(self.next_look().is_some());
        !self.schedule.exceeds(samples) && !self.lookahead.tells_later()
    }

    /// Whether the run may end at a sample of the probes, or at the deadline of a quiet agent. Invariant: whatever is
    /// still scheduled then changes no result, so that recording a run does not change it.
    fn may_end_now(&mut self) -> bool {
        self.settle(self.now);
        self.is_quiet() && !self.awaits_capacity()
    }

    /// Whether a link direction has asked for capacity that is still to be granted. Its grants are results.
    fn awaits_capacity(&self) -> bool {
        (self.directions.iter()).any(|slot| slot.direction.awaits_capacity())
    }

    /// Can nothing happen any more? Every flow has begun, no packet is left anywhere, and no
    /// connection waits for a time to come, unless it is for the end of TIME-WAIT. The peer of one
    /// that has given up stays open for good.
    fn is_quiet(&self) -> bool {
        self.nothing_in_transit()
            && !self.flows.is_empty()
            && self.nodes.iter().all(|slot| slot.node.is_quiet())
    }

    /// Packets that nodes keep may stay for good.
    fn nothing_in_transit(&self) -> bool {
        self.packets.held() == 0 || !self.directions.iter().any(DirectionSlot::has_events)
    }

    /// When a flow was last over: to give up a connection, or to hang up, sends nothing.
    fn last_end(&self) -> Time {
        let ends = self
            .flows
            .iter()
            .filter_map(|flow| self.flow_outcome(flow, self.now).ended);
        ends.fold(Time::ZERO, Time::max)
    }

    fn host(&self, node: u16) -> Option<&Host<Ranges>> {
        self.nodes[usize::from(node)].node.host()
    }

    /// The connection that stands for an application.
    fn connection(&self, (node, end): FlowEnd) -> Option<&Connection> {
        self.host(node)?.connection(end)
    }
}

#[cfg(test)]
mod tests;
