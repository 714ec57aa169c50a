//! A scenario with every default filled in and every name looked up.

use std::sync::Arc;

use bentpipe_link::{BurstSettings, Changes};
use bentpipe_sim::{Distribution, FlowQuantity, LinkQuantity, Traffic};
use bentpipe_types::{BitRate, Bytes, Span, Time, words};

use crate::modcod::Acm;
use crate::quantity::{Interval, Redundancy};
use crate::schema::{AppKind, Compression, IpName, LinkFraming};
use crate::tcp_settings::TcpSettings;
use crate::{Acks, Gateway, OnDemand, PacketClass, Processing, Queue};

/// A network, what flows through it, and what to record.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// What the results are called.
    pub name: String,
    /// What it shows.
    pub description: Option<String>,
    /// When the run ends; above zero, at most three days.
    pub duration: Span,
    /// Key of all randomness.
    pub seed: u64,
    /// The IP version of all packets.
    pub ip: IpName,
    /// Hosts, then gateways, in the order of the file. Flows and links name them by index.
    pub nodes: Vec<Node>,
    /// Links in the order of the file. Probes name them by index.
    pub links: Vec<Link>,
    /// Flows in the order of the file; each has a route. Probes name them by index.
    pub flows: Vec<Flow>,
    /// Classes of traffic, for queues that know classes.
    pub classes: Vec<PacketClass>,
    /// What to record over time.
    pub probes: Probes,
}

impl Scenario {
    /// The number of a link's direction among all there are: those of a link one after the other, in the
    /// order of the file. `None` where the link has none that way.
    #[must_use]
    pub fn direction_index(&self, link: usize, way: Way) -> Option<usize> {
        let directions = |link: &Link| 1 + usize::from(link.backward.is_some());
        self.links.get(link)?.direction(way)?;
        let before: usize = self.links[..link].iter().map(directions).sum();
        Some(before + usize::from(way == Way::Return))
    }

    /// The names of all directions, in the order of their numbers.
    pub(crate) fn direction_names(&self) -> Vec<String> {
        let names = self.links.iter().flat_map(|link| {
            let ways = link.directions();
            ways.map(|(way, _)| format!("{}.{way}", link.name))
        });
        names.collect()
    }

    /// The TCP of the host with this index; none for a gateway.
    #[must_use]
    pub fn tcp_of(&self, node: usize) -> Option<&TcpSettings> {
        match &self.nodes.get(node)?.kind {
            NodeKind::Host(host) => Some(&host.tcp),
            NodeKind::Gateway(_) => None,
        }
    }
}

/// A host or a gateway.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    /// Its name: `client-3` for the third of `count`.
    pub name: String,
    /// Which of the two.
    pub kind: NodeKind,
}

/// What a node is.
#[derive(Clone, PartialEq, Debug)]
pub enum NodeKind {
    /// It begins and ends flows, and forwards nothing. Hosts made by one `count` share settings.
    Host(HostSettings),
    /// It forwards packets.
    Gateway(Gateway),
}

/// What a host is like.
#[derive(Clone, PartialEq, Debug)]
pub struct HostSettings {
    /// Its TCP.
    pub tcp: Arc<TcpSettings>,
    /// What its processor takes for each packet; none: no time.
    pub processing: Option<Processing>,
}

/// A link: two one-way links, one each way, or a single one.
#[derive(Clone, PartialEq, Debug)]
pub struct Link {
    /// Its name: `access-3` for the third that a counted host made.
    pub name: String,
    /// The two nodes, by index; not the same one.
    pub between: [usize; 2],
    /// It is a channel that all of these hear too, besides the second node. Empty of any other link.
    pub others: Vec<usize>,
    /// It has as many far ends as hear it: one, maybe.
    pub broadcast: bool,
    /// The longest IP packet that it takes, in bytes; none: any.
    pub mtu: Option<u32>,
    /// It cuts what is longer.
    pub fragments: bool,
    /// What packets travel in.
    pub framing: LinkFraming,
    /// How its ends find out each other's link addresses; none: they know them.
    pub arp: Option<Arp>,
    /// From the first node to the second.
    pub forward: Direction,
    /// From the second node to the first; none on a one-way link.
    pub backward: Option<Direction>,
}

impl Link {
    /// All nodes that it leads to, going forward.
    pub fn far_ends(&self) -> impl Iterator<Item = usize> {
        std::iter::once(self.between[1]).chain(self.others.iter().copied())
    }

    /// All nodes that it joins.
    pub fn ends(&self) -> impl Iterator<Item = usize> {
        std::iter::once(self.between[0]).chain(self.far_ends())
    }

    /// The longest packet that goes over it in one piece, if longer ones don't go at all.
    #[must_use]
    pub fn whole_mtu(&self) -> Option<u32> {
        self.mtu.filter(|_| !self.fragments)
    }

    /// One of its directions, if it is there.
    #[must_use]
    pub fn direction(&self, way: Way) -> Option<&Direction> {
        match way {
            Way::Forward => Some(&self.forward),
            Way::Return => self.backward.as_ref(),
        }
    }

    /// Its directions, forward first.
    pub fn directions(&self) -> impl Iterator<Item = (Way, &Direction)> {
        let back = self.backward.as_ref().map(|back| (Way::Return, back));
        std::iter::once((Way::Forward, &self.forward)).chain(back)
    }

    /// Propagation there and back; of a one-way link, twice there.
    #[must_use]
    pub fn round_trip(&self) -> Span {
        let back = self.backward.as_ref().unwrap_or(&self.forward);
        self.forward.delay + back.delay
    }
}

/// How the ends of a link find out each other's link addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arp {
    /// How long an address is good for.
    pub timeout: Span,
    /// Packets that wait for one at most; above zero.
    pub queue_packets: u32,
}

words! {
    /// One of a link's two directions.
    #[derive(PartialOrd, Ord)]
    Way {
        /// From the first node of `between` to the second.
        Forward = "forward",
        /// From the second to the first.
        Return = "return",
    }
}

/// One direction of a link.
#[derive(Clone, PartialEq, Debug)]
pub struct Direction {
    /// Rate of the transmitter.
    pub rate: BitRate,
    /// Propagation delay; at most an hour.
    pub delay: Span,
    /// Where packets wait for the transmitter.
    pub queue: Queue,
    /// What loses packets on the way.
    pub errors: Errors,
    /// Bits on the air per bit of packet.
    pub redundancy: Redundancy,
    /// How it comes by capacity, if it has to ask.
    pub access: Option<OnDemand>,
    /// What is done about acknowledgments that are too many.
    pub acks: Acks,
    /// What makes headers shorter.
    pub compression: Compression,
    /// All packets travel in a tunnel from the sending node to the receiving one.
    pub tunnel: bool,
    /// How it changes with time, and what it does to packets besides losing them. Where rate or delay are
    /// always those of a trace, `rate` and `delay` are their averages.
    pub changes: Option<Arc<Changes>>,
    /// Its modes of modulation and coding, where they make the rate.
    pub acm: Option<Arc<Acm>>,
}

/// What loses packets on the way.
#[derive(Clone, PartialEq, Debug)]
pub struct Errors {
    /// At random.
    pub random: RandomErrors,
    /// These packets, counted from 1 as they enter the link; ascending, each once.
    pub lost_packets: Arc<[u64]>,
}

/// What loses packets at random. Rates are from 0 to 1.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum RandomErrors {
    /// Packets, in bursts.
    Bursts(BurstSettings),
    /// Nothing.
    None,
    /// Wrong bits, independently.
    BitErrorRate(f64),
    /// Lost packets, independently.
    PacketLossRate(f64),
}

/// One TCP connection and what fills it.
#[derive(Clone, PartialEq, Debug)]
pub struct Flow {
    /// Its name: `download-3` for the third that a counted host made.
    pub name: String,
    /// The host that begins, by index.
    pub from: usize,
    /// The host that it speaks to, by index; another one.
    pub to: usize,
    /// It is what one member of a group gets, of what the first flow of its table sends to that group: by the
    /// number of such a table among all.
    pub channel: Option<usize>,
    /// When it begins; before the end. Where `late` or `wait` says so, later.
    pub start: Time,
    /// How much later than `start`: each run draws that anew.
    pub late: Option<Distribution>,
    /// How long after the one before it of the same table, or the first of them after `start`, it begins:
    /// each run draws that anew.
    pub wait: Option<Distribution>,
    /// The table that it is of.
    pub table: Arc<str>,
    /// What it sends.
    pub app: App,
}

/// What a flow does.
#[derive(Clone, PartialEq, Debug)]
pub enum App {
    /// One transfer from the host that opens: as much as TCP takes.
    Bulk {
        /// Bytes to transfer, above zero; none: until the end.
        size: Option<Bytes>,
    },
    /// Anything else.
    Other(AppKind, Traffic),
    /// A user of the mix of this name.
    Mix(Arc<str>, Traffic),
}

/// What to record over time.
#[derive(Clone, PartialEq, Debug)]
pub struct Probes {
    /// The series, each once, in the order of the file.
    pub series: Vec<Probe>,
    /// How often.
    pub interval: Interval,
    /// How often averages are recorded: the interval, if it is one.
    pub averages_every: Span,
}

/// A series to record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Probe {
    /// Its name: `download-3.goodput`.
    pub name: String,
    /// What it is a series of.
    pub of: Series,
}

/// What a series is of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Series {
    /// Something about a flow, by index.
    Flow(usize, FlowQuantity),
    /// Something about a direction of a link, by index.
    Link(usize, Way, LinkQuantity),
    /// Something about a gateway: the node and its gauge, by index, and the gauge's unit.
    Gateway(usize, usize, &'static str),
}

impl Series {
    /// The unit of its values, as [`Trace`](bentpipe_types::Trace) has it; "1" for a share.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::Flow(_, series) => series.unit(),
            Self::Link(_, _, series) => series.unit(),
            Self::Gateway(_, _, unit) => unit,
        }
    }

    /// Is each value an average, or the most, since the last? Such a series has no value at an instant.
    #[must_use]
    pub fn is_average(self) -> bool {
        match self {
            Self::Flow(_, series) => series.is_average(),
            Self::Link(_, _, series) => series.is_average(),
            Self::Gateway(..) => false,
        }
    }
}
