//! The expander: restores the acknowledgments that a compactor removed (samaraweera1999, section
//! 6).

use bentpipe_link::{EndCtx, FarEnd, Flow, Tally};
use bentpipe_types::{Compaction, PacketRef, PacketStore, Time};
use bentpipe_wire::tcp_options_length;

use super::expander_counters::{ExpanderCounters, Refusal};
use super::rules;
use super::space::{FlowEnd, Spacer, Spacing};
use crate::flows::{FlowTable, Slot};
use crate::tunnel::Gate;

/// Length of a compacted acknowledgment's prefix in bytes.
const PREFIX: u8 = 3;

/// Settings of an [`Expander`].
#[derive(Clone, Debug)]
pub struct ExpanderSettings {
    /// Accepted tunnels.
    pub gate: Gate,
    /// Maximum number of acknowledgments that one may replace: the compactor's high-water mark.
    pub high: u8,
    /// Spacing of restored acknowledgments. Without it they leave in one burst.
    pub spacing: Option<Spacing>,
    /// Maximum number of flows with counters.
    pub flows: usize,
}

/// The far end of a compactor's tunnel.
///
/// Expansion is stateless. A compacted acknowledgment states that `count` acknowledgments were
/// removed, the first of them `bytes` below its own number. The first is restored with its number,
/// and the others follow in equal steps below the carried number. The spacer behind it has state,
/// and so have the counters.
#[derive(Debug)]
pub struct Expander {
    gate: Gate,
    high: u8,
    spacer: Option<Spacer>,
    flows: FlowTable<FlowEnd>,
    totals: ExpanderCounters,
    burst: Vec<PacketRef>,
}

impl Expander {
    /// Creates an empty expander.
    #[must_use]
    pub fn new(settings: ExpanderSettings) -> Self {
        Self {
            gate: settings.gate,
            high: settings.high,
            spacer: settings.spacing.map(Spacer::new),
            flows: FlowTable::new(settings.flows),
            totals: ExpanderCounters::default(),
            burst: Vec::with_capacity(usize::from(u8::MAX) + 1),
        }
    }

    /// Returns the totals.
    #[must_use]
    pub fn totals(&self) -> &ExpanderCounters {
        &self.totals
    }

    /// Returns the counters per flow. A flow that was evicted starts again at zero.
    pub fn flows(&self) -> impl Iterator<Item = (Flow, &ExpanderCounters)> {
        self.flows.iter().map(|(flow, end)| (flow, &end.counters))
    }

    /// Returns the exit of the tunnel from the compactor; it validates addresses.
    #[must_use]
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    fn count(&mut self, flow: Option<Slot>, count: impl Fn(&mut ExpanderCounters)) {
        count(&mut self.totals);
        if let Some(slot) = flow {
            count(&mut self.flows.get_mut(slot).counters);
        }
    }

    fn check(
        &self,
        compaction: Compaction,
        tunnelled: bool,
        packet: PacketRef,
        packets: &PacketStore,
    ) -> Result<(), Refusal> {
        let Compaction { count, bytes } = compaction;
        if !tunnelled {
            Err(Refusal::OutsideTunnel)
        } else if rules::plain(packets, packet).is_err() {
            Err(Refusal::NotAcknowledgment)
        } else if count == 0 || bytes < u16::from(count) {
            // Each removed acknowledgment advanced by at least one byte, and so did the one that
            // replaces them. A smaller number would yield duplicates.
            Err(Refusal::Nonsense)
        } else if count > self.high {
            Err(Refusal::HighMark)
        } else {
            Ok(())
        }
    }

    /// Appends the acknowledgments that `packet` replaces, and `packet` itself, to the burst.
    fn regenerate(&mut self, packet: PacketRef, compaction: Compaction, packets: &mut PacketStore) {
        self.burst.clear();
        let (count, bytes) = (u32::from(compaction.count), u32::from(compaction.bytes));
        let record = packets.get(packet);
        let highest = record.acknowledgment;
        let header_length = usize::from(record.ip_version().header_length())
            + 20
            + tcp_options_length(Default::default(), record.timestamps().is_some(), 0);
        for i in 0..count {
            // Without SACK blocks: data between this number and the carried one that no block
            // covers would appear lost to the sender.
            let copy = packets.duplicate_bare(packet);
            let record = packets.get_mut(copy);
            record.acknowledgment = highest - bytes + i * bytes / count;
            record.header_length = header_length as u8;
            self.burst.push(copy);
        }
        self.burst.push(packet);
    }
}

impl FarEnd for Expander {
    fn on_arrival(&mut self, packet: PacketRef, cx: &mut EndCtx<'_>) {
        let (now, EndCtx { packets, out, .. }) = (cx.now, cx);
        let Ok(tunnelled) = self.gate.open(packet, packets) else {
            packets.release(packet);
            return;
        };
        let flow = Flow::of(packets, packet);
        let slot = self.flows.enter(flow, FlowEnd::default, |_, _| {});
        let Some(compaction) = packets.compaction(packet) else {
            if let Some(spacer) = &mut self.spacer {
                let acknowledges = rules::plain(packets, packet).is_ok();
                let totals = &mut self.totals;
                spacer.normal(
                    now,
                    packet,
                    acknowledges,
                    slot,
                    &mut self.flows,
                    totals,
                    out,
                );
            } else {
                out.push(packet);
            }
            return;
        };
        packets.set_compaction(packet, None);
        let record = packets.get_mut(packet);
        record.header_length = record.header_length.saturating_sub(PREFIX);
        if let Err(refusal) = self.check(compaction, tunnelled, packet, packets) {
            packets.release(packet);
            self.count(slot, |counters| counters.refused[refusal as usize] += 1);
            return;
        }
        self.regenerate(packet, compaction, packets);
        self.count(slot, |counters| {
            counters.expanded += 1;
            counters.regenerated += u64::from(compaction.count);
        });
        if let Some(spacer) = &mut self.spacer {
            let totals = &mut self.totals;
            spacer.compacted(now, &self.burst, slot, &mut self.flows, totals, out);
        } else {
            out.extend_from_slice(&self.burst);
        }
    }

    fn on_deadline(&mut self, cx: &mut EndCtx<'_>) {
        let (now, out) = (cx.now, &mut *cx.out);
        if let Some(spacer) = &mut self.spacer {
            spacer.on_deadline(now, &mut self.flows, &mut self.totals, out);
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        self.spacer.as_ref().and_then(Spacer::next_deadline)
    }

    fn held(&self) -> usize {
        self.spacer.as_ref().map_or(0, Spacer::held)
    }

    fn tally(&self, each: &mut Tally<'_>) {
        self.gate.tally(each);
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
