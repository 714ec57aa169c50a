//! A scenario with every default filled in and every name resolved.

use std::sync::Arc;

use bentpipe_link::{BurstSettings, Changes};
use bentpipe_sim::{Distribution, FlowQuantity, LinkQuantity, Traffic};
use bentpipe_types::{BitRate, Bytes, Span, Time, words};

use crate::modcod::Acm;
use crate::quantity::{Interval, Redundancy};
use crate::schema::{AppKind, Compression, IpName, LinkFraming};
use crate::tcp_settings::TcpSettings;
use crate::{Acks, Gateway, OnDemand, PacketClass, Processing, Queue};

/// A network, its traffic, and what to record.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// Name of the results.
    pub name: String,
    /// Description.
    pub description: Option<String>,
    /// End of the run; above zero, at most three days.
    pub duration: Span,
    /// Seed of all randomness.
    pub seed: u64,
    /// IP version of all packets.
    pub ip: IpName,
    /// Hosts, then gateways, in the order of the file. Flows and links refer to them by index.
    pub nodes: Vec<Node>,
    /// Links in the order of the file. Probes refer to them by index.
    pub links: Vec<Link>,
    /// Flows in the order of the file; each has a route. Probes refer to them by index.
    pub flows: Vec<Flow>,
    /// Classes of traffic, for queues that know classes.
    pub classes: Vec<PacketClass>,
    /// Whether hosts with Linux's profile draw their timing from the seed.
    pub host_timing: bool,
    /// Series to record over time.
    pub probes: Probes,
}

impl Scenario {
    /// Returns the number of a link direction: all directions are counted in the order of the file,
    /// those of a link together. Returns `None` if the link does not have this direction.
    #[must_use]
    pub fn direction_index(&self, link: usize, way: Way) -> Option<usize> {
        let directions = |link: &Link| 1 + usize::from(link.backward.is_some());
        self.links.get(link)?.direction(way)?;
        let before: usize = self.links[..link].iter().map(directions).sum();
        Some(before + usize::from(way == Way::Return))
    }

    /// Returns the names of all directions, in the order of their numbers.
    pub(crate) fn direction_names(&self) -> Vec<String> {
        let names = self.links.iter().flat_map(|link| {
            let ways = link.directions();
            ways.map(|(way, _)| format!("{}.{way}", link.name))
        });
        names.collect()
    }

    /// Whether the node is a host that draws its timing from the seed: one with Linux's profile.
    #[must_use]
    pub fn draws_timing(&self, node: usize) -> bool {
        self.host_timing && self.tcp_of(node).is_some_and(TcpSettings::has_linux_quirks)
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
    /// Name: `client-3` for the third of `count`.
    pub name: String,
    /// Host or gateway.
    pub kind: NodeKind,
}

/// Kind of a node, with its settings.
#[derive(Clone, PartialEq, Debug)]
pub enum NodeKind {
    /// A host, which starts and ends flows, and does not forward. Hosts of one `count` share
    /// settings.
    Host(HostSettings),
    /// A gateway, which forwards packets.
    Gateway(Gateway),
}

/// Settings of a host.
#[derive(Clone, PartialEq, Debug)]
pub struct HostSettings {
    /// TCP.
    pub tcp: Arc<TcpSettings>,
    /// Processing time, or `None` for no time.
    pub processing: Option<Processing>,
}

/// A link: two one-way links, one in each direction, or a single one.
#[derive(Clone, PartialEq, Debug)]
pub struct Link {
    /// Name: `access-3` for the third link of a counted host.
    pub name: String,
    /// Indices of its two nodes, which differ.
    pub between: [usize; 2],
    /// Further receivers of a broadcast channel, besides the second node. Empty for any other link.
    pub others: Vec<usize>,
    /// Whether it is a broadcast channel, which may have one receiver only.
    pub broadcast: bool,
    /// MTU in bytes, or `None` for no limit.
    pub mtu: Option<u32>,
    /// Whether packets longer than the MTU are fragmented.
    pub fragments: bool,
    /// Address resolution, or `None` if the ends know each other's link addresses.
    pub arp: Option<Arp>,
    /// From the first node to the second.
    pub forward: Direction,
    /// From the second node to the first, or `None` on a one-way link.
    pub backward: Option<Direction>,
}

impl Link {
    /// Returns all nodes that it leads to in forward direction.
    pub fn far_ends(&self) -> impl Iterator<Item = usize> {
        std::iter::once(self.between[1]).chain(self.others.iter().copied())
    }

    /// Returns all nodes that it joins.
    pub fn ends(&self) -> impl Iterator<Item = usize> {
        std::iter::once(self.between[0]).chain(self.far_ends())
    }

    /// Returns the MTU, if longer packets are not fragmented.
    #[must_use]
    pub fn whole_mtu(&self) -> Option<u32> {
        self.mtu.filter(|_| !self.fragments)
    }

    /// Returns one of its directions, if it exists.
    #[must_use]
    pub fn direction(&self, way: Way) -> Option<&Direction> {
        match way {
            Way::Forward => Some(&self.forward),
            Way::Return => self.backward.as_ref(),
        }
    }

    /// Returns the framing of its directions, or `None` if they differ.
    #[must_use]
    pub fn common_framing(&self) -> Option<LinkFraming> {
        let framing = self.forward.framing;
        let mut others = self.backward.iter();
        others
            .all(|back| back.framing == framing)
            .then_some(framing)
    }

    /// Returns its directions, forward first.
    pub fn directions(&self) -> impl Iterator<Item = (Way, &Direction)> {
        let back = self.backward.as_ref().map(|back| (Way::Return, back));
        std::iter::once((Way::Forward, &self.forward)).chain(back)
    }

    /// Returns the round-trip propagation delay; on a one-way link, twice the delay.
    #[must_use]
    pub fn round_trip(&self) -> Span {
        let back = self.backward.as_ref().unwrap_or(&self.forward);
        self.forward.delay + back.delay
    }
}

/// Address resolution on a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arp {
    /// Lifetime of an address.
    pub timeout: Span,
    /// Most packets that wait for an address; above zero.
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
    /// Queue in front of the transmitter.
    pub queue: Queue,
    /// Losses in transit.
    pub errors: Errors,
    /// Bits on the air per bit of packet.
    pub redundancy: Redundancy,
    /// Capacity on demand, or `None` if the rate is always available.
    pub access: Option<OnDemand>,
    /// Reduction of acknowledgments.
    pub acks: Acks,
    /// Header or data compression.
    pub compression: Compression,
    /// Framing.
    pub framing: LinkFraming,
    /// Whether all packets travel in a tunnel from the sending node to the receiving one.
    pub tunnel: bool,
    /// Changes over time, and changes of packets other than losses. If rate or delay always come
    /// from a trace, `rate` and `delay` are their averages.
    pub changes: Option<Arc<Changes>>,
    /// Its modes of modulation and coding, where they make the rate.
    pub acm: Option<Arc<Acm>>,
}

/// Losses of packets in transit.
#[derive(Clone, PartialEq, Debug)]
pub struct Errors {
    /// Random losses.
    pub random: RandomErrors,
    /// Numbers of packets that are lost, counted from 1 as they enter the link; ascending, each
    /// once.
    pub lost_packets: Arc<[u64]>,
}

/// Random losses. Rates are from 0 to 1.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum RandomErrors {
    /// Packet losses in bursts.
    Bursts(BurstSettings),
    /// No losses.
    None,
    /// Independent bit errors.
    BitErrorRate(f64),
    /// Independent packet losses.
    PacketLossRate(f64),
}

/// An application between two hosts, with its connections.
#[derive(Clone, PartialEq, Debug)]
pub struct Flow {
    /// Name: `download-3` for the third flow of a counted host.
    pub name: String,
    /// Index of the host that begins.
    pub from: usize,
    /// Index of the other host.
    pub to: usize,
    /// For a flow to a group: the number of its table among all such tables. This flow is what one
    /// member receives of the data that the first flow of that table sends to the group.
    pub channel: Option<usize>,
    /// Start time, before the end of the run. `late` or `wait` are added to it.
    pub start: Time,
    /// Distribution of the delay after `start`, drawn in each run.
    pub late: Option<Distribution>,
    /// Distribution of the time after the start of the previous flow of the same table (for the
    /// first of them, after `start`), drawn in each run.
    pub wait: Option<Distribution>,
    /// Name of the table that it comes from.
    pub table: Arc<str>,
    /// Application.
    pub app: App,
}

/// Application of a flow.
#[derive(Clone, PartialEq, Debug)]
pub enum App {
    /// One transfer from the host that opens the connection, as fast as TCP sends.
    Bulk {
        /// Bytes to transfer, above zero, or `None` until the end of the run.
        size: Option<Bytes>,
    },
    /// Any other application.
    Other(AppKind, Traffic),
    /// A user of the mix of this name.
    Mix(Arc<str>, Traffic),
}

/// Series to record over time.
#[derive(Clone, PartialEq, Debug)]
pub struct Probes {
    /// The series, each once, in the order of the file.
    pub series: Vec<Probe>,
    /// Recording interval.
    pub interval: Interval,
    /// Recording interval of averages: `interval`, if it is a length of time.
    pub averages_every: Span,
}

/// A series to record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Probe {
    /// Name: `download-3.goodput`.
    pub name: String,
    /// Quantity that is recorded.
    pub of: Series,
}

/// Subject and quantity of a series.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Series {
    /// Index of a flow, and its quantity.
    Flow(usize, FlowQuantity),
    /// Index of a link, its direction, and its quantity.
    Link(usize, Way, LinkQuantity),
    /// A gateway: the index of its node, the index of its gauge, and the gauge's unit.
    Gateway(usize, usize, &'static str),
}

impl Series {
    /// Returns the unit as in a [`Trace`](bentpipe_types::Trace); "1" for a share.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::Flow(_, series) => series.unit(),
            Self::Link(_, _, series) => series.unit(),
            Self::Gateway(_, _, unit) => unit,
        }
    }

    /// Whether each value is an average or a maximum since the last sample, and so undefined at an
    /// instant.
    #[must_use]
    pub fn is_average(self) -> bool {
        match self {
            Self::Flow(_, series) => series.is_average(),
            Self::Link(_, _, series) => series.is_average(),
            Self::Gateway(..) => false,
        }
    }
}
