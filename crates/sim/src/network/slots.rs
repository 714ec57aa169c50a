//! Nodes and link directions in their places, and what lies together there.

use bentpipe_link::{Direction, Settings};
use bentpipe_types::{Agent, Port, RandomStream, Time};

use super::audience::{Audience, MANY};
use super::chain::Onward;
use super::passing::{Attention, Passing};
use crate::node::Node;

/// The direction behind each port of a node; `u16::MAX` behind one that only receives. Numbers beyond all
/// directions are of branches: what goes there goes to several directions.
///
/// Most nodes of a large network have one port: theirs is beside what else a packet needs of its node, not
/// behind a pointer.
pub(super) struct Ways {
    pub(super) first: u16,
    pub(super) others: Box<[u16]>,
}

impl Ways {
    pub(super) fn new(ports: &[u16]) -> Self {
        let (first, others) = ports.split_first().unwrap_or((&u16::MAX, &[]));
        Self {
            first: *first,
            others: others.into(),
        }
    }

    /// `u16::MAX` behind a port that there is not.
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

/// A node in its place. What a packet needs of it that is a host comes first, and of its node, too.
#[repr(C, align(64))]
pub(crate) struct NodeSlot {
    /// The earliest of its entries in the schedule; later ones are stale.
    pub(super) scheduled: Option<Time>,
    /// Of a host that is told ahead: when something last happened there.
    pub(super) clock: Time,
    pub(super) ways: Ways,
    /// A probe wants to look after each of its events.
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
    pub(super) fn due(&mut self, now: Time) -> Option<Time> {
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
    pub(super) fn deadline(&self) -> Option<Time> {
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
    pub(super) onward: Option<Box<Onward>>,
    pub(super) to: u16,
    pub(super) to_port: Port,
    /// Where all its packets come from, in a chain; [`ANYWHERE`] outside of chains.
    pub(super) upstream: u16,
    /// Who looks: one byte to test for the many at which nobody does.
    pub(super) attention: Attention,
    /// What arrives is told its host as soon as it is known, and not in the schedule.
    pub(super) ahead: bool,
    pub(super) direction: Direction,
    pub(super) seldom: Box<Seldom>,
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    // What the direction has first, 48 bytes, is what an arrival needs.
    assert!(std::mem::offset_of!(DirectionSlot, direction) == 64 - 48);
    assert!(size_of::<DirectionSlot>() == 2 * 64);
};

/// What packets of a drop-tail direction at which nobody looks do not need of its slot.
pub(super) struct Seldom {
    pub(super) name: String,
    /// The tap at its sending end and the one at its receiving end.
    pub(super) taps: [Option<u16>; 2],
    /// Who hears what arrives; `None`: the one node that it leads to.
    pub(super) audience: Option<Box<Audience>>,
    /// A probe wants every change of its queue.
    pub(super) watched: bool,
    /// What passes, where that is noted.
    pub(super) passing: Option<Box<Passing>>,
    /// The earliest of a direction's entries in the schedule; later ones are stale. A drop-tail direction's one
    /// entry is the arrival of its head.
    pub(super) scheduled: Option<Time>,
}

pub(super) const SENDING: usize = 0;
pub(super) const RECEIVING: usize = 1;

/// In the place of a direction's upstream: it has none.
pub(super) const ANYWHERE: u16 = u16::MAX;

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
            attention: Attention::Nobody,
            ahead: false,
            direction,
            seldom: Box::new(Seldom {
                name,
                taps: [None; 2],
                audience,
                watched: false,
                passing: None,
                scheduled: None,
            }),
        }
    }

    /// A probe wants every change of the queue.
    pub(super) fn watch(&mut self) {
        self.seldom.watched = true;
        self.attention = Attention::Always;
    }

    /// The tap at one end: this one, or none any more.
    pub(super) fn set_tap(&mut self, end: usize, tap: Option<u16>) {
        let seldom = &mut *self.seldom;
        seldom.taps[end] = tap;
        self.attention = if seldom.watched || seldom.taps.iter().any(Option::is_some) {
            Attention::Always
        } else if seldom.passing.is_some() {
            Attention::NowAndThen
        } else {
            Attention::Nobody
        };
    }
}
