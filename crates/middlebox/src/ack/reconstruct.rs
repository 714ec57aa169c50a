//! ACK reconstruction without a count of removed acknowledgments (RFC 3449 section 5.3.1).

use bentpipe_link::{EndCtx, FarEnd, Flow, Tally};
use bentpipe_types::{Flags, PacketRef, PacketStore, Seq, Span, Time};

use super::{KeepReason, rules};
use crate::flows::{FlowTable, Slot};
use crate::held_packets::{Deadlines, Lane, Store};

/// Settings of a [`Reconstructor`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReconstructorSettings {
    /// ack_thresh: bytes between two outgoing acknowledgments. RFC 3449 suggests two segments.
    pub threshold: u32,
    /// Maximum time that a packet may be held.
    pub maximum_hold: Span,
    /// Maximum number of held packets. Beyond it, nothing is filled in or delayed.
    pub capacity: usize,
    /// Maximum number of acknowledgments for one gap. Beyond it, the steps are longer.
    pub most: u16,
    /// Maximum number of flows with state. Packets of other flows pass unchanged.
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

/// Counters of a [`Reconstructor`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReconstructorCounters {
    /// Gaps that were filled.
    pub filled: u64,
    /// Acknowledgments that were generated.
    pub regenerated: u64,
    /// Gaps not filled because a loss was being repaired.
    pub left_for_loss: u64,
    /// Gaps not filled because there was no rate estimate or no room.
    pub left: u64,
    /// Delayed packets, generated ones included.
    pub delayed: u64,
    /// Total delay in nanoseconds.
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

/// Number of acknowledgments that must advance, without duplicates or SACK blocks, before gaps are
/// filled again.
///
/// The number also jumps when a retransmission fills a hole. Generated acknowledgments would then
/// be partial ones, for each of which a NewReno sender retransmits a segment (RFC 6582 section
/// 3.2).
const CALM: u32 = 8;

/// The longest gap. Beyond it, numbers cannot be told from older ones.
const LONGEST_GAP: u32 = 1 << 30;

#[derive(Debug, Default)]
struct Flowing {
    lane: Lane,
    entered: Option<Time>,
    seen: Option<Seq>,
    last_arrival: Option<Time>,
    /// delta_T: average time between arriving acknowledgments.
    interval: Option<Span>,
    /// Release time of the packet held last.
    last_release: Time,
    /// Remaining acknowledgments until gaps are filled again after a sign of loss.
    unsettled: u32,
    counters: ReconstructorCounters,
}

/// A far end that smooths a thinned stream of acknowledgments.
///
/// When an acknowledgment advances by more than the threshold, acknowledgments that advance by the
/// threshold each are generated before it, spread over the average time between arrivals.
#[derive(Debug)]
pub struct Reconstructor {
    settings: ReconstructorSettings,
    flows: FlowTable<Flowing>,
    store: Store,
    deadlines: Deadlines,
    totals: ReconstructorCounters,
}

impl Reconstructor {
    /// Creates an empty reconstructor.
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

    /// Returns the totals.
    #[must_use]
    pub fn totals(&self) -> &ReconstructorCounters {
        &self.totals
    }

    /// Returns the counters per flow. A flow that was evicted starts again at zero.
    pub fn flows(&self) -> impl Iterator<Item = (Flow, &ReconstructorCounters)> {
        self.flows.iter().map(|(flow, f)| (flow, &f.counters))
    }

    fn count(&mut self, slot: Slot, count: impl Fn(&mut ReconstructorCounters)) {
        count(&mut self.totals);
        count(&mut self.flows.get_mut(slot).counters);
    }

    /// Returns by how much the acknowledgment advances, if its gap is to be filled.
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
        if matches!(plain, Err(KeepReason::Data | KeepReason::Control)) {
            return None;
        }
        if let Some(last) = flow.last_arrival.replace(now) {
            let sample = now.since(last).min(longest);
            // RFC 3449 leaves the weight open; an eighth, as for round-trip times (RFC 6298 section
            // 2.3).
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

    /// Fills the gap before `packet`.
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
        // ack_interval = (ack_thresh / delta_a) delta_T: the last one leaves after delta_T,
        // regardless of earlier ones still held.
        let start = flow.last_release.max(now);
        let end = (now + interval.min(self.settings.maximum_hold)).max(start);
        let steps = u64::from(count) + 1;
        let span = end.since(start);
        for i in 1..=count {
            let copy = packets.duplicate_bare(packet);
            // Below `seen + gap`, which the receiver itself acknowledged.
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

    /// Releases a packet behind the held packets of its flow.
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
            // The first packet may be stale, and the gap after it none.
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
