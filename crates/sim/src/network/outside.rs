//! A network whose time is somebody else's: packets enter and leave at attached nodes.

use bentpipe_types::{Agent, DropReason, PacketRef, PacketStore, Time};

use super::Network;
use crate::NodeId;
use crate::node::Node;

/// A packet that has left the network. Whoever takes it releases it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Departure {
    /// The attached node at which it left.
    pub node: NodeId,
    /// When it got there.
    pub at: Time,
    /// The packet.
    pub packet: PacketRef,
}

impl Network {
    /// When something next happens of itself.
    #[must_use]
    pub fn next_event(&self) -> Option<Time> {
        self.schedule.first().map(|(at, _)| at)
    }

    /// Runs up to and including `until`, or `budget` events, whichever comes first; and does not end,
    /// whether or not anything is left to happen. True when `until` is reached.
    pub fn advance(&mut self, until: Time, budget: u64) -> bool {
        self.begin();
        self.tell_all_in_turn();
        let sampler = self.sampler();
        let nodes = self.directions.len() as u16;
        for _ in 0..budget {
            let Some((at, component)) = self.schedule.first().filter(|(at, _)| *at <= until) else {
                self.now = self.now.max(until);
                self.schedule.keep_up(self.now);
                self.settle(self.now);
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

    /// The run is over, now.
    pub fn finish(&mut self) {
        self.ended = Some(self.now);
        self.finish_probes(self.now);
    }

    /// It is to be over, in order: every node [retires](bentpipe_types::Agent::retire), now. What they have to say
    /// is on its way then.
    pub fn retire(&mut self) {
        for node in 0..self.nodes.len() {
            self.call(node as u16, |node, cx| node.retire(cx));
        }
    }

    /// What whoever runs the network should know now of its nodes: their [remarks](bentpipe_types::Agent::remark).
    pub fn remarks(&self) -> impl Iterator<Item = &'static str> {
        self.nodes.iter().filter_map(|slot| slot.node.remark())
    }

    /// A packet enters at an attached node, now. The store is [`packets_mut`](Self::packets_mut).
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

    /// The packets of the network: to store those that are to enter, to read those that have left.
    pub fn packets_mut(&mut self) -> &mut PacketStore {
        &mut self.packets
    }

    /// The packets of the network.
    #[must_use]
    pub fn packets(&self) -> &PacketStore {
        &self.packets
    }

    /// Takes what has left the network since, in order: `into` is emptied first.
    pub fn departures(&mut self, into: &mut Vec<Departure>) {
        into.clear();
        std::mem::swap(&mut self.departed, into);
    }

    /// What was emitted at a port with no direction behind it: `behind` is what there is instead.
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
        // A port that only receives, or none.
        self.discards.count(DropReason::NoRoute);
        self.packets.release(packet);
    }
}
