//! The queue in front of a slow return link: drop-tail, but for the acknowledgments that a later one
//! makes superfluous.

mod filter;
mod list;

use bentpipe_link::{DropTail, Flow, GivenUp, Limit, QueueCtx, QueueDiscipline, Tally, Verdict};
use bentpipe_types::{Bytes, Compaction, Packet, PacketRef, PacketStore, Seq};

use self::list::{Ends, List, NONE, Node};
use super::{AckCounters, Kept, rules};
use crate::flows::{FlowTable, Slot};

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

impl Method {
    /// Duplicates without SACK blocks that are kept.
    const fn duplicates(self) -> u32 {
        match self {
            Self::Suppression(marks) | Self::Compaction(marks) => marks.duplicates,
            Self::Filter { .. } => u32::MAX,
        }
    }
}

/// Which acknowledgments are removed, and what is left in their place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// ACK suppression (samaraweera1999, section 5).
    Suppression(WaterMarks),
    /// ACK compaction (section 6): the one that is left says how many there were. Removes at most 255
    /// in favour of one, and 65,535 bytes: what follows starts anew.
    Compaction(WaterMarks),
    /// The ACK filter of Linux's CAKE.
    Filter {
        /// `ack-filter-aggressive`: keeps one where `ack-filter` keeps two.
        aggressive: bool,
    },
}

/// What an [`AckQueue`] is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AckQueueSettings {
    /// What may wait.
    pub limit: Limit,
    /// What is removed.
    pub method: Method,
    /// Flows it keeps count of. One more, and the flow longest idle is forgotten; packets of a flow
    /// that finds no room pass as through any drop-tail queue.
    pub flows: usize,
}

/// What a flow's packets have said so far, up to the last one that was queued.
#[derive(Clone, Copy, Debug, Default)]
struct Said {
    /// The highest acknowledgment number, and the window that came with it.
    highest: Option<(Seq, u16)>,
    /// Packets that repeat that number.
    repeats: u32,
    /// How far acknowledgment numbers usually advance.
    usual_step: u32,
    /// ECN flags of the last packet, and whether they changed since the last candidate.
    ecn_flags: u8,
    ecn_changed: bool,
}

/// One flow, as its packets pass through.
#[derive(Debug, Default)]
struct AckFlow {
    ends: Ends,
    /// Where those that might be removed begin, as far as is known: never moves back.
    open: u32,
    /// Acknowledgments that wait: the paper's flow counter.
    waiting: u32,
    /// Packets in the queue, of any kind.
    packets: u32,
    said: Said,
    /// The packet queued last, if it still waits.
    last: u32,
    counters: AckCounters,
}

/// A drop-tail queue that removes acknowledgments.
///
/// Suppression and compaction run when the transmitter becomes free: if the packet at the head belongs
/// to a flow of which more acknowledgments wait than the low mark, the oldest are removed in favour of
/// the latest that says all they say. (The paper deletes "from the front of the queue" when the
/// counter exceeds the low mark, and bounds a deletion by a high mark of 60: run at every arrival, a
/// deletion would never find more than five.) They run, too, when a packet finds the queue full.
#[derive(Debug)]
pub struct AckQueue {
    limit: DropTail,
    method: Method,
    list: List,
    flows: FlowTable<AckFlow>,
    totals: AckCounters,
}

/// Bytes that a compactor writes in front of an acknowledgment: count and bytes.
const PREFIX: u32 = 3;

/// Duplicates that mark a loss (RFC 5681 section 3.2).
const DUPLICATE_THRESHOLD: u32 = 3;

/// An advance of so many times the usual one fills a hole, and is not to be cut into steps.
const JUMP: u32 = 4;

impl AckQueue {
    /// An empty queue.
    #[must_use]
    pub fn new(settings: AckQueueSettings) -> Self {
        Self {
            limit: DropTail {
                limit: settings.limit,
            },
            method: settings.method,
            list: List::new(),
            flows: FlowTable::new(settings.flows),
            totals: AckCounters::default(),
        }
    }

    /// What it has done in all.
    #[must_use]
    pub fn totals(&self) -> &AckCounters {
        &self.totals
    }

    /// What it has done, by flow. A flow that was forgotten starts anew.
    pub fn flows(&self) -> impl Iterator<Item = (Flow, &AckCounters)> {
        self.flows.iter().map(|(flow, f)| (flow, &f.counters))
    }

    /// Flows forgotten to make room, and packets of flows that found none.
    #[must_use]
    pub fn forgotten(&self) -> (u64, u64) {
        (self.flows.evicted(), self.flows.refused())
    }

    fn count(&mut self, flow: Option<Slot>, count: impl Fn(&mut AckCounters)) {
        count(&mut self.totals);
        if let Some(slot) = flow {
            count(&mut self.flows.get_mut(slot).counters);
        }
    }

    fn fits(&self, length: u32) -> bool {
        let (packets, bytes) = (self.list.length(), self.list.bytes());
        let verdict = self
            .limit
            .enqueue(packets, Bytes::new(bytes), Bytes::new(u64::from(length)));
        verdict == Verdict::Queued
    }

    /// What the packet is to its flow: by how much it advances, or why it has to be kept. Zero: it
    /// repeats a number once more than it takes to mark a loss.
    fn classify(&mut self, slot: Slot, packet: PacketRef, cx: &QueueCtx<'_>) -> Result<u32, Kept> {
        let plain = rules::plain(cx.packets, packet);
        let duplicates = self.method.duplicates().max(DUPLICATE_THRESHOLD);
        let record = cx.packets.get(packet);
        let (acknowledgment, window) = (record.acknowledgment, record.window);
        let flow = self.flows.get_mut(slot);
        let seen = flow.said.highest;
        if record.flags.has(bentpipe_types::Flags::ACK)
            && seen.is_none_or(|(highest, _)| acknowledgment.at_or_after(highest))
        {
            flow.said.highest = Some((acknowledgment, window));
        }
        if seen.is_none_or(|(highest, _)| acknowledgment.after(highest)) {
            flow.said.repeats = 0;
        }
        plain?;
        let (highest, last_window) = seen.ok_or(Kept::First)?;
        if acknowledgment.before(highest) {
            Err(Kept::Stale)
        } else if acknowledgment == highest && window != last_window {
            Err(Kept::WindowUpdate)
        } else if acknowledgment == highest {
            // What a SACK sender takes from more duplicates is in their blocks, and the next one's
            // cover them. Others inflate their window with each (RFC 5681 section 3.2).
            let kept = if record.has_sack_blocks() {
                DUPLICATE_THRESHOLD
            } else {
                duplicates
            };
            if flow.said.repeats >= kept {
                Ok(0)
            } else {
                flow.said.repeats += 1;
                Err(Kept::Duplicate)
            }
        } else {
            Ok(acknowledgment - highest)
        }
    }

    /// Suppression and compaction: may the flow's last packet be removed in favour of this one, which
    /// advances by `step`?
    fn replaces(&mut self, slot: Slot, step: u32, node: &Node, cx: &QueueCtx<'_>) -> bool {
        let compacts = matches!(self.method, Method::Compaction(_));
        let flow = self.flows.get_mut(slot);
        if step == 0 {
            let last = flow.ends.last;
            return last != NONE
                && self.list.node(last).repeats
                && rules::supersedes(cx.packets, self.list.node(last).packet, node.packet).is_ok();
        }
        let usual = if flow.said.usual_step == 0 {
            step
        } else {
            flow.said.usual_step
        };
        let longest = usual.saturating_mul(JUMP);
        let jump = step > longest;
        // An average over eight or so, in which one jump counts little.
        flow.said.usual_step = (usual - usual / 8 + step.min(longest) / 8).max(1);
        let last = flow.ends.last;
        // One that repeats a number is removed in favour of another one only: the run that begins
        // here is restored from its first number.
        if last == NONE || self.list.node(last).fixed || self.list.node(last).repeats {
            return false;
        }
        let verdict = if compacts && jump {
            Err(Kept::Jump)
        } else {
            rules::supersedes(cx.packets, self.list.node(last).packet, node.packet)
        };
        if let Err(reason) = verdict {
            self.count(Some(slot), |counters| counters.keep(reason));
        }
        verdict.is_ok()
    }

    fn push(&mut self, node: Node, linked: bool) -> u32 {
        let index = self.list.push(node);
        if let Some(slot) = node.flow {
            let flow = self.flows.get_mut(slot);
            flow.packets += 1;
            flow.waiting += u32::from(node.counted);
            flow.last = index;
            if linked {
                self.list.link(&mut flow.ends, index);
                if flow.open == NONE && !node.fixed {
                    flow.open = index;
                }
            }
            self.flows.set_busy(slot, true);
        }
        index
    }

    /// Takes a packet out of the queue.
    fn take(&mut self, index: u32) -> Node {
        let node = *self.list.node(index);
        if let Some(slot) = node.flow {
            let flow = self.flows.get_mut(slot);
            if node.linked {
                self.list.unlink(&mut flow.ends, index);
            }
            if flow.open == index {
                flow.open = node.flow_after;
            }
            if flow.last == index {
                flow.last = NONE;
            }
            flow.packets -= 1;
            flow.waiting -= u32::from(node.counted);
            if flow.packets == 0 {
                self.flows.set_busy(slot, false);
            }
        }
        self.list.remove(index);
        node
    }

    /// Removes the acknowledgment at `index`: the one at `later`, of the same flow, stands for it and
    /// takes its place, so that what it says is not held up by its removal.
    fn absorb(&mut self, index: u32, later: u32, packets: &mut PacketStore) {
        let removed = *self.list.node(index);
        let survivor = self.take(later);
        if let Some(slot) = removed.flow {
            let flow = self.flows.get_mut(slot);
            if flow.last == NONE && survivor.flow_after == NONE {
                flow.last = index;
            }
        }
        self.list.substitute(index, &survivor);
        self.end(&removed, packets);
    }

    /// Removes an acknowledgment, and its place.
    fn delete(&mut self, index: u32, packets: &mut PacketStore) {
        let node = self.take(index);
        self.end(&node, packets);
    }

    /// Releases an acknowledgment that has been removed.
    fn end(&mut self, node: &Node, packets: &mut PacketStore) {
        packets.release(node.packet);
        self.count(node.flow, |counters| {
            counters.removed += 1;
            counters.removed_bytes += u64::from(node.length);
            counters.duplicates_removed += u64::from(node.repeats);
        });
    }

    /// Lets the packet that a flow sends next stand for those behind it that say all it says, if more
    /// wait than the low mark or it stands for some already. Does it stand for any?
    fn thin(&mut self, slot: Slot, first: u32, packets: &mut PacketStore) -> bool {
        let Some(marks) = self.marks() else {
            return false;
        };
        if self.list.node(first).fixed {
            return false;
        }
        if self.flows.get(slot).waiting > marks.low {
            while self.gather(first, packets) {}
        }
        let stands_for_some = self.list.node(first).absorbed > 0;
        if stands_for_some {
            self.seal(slot, first, packets);
        }
        stands_for_some
    }

    /// Removes one packet: the one behind `first` in its flow takes its place. False, if it does not
    /// say all that `first` says, or the two stand for more than one packet may.
    fn gather(&mut self, first: u32, packets: &mut PacketStore) -> bool {
        let Some(marks) = self.marks() else {
            return false;
        };
        let compacts = matches!(self.method, Method::Compaction(_));
        let node = self.list.node(first);
        if node.fixed || node.flow_after == NONE {
            return false;
        }
        let base = if node.absorbed == 0 {
            node.acknowledgment
        } else {
            node.base
        };
        let later = self.list.node(node.flow_after);
        let absorbed = node.absorbed + 1 + later.absorbed;
        // What the count and the bytes that a compactor writes can't hold is not wrapped.
        let most = if compacts {
            marks.high.min(u32::from(u8::MAX))
        } else {
            marks.high
        };
        let overflows = compacts && later.acknowledgment - base > u32::from(u16::MAX);
        if !later.replaces || absorbed > most || overflows {
            return false;
        }
        let later = node.flow_after;
        self.absorb(first, later, packets);
        let node = self.list.node_mut(first);
        node.absorbed = absorbed;
        node.base = base;
        true
    }

    /// The packet is about to be sent: writes in front of it what it stands for.
    fn seal(&mut self, slot: Slot, first: u32, packets: &mut PacketStore) {
        // Once is enough: "marked to indicate that it has already been compacted" (section 6), and one
        // in a high mark of acknowledgments has to get through (section 5).
        let node = self.list.node_mut(first);
        node.fixed = true;
        node.replaces = false;
        let (repeats, packet, next) = (node.repeats, node.packet, node.flow_after);
        let compaction = Compaction {
            count: node.absorbed as u8,
            bytes: (node.acknowledgment - node.base) as u16,
        };
        // Behind it, a new run begins.
        if next != NONE {
            self.list.node_mut(next).replaces = false;
        }
        // Duplicates are never restored.
        if matches!(self.method, Method::Compaction(_)) && !repeats {
            packets.set_compaction(packet, Some(compaction));
            packets.get_mut(packet).header_length += PREFIX as u8;
            self.list.lengthen(first, PREFIX);
            self.count(Some(slot), |counters| counters.compacted += 1);
        }
    }

    fn marks(&self) -> Option<WaterMarks> {
        match self.method {
            Method::Suppression(marks) | Method::Compaction(marks) => Some(marks),
            Method::Filter { .. } => None,
        }
    }

    /// The filter: which packet goes because of this arrival, and may the arrival itself go later?
    fn filter(
        &mut self,
        slot: Slot,
        aggressive: bool,
        node: &mut Node,
        cx: &QueueCtx<'_>,
    ) -> Option<u32> {
        let flow = self.flows.get_mut(slot);
        let flags = cx.packets.get(node.packet).flags.0 & filter::ECN_FLAGS;
        flow.said.ecn_changed |= flags != flow.said.ecn_flags;
        flow.said.ecn_flags = flags;
        let goes = filter::choose(
            &self.list,
            flow.ends,
            flow.last,
            cx.packets,
            node.packet,
            aggressive,
        );
        let droppable = !matches!(
            rules::plain(cx.packets, node.packet),
            Err(Kept::Data | Kept::Options)
        ) && filter::droppable(cx.packets, node.packet);
        if droppable {
            node.replaces = !std::mem::take(&mut flow.said.ecn_changed);
            node.fixed = false;
            node.adjacent = flow.last != NONE && flow.last == flow.ends.last;
        }
        goes
    }
}

fn length_of(packet: &Packet) -> u32 {
    u32::from(packet.header_length) + u32::from(packet.payload_length)
}

impl QueueDiscipline for AckQueue {
    fn enqueue(&mut self, packet: PacketRef, cx: &mut QueueCtx<'_>) -> Verdict {
        let record = cx.packets.get(packet);
        let mut node = Node::new(packet, length_of(record));
        node.acknowledgment = record.acknowledgment;
        let flow = Flow::of(cx.packets, packet);
        let make = || AckFlow {
            last: NONE,
            open: NONE,
            ..AckFlow::default()
        };
        node.flow = self.flows.enter(flow, make, |_, _| {});
        let mut goes = None;
        let mut before = Said::default();
        if let Some(slot) = node.flow {
            before = self.flows.get(slot).said;
            let kept = self.classify(slot, packet, cx);
            node.counted = !matches!(kept, Err(Kept::Data | Kept::Control));
            if let Method::Filter { aggressive } = self.method {
                goes = self.filter(slot, aggressive, &mut node, cx);
                if node.fixed {
                    let reason = kept.err().unwrap_or(Kept::Sack);
                    self.count(node.flow, |counters| counters.keep(reason));
                }
            } else {
                if let Err(reason) = kept {
                    self.count(node.flow, |counters| counters.keep(reason));
                }
                node.fixed = kept.is_err();
                node.repeats = kept == Ok(0);
                node.replaces = kept.is_ok_and(|step| self.replaces(slot, step, &node, cx));
            }
        }
        if let Some(index) = goes
            && self.drop_candidate(index, &mut node, cx.packets)
        {
            self.count(node.flow, |counters| counters.queued += 1);
            return Verdict::Queued;
        }
        if !cx.idle
            && !self.fits(node.length)
            && !node
                .flow
                .is_some_and(|slot| self.make_room(slot, &node, cx.packets))
        {
            self.count(node.flow, |counters| counters.dropped += 1);
            if let Some(slot) = node.flow {
                // Nobody will hear what it said.
                let said = &mut self.flows.get_mut(slot).said;
                before.ecn_changed |= said.ecn_changed;
                *said = before;
            }
            return Verdict::Dropped;
        }
        self.count(node.flow, |counters| counters.queued += 1);
        let linked =
            node.flow.is_some() && (!matches!(self.method, Method::Filter { .. }) || !node.fixed);
        self.push(node, linked);
        Verdict::Queued
    }

    fn dequeue(&mut self, cx: &mut QueueCtx<'_>) -> Option<PacketRef> {
        loop {
            let head = self.list.first()?;
            let node = self.list.node(head);
            if let Some(slot) = node.flow.filter(|_| !node.fixed)
                && self.thin(slot, head, cx.packets)
            {
                continue;
            }
            return Some(self.take(head).packet);
        }
    }

    fn packets(&self) -> u64 {
        self.list.length()
    }

    fn bytes(&self) -> u64 {
        self.list.bytes()
    }

    fn given_up(&self) -> GivenUp {
        GivenUp {
            dropped: 0,
            removed: self.totals.removed,
        }
    }

    fn tally(&self, each: &mut Tally<'_>) {
        self.totals.tally(None, each);
        let (evicted, refused) = self.forgotten();
        each(None, "flows_forgotten", evicted);
        each(None, "flows_refused", refused);
        for (flow, counters) in self.flows() {
            counters.tally(Some(flow), each);
        }
    }
}

impl AckQueue {
    /// Drops what the filter chose. CAKE has a queue for each flow, in which those behind it move up;
    /// here they move into its place, and the arrival into theirs, where nothing else of the flow is in
    /// between. Has the arrival found its place that way?
    fn drop_candidate(
        &mut self,
        index: u32,
        arrival: &mut Node,
        packets: &mut PacketStore,
    ) -> bool {
        let node = *self.list.node(index);
        // The ECN flags' change in front of it is now in front of its successor.
        if !node.replaces {
            match (node.flow_after, node.flow) {
                // The arrival is a candidate itself, or else the next one will be told.
                (NONE, _) if !arrival.fixed => arrival.replaces = false,
                (NONE, Some(slot)) => self.flows.get_mut(slot).said.ecn_changed = true,
                (NONE, None) => (),
                (after, _) => self.list.node_mut(after).replaces = false,
            }
        }
        if arrival.fixed || !arrival.adjacent {
            self.delete(index, packets);
            return false;
        }
        if node.flow_after == NONE {
            // The arrival is right behind it.
            self.end(&node, packets);
            self.list.substitute(index, arrival);
            let kept = self.list.node_mut(index);
            kept.replaces = arrival.replaces;
            return true;
        }
        let next = *self.list.node(node.flow_after);
        if next.flow_after != NONE || !next.adjacent {
            self.delete(index, packets);
            return false;
        }
        // It, its successor, the arrival: two places for two.
        self.list.substitute(index, &next);
        self.list.node_mut(index).replaces = next.replaces;
        self.list.substitute(node.flow_after, arrival);
        self.list.node_mut(node.flow_after).replaces = arrival.replaces;
        self.end(&node, packets);
        true
    }

    /// Rather than drop this packet, removes one that its flow can do without: the oldest that
    /// another can stand for, which goes on gathering. (To compact here would fill the queue with
    /// compacted ones that stand for five each, and none of which may be removed.)
    fn make_room(&mut self, slot: Slot, node: &Node, packets: &mut PacketStore) -> bool {
        loop {
            let flow = self.flows.get(slot);
            let first = flow.open;
            if first == NONE || self.marks().is_none_or(|marks| flow.waiting <= marks.low) {
                return false;
            }
            if self.gather(first, packets) {
                return self.fits(node.length);
            }
            // It stands for as many as it may, or nothing that waits can take its place.
            self.flows.get_mut(slot).open = self.list.node(first).flow_after;
        }
    }
}

#[cfg(test)]
mod tests;
