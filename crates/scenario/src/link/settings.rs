//! A link, with every default filled in.

use std::sync::Arc;

use bentpipe_link::{BurstSettings, Changes};
use bentpipe_types::{BitRate, Span, words};

use crate::access::settings::OnDemand;
use crate::acks::settings::Acks;
use crate::acm::modcod::Acm;
use crate::link::compression::Compression;
use crate::link::framing::LinkFraming;
use crate::orbit::settings::LinkPath;
use crate::quantity::redundancy::Redundancy;
use crate::queue::resolved::Queue;

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
    /// Path over satellites, which determines the delay.
    pub path: Option<Arc<LinkPath>>,
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
