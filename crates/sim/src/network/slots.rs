//! Storage of flows, nodes and link directions, with their hot fields together.

use bentpipe_host::{ApplicationId, Ports};
use bentpipe_link::{Direction, Settings};
use bentpipe_types::{Address, Agent, Port, RandomStream, Time};

use super::chain_routing::ChainRouting;
use super::multicast::{MANY, MulticastReceivers};
use super::queue_history::QueueHistory;
use super::shortcuts::{ANYWHERE, Shortcuts};
use crate::node::Node;
use crate::stand_in::StandIn;

/// An application, by its node and its number there.
pub(crate) type FlowEnd = (u16, ApplicationId);

/// A flow and its two applications.
#[derive(Clone, Debug)]
pub(crate) struct FlowSlot {
    pub(crate) name: String,
    pub(crate) start: Time,
    pub(crate) size: Option<u64>,
    /// The end that opens connections, and the other end.
    pub(crate) opener: FlowEnd,
    pub(crate) server: FlowEnd,
    /// Destination of the opener's packets: the server's node or a channel.
    pub(crate) destination: Address,
    /// Local ports of the opener, used by no other flow there.
    pub(crate) ports: Ports,
    /// Node of the end that measures times.
    pub(crate) measures: u16,
    /// Whether its two ends share state beside the network.
    pub(crate) shares_state: bool,
    /// Whether both ends send equally.
    pub(crate) both: bool,
    /// The end that sends most, and the other end.
    pub(crate) sender: FlowEnd,
    pub(crate) receiver: FlowEnd,
}

/// The direction behind each port of a node, or `u16::MAX` behind a port that only receives.
/// Numbers beyond the directions denote multicast branch points.
///
/// Most nodes of a large network have one port, which is stored inline instead of behind a pointer.
pub(super) struct PortDirections {
    pub(super) first: u16,
    pub(super) others: Box<[u16]>,
}

impl PortDirections {
    pub(super) fn new(ports: &[u16]) -> Self {
        let (first, others) = ports.split_first().unwrap_or((&u16::MAX, &[]));
        Self {
            first: *first,
            others: others.into(),
        }
    }

    /// Returns the direction behind a port, or `u16::MAX` if there is none.
    #[inline]
    pub(super) fn behind(&self, port: Port) -> u16 {
        match port.0 {
            0 => self.first,
            port => {
                let others = self.others.get(usize::from(port) - 1);
                others.copied().unwrap_or(u16::MAX)
            }
        }
    }
}

/// Storage of a node. The fields that a packet needs at a host come first, also within the node.
#[repr(C, align(64))]
pub(crate) struct NodeSlot {
    /// Its earliest schedule entry; later ones are stale.
    pub(super) scheduled: Option<Time>,
    /// Time of its last deadline or, for a host that runs ahead, of its last event.
    pub(super) clock: Time,
    pub(super) ways: PortDirections,
    /// Whether a probe observes each of its events.
    pub(super) watched: bool,
    pub(super) node: Node,
    pub(super) name: String,
    pub(super) random: RandomStream,
}

impl NodeSlot {
    pub(crate) fn new(name: String, node: Node, ports: Vec<u16>, random: RandomStream) -> Self {
        Self {
            name,
            node,
            ways: PortDirections::new(&ports),
            random,
            scheduled: None,
            watched: false,
            clock: Time::ZERO,
        }
    }

    /// Returns a stand-in for a node of another part.
    pub(super) fn standing_in(random: RandomStream) -> Self {
        let node = Node::StandIn(StandIn::default());
        Self::new(String::new(), node, Vec::new(), random)
    }

    /// Returns the slot for another schedule, before the run.
    pub(super) fn not_scheduled(self) -> Self {
        Self {
            scheduled: None,
            ..self
        }
    }

    /// Returns when the node must be entered into the schedule, unless an entry at least as early
    /// exists or it has no deadline. Counts it as entered.
    #[inline(always)]
    pub(super) fn due(&mut self, now: Time) -> Option<Time> {
        let at = self.deadline()?;
        if self.scheduled.is_some_and(|scheduled| scheduled <= at) {
            return None;
        }
        let at = at.max(now);
        self.scheduled = Some(at);
        Some(at)
    }

    /// Returns the node's next deadline, but not before its own clock.
    #[inline(always)]
    pub(super) fn deadline(&self) -> Option<Time> {
        self.node.next_deadline().map(|at| at.max(self.clock))
    }

    pub(crate) fn node_mut(&mut self) -> &mut Node {
        &mut self.node
    }
}

/// Storage of a link direction: two cache lines, of which an arrival from a drop-tail queue needs
/// the first.
#[repr(C, align(64))]
pub(crate) struct DirectionSlot {
    /// Present if the direction is the upstream of others in a chain. Only packets that leave the
    /// chain at its end are then events. The module `fast` alone reads this field, `upstream` and
    /// `shortcuts`.
    pub(super) chain_routing: Option<Box<ChainRouting>>,
    pub(super) to: u16,
    pub(super) to_port: Port,
    /// The upstream direction in a chain, or [`ANYWHERE`].
    pub(super) upstream: u16,
    /// Fast paths that apply.
    pub(super) shortcuts: Shortcuts,
    /// Whether a capture or an every-change probe observes every event.
    pub(super) observed: bool,
    pub(super) direction: Direction,
    pub(super) rare: Box<RarelyNeeded>,
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    // The direction's first 48 bytes are those that an arrival needs.
    assert!(std::mem::offset_of!(DirectionSlot, direction) == 64 - 48);
    assert!(size_of::<DirectionSlot>() == 2 * 64);
};

/// Rarely needed data of a direction's slot.
pub(super) struct RarelyNeeded {
    pub(super) name: String,
    /// Captures at its sending and at its receiving end.
    pub(super) taps: [Option<u16>; 2],
    /// Receivers of a broadcast direction, or `None` for a direction with one far node.
    pub(super) receivers: Option<Box<MulticastReceivers>>,
    /// Whether a probe records every change of its queue.
    pub(super) watched: bool,
    /// Queue history, where the module `fast` records it.
    pub(super) history: Option<Box<QueueHistory>>,
    /// The earliest schedule entry; later ones are stale. The only entry of a drop-tail direction
    /// is the arrival of its head.
    pub(super) scheduled: Option<Time>,
}

pub(super) const SENDING: usize = 0;
pub(super) const RECEIVING: usize = 1;

impl DirectionSlot {
    pub(crate) fn new(name: String, to: u16, to_port: Port, settings: Settings) -> Self {
        Self::of(name, to, to_port, Direction::new(settings))
    }

    /// Stores a direction.
    pub(super) fn of(name: String, to: u16, to_port: Port, direction: Direction) -> Self {
        Self::with(name, to, to_port, direction, None)
    }

    /// Creates a broadcast direction.
    pub(crate) fn broadcast(
        name: String,
        receivers: MulticastReceivers,
        settings: Settings,
    ) -> Self {
        let direction = Direction::managed(settings);
        let receivers = Some(Box::new(receivers));
        Self::with(name, MANY, Port::default(), direction, receivers)
    }

    fn with(
        name: String,
        to: u16,
        to_port: Port,
        direction: Direction,
        receivers: Option<Box<MulticastReceivers>>,
    ) -> Self {
        Self {
            chain_routing: None,
            to,
            to_port,
            upstream: ANYWHERE,
            shortcuts: Shortcuts::NONE,
            observed: false,
            direction,
            rare: Box::new(RarelyNeeded {
                name,
                taps: [None; 2],
                receivers,
                watched: false,
                history: None,
                scheduled: None,
            }),
        }
    }

    /// Adds a probe of every change of the queue.
    pub(super) fn watch(&mut self) {
        self.rare.watched = true;
        self.observed = true;
    }

    /// Sets or removes the capture at one end.
    pub(super) fn set_tap(&mut self, end: usize, tap: Option<u16>) {
        let rare = &mut *self.rare;
        rare.taps[end] = tap;
        self.observed = rare.watched || rare.taps.iter().any(Option::is_some);
    }
}
