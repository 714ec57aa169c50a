//! The ACK filter of Linux's CAKE.

mod rule;

use bentpipe_link::{GivenUp, Limit, QueueCtx, QueueDiscipline, Tally, Verdict};
use bentpipe_types::{Bytes, PacketRef, PacketStore};

use super::flow_queue::FlowQueue;
use super::list::{NONE, Node};
use crate::ack::{AckCounters, Kept, rules};
use crate::flows::Slot;

/// A drop-tail queue that removes acknowledgments when one arrives that says as much. Those that may go
/// are the ones in their flow's list.
#[derive(Debug)]
pub struct FilterQueue {
    aggressive: bool,
    queue: FlowQueue<Candidate, Memory>,
}

/// What is known of a packet that may be removed.
#[derive(Clone, Copy, Debug, Default)]
struct Candidate {
    /// The ECN flags have changed since the candidate in front of it.
    after_ecn_change: bool,
    /// Nothing of its flow was queued between it and the candidate in front of it.
    adjacent: bool,
}

/// What is known of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Memory {
    /// ECN flags of the last packet, and whether they changed since the last candidate.
    ecn_flags: u8,
    ecn_changed: bool,
    /// The packet queued last, candidate or not, if it still waits.
    last: Option<u32>,
}

impl FilterQueue {
    /// An empty queue; see [`Method::queue`](super::Method::queue).
    #[must_use]
    pub fn new(aggressive: bool, limit: Limit, flows: usize) -> Self {
        Self {
            aggressive,
            queue: FlowQueue::new(limit, flows),
        }
    }

    /// What it has done in all.
    #[must_use]
    pub fn totals(&self) -> &AckCounters {
        self.queue.totals()
    }

    /// Is the packet a candidate, for arrivals after it?
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
                Err(Kept::Data | Kept::Options)
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

    /// Drops what the rule chose. CAKE has a queue for each flow, in which those behind it move up;
    /// here they move into its place, and the arrival into theirs, where nothing else of the flow is in
    /// between. Has the arrival found its place that way?
    fn drop_candidate(
        &mut self,
        index: u32,
        slot: Slot,
        arrival: &mut Node<Candidate>,
        is_candidate: bool,
        packets: &mut PacketStore,
    ) -> bool {
        let node = *self.queue.list.node(index);
        // The ECN flags' change in front of it is now in front of its successor.
        if node.mark.after_ecn_change {
            match node.flow_after {
                // The arrival is a candidate itself, or else the next one will be told.
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
            // The arrival is right behind it.
            self.replace(index, arrival);
        } else {
            // It, its successor, the arrival: two places for two.
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
            before = Some((slot, lane.said, lane.own));
            let kept = lane.said.classify(packet, u32::MAX, cx.packets);
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
                let reason = kept.err().unwrap_or(Kept::Sack);
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
            if let Some((slot, said, own)) = before {
                // Nobody will hear what it said.
                let lane = self.queue.lane_mut(slot);
                lane.said = said;
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

    fn packets(&self) -> u64 {
        self.queue.list.length()
    }

    fn bytes(&self) -> u64 {
        self.queue.list.bytes()
    }

    fn given_up(&self) -> GivenUp {
        self.queue.given_up()
    }

    fn tally(&self, each: &mut Tally<'_>) {
        self.queue.tally(each);
    }
}
