//! What hosts need that will be told is asked for from memory while others are told.
//!
//! In a large network a host has left the cache when a packet comes to it. But which hosts are told next is known, and
//! so are the connections that the next packets of a server are for. What leads from one to the next (direction, host,
//! connection, what hangs from that) is asked for step after step, some packets apart, as each step is known once the one
//! before is there.

use bentpipe_host::{Host, Step};
use bentpipe_link::Fifo;
use bentpipe_tcp::Ranges;
use bentpipe_types::{PacketRef, PacketStore, fetch};

use super::{ANYWHERE, DirectionSlot, Network, NodeSlot};
use crate::node::Node;

/// With fewer nodes, all that they need is in the cache.
const MANY: usize = 256;

/// The cache lines of a node that a packet needs of it that is a host.
const HOST_LINES: usize = 4;

/// How many packets after one was looked at, what is asked for of the connection that it is for.
const STEPS: [(usize, Step); 5] = [
    (0, Step::Place),
    (2, Step::Connection),
    (4, Step::More),
    (6, Step::Senders),
    (8, Step::Last),
];

/// So many packets are asked for before a host is told the first of them; those behind are, while it is told.
const TOLD_AT_ONCE: u64 = super::ahead::EARLY;

/// How many packets before one comes to a host it is looked at.
const EARLY: usize = 10;

/// The connections that the next packets of a direction are for, of which a host has many.
pub(super) struct NextConnections {
    /// The latest that were found, each where its packet's number says.
    places: [u32; 16],
    looked_at: usize,
}

impl NextConnections {
    /// Those of what comes first from this direction.
    #[inline(never)]
    fn new(heard: &Fifo, host: &Host<Ranges>, packets: &PacketStore) -> Self {
        let mut next = Self {
            places: [0; 16],
            looked_at: 0,
        };
        for number in 0..EARLY {
            next.fetch(heard, number as u64, host, packets);
        }
        next
    }

    /// The first packet is about to come to the host: asks for what it needs of the connections that later ones are for.
    #[inline(never)]
    pub(super) fn fetch_further(
        &mut self,
        heard: &Fifo,
        host: &Host<Ranges>,
        packets: &PacketStore,
    ) {
        self.fetch(heard, EARLY as u64, host, packets);
    }

    /// Looks at the packet so far behind the first, and asks for what that one and those before it need.
    #[inline(always)]
    fn fetch(&mut self, heard: &Fifo, behind: u64, host: &Host<Ranges>, packets: &PacketStore) {
        if let Some(packet) = heard.behind_first(behind + 4) {
            packets.prefetch(packet);
        }
        let slots = self.places.len();
        let place = (heard.behind_first(behind)).and_then(|packet| host.place_of(packet, packets));
        self.places[self.looked_at % slots] = place.unwrap_or(u32::MAX);
        for (later, step) in STEPS {
            if let Some(number) = self.looked_at.checked_sub(later) {
                host.fetch(self.places[number % slots], step);
            }
        }
        self.looked_at += 1;
    }
}

/// The ends of a chain that the next packets come to.
pub(super) struct NextEnds {
    /// Those found last; [`ANYWHERE`] where none was.
    ends: [u16; 3],
}

impl NextEnds {
    /// How many packets before one comes to its end that is looked for.
    pub(super) const EARLY: usize = 6;

    pub(super) fn new() -> Self {
        Self {
            ends: [ANYWHERE; 3],
        }
    }

    /// Notes one, and returns the one that was noted before the last others.
    #[inline(always)]
    fn take_turns(&mut self, end: u16) -> u16 {
        let [before, second, third] = self.ends;
        self.ends = [second, third, end];
        before
    }
}

impl DirectionSlot {
    /// Asks for it.
    #[inline]
    fn fetch(&self) {
        fetch(&self.onward, size_of::<Self>() / 64);
    }

    /// Asks for what hangs from it, once it is there, for the next to arrive.
    #[inline]
    fn fetch_for_arrival(&self) {
        if let Some(fifo) = self.plain() {
            fifo.fetch_for_arrival();
        }
    }

    /// The same, for the next that is offered.
    #[inline]
    fn fetch_for_offer(&self) {
        if let Some(fifo) = self.plain() {
            fifo.fetch_for_offer();
        }
    }

    /// Asks for all that are next to arrive themselves, as far as a host is told so many at once.
    #[inline]
    fn fetch_packets(&self, packets: &PacketStore) {
        for number in 0..TOLD_AT_ONCE {
            let Some(packet) = (self.plain()).and_then(|heard| heard.behind_first(number)) else {
                break;
            };
            packets.prefetch(packet);
        }
    }

    /// Asks for the next to arrive itself.
    #[inline]
    fn fetch_packet(&self, packets: &PacketStore) {
        if let Some(first) = self.plain().and_then(Fifo::first) {
            packets.prefetch(first.packet);
        }
    }
}

impl NodeSlot {
    /// Asks for what a host needs that has one connection.
    #[inline]
    fn fetch_connection(&self, step: Step) {
        if let Node::Host(host) = &self.node {
            host.fetch(0, step);
        }
    }
}

impl Network {
    /// Are there so many hosts that they have left the cache?
    #[inline]
    pub(super) fn is_large(&self) -> bool {
        self.nodes.len() > MANY
    }

    /// What a host will be told from this direction is for these of its connections, if it has so many that they have left
    /// the cache.
    #[inline]
    pub(super) fn next_connections(&self, index: u16) -> Option<NextConnections> {
        let slot = &self.directions[usize::from(index)];
        let Node::Host(host) = &self.nodes[usize::from(slot.to)].node else {
            return None;
        };
        let heard = slot.plain().filter(|_| host.has_many_connections())?;
        Some(NextConnections::new(heard, host, &self.packets))
    }

    /// The hosts behind these directions will be told something, the last first.
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

    /// Packets are about to go on from this direction: asks for the ends of the chain that later ones come to. `packet`
    /// is the one that goes on [after so many others](NextEnds::EARLY).
    #[inline(always)]
    pub(super) fn fetch_end(&self, ends: &mut NextEnds, way: u16, packet: Option<PacketRef>) {
        let known_end = |packet| {
            let destination = self.packets.get(packet).destination.address;
            self.known_end(way, destination)
        };
        let end = packet.and_then(known_end).unwrap_or(ANYWHERE);
        if let Some(slot) = self.directions.get(usize::from(end)) {
            slot.fetch();
        }
        if let Some(slot) = self.directions.get(usize::from(ends.take_turns(end))) {
            slot.fetch_for_offer();
        }
    }

    /// An event is about to happen: asks for what the next ones need that are arrivals, as far as they are known.
    #[inline(always)]
    pub(super) fn fetch_next_arrivals(&self) {
        let after = |others| {
            let component = self.schedule.upcoming(others)?;
            self.directions.get(usize::from(component.0))
        };
        if let Some(slot) = after(8) {
            fetch(&slot.onward, 1);
        }
        if let Some(slot) = after(5) {
            slot.fetch_for_arrival();
        }
        if let Some(slot) = after(3) {
            slot.fetch_packet(&self.packets);
        }
    }
}
