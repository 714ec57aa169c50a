//! What hosts need that will be told is asked for from memory while others are told.
//!
//! In a large network a host has left the cache when a packet comes to it. But which hosts are told next is known, and
//! so are the connections that the next packets of a server are for. What leads from one to the next (direction, host,
//! connection, what hangs from that) is asked for step after step, some packets apart, as each step is known once the one
//! before is there.

use bentpipe_host::{Host, Step};
use bentpipe_link::Fifo;
use bentpipe_tcp::Ranges;
use bentpipe_types::{PacketStore, fetch};

use super::{DirectionSlot, Network, NodeSlot};
use crate::node::Node;

/// With fewer nodes, or connections of a host, all that they need is in the cache.
const MANY: usize = 256;

/// The cache lines of a node that a packet needs of it that is a host.
const HOST_LINES: usize = 5;

/// Has it so many connections that they have left the cache?
#[inline]
pub(super) fn has_many_connections(host: &Host<Ranges>) -> bool {
    host.connections() > MANY
}

/// A host with many connections is told what comes from this direction: asks for what it needs of those that some packets
/// behind the first are for.
#[inline]
pub(super) fn fetch_behind_first(heard: &Fifo, host: &Host<Ranges>, packets: &PacketStore) {
    if let Some(packet) = heard.behind_first(12) {
        packets.prefetch(packet);
    }
    for (behind, step) in [(9, Step::Place), (6, Step::Connection), (3, Step::More)] {
        if let Some(packet) = heard.behind_first(behind)
            && let Some(place) = host.place_of(packet, packets)
        {
            host.fetch(place, step);
        }
    }
}

impl DirectionSlot {
    /// Asks for it.
    #[inline]
    fn fetch(&self) {
        fetch(&self.onward, size_of::<Self>() / 64);
    }

    /// Asks for what hangs from it, once it is there.
    #[inline]
    fn fetch_more(&self) {
        if let Some(fifo) = self.plain() {
            fifo.fetch();
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
            slot.fetch_more();
            fetch(&self.nodes[usize::from(slot.to)].scheduled, HOST_LINES);
        }
        if let Some(slot) = at(4) {
            if let Some(first) = slot.plain().and_then(Fifo::first) {
                self.packets.prefetch(first.packet);
            }
            let node = &self.nodes[usize::from(slot.to)];
            self.directions[usize::from(node.ways.first)].fetch();
            node.fetch_connection(Step::Connection);
        }
        if let Some(slot) = at(2) {
            let node = &self.nodes[usize::from(slot.to)];
            self.directions[usize::from(node.ways.first)].fetch_more();
            node.fetch_connection(Step::More);
        }
    }
}
