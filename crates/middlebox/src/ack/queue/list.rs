//! Queued packets in order, and the lists of each flow, in one slab.

use bentpipe_types::{Bytes, PacketRef, Seq};

use crate::flows::Slot;

pub(super) const NONE: u32 = u32::MAX;

/// A queued packet with its state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node<M> {
    pub(super) packet: PacketRef,
    pub(super) length: u32,
    pub(super) acknowledgment: Seq,
    pub(super) flow: Option<Slot>,
    pub(super) mark: M,
    /// Whether it is in its flow's list.
    linked: bool,
    before: u32,
    after: u32,
    flow_before: u32,
    pub(super) flow_after: u32,
}

impl<M: Default> Node<M> {
    pub(super) fn new(packet: PacketRef, length: u32, acknowledgment: Seq) -> Self {
        Self {
            packet,
            length,
            acknowledgment,
            flow: None,
            mark: M::default(),
            linked: false,
            before: NONE,
            after: NONE,
            flow_before: NONE,
            flow_after: NONE,
        }
    }

    /// Returns the packet for transmission and its length.
    pub(super) fn departs(&self) -> (PacketRef, Bytes) {
        (self.packet, Bytes::new(u64::from(self.length)))
    }

    pub(super) fn is_linked(&self) -> bool {
        self.linked
    }
}

/// First and last node of a flow's list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    pub(super) first: u32,
    pub(super) last: u32,
}

impl Default for Ends {
    fn default() -> Self {
        Self {
            first: NONE,
            last: NONE,
        }
    }
}

/// A first-in-first-out list from which any packet can be removed.
#[derive(Debug)]
pub(super) struct List<M> {
    nodes: Vec<Node<M>>,
    free: u32,
    ends: Ends,
    length: u64,
    bytes: u64,
}

impl<M: Copy> List<M> {
    pub(super) fn new() -> Self {
        Self {
            nodes: Vec::new(),
            free: NONE,
            ends: Ends::default(),
            length: 0,
            bytes: 0,
        }
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn first(&self) -> Option<u32> {
        (self.ends.first != NONE).then_some(self.ends.first)
    }

    pub(super) fn node(&self, index: u32) -> &Node<M> {
        &self.nodes[index as usize]
    }

    pub(super) fn node_mut(&mut self, index: u32) -> &mut Node<M> {
        &mut self.nodes[index as usize]
    }

    /// Increases the length of a queued packet.
    pub(super) fn lengthen(&mut self, index: u32, by: u32) {
        self.nodes[index as usize].length += by;
        self.bytes += u64::from(by);
    }

    /// Replaces a queued packet by another, which inherits the mark.
    pub(super) fn substitute(&mut self, index: u32, by: &Node<M>) {
        let node = &mut self.nodes[index as usize];
        self.bytes = self.bytes + u64::from(by.length) - u64::from(node.length);
        node.packet = by.packet;
        node.length = by.length;
        node.acknowledgment = by.acknowledgment;
    }

    pub(super) fn push(&mut self, mut node: Node<M>) -> u32 {
        node.before = self.ends.last;
        self.length += 1;
        self.bytes += u64::from(node.length);
        let index = match self.free {
            NONE => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32
            }
            index => {
                self.free = self.nodes[index as usize].after;
                self.nodes[index as usize] = node;
                index
            }
        };
        match self.ends.last {
            NONE => self.ends.first = index,
            last => self.nodes[last as usize].after = index,
        }
        self.ends.last = index;
        index
    }

    pub(super) fn remove(&mut self, index: u32) -> Node<M> {
        let node = self.nodes[index as usize];
        match node.before {
            NONE => self.ends.first = node.after,
            before => self.nodes[before as usize].after = node.after,
        }
        match node.after {
            NONE => self.ends.last = node.before,
            after => self.nodes[after as usize].before = node.before,
        }
        self.length -= 1;
        self.bytes -= u64::from(node.length);
        self.nodes[index as usize].after = self.free;
        self.free = index;
        node
    }

    /// Appends a node to its flow's list.
    pub(super) fn link(&mut self, ends: &mut Ends, index: u32) {
        let node = &mut self.nodes[index as usize];
        node.linked = true;
        node.flow_before = ends.last;
        node.flow_after = NONE;
        match ends.last {
            NONE => ends.first = index,
            last => self.nodes[last as usize].flow_after = index,
        }
        ends.last = index;
    }

    /// Removes a node from its flow's list. Call it before removing the node.
    pub(super) fn unlink(&mut self, ends: &mut Ends, index: u32) {
        let node = &mut self.nodes[index as usize];
        debug_assert!(node.linked, "not in a flow's list");
        node.linked = false;
        let (before, after) = (node.flow_before, node.flow_after);
        match before {
            NONE => ends.first = after,
            before => self.nodes[before as usize].flow_after = after,
        }
        match after {
            NONE => ends.last = before,
            after => self.nodes[after as usize].flow_before = before,
        }
    }
}
