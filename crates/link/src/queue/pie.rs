//! PIE: R. Pan, P. Natarajan, F. Baker, G. White, "Proportional Integral Controller Enhanced (PIE):
//! A Lightweight Control Scheme to Address the Bufferbloat Problem", RFC 8033.

use bentpipe_types::{Bytes, Ecn, PacketRef, Span, Time};

use super::{Backlog, FULL_PACKET, Limit, QueueCtx, QueueDiscipline, TimedWaiting, Verdict};
use crate::Tally;

/// Settings of a PIE queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PieSettings {
    /// Limit of the queue.
    pub limit: Limit,
    /// QDELAY_REF: target delay.
    pub target: Span,
    /// T_UPDATE: interval between updates of the probability.
    pub update_interval: Span,
    /// MAX_BURST: duration of a burst that is accepted after a time without a queue.
    pub burst_allowance: Span,
    /// Whether ECN-capable packets are marked instead of dropped, up to a probability of a tenth.
    pub ecn: bool,
}

/// alpha, per second of delay above the target (section 4.2).
const ALPHA: f64 = 0.125;
/// beta, per second of increase of the delay (section 4.2).
const BETA: f64 = 1.25;
/// MARK_ECNTH: above this probability ECN-capable packets are dropped as well (section 5.1).
const MOST_MARKED: f64 = 0.1;
/// From this delay on the probability additionally grows by 2% per update (Linux's
/// `pie_calculate_probability`).
const LONG: Span = Span::from_millis(250);
/// Section 5.4: accumulated probabilities below which no packet is dropped, and above which the
/// next one is.
const SPREAD: (f64, f64) = (0.85, 8.5);

/// First in, first out. Arriving packets are dropped at random with a probability that a controller
/// updates every few milliseconds from the queueing delay and its trend.
#[derive(Debug)]
pub struct Pie {
    settings: PieSettings,
    waiting: TimedWaiting,
    control: Control,
    next_update: Time,
    /// Accumulated probability since the last drop.
    accumulated: f64,
    early: u64,
    overlimit: u64,
    marked: u64,
}

/// State that an update changes.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Control {
    probability: f64,
    /// Delay of the last packet that left; zero if no other was queued behind it.
    delay: Span,
    /// Delay at the previous update.
    last_delay: Span,
    burst_allowance: Span,
}

impl Control {
    /// Section 4.2, with the limits of section 5.5.
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
        // Packets are queued although the last one had no delay: too few to draw a conclusion
        // (Linux).
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

/// Scales the step: the smaller the probability, the smaller the step (section 5.2).
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
    /// Creates an empty queue.
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

    /// Applies the updates that were due by now, each with the backlog since the last arrival or
    /// departure.
    #[inline]
    fn catch_up(&mut self, now: Time) {
        while self.next_update <= now {
            let before = self.control;
            self.control.update(&self.settings, self.waiting.bytes());
            let interval = self.settings.update_interval.as_nanos().max(1);
            let due = if self.control == before {
                // All further updates change nothing.
                1 + now.since(self.next_update).as_nanos() / interval
            } else {
                1
            };
            self.next_update += Span::from_nanos(due * interval);
        }
    }

    /// Whether this packet is to be dropped or marked: sections 4.1, 5.1 and 5.4.
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

    fn backlog(&self) -> Backlog {
        self.waiting.backlog()
    }

    fn tally(&self, each: &mut Tally<'_>) {
        each(None, "dropped_early", self.early);
        each(None, "dropped_at_limit", self.overlimit);
        each(None, "marked", self.marked);
    }
}

#[cfg(test)]
mod tests;
