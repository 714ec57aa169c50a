//! The common part of both queues: packets in order, state per flow, counters.

use std::fmt::Debug;

use bentpipe_link::{Backlog, Flow, GivenUp, Limit, Tally};
use bentpipe_types::{Bytes, PacketRef, PacketStore};

use super::acknowledged::Acknowledged;
use super::list::{Ends, List, Node};
use crate::ack::AckCounters;
use crate::flows::{FlowTable, Slot};

/// A flow with packets in the queue, and the state `S` of the queue's method.
#[derive(Debug, Default)]
pub(super) struct Lane<S> {
    pub(super) ends: Ends,
    pub(super) acknowledged: Acknowledged,
    pub(super) own: S,
    /// Queued packets of any kind.
    packets: u32,
    counters: AckCounters,
}

/// Queued packets in order, each with a mark `M`, and their flows with state `S`.
#[derive(Debug)]
pub(super) struct FlowQueue<M, S> {
    pub(super) list: List<M>,
    limit: Limit,
    flows: FlowTable<Lane<S>>,
    totals: AckCounters,
}

impl<M: Copy + Default + Debug, S: Default> FlowQueue<M, S> {
    pub(super) fn new(limit: Limit, flows: usize) -> Self {
        Self {
            list: List::new(),
            limit,
            flows: FlowTable::new(flows),
            totals: AckCounters::default(),
        }
    }

    /// Looks up the flow of an offered packet, if the table has room for it.
    pub(super) fn meet(&mut self, packet: PacketRef, packets: &PacketStore) -> Node<M> {
        let record = packets.get(packet);
        let mut node = Node::new(packet, record.length().get() as u32, record.acknowledgment);
        let flow = Flow::of(packets, packet);
        node.flow = self.flows.enter(flow, Lane::default, |_, _| {});
        node
    }

    pub(super) fn lane(&self, slot: Slot) -> &Lane<S> {
        self.flows.get(slot)
    }

    pub(super) fn lane_mut(&mut self, slot: Slot) -> &mut Lane<S> {
        self.flows.get_mut(slot)
    }

    pub(super) fn count(&mut self, flow: Option<Slot>, count: impl Fn(&mut AckCounters)) {
        count(&mut self.totals);
        if let Some(slot) = flow {
            count(&mut self.flows.get_mut(slot).counters);
        }
    }

    pub(super) fn fits(&self, length: u32) -> bool {
        let (waiting, length) = (Bytes::new(self.list.bytes()), Bytes::new(length.into()));
        self.limit.admits(self.list.length(), waiting, length)
    }

    /// Appends a packet to the queue, and to its flow's list if `linked`.
    pub(super) fn push(&mut self, node: Node<M>, linked: bool) -> u32 {
        let index = self.list.push(node);
        if let Some(slot) = node.flow {
            let lane = self.flows.get_mut(slot);
            lane.packets += 1;
            if linked {
                self.list.link(&mut lane.ends, index);
            }
            self.flows.set_busy(slot, true);
        }
        index
    }

    /// Removes a packet from the queue.
    pub(super) fn take(&mut self, index: u32) -> Node<M> {
        let node = *self.list.node(index);
        if let Some(slot) = node.flow {
            let lane = self.flows.get_mut(slot);
            if node.is_linked() {
                self.list.unlink(&mut lane.ends, index);
            }
            lane.packets -= 1;
            if lane.packets == 0 {
                self.flows.set_busy(slot, false);
            }
        }
        self.list.remove(index);
        node
    }

    /// Releases a removed acknowledgment.
    pub(super) fn end(&mut self, node: &Node<M>, packets: &mut PacketStore) {
        packets.release(node.packet);
        self.count(node.flow, |counters| {
            counters.removed += 1;
            counters.removed_bytes += u64::from(node.length);
        });
    }

    pub(super) fn backlog(&self) -> Backlog {
        Backlog {
            packets: self.list.length(),
            bytes: self.list.bytes(),
        }
    }

    pub(super) fn given_up(&self) -> GivenUp {
        GivenUp {
            dropped: 0,
            removed: self.totals.removed,
        }
    }

    pub(super) fn tally(&self, each: &mut Tally<'_>) {
        self.totals.tally(None, each);
        let (evicted, refused) = self.forgotten();
        each(None, "flows_forgotten", evicted);
        each(None, "flows_refused", refused);
        for (flow, counters) in self.flows() {
            counters.tally(Some(flow), each);
        }
    }

    pub(super) fn totals(&self) -> &AckCounters {
        &self.totals
    }

    pub(super) fn flows(&self) -> impl Iterator<Item = (Flow, &AckCounters)> {
        self.flows.iter().map(|(flow, lane)| (flow, &lane.counters))
    }

    /// Returns the number of evicted flows, and of packets whose flow found no room.
    pub(super) fn forgotten(&self) -> (u64, u64) {
        (self.flows.evicted(), self.flows.refused())
    }
}
