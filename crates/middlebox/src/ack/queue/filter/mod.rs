//! The ACK filter of Linux's CAKE.

mod candidate;
mod rule;

use bentpipe_link::{Backlog, GivenUp, Limit, QueueCtx, QueueDiscipline, Tally, Verdict};
use bentpipe_types::{Bytes, PacketRef, PacketStore};

use super::flow_queue::FlowQueue;
use super::list::{NONE, Node};
use crate::ack::{AckCounters, KeepReason, rules};
use crate::flows::Slot;
use candidate::Candidate;

/// A drop-tail queue that removes acknowledgments when one with the same content arrives. The list
/// of a flow contains those that may be removed.
#[derive(Debug)]
pub struct FilterQueue {
    aggressive: bool,
    queue: FlowQueue<Candidate, Memory>,
}

/// State of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Memory {
    /// ECN flags of the last packet, and whether they changed since the last candidate.
    ecn_flags: u8,
    ecn_changed: bool,
    /// The last queued packet, candidate or not, if it is still queued.
    last: Option<u32>,
}

impl FilterQueue {
    /// Creates an empty queue; see [`Method::queue`](super::Method::queue).
    #[must_use]
    pub fn new(aggressive: bool, limit: Limit, flows: usize) -> Self {
        Self {
            aggressive,
            queue: FlowQueue::new(limit, flows),
        }
    }

    /// Returns the totals.
    #[must_use]
    pub fn totals(&self) -> &AckCounters {
        self.queue.totals()
    }

    /// Whether the packet is a candidate for later arrivals.
    fn candidate(
        &mut self,
        slot: Slot,
        packet: PacketRef,
        packets: &PacketStore,
    ) -> Option<Candidate> {
        let lane = self.queue.lane_mut(slot);
        let own = &mut lane.own;
        let flags = packets.get(packet).flags.0 & rule::ECN_FLAGS;
        own.ecn_changed |= flags != own.ecn_flags;
        own.ecn_flags = flags;
        let may_go = rule::droppable(packets, packet)
            && !matches!(
                rules::plain(packets, packet),
                Err(KeepReason::Data | KeepReason::Options)
            );
        may_go.then(|| Candidate {
            after_ecn_change: std::mem::take(&mut own.ecn_changed),
            adjacent: own.last.is_some_and(|last| last == lane.ends.last),
        })
    }

    fn take(&mut self, index: u32) -> Node<Candidate> {
        let node = self.queue.take(index);
        if let Some(slot) = node.flow {
            let own = &mut self.queue.lane_mut(slot).own;
            own.last = own.last.filter(|&last| last != index);
        }
        node
    }

    /// Drops the candidate that the rule chose. In CAKE, which has a queue per flow, the packets
    /// behind it move up. Here they take over its position, and the arrival takes over theirs if
    /// nothing else of the flow is in between. Returns whether the arrival was placed that way.
    fn drop_candidate(
        &mut self,
        index: u32,
        slot: Slot,
        arrival: &mut Node<Candidate>,
        is_candidate: bool,
        packets: &mut PacketStore,
    ) -> bool {
        let node = *self.queue.list.node(index);
        // A change of ECN flags before it is now before its successor.
        if node.mark.after_ecn_change {
            match node.flow_after {
                // The arrival is a candidate itself; otherwise the next candidate records the
                // change.
                NONE if is_candidate => arrival.mark.after_ecn_change = true,
                NONE => self.queue.lane_mut(slot).own.ecn_changed = true,
                after => self.queue.list.node_mut(after).mark.after_ecn_change = true,
            }
        }
        let behind = node.flow_after;
        let has_place = is_candidate
            && arrival.mark.adjacent
            && (behind == NONE || {
                let next = self.queue.list.node(behind);
                next.flow_after == NONE && next.mark.adjacent
            });
        if !has_place {
            let node = self.take(index);
            self.queue.end(&node, packets);
            return false;
        }
        if behind == NONE {
            // The arrival is directly behind it.
            self.replace(index, arrival);
        } else {
            // The candidate, its successor and the arrival: two positions for two packets.
            let next = *self.queue.list.node(behind);
            self.replace(index, &next);
            self.replace(behind, arrival);
        }
        self.queue.end(&node, packets);
        true
    }

    fn replace(&mut self, index: u32, by: &Node<Candidate>) {
        self.queue.list.substitute(index, by);
        let mark = &mut self.queue.list.node_mut(index).mark;
        mark.after_ecn_change = by.mark.after_ecn_change;
    }
}

impl QueueDiscipline for FilterQueue {
    fn enqueue(&mut self, packet: PacketRef, cx: &mut QueueCtx<'_>) -> Verdict {
        let mut node = self.queue.meet(packet, cx.packets);
        let mut is_candidate = false;
        let mut before = None;
        let mut has_place = false;
        if let Some(slot) = node.flow {
            let lane = self.queue.lane_mut(slot);
            before = Some((slot, lane.acknowledged, lane.own));
            let kept = lane.acknowledged.classify(packet, u32::MAX, cx.packets);
            let candidate = self.candidate(slot, packet, cx.packets);
            let lane = self.queue.lane(slot);
            let goes = rule::choose(
                &self.queue.list,
                lane.ends,
                lane.own.last,
                cx.packets,
                packet,
                self.aggressive,
            );
            is_candidate = candidate.is_some();
            node.mark = candidate.unwrap_or_default();
            if !is_candidate {
                let reason = kept.err().unwrap_or(KeepReason::Sack);
                self.queue
                    .count(node.flow, |counters| counters.keep(reason));
            }
            has_place = goes.is_some_and(|index| {
                self.drop_candidate(index, slot, &mut node, is_candidate, cx.packets)
            });
        }
        if !has_place && !cx.idle && !self.queue.fits(node.length) {
            self.queue
                .count(node.flow, |counters| counters.dropped += 1);
            if let Some((slot, acknowledged, own)) = before {
                // Its content is lost.
                let lane = self.queue.lane_mut(slot);
                lane.acknowledged = acknowledged;
                lane.own.ecn_flags = own.ecn_flags;
                lane.own.ecn_changed |= own.ecn_changed;
            }
            return Verdict::Dropped;
        }
        self.queue.count(node.flow, |counters| counters.queued += 1);
        if !has_place {
            let index = self.queue.push(node, is_candidate);
            if let Some(slot) = node.flow {
                self.queue.lane_mut(slot).own.last = Some(index);
            }
        }
        Verdict::Queued
    }

    fn dequeue(&mut self, _cx: &mut QueueCtx<'_>) -> Option<(PacketRef, Bytes)> {
        let head = self.queue.list.first()?;
        Some(self.take(head).departs())
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn given_up(&self) -> GivenUp {
        self.queue.given_up()
    }

    fn tally(&self, each: &mut Tally<'_>) {
        self.queue.tally(each);
    }
}
