//! The engine: processes events in order.

mod chain_routing;
mod external_clock;
mod fast;
mod managed;
mod multicast;
mod outcome;
mod packet_hop;
mod parts;
mod probing;
mod queue_history;
mod segments;
mod shortcuts;
mod slots;

use bentpipe_host::Host;
use bentpipe_tcp::{Connection, Ranges};
use bentpipe_types::{Agent, Discards, Gauge, Outbox, PacketRef, PacketStore, Port, Time, Trace};

use crate::Tap;
use crate::node::NodeId;
use crate::schedule::Schedule;
use crate::tap::End;
use fast::FastPaths;
use probing::Probes;
use slots::{RECEIVING, SENDING};

pub use external_clock::Departure;
pub(crate) use multicast::{MANY, MulticastReceiver, MulticastReceivers};
pub use parts::{Parts, Undivided, WallClock, WindowTimes};
pub(crate) use slots::{DirectionSlot, FlowEnd, FlowSlot, NodeSlot};

/// Whether a run continues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// The event budget is used up; the run continues.
    Running,
    /// The end is reached, or no events are left.
    Ended,
}

/// A running network.
pub struct Network {
    now: Time,
    schedule: Schedule,
    packets: PacketStore,
    nodes: Vec<NodeSlot>,
    directions: Vec<DirectionSlot>,
    flows: Vec<FlowSlot>,
    /// Multicast branch points: the link directions a packet is copied to.
    branches: Vec<Box<[u16]>>,
    /// Receivers of a broadcast packet, reused.
    receivers: Vec<(u16, Port)>,
    outbox: Outbox,
    /// Packets that a managed direction has released and that were not delivered yet, first one
    /// last; empty between events.
    arrived: Vec<PacketRef>,
    trace: Trace,
    probes: Probes,
    taps: Vec<Box<dyn Tap + Send>>,
    discards: Discards,
    packet_hops: u64,
    /// Time at which a packet last arrived or was lost, or a node last acted by itself.
    last_activity: Time,
    ended: Option<Time>,
    /// Packets that have left the network and were not taken yet.
    departed: Vec<Departure>,
    fast: FastPaths,
}

impl Default for Network {
    /// Creates an empty network.
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
            receivers: Vec::new(),
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
            fast: FastPaths::new(upstream),
        };
        for index in 0..network.nodes.len() {
            network.reschedule(index as u16);
        }
        network
    }

    /// Returns the index of a link direction: `satellite.forward`.
    #[must_use]
    pub fn direction_named(&self, name: &str) -> Option<usize> {
        self.directions
            .iter()
            .position(|slot| slot.rare.name == name)
    }

    /// Returns the index of a node.
    #[must_use]
    pub fn node_named(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|slot| slot.name == name)
    }

    /// Returns the gauges of a node.
    #[must_use]
    pub fn gauges(&self, node: usize) -> &'static [Gauge] {
        self.nodes.get(node).map_or(&[], |slot| slot.node.gauges())
    }

    /// Returns the index of a flow.
    #[must_use]
    pub fn flow_named(&self, name: &str) -> Option<usize> {
        self.flows.iter().position(|slot| slot.name == name)
    }

    /// Returns a node's name.
    #[must_use]
    pub fn node_name(&self, node: NodeId) -> &str {
        &self.nodes[usize::from(node.0)].name
    }

    /// Returns the current time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns the number of packets queued, in flight or held by nodes.
    #[must_use]
    pub fn packets_held(&self) -> usize {
        self.packets.held()
    }

    /// Adds a tap at one end of a link.
    pub fn tap(&mut self, link: &str, end: End, tap: Box<dyn Tap + Send>) {
        let (sent, received) = match end {
            End::First => ("forward", "return"),
            End::Second => ("return", "forward"),
        };
        let number = self.taps.len() as u16;
        self.taps.push(tap);
        for index in 0..self.directions.len() {
            let slot = &mut self.directions[index];
            let direction = slot.rare.name.strip_prefix(link);
            let direction = direction.and_then(|s| s.strip_prefix('.'));
            let end = match direction {
                Some(direction) if direction == sent => SENDING,
                Some(direction) if direction == received => RECEIVING,
                _ => continue,
            };
            slot.set_tap(end, Some(number));
            self.observe(index as u16);
        }
    }

    /// Removes and returns the taps.
    pub fn take_taps(&mut self) -> Vec<Box<dyn Tap + Send>> {
        for slot in &mut self.directions {
            slot.set_tap(SENDING, None);
            slot.set_tap(RECEIVING, None);
        }
        std::mem::take(&mut self.taps)
    }

    /// Processes events up to and including `until`, at most `budget` of them.
    pub fn run(&mut self, until: Time, budget: u64) -> Progress {
        self.begin(Some(until));
        let sampler = self.sampler();
        let nodes = self.directions.len() as u16;
        let mut left = budget;
        while let Some((at, component)) = FastPaths::before_event(self, until, &mut left) {
            debug_assert!(at >= self.now, "time runs forward");
            self.now = at;
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
        if left == 0 {
            Progress::Running
        } else {
            self.end(until)
        }
    }

    /// Prepares a run up to `until`, or with an external clock. Probes and taps are known by now.
    #[inline]
    fn begin(&mut self, until: Option<Time>) {
        if !std::mem::replace(&mut self.probes.settled, true) {
            self.settle_probes();
        }
        FastPaths::begin(self, until);
    }

    /// Processes events up to and including `until`, and ends the run.
    pub fn run_until(&mut self, until: Time) {
        while self.run(until, u64::MAX) == Progress::Running {}
    }

    fn end(&mut self, until: Time) -> Progress {
        FastPaths::catch_up(self, until);
        // If only connections in TIME-WAIT and keep-alive timers are left, the run ended with the
        // last activity.
        let quiet = self.nothing_is_scheduled() || self.is_quiet();
        let ended = if quiet {
            self.last_end().max(self.last_activity)
        } else {
            until
        };
        // A host may have processed a deadline since, at which it had nothing to send.
        self.now = FastPaths::read_outs(self).latest_clock().max(ended);
        self.ended = Some(ended);
        self.finish_probes(ended);
        Progress::Ended
    }

    /// Whether this is an agent's deadline while no packet is outside nodes. It may then be one
    /// that does not extend the run ([`Agent::is_quiet`]). An agent's counters and holdings are
    /// results, and must not depend on probes; a host's results are not changed by such a deadline.
    fn may_be_over_at(&self, node: u16) -> bool {
        self.nodes[usize::from(node)].node.is_custom() && self.nothing_in_transit()
    }

    /// Whether nothing is scheduled except the next sample. Such a run is over: without probes it
    /// would have ended for lack of events.
    fn nothing_is_scheduled(&self) -> bool {
        let samples = usize::from(self.next_sample().is_some());
        !self.schedule.exceeds(samples) && !FastPaths::read_outs(self).has_unscheduled_arrivals()
    }

    /// Whether the run may end at a sample of the probes, or at the deadline of a quiet agent.
    /// Invariant: whatever is still scheduled then changes no result, so that recording a run does
    /// not change it.
    fn may_end_now(&mut self) -> bool {
        FastPaths::catch_up(self, self.now);
        self.is_quiet() && !self.awaits_capacity()
    }

    /// Whether a link direction has an outstanding capacity request. Its grants are results.
    fn awaits_capacity(&self) -> bool {
        (self.directions.iter()).any(|slot| slot.direction.awaits_capacity())
    }

    /// Whether nothing can happen any more: every flow has begun, no packet is left, and no
    /// connection has a deadline other than the end of TIME-WAIT. A connection whose peer has given
    /// up stays open for ever.
    fn is_quiet(&self) -> bool {
        self.nothing_in_transit()
            && !self.flows.is_empty()
            && self.nodes.iter().all(|slot| slot.node.is_quiet())
    }

    /// Whether no packet is in transit. Packets held by nodes may stay for ever.
    fn nothing_in_transit(&self) -> bool {
        self.packets.held() == 0 || !FastPaths::read_outs(self).has_packets_in_transit()
    }

    /// Returns when a flow last ended: giving up a connection sends nothing.
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

    /// Returns the connection that represents an application.
    fn connection(&self, (node, end): FlowEnd) -> Option<&Connection> {
        self.host(node)?.connection(end)
    }
}

#[cfg(test)]
mod tests;
