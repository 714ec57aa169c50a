//! The spacer: releases restored acknowledgments one after another instead of in a burst
//! (samaraweera1999, section 7).

use bentpipe_types::{PacketRef, Span, Time};

use super::expander_counters::ExpanderCounters;
use crate::flows::{FlowTable, Slot};
use crate::held_packets::{Deadlines, Lane, Store};

/// Settings of a spacer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spacing {
    /// Whether each flow has its own queue, instead of one for all.
    pub per_flow: bool,
    /// Maximum time that a packet may be held.
    pub maximum_hold: Span,
    /// Maximum number of held packets.
    pub capacity: usize,
}

impl Default for Spacing {
    /// One queue, as in the paper; half a second; 4096 packets.
    fn default() -> Self {
        Self {
            per_flow: false,
            maximum_hold: Span::from_millis(500),
            capacity: 4096,
        }
    }
}

/// N: tokens per timer event, and number of inter-arrival times in the average (section 7).
const N: u32 = 4;

/// A queue of a spacer.
#[derive(Debug, Default)]
pub(super) struct SpacedLane {
    lane: Lane,
    tokens: u32,
    /// ack_iat: time between two released acknowledgments.
    interval: Span,
    timer: Option<Time>,
    /// Arrival time of the last acknowledgment, and whether it was compacted.
    last: Option<(Time, bool)>,
    /// Latest times between two consecutive ordinary acknowledgments.
    recent: [Span; N as usize],
    recent_count: usize,
    entered: Option<Time>,
}

/// State of a flow at the far end of a compactor's tunnel.
#[derive(Debug, Default)]
pub(super) struct FlowEnd {
    pub(super) lane: SpacedLane,
    /// Held packets of this flow.
    pub(super) held: u32,
    pub(super) counters: ExpanderCounters,
}

impl SpacedLane {
    /// Records the arrival of an ordinary acknowledgment.
    fn measure(&mut self, now: Time) {
        if let Some((last, false)) = self.last {
            self.recent[self.recent_count % N as usize] = now.since(last);
            self.recent_count += 1;
        }
        self.last = Some((now, false));
    }

    /// Returns the time over which the acknowledgments of a compacted one are spread.
    ///
    /// Between two compacted ones, it is the time between them. For the first one after ordinary
    /// ones, it is their average spacing, since until then "the interface transmits packets at the
    /// line speed" (section 7), but at most the elapsed time. The same holds after a pause.
    fn between(&self, now: Time, longest: Span) -> Span {
        let Some((last, compacted)) = self.last else {
            return Span::ZERO;
        };
        let since = now.since(last);
        if compacted && since <= longest {
            return since;
        }
        self.average().unwrap_or(since).min(since).min(longest)
    }

    /// Returns the average time between recent ordinary acknowledgments.
    fn average(&self) -> Option<Span> {
        let count = self.recent_count.min(N as usize);
        let sum = self.recent[..count]
            .iter()
            .fold(Span::ZERO, |sum, &span| sum + span);
        (count > 0).then(|| sum / count as u64)
    }
}

/// Index of the queue that all flows share.
const SHARED: u32 = u32::MAX;

/// A leaky bucket: packets are queued, and a token releases one. An ordinary packet brings its own
/// token; a timer creates those of restored ones.
#[derive(Debug)]
pub(super) struct Spacer {
    settings: Spacing,
    shared: SpacedLane,
    store: Store,
    deadlines: Deadlines,
}

/// Counters and output for released packets.
struct Exit<'a> {
    now: Time,
    flows: &'a mut FlowTable<FlowEnd>,
    totals: &'a mut ExpanderCounters,
    out: &'a mut Vec<PacketRef>,
}

impl Spacer {
    pub(super) fn new(settings: Spacing) -> Self {
        Self {
            settings,
            shared: SpacedLane::default(),
            store: Store::default(),
            deadlines: Deadlines::default(),
        }
    }

    pub(super) fn held(&self) -> usize {
        self.store.length()
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.deadlines.next()
    }

    /// Handles an arriving packet that replaces no others.
    #[allow(clippy::too_many_arguments)] // the expander's parts, lent for one call
    pub(super) fn normal(
        &mut self,
        now: Time,
        packet: PacketRef,
        acknowledges: bool,
        flow: Option<Slot>,
        flows: &mut FlowTable<FlowEnd>,
        totals: &mut ExpanderCounters,
        out: &mut Vec<PacketRef>,
    ) {
        let number = self.number(flow);
        let mut lane = self.lend(number, flows);
        if acknowledges {
            lane.measure(now);
        }
        let mut exit = Exit {
            now,
            flows,
            totals,
            out,
        };
        if lane.lane.is_empty() {
            exit.out.push(packet);
        } else {
            self.hold(&mut lane, packet, flow, &mut exit);
            lane.tokens += 1;
            self.forward(&mut lane, &mut exit);
        }
        self.give_back(number, lane, exit.flows);
    }

    /// Handles the burst of a compacted acknowledgment.
    pub(super) fn compacted(
        &mut self,
        now: Time,
        burst: &[PacketRef],
        flow: Option<Slot>,
        flows: &mut FlowTable<FlowEnd>,
        totals: &mut ExpanderCounters,
        out: &mut Vec<PacketRef>,
    ) {
        let number = self.number(flow);
        let mut lane = self.lend(number, flows);
        let between = lane.between(now, self.settings.maximum_hold);
        lane.last = Some((now, true));
        let mut exit = Exit {
            now,
            flows,
            totals,
            out,
        };
        for &packet in burst {
            self.hold(&mut lane, packet, flow, &mut exit);
        }
        // The paper divides by the number of removed acknowledgments. Here the remaining one and
        // those still held count as well; otherwise more would arrive than leave.
        let waiting = lane.lane.length().max(burst.len() as u32);
        lane.interval = between / u64::from(waiting.max(1));
        if lane.interval == Span::ZERO {
            lane.tokens = lane.lane.length();
            self.forward(&mut lane, &mut exit);
        } else {
            self.start_timer(&mut lane, now);
        }
        self.give_back(number, lane, exit.flows);
    }

    pub(super) fn on_deadline(
        &mut self,
        now: Time,
        flows: &mut FlowTable<FlowEnd>,
        totals: &mut ExpanderCounters,
        out: &mut Vec<PacketRef>,
    ) {
        while let Some((at, number)) = self.deadlines.pop(now) {
            let mut lane = self.lend(number, flows);
            if lane.entered == Some(at) {
                lane.entered = None;
            }
            let mut exit = Exit {
                now,
                flows,
                totals,
                out,
            };
            while self
                .store
                .first(&lane.lane)
                .is_some_and(|first| first.at + self.settings.maximum_hold <= now)
            {
                self.hurry(&mut lane, &mut exit);
            }
            if lane.timer.is_some_and(|timer| timer <= now) {
                lane.timer = None;
                lane.tokens += N.min(lane.lane.length());
                self.forward(&mut lane, &mut exit);
            }
            self.give_back(number, lane, exit.flows);
        }
    }

    fn number(&self, flow: Option<Slot>) -> u32 {
        match flow {
            Some(slot) if self.settings.per_flow => slot.index(),
            _ => SHARED,
        }
    }

    /// Takes a queue out of its place; the caller puts it back.
    fn lend(&mut self, number: u32, flows: &mut FlowTable<FlowEnd>) -> SpacedLane {
        if number == SHARED {
            return std::mem::take(&mut self.shared);
        }
        std::mem::take(&mut flows.get_mut(Slot::at(number)).lane)
    }

    fn give_back(&mut self, number: u32, mut lane: SpacedLane, flows: &mut FlowTable<FlowEnd>) {
        if let Some(first) = self.store.first(&lane.lane) {
            let hold = first.at + self.settings.maximum_hold;
            let at = lane.timer.map_or(hold, |timer| timer.min(hold));
            self.deadlines.enter(number, at, &mut lane.entered);
        } else {
            lane.timer = None;
            lane.tokens = 0;
        }
        if number == SHARED {
            self.shared = lane;
        } else {
            flows.get_mut(Slot::at(number)).lane = lane;
        }
    }

    fn hold(
        &mut self,
        lane: &mut SpacedLane,
        packet: PacketRef,
        flow: Option<Slot>,
        exit: &mut Exit<'_>,
    ) {
        self.store.push(&mut lane.lane, packet, exit.now, flow);
        if let Some(slot) = flow {
            let end = exit.flows.get_mut(slot);
            end.held += 1;
            if end.held == 1 {
                exit.flows.set_busy(slot, true);
            }
        }
        if self.store.length() > self.settings.capacity {
            self.hurry(lane, exit);
        }
    }

    /// "The number of ACKs forwarded to the sender is constrained by the available tokens."
    fn forward(&mut self, lane: &mut SpacedLane, exit: &mut Exit<'_>) {
        while lane.tokens > 0 && self.let_go(lane, exit, false) {
            lane.tokens -= 1;
        }
        if lane.lane.is_empty() {
            lane.timer = None;
            lane.tokens = 0;
        } else {
            self.start_timer(lane, exit.now);
        }
    }

    /// "... (re)starts the timer, if it is not already running or the remaining time before the
    /// current timer [is] due to be expired is greater than ack_tov."
    fn start_timer(&mut self, lane: &mut SpacedLane, now: Time) {
        if lane.lane.is_empty() {
            return;
        }
        // ack_tov = N * ack_iat, N "set to 4 or a lesser value equivalent to the number of ACKs
        // remaining in the queue".
        let at = now + lane.interval * u64::from(N.min(lane.lane.length()));
        if lane.timer.is_none_or(|timer| timer > at) {
            lane.timer = Some(at);
        }
    }

    fn hurry(&mut self, lane: &mut SpacedLane, exit: &mut Exit<'_>) {
        self.let_go(lane, exit, true);
    }

    fn let_go(&mut self, lane: &mut SpacedLane, exit: &mut Exit<'_>, hurried: bool) -> bool {
        let Some(held) = self.store.pop(&mut lane.lane) else {
            return false;
        };
        exit.out.push(held.packet);
        let delay = exit.now.since(held.at).as_nanos();
        let count = |counters: &mut ExpanderCounters| {
            counters.delayed += u64::from(delay > 0);
            counters.delay_ns += delay;
            counters.hurried += u64::from(hurried);
        };
        count(exit.totals);
        if let Some(slot) = held.flow {
            let end = exit.flows.get_mut(slot);
            count(&mut end.counters);
            end.held -= 1;
            if end.held == 0 {
                exit.flows.set_busy(slot, false);
            }
        }
        true
    }
}
