//! ACK suppression and ACK compaction (samaraweera1999, sections 5 and 6).

use bentpipe_link::{Backlog, Flow, GivenUp, Limit, QueueCtx, QueueDiscipline, Tally, Verdict};
use bentpipe_types::{Bytes, Compaction, PacketRef, PacketStore, Seq};

use super::flow_queue::FlowQueue;
use super::list::{NONE, Node};
use crate::ack::{AckCounters, KeepReason, rules};
use crate::flows::Slot;

/// Limits on the queued acknowledgments of a flow (samaraweera1999, section 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaterMarks {
    /// With more than this many of a flow, the oldest are removed.
    pub low: u32,
    /// Maximum number removed in favour of one.
    pub high: u32,
    /// Duplicates that are kept although they have no SACK blocks; at least the 3 that signal a
    /// loss. The paper keeps all, and states that three would suffice.
    pub duplicates: u32,
}

impl Default for WaterMarks {
    /// The paper's values: 4, 60 and all.
    fn default() -> Self {
        Self {
            low: 4,
            high: 60,
            duplicates: u32::MAX,
        }
    }
}

/// Bytes that a compactor adds to an acknowledgment: count and bytes.
const PREFIX: u32 = 3;

/// An advance of this many times the usual one fills a hole, and must not be divided into steps.
const JUMP: u32 = 4;

/// A drop-tail queue that removes the oldest acknowledgments of a flow with many of them.
///
/// It does so when the transmitter becomes free and the packet at the head belongs to a flow with
/// more queued acknowledgments than the low-water mark: the oldest are removed in favour of the
/// latest one with all their content. It does so too when an arriving packet finds the queue full.
///
/// The paper deletes "from the front of the queue" when the counter exceeds the low mark, and
/// bounds a deletion by a high mark of 60. Run at every arrival, a deletion would never find more
/// than five.
#[derive(Debug)]
pub struct ThinningQueue {
    marks: WaterMarks,
    /// Whether the remaining acknowledgment states how many it replaces.
    compacts: bool,
    queue: FlowQueue<Mark, Memory>,
}

/// State of a queued packet.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    role: Role,
    /// Whether the previous packet of its flow may be removed in its favour.
    replaces: bool,
    /// Number of removed acknowledgments that it replaces.
    absorbed: u32,
    /// Acknowledgment number of the first removed one, if any.
    base: Seq,
}

/// Role of a packet for later ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Role {
    /// Not a pure acknowledgment: it does not count towards the water marks, and stays.
    #[default]
    Other,
    /// An acknowledgment that must not be removed, and for which no others may be removed.
    Kept,
    /// It advances, and may be removed in favour of one that advances further.
    Advances,
    /// It repeats a number, and may be removed in favour of another repetition.
    Repeats,
}

impl Role {
    fn is_fixed(self) -> bool {
        matches!(self, Self::Other | Self::Kept)
    }
}

/// State of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Memory {
    /// First node that may be removable, as far as known. Invariant: it never moves back.
    open: Option<u32>,
    /// Queued acknowledgments: the paper's flow counter.
    waiting: u32,
    /// Average advance of acknowledgment numbers.
    usual_step: u32,
}

impl ThinningQueue {
    /// Creates an empty queue with suppression; see [`Method::queue`](super::Method::queue).
    #[must_use]
    pub fn suppressing(marks: WaterMarks, limit: Limit, flows: usize) -> Self {
        Self {
            marks,
            compacts: false,
            queue: FlowQueue::new(limit, flows),
        }
    }

    /// Creates an empty queue with compaction.
    #[must_use]
    pub fn compacting(marks: WaterMarks, limit: Limit, flows: usize) -> Self {
        // The count field has one byte and must not wrap.
        let high = marks.high.min(u32::from(u8::MAX));
        Self {
            compacts: true,
            ..Self::suppressing(WaterMarks { high, ..marks }, limit, flows)
        }
    }

    /// Returns the totals.
    #[must_use]
    pub fn totals(&self) -> &AckCounters {
        self.queue.totals()
    }

    /// Returns the counters per flow. A flow that was evicted starts again at zero.
    pub fn flows(&self) -> impl Iterator<Item = (Flow, &AckCounters)> {
        self.queue.flows()
    }

    /// Determines the mark of an arrival, and updates number and usual step of its flow.
    fn mark(&mut self, slot: Slot, node: &Node<Mark>, packets: &PacketStore) -> Mark {
        let acknowledged = &mut self.queue.lane_mut(slot).acknowledged;
        let (role, replaces) =
            match acknowledged.classify(node.packet, self.marks.duplicates, packets) {
                Err(reason) => {
                    self.queue
                        .count(Some(slot), |counters| counters.keep(reason));
                    match reason {
                        KeepReason::Data | KeepReason::Control => (Role::Other, false),
                        _ => (Role::Kept, false),
                    }
                }
                Ok(0) => (Role::Repeats, self.repeats_last(slot, node, packets)),
                Ok(step) => (Role::Advances, self.outruns_last(slot, step, node, packets)),
            };
        Mark {
            role,
            replaces,
            ..Mark::default()
        }
    }

    /// Returns the last queued packet of this flow, if it is still queued.
    fn last(&self, slot: Slot) -> Option<&Node<Mark>> {
        let last = self.queue.lane(slot).ends.last;
        (last != NONE).then(|| self.queue.list.node(last))
    }

    /// Whether the flow's last packet may be removed in favour of this one, which repeats a number.
    fn repeats_last(&self, slot: Slot, node: &Node<Mark>, packets: &PacketStore) -> bool {
        self.last(slot).is_some_and(|last| {
            last.mark.role == Role::Repeats
                && rules::supersedes(packets, last.packet, node.packet).is_ok()
        })
    }

    /// Whether the flow's last packet may be removed in favour of this one, which advances by
    /// `step`.
    fn outruns_last(
        &mut self,
        slot: Slot,
        step: u32,
        node: &Node<Mark>,
        packets: &PacketStore,
    ) -> bool {
        let usual_step = &mut self.queue.lane_mut(slot).own.usual_step;
        let usual = if *usual_step == 0 { step } else { *usual_step };
        let longest = usual.saturating_mul(JUMP);
        let jump = step > longest;
        // An average over about eight, in which one jump has little weight.
        *usual_step = (usual - usual / 8 + step.min(longest) / 8).max(1);
        // A repetition is removed only in favour of another repetition: the run that begins here is
        // restored from its first number.
        let last = self.last(slot);
        let Some(last) = last.filter(|last| last.mark.role == Role::Advances) else {
            return false;
        };
        let verdict = if self.compacts && jump {
            Err(KeepReason::Jump)
        } else {
            rules::supersedes(packets, last.packet, node.packet)
        };
        if let Err(reason) = verdict {
            self.queue
                .count(Some(slot), |counters| counters.keep(reason));
        }
        verdict.is_ok()
    }

    fn push(&mut self, node: Node<Mark>) {
        let index = self.queue.push(node, true);
        if let Some(slot) = node.flow {
            let role = node.mark.role;
            let own = &mut self.queue.lane_mut(slot).own;
            own.waiting += u32::from(role != Role::Other);
            if own.open.is_none() && !role.is_fixed() {
                own.open = Some(index);
            }
        }
    }

    /// Removes a packet from the queue.
    fn take(&mut self, index: u32) -> Node<Mark> {
        let node = self.queue.take(index);
        if let Some(slot) = node.flow {
            let own = &mut self.queue.lane_mut(slot).own;
            own.waiting -= u32::from(node.mark.role != Role::Other);
            if own.open == Some(index) {
                own.open = behind(&node);
            }
        }
        node
    }

    /// Removes the acknowledgment at `index`. The one at `later`, of the same flow, replaces it and
    /// takes its position, so that its content is not delayed.
    fn absorb(&mut self, index: u32, later: u32, packets: &mut PacketStore) {
        let removed = *self.queue.list.node(index);
        let survivor = self.take(later);
        self.queue.list.substitute(index, &survivor);
        self.queue.end(&removed, packets);
        if removed.mark.role == Role::Repeats {
            self.queue
                .count(removed.flow, |counters| counters.duplicates_removed += 1);
        }
    }

    /// If more acknowledgments than the low-water mark are queued, lets the flow's next packet
    /// replace the later ones with the same content.
    fn thin(&mut self, slot: Slot, first: u32, packets: &mut PacketStore) {
        if self.queue.lane(slot).own.waiting > self.marks.low {
            while self.gather(first, packets) {}
        }
        if self.queue.list.node(first).mark.absorbed > 0 {
            self.seal(first, packets);
        }
    }

    /// Removes one packet: the next one of its flow takes the position of `first`. Returns false if
    /// that lacks content of `first`, or both replace more than one packet may.
    fn gather(&mut self, first: u32, packets: &mut PacketStore) -> bool {
        let node = self.queue.list.node(first);
        let Some(behind) = behind(node).filter(|_| !node.mark.role.is_fixed()) else {
            return false;
        };
        let base = if node.mark.absorbed == 0 {
            node.acknowledgment
        } else {
            node.mark.base
        };
        let later = self.queue.list.node(behind);
        let absorbed = node.mark.absorbed + 1 + later.mark.absorbed;
        // The byte count must not overflow either.
        let overflows = self.compacts && later.acknowledgment - base > u32::from(u16::MAX);
        if !later.mark.replaces || absorbed > self.marks.high || overflows {
            return false;
        }
        self.absorb(first, behind, packets);
        let mark = &mut self.queue.list.node_mut(first).mark;
        mark.absorbed = absorbed;
        mark.base = base;
        true
    }

    /// Adds the compaction data to a packet that is about to be sent.
    fn seal(&mut self, first: u32, packets: &mut PacketStore) {
        // An acknowledgment is compacted once: "marked to indicate that it has already been
        // compacted" (section 6), and one in a high mark of acknowledgments must get through
        // (section 5). A new run begins behind it.
        let node = *self.queue.list.node(first);
        if let Some(next) = behind(&node) {
            self.queue.list.node_mut(next).mark.replaces = false;
        }
        // Duplicates are not restored.
        if self.compacts && node.mark.role != Role::Repeats {
            let compaction = Compaction {
                count: node.mark.absorbed as u8,
                bytes: (node.acknowledgment - node.mark.base) as u16,
            };
            packets.set_compaction(node.packet, Some(compaction));
            packets.get_mut(node.packet).header_length += PREFIX as u8;
            self.queue.list.lengthen(first, PREFIX);
            self.queue
                .count(node.flow, |counters| counters.compacted += 1);
        }
    }

    /// Makes room by removing a packet that its flow can spare: the oldest one that another can
    /// replace, which continues to gather. Compacting here would fill the queue with compacted
    /// acknowledgments that replace five each and cannot be removed.
    fn make_room(&mut self, slot: Slot, length: u32, packets: &mut PacketStore) -> bool {
        loop {
            let own = self.queue.lane(slot).own;
            let Some(first) = own.open.filter(|_| own.waiting > self.marks.low) else {
                return false;
            };
            if self.gather(first, packets) {
                return self.queue.fits(length);
            }
            // It replaces as many as allowed, or no queued packet can take its place.
            self.queue.lane_mut(slot).own.open = behind(self.queue.list.node(first));
        }
    }
}

/// Returns the next packet of the same flow.
fn behind(node: &Node<Mark>) -> Option<u32> {
    (node.flow_after != NONE).then_some(node.flow_after)
}

impl QueueDiscipline for ThinningQueue {
    fn enqueue(&mut self, packet: PacketRef, cx: &mut QueueCtx<'_>) -> Verdict {
        let mut node = self.queue.meet(packet, cx.packets);
        let mut before = None;
        if let Some(slot) = node.flow {
            let lane = self.queue.lane(slot);
            before = Some((slot, lane.acknowledged, lane.own.usual_step));
            node.mark = self.mark(slot, &node, cx.packets);
        }
        let has_room = cx.idle
            || self.queue.fits(node.length)
            || (node.flow).is_some_and(|slot| self.make_room(slot, node.length, cx.packets));
        if !has_room {
            self.queue
                .count(node.flow, |counters| counters.dropped += 1);
            if let Some((slot, acknowledged, usual_step)) = before {
                // Its content is lost.
                let lane = self.queue.lane_mut(slot);
                lane.acknowledged = acknowledged;
                lane.own.usual_step = usual_step;
            }
            return Verdict::Dropped;
        }
        self.queue.count(node.flow, |counters| counters.queued += 1);
        self.push(node);
        Verdict::Queued
    }

    fn dequeue(&mut self, cx: &mut QueueCtx<'_>) -> Option<(PacketRef, Bytes)> {
        let head = self.queue.list.first()?;
        let node = self.queue.list.node(head);
        if let Some(slot) = node.flow.filter(|_| !node.mark.role.is_fixed()) {
            self.thin(slot, head, cx.packets);
        }
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
