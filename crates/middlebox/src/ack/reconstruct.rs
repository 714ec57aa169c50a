//! ACK reconstruction: fills in acknowledgments where nobody says how many were removed (RFC 3449
//! section 5.3.1).

use bentpipe_link::{EndCtx, FarEnd, Flow, Tally};
use bentpipe_types::{Flags, PacketRef, PacketStore, Seq, Span, Time};

use super::{Kept, rules};
use crate::flows::{FlowTable, Slot};
use crate::held::{Deadlines, Lane, Store};

/// How a [`Reconstructor`] works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReconstructorSettings {
    /// ack_thresh: bytes between two acknowledgments that go out. RFC 3449 suggests two segments.
    pub threshold: u32,
    /// The longest time that a packet may be held.
    pub maximum_hold: Span,
    /// The most packets that may be held; beyond, nothing is filled in and nothing waits.
    pub capacity: usize,
    /// The most acknowledgments filled into one gap; beyond, the steps are longer.
    pub most: u16,
    /// Flows it keeps state of. Packets of a flow that finds no room pass untouched.
    pub flows: usize,
}

impl Default for ReconstructorSettings {
    /// Two segments of 1460 bytes; half a second; 4096 packets; 255 per gap; 1024 flows.
    fn default() -> Self {
        Self {
            threshold: 2 * 1460,
            maximum_hold: Span::from_millis(500),
            capacity: 4096,
            most: 255,
            flows: 1024,
        }
    }
}

/// What a [`Reconstructor`] has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReconstructorCounters {
    /// Gaps filled.
    pub filled: u64,
    /// Acknowledgments made up.
    pub regenerated: u64,
    /// Gaps left alone because a loss was being repaired.
    pub left_for_loss: u64,
    /// Gaps left alone for want of an estimate of the rate, or of room.
    pub left: u64,
    /// Packets held back, those made up included.
    pub delayed: u64,
    /// Nanoseconds that they were held, all together.
    pub delay_ns: u64,
}

impl ReconstructorCounters {
    fn tally(&self, flow: Option<Flow>, each: &mut Tally<'_>) {
        each(flow, "gaps_filled", self.filled);
        each(flow, "acks_regenerated", self.regenerated);
        each(flow, "gaps_left_for_loss", self.left_for_loss);
        each(flow, "gaps_left", self.left);
        each(flow, "acks_delayed", self.delayed);
        each(flow, "ack_delay_ns", self.delay_ns);
    }
}

/// Acknowledgments that have to advance without a duplicate or a SACK block before a gap is one again
/// that is to be filled.
///
/// The number jumps when a retransmission fills a hole, too. Made up there, acknowledgments would be
/// partial ones, for each of which a NewReno sender retransmits a segment (RFC 6582 section 3.2).
const CALM: u32 = 8;

/// The longest gap that is one: beyond, numbers can't be told from older ones.
const LONGEST_GAP: u32 = 1 << 30;

#[derive(Debug, Default)]
struct Flowing {
    lane: Lane,
    entered: Option<Time>,
    seen: Option<Seq>,
    last_arrival: Option<Time>,
    /// delta_T: the average time between acknowledgments that arrive.
    interval: Option<Span>,
    /// The release of the packet held last.
    last_release: Time,
    /// Calm acknowledgments still to come after a sign of loss.
    unsettled: u32,
    counters: ReconstructorCounters,
}

/// A far end that evens out a thinned stream of acknowledgments.
///
/// When an acknowledgment advances by more than the threshold, those that would have advanced by the
/// threshold each go out in front of it, spread over the time that acknowledgments now take to arrive.
#[derive(Debug)]
pub struct Reconstructor {
    settings: ReconstructorSettings,
    flows: FlowTable<Flowing>,
    store: Store,
    deadlines: Deadlines,
    totals: ReconstructorCounters,
}

impl Reconstructor {
    /// A reconstructor that holds nothing.
    #[must_use]
    pub fn new(settings: ReconstructorSettings) -> Self {
        Self {
            settings: ReconstructorSettings {
                threshold: settings.threshold.max(1),
                ..settings
            },
            flows: FlowTable::new(settings.flows),
            store: Store::default(),
            deadlines: Deadlines::default(),
            totals: ReconstructorCounters::default(),
        }
    }

    /// What it has done in all.
    #[must_use]
    pub fn totals(&self) -> &ReconstructorCounters {
        &self.totals
    }

    /// What it has done, by flow. A flow that was forgotten starts anew.
    pub fn flows(&self) -> impl Iterator<Item = (Flow, &ReconstructorCounters)> {
        self.flows.iter().map(|(flow, f)| (flow, &f.counters))
    }

    fn count(&mut self, slot: Slot, count: impl Fn(&mut ReconstructorCounters)) {
        count(&mut self.totals);
        count(&mut self.flows.get_mut(slot).counters);
    }

    /// How far the acknowledgment advances, if it is one to be evened out.
    fn gap(
        &mut self,
        now: Time,
        slot: Slot,
        packet: PacketRef,
        packets: &PacketStore,
    ) -> Option<(Seq, u32)> {
        let record = packets.get(packet);
        let plain = rules::plain(packets, packet);
        let longest = self.settings.maximum_hold;
        let flow = self.flows.get_mut(slot);
        if !record.flags.has(Flags::ACK) {
            return None;
        }
        let number = record.acknowledgment;
        let seen = flow.seen;
        if seen.is_none_or(|seen| number.after(seen)) {
            flow.seen = Some(number);
        }
        if matches!(plain, Err(Kept::Data | Kept::Control)) {
            return None;
        }
        if let Some(last) = flow.last_arrival.replace(now) {
            let sample = now.since(last).min(longest);
            // RFC 3449 leaves the weight open; an eighth, as for round-trip times (RFC 6298).
            let average = flow.interval.unwrap_or(sample);
            flow.interval = Some((average * 7 + sample) / 8);
        }
        let seen = seen?;
        if !number.after(seen) || record.has_sack_blocks() || plain.is_err() {
            flow.unsettled = CALM;
            return None;
        }
        let gap = number - seen;
        let unsettled = flow.unsettled > 0;
        flow.unsettled = flow.unsettled.saturating_sub(1);
        if gap <= self.settings.threshold || gap > LONGEST_GAP {
            return None;
        }
        if unsettled {
            self.count(slot, |counters| counters.left_for_loss += 1);
            return None;
        }
        Some((seen, gap))
    }

    /// Fills the gap in front of `packet`.
    fn fill(
        &mut self,
        now: Time,
        slot: Slot,
        packet: PacketRef,
        (seen, gap): (Seq, u32),
        packets: &mut PacketStore,
        out: &mut Vec<PacketRef>,
    ) {
        let count = (gap.div_ceil(self.settings.threshold) - 1).min(u32::from(self.settings.most));
        let flow = self.flows.get(slot);
        let room = self.store.length() + count as usize <= self.settings.capacity;
        let interval = flow.interval.filter(|_| room && count > 0);
        let Some(interval) = interval else {
            self.count(slot, |counters| counters.left += 1);
            self.pass(now, slot, packet, out);
            return;
        };
        // ack_interval = (ack_thresh / delta_a) delta_T: the last one goes out after delta_T, however
        // long those before it still take.
        let start = flow.last_release.max(now);
        let end = (now + interval.min(self.settings.maximum_hold)).max(start);
        let steps = u64::from(count) + 1;
        let span = end.since(start);
        for i in 1..=count {
            let copy = packets.duplicate_bare(packet);
            // Below `seen + gap`, what the receiver has acknowledged itself.
            let advance = u64::from(gap) * u64::from(i) / steps;
            packets.get_mut(copy).acknowledgment = seen + advance as u32;
            self.release_at(now, start + span * u64::from(i) / steps, slot, copy, out);
        }
        self.release_at(now, end, slot, packet, out);
        self.count(slot, |counters| {
            counters.filled += 1;
            counters.regenerated += u64::from(count);
        });
    }

    /// Lets a packet go behind those of its flow that are held.
    fn pass(&mut self, now: Time, slot: Slot, packet: PacketRef, out: &mut Vec<PacketRef>) {
        let at = self.flows.get(slot).last_release.max(now);
        self.release_at(now, at, slot, packet, out);
    }

    fn release_at(
        &mut self,
        now: Time,
        at: Time,
        slot: Slot,
        packet: PacketRef,
        out: &mut Vec<PacketRef>,
    ) {
        let flow = self.flows.get_mut(slot);
        flow.last_release = at;
        if at <= now && flow.lane.is_empty() {
            out.push(packet);
            return;
        }
        self.store.push(&mut flow.lane, packet, at, Some(slot));
        self.deadlines.enter(slot.index(), at, &mut flow.entered);
        let delay = at.since(now).as_nanos();
        self.flows.set_busy(slot, true);
        self.count(slot, |counters| {
            counters.delayed += 1;
            counters.delay_ns += delay;
        });
    }
}

impl FarEnd for Reconstructor {
    fn on_arrival(&mut self, packet: PacketRef, cx: &mut EndCtx<'_>) {
        let (now, EndCtx { packets, out, .. }) = (cx.now, cx);
        let flow = Flow::of(packets, packet);
        let make = || Flowing {
            // The first that is seen may be a stale one, and the gap behind it none.
            unsettled: 1,
            ..Flowing::default()
        };
        let Some(slot) = self.flows.enter(flow, make, |_, _| {}) else {
            out.push(packet);
            return;
        };
        match self.gap(now, slot, packet, packets) {
            Some(gap) => self.fill(now, slot, packet, gap, packets, out),
            None => self.pass(now, slot, packet, out),
        }
    }

    fn on_deadline(&mut self, cx: &mut EndCtx<'_>) {
        let (now, out) = (cx.now, &mut *cx.out);
        while let Some((at, number)) = self.deadlines.pop(now) {
            let slot = Slot::at(number);
            let flow = self.flows.get_mut(slot);
            if flow.entered == Some(at) {
                flow.entered = None;
            }
            while self
                .store
                .first(&flow.lane)
                .is_some_and(|held| held.at <= now)
            {
                out.extend(self.store.pop(&mut flow.lane).map(|held| held.packet));
            }
            if let Some(next) = self.store.first(&flow.lane).map(|held| held.at) {
                self.deadlines.enter(number, next, &mut flow.entered);
            } else {
                self.flows.set_busy(slot, false);
            }
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        self.deadlines.next()
    }

    fn held(&self) -> usize {
        self.store.length()
    }

    fn tally(&self, each: &mut Tally<'_>) {
        self.totals.tally(None, each);
        each(None, "flows_forgotten", self.flows.evicted());
        each(None, "flows_refused", self.flows.refused());
        for (flow, counters) in self.flows() {
            counters.tally(Some(flow), each);
        }
    }
}

#[cfg(test)]
mod tests;
