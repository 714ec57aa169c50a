//! ACK suppression and ACK compaction (samaraweera1999, sections 5 and 6).

use bentpipe_link::{Flow, GivenUp, Limit, QueueCtx, QueueDiscipline, Tally, Verdict};
use bentpipe_types::{Bytes, Compaction, PacketRef, PacketStore, Seq};

use super::flow_queue::FlowQueue;
use super::list::{NONE, Node};
use crate::ack::{AckCounters, Kept, rules};
use crate::flows::Slot;

/// How many acknowledgments of a flow may wait (samaraweera1999, section 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaterMarks {
    /// More than this many of one flow, and the oldest are removed.
    pub low: u32,
    /// At most this many are removed in favour of one.
    pub high: u32,
    /// Duplicates of one acknowledgment that are kept although they have no SACK blocks; at least 3,
    /// which mark a loss. The paper keeps all, and says that three would do.
    pub duplicates: u32,
}

impl Default for WaterMarks {
    /// The paper's: 4, 60 and all.
    fn default() -> Self {
        Self {
            low: 4,
            high: 60,
            duplicates: u32::MAX,
        }
    }
}

/// Bytes that a compactor writes in front of an acknowledgment: count and bytes.
const PREFIX: u32 = 3;

/// An advance of so many times the usual one fills a hole, and is not to be cut into steps.
const JUMP: u32 = 4;

/// A drop-tail queue that removes the oldest acknowledgments of a flow of which many wait.
///
/// It does so when the transmitter becomes free: if the packet at the head belongs to a flow of which
/// more acknowledgments wait than the low mark, the oldest are removed in favour of the latest that says
/// all they say. (The paper deletes "from the front of the queue" when the counter exceeds the low mark,
/// and bounds a deletion by a high mark of 60: run at every arrival, a deletion would never find more
/// than five.) And when a packet finds the queue full.
#[derive(Debug)]
pub struct ThinningQueue {
    marks: WaterMarks,
    /// The one that is left says how many there were.
    compacts: bool,
    queue: FlowQueue<Mark, Memory>,
}

/// What is known of a packet that waits.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    standing: Standing,
    /// The packet of its flow in front of it may be removed in its favour.
    replaces: bool,
    /// How many that were removed it stands for.
    absorbed: u32,
    /// The acknowledgment number of the first of them, if there are any.
    base: Seq,
}

/// What a packet is to those behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Standing {
    /// No acknowledgment alone: it doesn't count towards the water marks, and stays.
    #[default]
    Other,
    /// An acknowledgment that is not to be removed, nor to get others removed in its favour.
    Kept,
    /// It advances, and may be removed in favour of one that advances further.
    Advances,
    /// It repeats a number, and may be removed in favour of one that repeats it again.
    Repeats,
}

impl Standing {
    fn is_fixed(self) -> bool {
        matches!(self, Self::Other | Self::Kept)
    }
}

/// What is known of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Memory {
    /// Where those that might be removed begin, as far as is known: never moves back.
    open: Option<u32>,
    /// Acknowledgments that wait: the paper's flow counter.
    waiting: u32,
    /// How far acknowledgment numbers usually advance.
    usual_step: u32,
}

impl ThinningQueue {
    /// An empty queue that suppresses; see [`Method::queue`](super::Method::queue).
    #[must_use]
    pub fn suppressing(marks: WaterMarks, limit: Limit, flows: usize) -> Self {
        Self {
            marks,
            compacts: false,
            queue: FlowQueue::new(limit, flows),
        }
    }

    /// An empty queue that compacts.
    #[must_use]
    pub fn compacting(marks: WaterMarks, limit: Limit, flows: usize) -> Self {
        // What the count that a compactor writes can't hold is not wrapped.
        let high = marks.high.min(u32::from(u8::MAX));
        Self {
            compacts: true,
            ..Self::suppressing(WaterMarks { high, ..marks }, limit, flows)
        }
    }

    /// What it has done in all.
    #[must_use]
    pub fn totals(&self) -> &AckCounters {
        self.queue.totals()
    }

    /// What it has done, by flow. A flow that was forgotten starts anew.
    pub fn flows(&self) -> impl Iterator<Item = (Flow, &AckCounters)> {
        self.queue.flows()
    }

    /// What an arrival is to its flow. Its number, and what was usual before, are part of that from now on.
    fn mark(&mut self, slot: Slot, node: &Node<Mark>, packets: &PacketStore) -> Mark {
        let said = &mut self.queue.lane_mut(slot).said;
        let (standing, replaces) = match said.classify(node.packet, self.marks.duplicates, packets)
        {
            Err(reason) => {
                self.queue
                    .count(Some(slot), |counters| counters.keep(reason));
                match reason {
                    Kept::Data | Kept::Control => (Standing::Other, false),
                    _ => (Standing::Kept, false),
                }
            }
            Ok(0) => (Standing::Repeats, self.repeats_last(slot, node, packets)),
            Ok(step) => (
                Standing::Advances,
                self.outruns_last(slot, step, node, packets),
            ),
        };
        Mark {
            standing,
            replaces,
            ..Mark::default()
        }
    }

    /// The packet of this flow that was queued last, if it still waits.
    fn last(&self, slot: Slot) -> Option<&Node<Mark>> {
        let last = self.queue.lane(slot).ends.last;
        (last != NONE).then(|| self.queue.list.node(last))
    }

    /// May the flow's last packet be removed in favour of this one, which repeats a number?
    fn repeats_last(&self, slot: Slot, node: &Node<Mark>, packets: &PacketStore) -> bool {
        self.last(slot).is_some_and(|last| {
            last.mark.standing == Standing::Repeats
                && rules::supersedes(packets, last.packet, node.packet).is_ok()
        })
    }

    /// May the flow's last packet be removed in favour of this one, which advances by `step`?
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
        // An average over eight or so, in which one jump counts little.
        *usual_step = (usual - usual / 8 + step.min(longest) / 8).max(1);
        // One that repeats a number is removed in favour of another one only: the run that begins
        // here is restored from its first number.
        let last = self.last(slot);
        let Some(last) = last.filter(|last| last.mark.standing == Standing::Advances) else {
            return false;
        };
        let verdict = if self.compacts && jump {
            Err(Kept::Jump)
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
            let standing = node.mark.standing;
            let own = &mut self.queue.lane_mut(slot).own;
            own.waiting += u32::from(standing != Standing::Other);
            if own.open.is_none() && !standing.is_fixed() {
                own.open = Some(index);
            }
        }
    }

    /// Takes a packet out of the queue.
    fn take(&mut self, index: u32) -> Node<Mark> {
        let node = self.queue.take(index);
        if let Some(slot) = node.flow {
            let own = &mut self.queue.lane_mut(slot).own;
            own.waiting -= u32::from(node.mark.standing != Standing::Other);
            if own.open == Some(index) {
                own.open = behind(&node);
            }
        }
        node
    }

    /// Removes the acknowledgment at `index`: the one at `later`, of the same flow, stands for it and
    /// takes its place, so that what it says is not held up by its removal.
    fn absorb(&mut self, index: u32, later: u32, packets: &mut PacketStore) {
        let removed = *self.queue.list.node(index);
        let survivor = self.take(later);
        self.queue.list.substitute(index, &survivor);
        self.queue.end(&removed, packets);
        if removed.mark.standing == Standing::Repeats {
            self.queue
                .count(removed.flow, |counters| counters.duplicates_removed += 1);
        }
    }

    /// Lets the packet that a flow sends next stand for those behind it that say all it says, if more
    /// wait than the low mark.
    fn thin(&mut self, slot: Slot, first: u32, packets: &mut PacketStore) {
        if self.queue.lane(slot).own.waiting > self.marks.low {
            while self.gather(first, packets) {}
        }
        if self.queue.list.node(first).mark.absorbed > 0 {
            self.seal(first, packets);
        }
    }

    /// Removes one packet: the one behind `first` in its flow takes its place. False, if it does not
    /// say all that `first` says, or the two stand for more than one packet may.
    fn gather(&mut self, first: u32, packets: &mut PacketStore) -> bool {
        let node = self.queue.list.node(first);
        let Some(behind) = behind(node).filter(|_| !node.mark.standing.is_fixed()) else {
            return false;
        };
        let base = if node.mark.absorbed == 0 {
            node.acknowledgment
        } else {
            node.mark.base
        };
        let later = self.queue.list.node(behind);
        let absorbed = node.mark.absorbed + 1 + later.mark.absorbed;
        // Nor are the bytes that a compactor writes.
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

    /// The packet is about to be sent: writes in front of it what it stands for.
    fn seal(&mut self, first: u32, packets: &mut PacketStore) {
        // Once is enough: "marked to indicate that it has already been compacted" (section 6), and one
        // in a high mark of acknowledgments has to get through (section 5). Behind it, a new run begins.
        let node = *self.queue.list.node(first);
        if let Some(next) = behind(&node) {
            self.queue.list.node_mut(next).mark.replaces = false;
        }
        // Duplicates are never restored.
        if self.compacts && node.mark.standing != Standing::Repeats {
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

    /// Rather than drop this packet, removes one that its flow can do without: the oldest that
    /// another can stand for, which goes on gathering. (To compact here would fill the queue with
    /// compacted ones that stand for five each, and none of which may be removed.)
    fn make_room(&mut self, slot: Slot, length: u32, packets: &mut PacketStore) -> bool {
        loop {
            let own = self.queue.lane(slot).own;
            let Some(first) = own.open.filter(|_| own.waiting > self.marks.low) else {
                return false;
            };
            if self.gather(first, packets) {
                return self.queue.fits(length);
            }
            // It stands for as many as it may, or nothing that waits can take its place.
            self.queue.lane_mut(slot).own.open = behind(self.queue.list.node(first));
        }
    }
}

/// The packet behind this one in its flow.
fn behind(node: &Node<Mark>) -> Option<u32> {
    (node.flow_after != NONE).then_some(node.flow_after)
}

impl QueueDiscipline for ThinningQueue {
    fn enqueue(&mut self, packet: PacketRef, cx: &mut QueueCtx<'_>) -> Verdict {
        let mut node = self.queue.meet(packet, cx.packets);
        let mut before = None;
        if let Some(slot) = node.flow {
            let lane = self.queue.lane(slot);
            before = Some((slot, lane.said, lane.own.usual_step));
            node.mark = self.mark(slot, &node, cx.packets);
        }
        let has_room = cx.idle
            || self.queue.fits(node.length)
            || (node.flow).is_some_and(|slot| self.make_room(slot, node.length, cx.packets));
        if !has_room {
            self.queue
                .count(node.flow, |counters| counters.dropped += 1);
            if let Some((slot, said, usual_step)) = before {
                // Nobody will hear what it said.
                let lane = self.queue.lane_mut(slot);
                lane.said = said;
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
        if let Some(slot) = node.flow.filter(|_| !node.mark.standing.is_fixed()) {
            self.thin(slot, head, cx.packets);
        }
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
