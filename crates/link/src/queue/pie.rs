//! PIE: R. Pan, P. Natarajan, F. Baker, G. White, "Proportional Integral Controller Enhanced (PIE): A Lightweight
//! Control Scheme to Address the Bufferbloat Problem", RFC 8033.

use bentpipe_types::{Bytes, Ecn, PacketRef, Span, Time};

use super::{FULL_PACKET, Limit, QueueCtx, QueueDiscipline, TimedWaiting, Verdict};
use crate::Tally;

/// How a PIE queue is set up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PieSettings {
    /// Most that waits.
    pub limit: Limit,
    /// QDELAY_REF: the delay that it is to come to.
    pub target: Span,
    /// T_UPDATE: how often the probability is worked out again.
    pub update_interval: Span,
    /// MAX_BURST: for so long a burst is let in after a time without a queue.
    pub burst_allowance: Span,
    /// Mark packets that are ECN-capable instead of dropping them, while no more than a tenth are.
    pub ecn: bool,
}

/// alpha, per second of delay above the target (section 4.2).
const ALPHA: f64 = 0.125;
/// beta, per second by which the delay has grown (section 4.2).
const BETA: f64 = 1.25;
/// MARK_ECNTH: above this probability packets are dropped that could be marked (section 5.1).
const MOST_MARKED: f64 = 0.1;
/// From this delay on the probability grows by 2% with each update besides (Linux's `pie_calculate_probability`).
const LONG: Span = Span::from_millis(250);
/// Section 5.4: so many times the probability must have come together before a packet is dropped at random, and with
/// so many it is dropped in any case.
const SPREAD: (f64, f64) = (0.85, 8.5);

/// First in, first out; packets are dropped as they arrive, at random, with a probability that a controller works out
/// every few milliseconds from how long packets have waited and whether they wait longer than before.
#[derive(Debug)]
pub struct Pie {
    settings: PieSettings,
    waiting: TimedWaiting,
    control: Control,
    next_update: Time,
    /// What the packets since the last drop have had of probability, all together.
    accumulated: f64,
    early: u64,
    overlimit: u64,
    marked: u64,
}

/// What an update changes.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Control {
    probability: f64,
    /// How long the packet waited that left last; nothing where no other waited behind it.
    delay: Span,
    /// The same at the last update.
    last_delay: Span,
    burst_allowance: Span,
}

impl Control {
    /// Section 4.2, with the caps of 5.5.
    fn update(&mut self, settings: &PieSettings, waiting: Bytes) {
        let seconds = |span: Span| span.as_secs_f64();
        let above = seconds(self.delay) - seconds(settings.target);
        let growth = seconds(self.delay) - seconds(self.last_delay);
        let mut change = scale(self.probability) * (ALPHA * above + BETA * growth);
        if self.probability >= 0.1 {
            change = change.min(0.02);
        }
        if self.delay > LONG {
            change += 0.02;
        }
        self.probability = (self.probability + change).clamp(0.0, 1.0);
        // Packets wait, and the last to leave had not: too little waits to say anything (Linux).
        let knows = self.delay > Span::ZERO || waiting == Bytes::ZERO;
        if self.delay == Span::ZERO && self.last_delay == Span::ZERO && knows {
            self.probability *= 0.98;
        }
        let half = settings.target.as_nanos() / 2;
        let is_short = |span: Span| span.as_nanos() < half;
        self.burst_allowance = self
            .burst_allowance
            .saturating_sub(settings.update_interval);
        if self.probability == 0.0 && is_short(self.delay) && is_short(self.last_delay) {
            self.burst_allowance = settings.burst_allowance;
        }
        self.last_delay = self.delay;
    }
}

/// The smaller the probability, the smaller its steps (section 5.2).
fn scale(probability: f64) -> f64 {
    const STEPS: [(f64, f64); 6] = [
        (0.000_001, 2048.0),
        (0.000_01, 512.0),
        (0.000_1, 128.0),
        (0.001, 32.0),
        (0.01, 8.0),
        (0.1, 2.0),
    ];
    STEPS
        .iter()
        .find(|(below, _)| probability < *below)
        .map_or(1.0, |(_, by)| by.recip())
}

impl Pie {
    /// An empty queue.
    #[must_use]
    pub fn new(settings: PieSettings) -> Self {
        Self {
            settings,
            waiting: TimedWaiting::default(),
            control: Control {
                probability: 0.0,
                delay: Span::ZERO,
                last_delay: Span::ZERO,
                burst_allowance: settings.burst_allowance,
            },
            next_update: Time::ZERO + settings.update_interval,
            accumulated: 0.0,
            early: 0,
            overlimit: 0,
            marked: 0,
        }
    }

    /// The updates that were due by now, each with what waited then: nothing has come or left since the last.
    #[inline]
    fn catch_up(&mut self, now: Time) {
        while self.next_update <= now {
            let before = self.control;
            self.control.update(&self.settings, self.waiting.bytes());
            let interval = self.settings.update_interval.as_nanos().max(1);
            let due = if self.control == before {
                // So will all be that follow.
                1 + now.since(self.next_update).as_nanos() / interval
            } else {
                1
            };
            self.next_update += Span::from_nanos(due * interval);
        }
    }

    /// Is this packet to be dropped or marked? Sections 4.1, 5.1 and 5.4.
    fn is_due(&mut self, cx: &mut QueueCtx<'_>) -> bool {
        let control = &self.control;
        let is_short = control.last_delay.as_nanos() < self.settings.target.as_nanos() / 2;
        if control.burst_allowance > Span::ZERO
            || is_short && control.probability < 0.2
            || self.waiting.bytes().get() <= 2 * FULL_PACKET
        {
            return false;
        }
        self.accumulated = if control.probability == 0.0 {
            0.0
        } else {
            self.accumulated + control.probability
        };
        let due = self.accumulated >= SPREAD.1
            || self.accumulated >= SPREAD.0 && cx.random.happens(control.probability);
        if due {
            self.accumulated = 0.0;
        }
        due
    }
}

impl QueueDiscipline for Pie {
    fn enqueue(&mut self, packet: PacketRef, cx: &mut QueueCtx<'_>) -> Verdict {
        self.catch_up(cx.now);
        let record = cx.packets.get(packet);
        let (length, capable) = (record.length(), record.ecn() != Ecn::NotCapable);
        if !cx.idle && self.waiting.is_full_for(length, self.settings.limit) {
            self.overlimit += 1;
            self.accumulated = 0.0;
            return Verdict::Dropped;
        }
        if self.is_due(cx) {
            if !self.settings.ecn || !capable || self.control.probability > MOST_MARKED {
                self.early += 1;
                return Verdict::Dropped;
            }
            cx.packets.get_mut(packet).set_ecn(Ecn::Congestion);
            self.marked += 1;
        }
        self.waiting.push(cx.now, packet, length);
        Verdict::Queued
    }

    fn dequeue(&mut self, cx: &mut QueueCtx<'_>) -> Option<(PacketRef, Bytes)> {
        self.catch_up(cx.now);
        let (packet, length, since) = self.waiting.pop()?;
        self.control.delay = if self.waiting.packets() == 0 {
            Span::ZERO
        } else {
            cx.now.since(since)
        };
        Some((packet, length))
    }

    fn packets(&self) -> u64 {
        self.waiting.packets()
    }

    fn bytes(&self) -> u64 {
        self.waiting.bytes().get()
    }

    fn tally(&self, each: &mut Tally<'_>) {
        each(None, "dropped_early", self.early);
        each(None, "dropped_at_limit", self.overlimit);
        each(None, "marked", self.marked);
    }
}

#[cfg(test)]
mod tests;
