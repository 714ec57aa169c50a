//! A network with an external clock, whose packets enter and leave at attached nodes.

use bentpipe_types::{Agent, DropReason, Managed, PacketRef, PacketStore, Time};

use super::Network;
use super::fast::FastPaths;
use crate::NodeId;
use crate::node::Node;

/// A packet that has left the network. The receiver releases it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Departure {
    /// The attached node where it left.
    pub node: NodeId,
    /// Arrival time at that node.
    pub at: Time,
    /// The packet.
    pub packet: PacketRef,
}

impl Network {
    /// Returns the time of the next event.
    #[must_use]
    pub fn next_event(&self) -> Option<Time> {
        self.schedule.first().map(|(at, _)| at)
    }

    /// Processes events up to and including `until`, at most `budget` of them, without ending the
    /// run. Returns true if `until` was reached.
    pub fn advance(&mut self, until: Time, budget: u64) -> bool {
        self.begin(None);
        let sampler = self.sampler();
        let nodes = self.directions.len() as u16;
        for _ in 0..budget {
            let Some((at, component)) = self.schedule.first().filter(|(at, _)| *at <= until) else {
                self.now = self.now.max(until);
                self.schedule.keep_up(self.now);
                FastPaths::catch_up(self, self.now);
                return true;
            };
            self.now = at;
            if component.0 < nodes {
                self.on_arrival(component.0);
            } else if component != sampler {
                self.on_deadline(component.0 - nodes);
            } else {
                self.sample();
            }
        }
        false
    }

    /// Ends the run at the current time.
    pub fn finish(&mut self) {
        self.ended = Some(self.now);
        self.finish_probes(self.now);
    }

    /// Prepares an orderly end: calls [`retire`](bentpipe_types::Agent::retire) of every node.
    /// Their last packets are then in transit.
    pub fn retire(&mut self) {
        for node in 0..self.nodes.len() {
            self.call(node as u16, |node, cx| node.retire(cx));
        }
    }

    /// Returns the nodes' [remarks](bentpipe_types::Agent::remark) for the operator.
    pub fn remarks(&self) -> impl Iterator<Item = &'static str> {
        self.nodes.iter().filter_map(|slot| slot.node.remark())
    }

    /// Returns the nodes that have an interface for an operator, with their names.
    pub fn managed(&mut self) -> impl Iterator<Item = (&str, &mut dyn Managed)> {
        let nodes = self.nodes.iter_mut();
        nodes.filter_map(|slot| Some((slot.name.as_str(), slot.node.managed()?)))
    }

    /// Calls `visit` with the name of every node that has counters, and each counter.
    pub fn counters(&self, visit: &mut dyn FnMut(&str, &str, u64)) {
        for slot in &self.nodes {
            let name = &slot.name;
            slot.node
                .counters(&mut |counter, value| visit(name, counter, value));
        }
    }

    /// Injects a packet at an attached node. The store is [`packets_mut`](Self::packets_mut).
    pub fn inject(&mut self, node: NodeId, packet: PacketRef) {
        let inside = matches!(
            self.nodes.get(usize::from(node.0)).map(|slot| &slot.node),
            Some(Node::Attached(_))
        );
        if !inside {
            debug_assert!(false, "packets enter at attached nodes");
            self.discards.count(DropReason::NoRoute);
            self.packets.release(packet);
            return;
        }
        self.call(node.0, |node, cx| match node {
            Node::Attached(attached) => attached.enter(packet, cx),
            _ => cx.discard(packet, DropReason::NoRoute),
        });
    }

    /// Returns the packet store, for injected and departed packets.
    pub fn packets_mut(&mut self) -> &mut PacketStore {
        &mut self.packets
    }

    /// Returns the packet store.
    #[must_use]
    pub fn packets(&self) -> &PacketStore {
        &self.packets
    }

    /// Moves the packets that have left the network since the last call to `into`, in order. `into`
    /// is cleared first.
    pub fn departures(&mut self, into: &mut Vec<Departure>) {
        into.clear();
        std::mem::swap(&mut self.departed, into);
    }

    /// Handles a packet emitted at a port without a direction: `behind` describes the port.
    #[cold]
    #[inline(never)]
    pub(super) fn leave(&mut self, from: u16, behind: u16, packet: PacketRef) {
        if self.branch(from, behind, packet) {
            return;
        }
        if matches!(self.nodes[usize::from(from)].node, Node::Attached(_)) {
            self.departed.push(Departure {
                node: NodeId(from),
                at: self.now,
                packet,
            });
            return;
        }
        // A port that only receives, or does not exist.
        self.discards.count(DropReason::NoRoute);
        self.packets.release(packet);
    }
}
