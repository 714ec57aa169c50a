//! Prefetching for hosts that run next.
//!
//! In a large network a host's state has left the cache when a packet arrives. The next hosts are
//! known, and so are the connections of a server's next packets. Direction, host, connection and
//! what hangs from it are prefetched step by step, some packets apart, since each address is known
//! only after the previous step.

use bentpipe_host::{Host, Step};
use bentpipe_link::Fifo;
use bentpipe_tcp::Ranges;
use bentpipe_types::{PacketRef, PacketStore, fetch};

use super::{ANYWHERE, DirectionSlot, Network, NodeSlot};
use crate::node::Node;

/// With fewer nodes, all their state is in the cache.
const MANY: usize = 256;

/// Cache lines of a host's node that a packet needs.
const HOST_LINES: usize = 4;

/// Steps of prefetching a connection, each with the number of packets after the first look.
const STEPS: [(usize, Step); 5] = [
    (0, Step::Place),
    (2, Step::Connection),
    (4, Step::More),
    (6, Step::Senders),
    (8, Step::Last),
];

/// Number of packets by which a packet's record is prefetched before its host processes it. On a
/// long link packets have left the cache, and one is processed in less time than memory takes. That
/// many are prefetched before a host runs; later ones are prefetched while it runs.
pub(super) const RECORD_DISTANCE: u64 = 6;

/// Number of packets by which prefetching of a connection precedes its packet.
const PREFETCH_DISTANCE: usize = 10;

/// Connections of a direction's next packets, for a host with many.
pub(super) struct NextConnections {
    /// Latest connections found, indexed by packet number.
    places: [u32; 16],
    looked_at: usize,
}

impl NextConnections {
    /// Looks up the connections of the first packets of this direction.
    #[inline(never)]
    fn new(incoming: &Fifo, host: &Host<Ranges>, packets: &PacketStore) -> Self {
        let mut next = Self {
            places: [0; 16],
            looked_at: 0,
        };
        for number in 0..PREFETCH_DISTANCE {
            next.fetch(incoming, number as u64, host, packets);
        }
        next
    }

    /// Called before the first packet is processed: prefetches for later packets.
    #[inline(never)]
    pub(super) fn fetch_further(
        &mut self,
        incoming: &Fifo,
        host: &Host<Ranges>,
        packets: &PacketStore,
    ) {
        self.fetch(incoming, PREFETCH_DISTANCE as u64, host, packets);
    }

    /// Looks up the packet `behind` positions after the first, and prefetches for it and earlier
    /// ones.
    #[inline(always)]
    fn fetch(&mut self, incoming: &Fifo, behind: u64, host: &Host<Ranges>, packets: &PacketStore) {
        if let Some(packet) = incoming.behind_first(behind + 4) {
            packets.prefetch(packet);
        }
        let slots = self.places.len();
        let place =
            (incoming.behind_first(behind)).and_then(|packet| host.place_of(packet, packets));
        self.places[self.looked_at % slots] = place.unwrap_or(u32::MAX);
        for (later, step) in STEPS {
            if let Some(number) = self.looked_at.checked_sub(later) {
                host.fetch(self.places[number % slots], step);
            }
        }
        self.looked_at += 1;
    }
}

/// Ends of a chain that the next packets reach.
pub(super) struct NextEnds {
    /// Latest ends found; [`ANYWHERE`] if unknown.
    ends: [u16; 3],
}

impl NextEnds {
    /// Number of packets by which the lookup precedes the packet.
    pub(super) const PREFETCH_DISTANCE: usize = 6;

    pub(super) fn new() -> Self {
        Self {
            ends: [ANYWHERE; 3],
        }
    }

    /// Stores an end and returns the oldest one.
    #[inline(always)]
    fn take_turns(&mut self, end: u16) -> u16 {
        let [before, second, third] = self.ends;
        self.ends = [second, third, end];
        before
    }
}

impl DirectionSlot {
    /// Prefetches the direction.
    #[inline]
    fn fetch(&self) {
        fetch(&self.chain_routing, size_of::<Self>() / 64);
    }

    /// Prefetches what the next arrival needs, once the direction is in the cache.
    #[inline]
    fn fetch_for_arrival(&self) {
        if let Some(fifo) = self.plain() {
            fifo.fetch_for_arrival();
        }
    }

    /// Prefetches what the next offered packet needs.
    #[inline]
    fn fetch_for_offer(&self) {
        if let Some(fifo) = self.plain() {
            fifo.fetch_for_offer();
        }
    }

    /// Prefetches the records of the next packets to arrive.
    #[inline]
    fn fetch_packets(&self, packets: &PacketStore) {
        for number in 0..RECORD_DISTANCE {
            let Some(packet) = (self.plain()).and_then(|incoming| incoming.behind_first(number))
            else {
                break;
            };
            packets.prefetch(packet);
        }
    }

    /// Prefetches the record of the next packet to arrive.
    #[inline]
    fn fetch_packet(&self, packets: &PacketStore) {
        if let Some(first) = self.plain().and_then(Fifo::first) {
            packets.prefetch(first.packet);
        }
    }
}

impl NodeSlot {
    /// Prefetches the state of a host with one connection.
    #[inline]
    fn fetch_connection(&self, step: Step) {
        if let Node::Host(host) = &self.node {
            host.fetch(0, step);
        }
    }
}

impl Network {
    /// Whether there are so many nodes that they leave the cache.
    #[inline]
    pub(super) fn is_large(&self) -> bool {
        self.nodes.len() > MANY
    }

    /// Returns the connections of a host's next packets from this direction, if it has so many that
    /// they leave the cache.
    #[inline]
    pub(super) fn next_connections(&self, index: u16) -> Option<NextConnections> {
        let slot = &self.directions[usize::from(index)];
        let Node::Host(host) = &self.nodes[usize::from(slot.to)].node else {
            return None;
        };
        let incoming = slot.plain().filter(|_| host.has_many_connections())?;
        Some(NextConnections::new(incoming, host, &self.packets))
    }

    /// Prefetches for the hosts behind these directions, which run last to first.
    #[inline(always)]
    pub(super) fn fetch_for(&self, directions: &[u16]) {
        let at = |later: usize| {
            let index = directions[directions.len().checked_sub(later)?];
            Some(&self.directions[usize::from(index)])
        };
        if let Some(slot) = at(8) {
            slot.fetch();
        }
        if let Some(slot) = at(6) {
            slot.fetch_for_arrival();
            fetch(&self.nodes[usize::from(slot.to)].scheduled, HOST_LINES);
        }
        if let Some(slot) = at(4) {
            slot.fetch_packets(&self.packets);
            let node = &self.nodes[usize::from(slot.to)];
            self.directions[usize::from(node.ways.first)].fetch();
            node.fetch_connection(Step::Connection);
        }
        if let Some(slot) = at(2) {
            let node = &self.nodes[usize::from(slot.to)];
            self.directions[usize::from(node.ways.first)].fetch_for_offer();
            node.fetch_connection(Step::More);
        }
    }

    /// Prefetches ends of the chain for later packets of this direction. `packet` is the one [that
    /// many positions later](NextEnds::PREFETCH_DISTANCE).
    #[inline(always)]
    pub(super) fn fetch_end(&self, ends: &mut NextEnds, first: u16, packet: Option<PacketRef>) {
        let known_end = |packet| {
            let destination = self.packets.get(packet).destination.address;
            self.known_end(first, destination)
        };
        let end = packet.and_then(known_end).unwrap_or(ANYWHERE);
        if let Some(slot) = self.directions.get(usize::from(end)) {
            slot.fetch();
        }
        if let Some(slot) = self.directions.get(usize::from(ends.take_turns(end))) {
            slot.fetch_for_offer();
        }
    }

    /// Prefetches for the next scheduled arrivals, as far as they are known.
    #[inline(always)]
    pub(super) fn fetch_next_arrivals(&self) {
        let after = |others| {
            let component = self.schedule.upcoming(others)?;
            self.directions.get(usize::from(component.0))
        };
        if let Some(slot) = after(8) {
            fetch(&slot.chain_routing, 1);
        }
        if let Some(slot) = after(5) {
            slot.fetch_for_arrival();
        }
        if let Some(slot) = after(3) {
            slot.fetch_packet(&self.packets);
        }
    }
}
