//! The engine: takes the next event, and does what it says.

mod account;
mod ahead;
mod audience;
mod chain;
mod managed;
mod outside;
mod probing;
mod segments;

use bentpipe_host::{ApplicationId, Host, Ports};
use bentpipe_link::{Arrival, Direction, Settings, Verdict};
use bentpipe_tcp::{Connection, Ranges};
use bentpipe_types::{
    Address, Agent, Ctx, Discards, Gauge, Outbox, PacketRef, PacketStore, Port, RandomStream, Time,
    Trace,
};

use crate::Tap;
use crate::node::{Node, NodeId};
use crate::router::Refusal;
use crate::schedule::{ComponentId, Schedule};
use crate::tap::End;
use ahead::Lookahead;
use chain::Onward;
use probing::Probes;

pub(crate) use audience::{Audience, Hearer, MANY};
pub use outside::Departure;

/// The direction behind each port of a node; `u16::MAX` behind one that only receives. Numbers beyond all
/// directions are of branches: what goes there goes to several directions.
///
/// Most nodes of a large network have one port: theirs is beside what else a packet needs of its node, not
/// behind a pointer.
struct Ways {
    first: u16,
    others: Box<[u16]>,
}

impl Ways {
    fn new(ports: &[u16]) -> Self {
        let (first, others) = ports.split_first().unwrap_or((&u16::MAX, &[]));
        Self {
            first: *first,
            others: others.into(),
        }
    }

    /// `u16::MAX` behind a port that there is not.
    #[inline]
    fn behind(&self, port: Port) -> u16 {
        match port.0 {
            0 => self.first,
            port => {
                let others = self.others.get(usize::from(port) - 1);
                others.copied().unwrap_or(u16::MAX)
            }
        }
    }
}

/// A node in its place. What a packet needs of it that is a host comes first, and of its node, too.
#[repr(C, align(64))]
pub(crate) struct NodeSlot {
    /// The earliest of its entries in the schedule; later ones are stale.
    scheduled: Option<Time>,
    /// Of a host that is told ahead: when something last happened there.
    clock: Time,
    ways: Ways,
    /// A probe wants to look after each of its events.
    watched: bool,
    node: Node,
    name: String,
    random: RandomStream,
}

impl NodeSlot {
    pub(crate) fn new(name: String, node: Node, ports: Vec<u16>, random: RandomStream) -> Self {
        Self {
            name,
            node,
            ways: Ways::new(&ports),
            random,
            scheduled: None,
            watched: false,
            clock: Time::ZERO,
        }
    }

    /// When the node is to be entered in the schedule, if it is: an entry as early is there already, or
    /// it has no deadline. It counts as entered.
    #[inline(always)]
    fn due(&mut self, now: Time) -> Option<Time> {
        let at = self.deadline()?;
        if self.scheduled.is_some_and(|scheduled| scheduled <= at) {
            return None;
        }
        let at = at.max(now);
        self.scheduled = Some(at);
        Some(at)
    }

    /// When the node next wants to run: a host that was told ahead not before what it was told.
    #[inline(always)]
    fn deadline(&self) -> Option<Time> {
        self.node.next_deadline().map(|at| at.max(self.clock))
    }

    pub(crate) fn node_mut(&mut self) -> &mut Node {
        &mut self.node
    }
}

/// A link direction in its place: two cache lines, of which an arrival from a drop-tail queue needs the first.
#[repr(C, align(64))]
pub(crate) struct DirectionSlot {
    /// It is the upstream of others: only what leaves the chain at its end is an event.
    onward: Option<Box<Onward>>,
    to: u16,
    to_port: Port,
    /// Where all its packets come from, in a chain; [`ANYWHERE`] outside of chains.
    upstream: u16,
    /// A probe or a tap looks: one byte to test for the many at which nobody does.
    attended: bool,
    /// What arrives is told its host as soon as it is known, and not in the schedule.
    ahead: bool,
    direction: Direction,
    seldom: Box<Seldom>,
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    // What the direction has first, 48 bytes, is what an arrival needs.
    assert!(std::mem::offset_of!(DirectionSlot, direction) == 64 - 48);
    assert!(size_of::<DirectionSlot>() == 2 * 64);
};

/// What packets of a drop-tail direction at which nobody looks do not need of its slot.
struct Seldom {
    name: String,
    /// The tap at its sending end and the one at its receiving end.
    taps: [Option<u16>; 2],
    /// Who hears what arrives; `None`: the one node that it leads to.
    audience: Option<Box<Audience>>,
    /// A probe wants every change of its queue.
    watched: bool,
    /// The earliest of a managed direction's entries in the schedule; later ones are stale. Another
    /// direction's one entry is the arrival of its head.
    scheduled: Option<Time>,
}

const SENDING: usize = 0;
const RECEIVING: usize = 1;

/// In the place of a direction's upstream: it has none.
const ANYWHERE: u16 = u16::MAX;

impl DirectionSlot {
    pub(crate) fn new(name: String, to: u16, to_port: Port, settings: Settings) -> Self {
        Self::with(name, to, to_port, Direction::new(settings), None)
    }

    /// A direction that many hear.
    pub(crate) fn broadcast(name: String, audience: Audience, settings: Settings) -> Self {
        let direction = Direction::managed(settings);
        let audience = Some(Box::new(audience));
        Self::with(name, MANY, Port::default(), direction, audience)
    }

    fn with(
        name: String,
        to: u16,
        to_port: Port,
        direction: Direction,
        audience: Option<Box<Audience>>,
    ) -> Self {
        Self {
            onward: None,
            to,
            to_port,
            upstream: ANYWHERE,
            attended: false,
            ahead: false,
            direction,
            seldom: Box::new(Seldom {
                name,
                taps: [None; 2],
                audience,
                watched: false,
                scheduled: None,
            }),
        }
    }

    /// A probe wants every change of the queue.
    fn watch(&mut self) {
        self.seldom.watched = true;
        self.attended = true;
    }

    /// The tap at one end: this one, or none any more.
    fn set_tap(&mut self, end: usize, tap: Option<u16>) {
        let seldom = &mut *self.seldom;
        seldom.taps[end] = tap;
        self.attended = seldom.watched || seldom.taps.iter().any(Option::is_some);
    }
}

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
        if !self.upstream.is_empty() {
            self.make_chains();
        }
        self.begin_lookahead(until);
        let sampler = self.sampler();
        let nodes = self.directions.len() as u16;
        let mut left = budget;
        loop {
            while let Some(index) = self.lookahead.ready.pop() {
                left = self.tell(index, left);
                if left == 0 {
                    return Progress::Running;
                }
            }
            if left == 0 {
                return Progress::Running;
            }
            let horizon = self.lookahead.horizon;
            let Some((at, component)) = self.schedule.first().filter(|(at, _)| *at <= horizon)
            else {
                if self.look_further(until) {
                    continue;
                }
                return self.end(until);
            };
            debug_assert!(at >= self.now, "time runs forward");
            left -= 1;
            self.now = at;
            if component.0 < nodes {
                self.on_arrival(component.0);
            } else if component != sampler {
                self.on_deadline(component.0 - nodes);
            } else if self.is_quiet() {
                return self.end(until);
            } else {
                self.sample();
            }
        }
    }

    /// Runs up to and including `until`.
    pub fn run_until(&mut self, until: Time) {
        while self.run(until, u64::MAX) == Progress::Running {}
    }

    fn end(&mut self, until: Time) -> Progress {
        // Where nothing is left but connections in TIME-WAIT, the run was over when something last
        // happened.
        let quiet = self.schedule.first().is_none() || self.is_quiet();
        let ended = if quiet {
            let last_activity = self.last_activity.max(self.lookahead.last_activity);
            self.last_failure().max(last_activity)
        } else {
            until
        };
        self.now = self.now.max(ended);
        self.ended = Some(ended);
        self.finish_probes(ended);
        Progress::Ended
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

    /// When a connection was last given up, which sends nothing.
    fn last_failure(&self) -> Time {
        let ends = self
            .flows
            .iter()
            .flat_map(|flow| [flow.sender, flow.receiver]);
        ends.filter_map(|(node, end)| self.host(node)?.statistics(end)?.failure)
            .map(|failure| failure.at)
            .fold(Time::ZERO, Time::max)
    }

    fn host(&self, node: u16) -> Option<&Host<Ranges>> {
        self.nodes[usize::from(node)].node.host()
    }

    /// The connection that stands for an application.
    fn connection(&self, (node, end): FlowEnd) -> Option<&Connection> {
        self.host(node)?.connection(end)
    }

    /// The packet at the head of a direction arrives.
    #[inline(always)]
    fn on_arrival(&mut self, index: u16) {
        if self.directions[usize::from(index)].attended {
            self.on_attended_arrival(index);
        } else {
            self.arrive::<false>(index);
        }
    }

    #[inline(never)]
    fn on_attended_arrival(&mut self, index: u16) {
        if self.directions[usize::from(index)].seldom.watched {
            self.probe_queue(index);
        }
        self.arrive::<true>(index);
    }

    /// The packet at the head of a direction arrives; does a probe or a tap look?
    #[inline(always)]
    fn arrive<const ATTENDED: bool>(&mut self, index: u16) {
        let slot = &mut self.directions[usize::from(index)];
        let Direction::Fifo(fifo) = &mut slot.direction else {
            return self.on_other_arrival(index);
        };
        if slot.onward.is_some() {
            return self.on_exit(index);
        }
        if slot.ahead {
            self.schedule.remove_first();
            return self.lookahead.ready.push(index);
        }
        let (to, port) = (slot.to, slot.to_port);
        let arrival = fifo.arrive(self.now);
        let next = fifo.first().map(|(at, next)| {
            self.packets.prefetch(next);
            at
        });
        self.schedule.first_goes_on(next);
        if let Some(Arrival::Delivered(packet)) = arrival {
            if ATTENDED && let Some(tap) = slot.seldom.taps[RECEIVING] {
                self.taps[usize::from(tap)].received(self.now, packet, &self.packets);
            }
            self.deliver(to, port, packet);
        } else {
            self.lose(index, arrival);
        }
    }

    /// What has arrived is lost to errors.
    #[inline(never)]
    fn lose(&mut self, index: u16, arrival: Option<Arrival>) {
        let Some(Arrival::Lost(packet)) = arrival else {
            debug_assert!(false, "a direction's entry is the arrival of its head");
            return;
        };
        self.packets.release(packet);
        self.last_activity = self.now;
        if self.directions[usize::from(index)].seldom.watched {
            self.probe_queue(index);
        }
    }

    /// A packet arrives from a direction that is not a drop-tail queue alone, or several do, or none.
    #[inline(never)]
    fn on_other_arrival(&mut self, index: u16) {
        let slot = &mut self.directions[usize::from(index)];
        let (to, port) = (slot.to, slot.to_port);
        let Direction::Queued(queued) = &mut slot.direction else {
            return self.on_managed_arrival(index, to, port);
        };
        let arrival = queued.arrive(self.now, &mut self.packets);
        let next = queued.first().map(|(at, next)| {
            self.packets.prefetch(next);
            at
        });
        self.schedule.first_goes_on(next);
        match arrival {
            Some(Arrival::Delivered(packet)) => self.deliver(to, port, packet),
            lost => self.lose(index, lost),
        }
    }

    /// A managed direction's entry has come up, and packets may arrive from it.
    #[inline(never)]
    fn on_managed_arrival(&mut self, index: u16, to: u16, port: Port) {
        let mut arrived = self.on_managed(index);
        while let Some(packet) = arrived {
            if to == MANY {
                self.spread(index, packet);
            } else {
                self.deliver(to, port, packet);
            }
            arrived = self.arrived.pop();
        }
    }

    /// A packet has come to a node.
    #[inline(always)]
    fn deliver(&mut self, to: u16, port: Port, packet: PacketRef) {
        self.packet_hops += 1;
        self.last_activity = self.now;
        let slot = &self.nodes[usize::from(to)];
        // A router has nothing to do but to say where to: most packets of most networks are at one.
        if let Node::Router(router) = &slot.node
            && !slot.watched
        {
            match router.way(packet, &mut self.packets) {
                Ok(onward) => {
                    let direction = slot.ways.behind(onward);
                    self.transmit(to, direction, packet);
                }
                Err(refusal) => self.refuse(to, packet, refusal),
            }
            return;
        }
        if slot.watched {
            self.probe_received(to, packet);
        }
        self.call(to, |node, cx| node.on_packet(port, packet, cx));
    }

    /// A router does not send a packet on.
    #[cold]
    fn refuse(&mut self, router: u16, packet: PacketRef, refusal: Refusal) {
        self.call(router, |node, cx| {
            if let Node::Router(router) = node {
                router.refuse(packet, refusal, cx);
            }
        });
    }

    /// A node's entry has come up: its deadline, or an earlier one that has moved to later.
    fn on_deadline(&mut self, index: u16) {
        self.schedule.remove_first();
        let slot = &mut self.nodes[usize::from(index)];
        if slot.scheduled != Some(self.now) {
            return;
        }
        slot.scheduled = None;
        match slot.deadline() {
            Some(at) if at <= self.now => self.meet_deadline(index),
            _ => self.reschedule(index),
        }
    }

    /// A node's deadline has come.
    fn meet_deadline(&mut self, index: u16) {
        self.nodes[usize::from(index)].clock = self.now;
        let mut active = false;
        self.call(index, |node, cx| {
            node.on_deadline(cx);
            active = !cx.outbox.is_empty();
        });
        if active {
            self.last_activity = self.now;
        }
    }

    /// Lets a node run, notes its next deadline, and sends what it emits.
    #[inline(always)]
    fn call(&mut self, index: u16, run: impl FnOnce(&mut Node, &mut Ctx<'_>)) {
        let slot = &mut self.nodes[usize::from(index)];
        let mut cx = Ctx {
            now: self.now,
            packets: &mut self.packets,
            random: &mut slot.random,
            outbox: &mut self.outbox,
            discards: &mut self.discards,
        };
        run(&mut slot.node, &mut cx);
        let watched = slot.watched;
        if let Some(at) = slot.due(self.now) {
            let component = ComponentId(self.directions.len() as u16 + index);
            self.schedule.push(at, component);
        }
        if watched {
            self.probe_node(index);
        }
        let mut position = 0;
        while let Some((port, packet)) = self.outbox.get(position).copied() {
            let direction = self.nodes[usize::from(index)].ways.behind(port);
            self.transmit(index, direction, packet);
            position += 1;
        }
        self.outbox.clear();
    }

    /// Enters the node's next deadline, unless an entry as early is there already.
    fn reschedule(&mut self, index: u16) {
        if let Some(at) = self.nodes[usize::from(index)].due(self.now) {
            let component = ComponentId(self.directions.len() as u16 + index);
            self.schedule.push(at, component);
        }
    }

    /// Offers a packet to the direction behind a port.
    #[inline(never)]
    fn transmit(&mut self, from: u16, index: u16, packet: PacketRef) {
        let Some(slot) = self.directions.get(usize::from(index)) else {
            return self.leave(from, index, packet);
        };
        if slot.attended {
            self.transmit_attended(index, packet);
        } else if let Direction::Fifo(_) = slot.direction {
            self.queue(index, packet);
        } else {
            self.transmit_other(index, packet);
        }
    }

    /// Offers a packet to a direction that is not a drop-tail queue alone.
    #[inline(never)]
    fn transmit_other(&mut self, index: u16, packet: PacketRef) {
        match self.directions[usize::from(index)].direction {
            Direction::Queued(_) => self.transmit_queued(index, packet),
            _ => self.transmit_managed(index, packet),
        }
    }

    /// Offers a packet to a direction at which a probe or a tap looks.
    #[inline(never)]
    fn transmit_attended(&mut self, index: u16, packet: PacketRef) {
        let seldom = &self.directions[usize::from(index)].seldom;
        let (watched, tap) = (seldom.watched, seldom.taps[SENDING]);
        if watched {
            // The queue as it was, before this packet brings it up to date.
            self.probe_queue(index);
        }
        let Direction::Fifo(_) = self.directions[usize::from(index)].direction else {
            return self.transmit_other(index, packet);
        };
        let start = self.queue(index, packet);
        if let (Some(start), Some(tap)) = (start, tap) {
            self.taps[usize::from(tap)].sent(start, packet, &self.packets);
        }
        if watched {
            self.probe_queue(index);
        }
    }

    /// A packet has come into a drop-tail direction that was empty.
    #[inline(always)]
    fn expect(&mut self, index: u16) {
        let slot = &self.directions[usize::from(index)];
        if slot.ahead {
            self.lookahead.ready.push(index);
        } else if let Direction::Fifo(fifo) = &slot.direction {
            let arrival = fifo.last_arrival();
            self.schedule.push(arrival, ComponentId(index));
        }
    }

    /// Offers a packet to a drop-tail queue. When its transmission begins; `None`, if the queue is full.
    #[inline(always)]
    fn queue(&mut self, index: u16, packet: PacketRef) -> Option<Time> {
        let slot = &mut self.directions[usize::from(index)];
        let Direction::Fifo(fifo) = &mut slot.direction else {
            debug_assert!(false, "a managed direction has a queue of its own");
            return None;
        };
        debug_assert!(slot.upstream == ANYWHERE, "it has one upstream only");
        let leads_on = slot.onward.is_some();
        if leads_on {
            fifo.make_room(self.now);
        }
        let length = self.packets.get(packet).length();
        if fifo.enqueue(self.now, packet, length) == Verdict::Dropped {
            self.packets.release(packet);
            return None;
        }
        let start = fifo.last_start();
        if leads_on {
            self.follow(index, packet, length);
        } else if fifo.in_transit() == 1 {
            self.expect(index);
        }
        Some(start)
    }
}

#[cfg(test)]
mod tests;
