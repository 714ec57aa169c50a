//! Rate adaptation of real-time media: Network-Assisted Dynamic Adaptation (NADA), RFC 8698.
//!
//! The receiver turns queueing delay and loss into one congestion signal and reports it every 100
//! ms ([`Receiver`]). From that the sender computes the rate of its media ([`Sender`]). Names and
//! values of the parameters are those of RFC 8698, table 2. Marks (ECN) are not modelled.

use std::collections::VecDeque;

use bentpipe_types::{Span, Time};

/// Weight of the flow's priority.
const PRIO: f64 = 1.0;
/// Reference congestion level, in ms.
const XREF: f64 = 10.0;
/// Scaling of the gradual rate update.
const KAPPA: f64 = 0.5;
/// Weight of the change of the congestion signal beside its offset.
const ETA: f64 = 2.0;
/// Bound on the round-trip time in the gradual rate update, in ms.
const TAU: f64 = 500.0;
/// Target interval between reports.
pub(crate) const DELTA: Span = Span::from_millis(100);
/// Window in which packets are observed.
const LOGWIN: Span = Span::from_millis(500);
/// Queueing delay from which a queue counts as building up, in ms.
const QEPS: f64 = 10.0;
/// Bound on the delay of filtering, in ms.
const DFILT: f64 = 120.0;
/// Bound on the increase in accelerated ramp-up.
const GAMMA_MAX: f64 = 0.5;
/// Bound on the queueing delay that the ramp-up itself causes, in ms.
const QBOUND: f64 = 50.0;
/// Loss intervals after which losses count as over.
const MULTILOSS: f64 = 7.0;
/// Queueing delay from which it is warped while packets are lost, in ms.
const QTH: f64 = 50.0;
/// Scaling of the warping's exponent.
const LAMBDA: f64 = 0.5;
/// Reference loss ratio.
const PLRREF: f64 = 0.01;
/// Delay that the reference loss ratio counts for, in ms.
const DLOSS: f64 = 10.0;
/// Smoothing of the loss ratio.
const ALPHA: f64 = 0.1;
/// Weight of the shaping buffer in the sending rate.
const BETA_S: f64 = 0.1;
/// Weight of the shaping buffer in the encoder's rate.
const BETA_V: f64 = 0.1;

/// Delays of which the least counts, against jitter (RFC 8698 section 5.1.1).
const FILTER_TAPS: usize = 15;
/// Later packets by which a missing one is known to be lost (NDUPACK, RFC 5348 section 5.1).
const LATER_PACKETS: u64 = 3;
/// Loss intervals that are averaged, and the current one.
const INTERVALS: usize = 9;
/// Weights of loss intervals, the latest first (RFC 5348 section 5.4).
const WEIGHTS: [f64; INTERVALS - 1] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// The largest congestion signal that a report holds: 15 bits, in tenths of a millisecond.
const LARGEST_SIGNAL: f64 = 0x7fff as f64 / 10.0;

/// Report of a receiver to the sender (RFC 8698 section 5.3).
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Report {
    /// The recommended mode is accelerated ramp-up, not gradual update (`rmode`).
    pub(crate) ramp_up: bool,
    /// The aggregate congestion signal in ms (`x_curr`).
    pub(crate) signal: f64,
    /// The receiving rate in bit/s (`r_recv`).
    pub(crate) rate: f64,
}

impl Report {
    /// The report in 48 bits: mode, signal in tenths of a millisecond, rate in bit/s.
    pub(crate) fn pack(&self) -> u64 {
        let tenths = (self.signal.min(LARGEST_SIGNAL) * 10.0 + 0.5) as u64;
        let rate = u64::from(self.rate.min(f64::from(u32::MAX)) as u32);
        u64::from(self.ramp_up) << 47 | tenths << 32 | rate
    }

    /// The report that these 48 bits hold.
    pub(crate) fn unpack(bits: u64) -> Self {
        Self {
            ramp_up: bits >> 47 & 1 == 1,
            signal: (bits >> 32 & 0x7fff) as f64 / 10.0,
            rate: (bits & 0xffff_ffff) as f64,
        }
    }
}

/// A packet within the observation window.
#[derive(Clone, Copy, Debug)]
struct Observed {
    arrival: Time,
    sequence: u64,
    bytes: u16,
    queueing_ms: f64,
}

/// The receiving end of one stream.
#[derive(Debug, Default)]
pub(crate) struct Receiver {
    /// The least one-way delay so far (`d_base`).
    base: Option<Span>,
    window: VecDeque<Observed>,
    intervals: LossIntervals,
    /// Smoothed loss ratio (`p_loss`).
    loss: f64,
    /// The queueing delay of the latest packets.
    latest_ms: VecDeque<f64>,
}

impl Receiver {
    /// Takes in a packet that was sent at `sent` and arrived at `now`.
    pub(crate) fn arrive(&mut self, sequence: u64, bytes: u16, sent: Time, now: Time) {
        let delay = now.since(sent);
        let base = self.base.map_or(delay, |base| base.min(delay));
        self.base = Some(base);
        let queueing_ms = delay.saturating_sub(base).as_millis_f64();
        self.window.push_back(Observed {
            arrival: now,
            sequence,
            bytes,
            queueing_ms,
        });
        if self.latest_ms.len() == FILTER_TAPS {
            self.latest_ms.pop_front();
        }
        self.latest_ms.push_back(queueing_ms);
        self.intervals.arrive(sequence);
        self.forget_before(now);
    }

    fn forget_before(&mut self, now: Time) {
        while let Some(first) = self.window.front()
            && first.arrival + LOGWIN < now
        {
            self.window.pop_front();
        }
    }

    /// The report for the sender.
    pub(crate) fn report(&mut self, now: Time) -> Report {
        self.forget_before(now);
        let count = self.window.len() as u64;
        let sequences = || self.window.iter().map(|packet| packet.sequence);
        let span = match (sequences().min(), sequences().max()) {
            (Some(least), Some(most)) => most - least + 1,
            _ => 0,
        };
        let lost = span.saturating_sub(count);
        let ratio = if span == 0 {
            0.0
        } else {
            lost as f64 / span as f64
        };
        self.loss = ALPHA * ratio + (1.0 - ALPHA) * self.loss;
        let queue_builds_up = self.window.iter().any(|packet| packet.queueing_ms >= QEPS);
        let bits: u64 = self.window.iter().map(|p| u64::from(p.bytes) * 8).sum();
        Report {
            ramp_up: lost == 0 && !queue_builds_up,
            signal: self.signal(),
            rate: bits as f64 / LOGWIN.as_secs_f64(),
        }
    }

    /// The aggregate congestion signal (RFC 8698 section 4.2), in ms.
    fn signal(&self) -> f64 {
        let delay = self.latest_ms.iter().copied().fold(f64::INFINITY, f64::min);
        let delay = if delay.is_finite() { delay } else { 0.0 };
        let warped = if delay < QTH {
            delay
        } else {
            QTH * libm::exp(-LAMBDA * (delay - QTH) / QTH)
        };
        let equivalent = match self.intervals.average() {
            None => delay,
            Some(average) => {
                // Warped until no loss for MULTILOSS intervals, then back over the course of
                // another one.
                let back = self.intervals.current() / average - MULTILOSS;
                let back = back.clamp(0.0, 1.0);
                back * delay + (1.0 - back) * warped
            }
        };
        let losses = self.loss / PLRREF;
        (equivalent + DLOSS * losses * losses).min(LARGEST_SIGNAL)
    }
}

/// Packets between loss events (RFC 5348 section 5.4).
#[derive(Debug, Default)]
struct LossIntervals {
    /// The current one, then the latest.
    packets: VecDeque<u64>,
    /// The next packet to count as arrived or lost.
    next: u64,
    highest: u64,
    /// Bit n: packet `highest - n` has arrived.
    arrived: u64,
    in_loss: bool,
}

impl LossIntervals {
    fn arrive(&mut self, sequence: u64) {
        if self.packets.is_empty() {
            self.packets.push_front(0);
            (self.next, self.highest) = (sequence, sequence);
        }
        if sequence <= self.highest {
            let behind = self.highest - sequence;
            self.arrived |= 1_u64.checked_shl(behind as u32).unwrap_or(0);
            return;
        }
        // Packets that are now LATER_PACKETS behind are judged by what has arrived so far.
        while self.next + LATER_PACKETS <= sequence {
            let behind = self.highest.checked_sub(self.next);
            let bit = behind.and_then(|behind| self.arrived.checked_shr(behind as u32));
            let has_arrived = bit.is_some_and(|bits| bits & 1 == 1);
            self.judge(has_arrived);
            self.next += 1;
        }
        let ahead = sequence - self.highest;
        self.arrived = self.arrived.checked_shl(ahead as u32).unwrap_or(0) | 1;
        self.highest = sequence;
    }

    fn judge(&mut self, has_arrived: bool) {
        if has_arrived {
            self.in_loss = false;
            self.packets[0] += 1;
        } else if !self.in_loss {
            self.in_loss = true;
            self.packets.push_front(0);
            self.packets.truncate(INTERVALS);
        }
    }

    /// Packets since the last loss event.
    fn current(&self) -> f64 {
        self.packets.front().map_or(0.0, |packets| *packets as f64)
    }

    /// The average interval; `None` without a loss.
    fn average(&self) -> Option<f64> {
        let closed = self.packets.len().checked_sub(1).filter(|n| *n > 0)?;
        let weighted = |skip: usize| -> f64 {
            let packets = self.packets.iter().skip(skip).take(closed);
            packets
                .zip(WEIGHTS)
                .map(|(n, weight)| *n as f64 * weight)
                .sum()
        };
        let weights: f64 = WEIGHTS[..closed].iter().sum();
        Some((weighted(0).max(weighted(1)) / weights).max(1.0))
    }
}

/// The sending end of one stream.
#[derive(Debug)]
pub(crate) struct Sender {
    least: f64,
    most: f64,
    /// The reference rate in bit/s (`r_ref`).
    rate: f64,
    last_signal: f64,
    last_report: Option<Time>,
}

impl Sender {
    /// Starts at the least rate, as RFC 8698 does.
    pub(crate) fn new(least: u64, most: u64) -> Self {
        let (least, most) = (least as f64, most as f64);
        Self {
            least,
            most,
            rate: least,
            last_signal: 0.0,
            last_report: None,
        }
    }

    /// Takes in a report (RFC 8698 section 4.3).
    ///
    /// After a gap in the reports, the time since the last counts as LOGWIN at most, which is the
    /// time that a report covers. (The RFC has no bound.)
    pub(crate) fn update(&mut self, report: Report, round_trip: Span, now: Time) {
        let since = self.last_report.map_or(DELTA, |last| now.since(last));
        let delta = since.min(LOGWIN).as_millis_f64();
        self.last_report = Some(now);
        if report.ramp_up {
            let reaction = round_trip.as_millis_f64() + DELTA.as_millis_f64() + DFILT;
            let gamma = (QBOUND / reaction).min(GAMMA_MAX);
            self.rate = self.rate.max((1.0 + gamma) * report.rate);
        } else {
            let offset = report.signal - PRIO * XREF * self.most / self.rate;
            let change = report.signal - self.last_signal;
            let by_offset = KAPPA * delta / TAU * offset / TAU * self.rate;
            let by_change = KAPPA * ETA * change / TAU * self.rate;
            self.rate -= by_offset + by_change;
        }
        self.last_signal = report.signal;
        self.rate = self.rate.clamp(self.least, self.most);
    }

    /// The rate for the encoder in bit/s while `queued` bytes wait in the shaping buffer
    /// (RFC 8698 section 5.2.2, equations 11 and 13).
    pub(crate) fn encoder_rate(&self, queued: u64, frames_per_second: f64) -> f64 {
        (self.rate - self.shaping_offset(BETA_V, queued, frames_per_second)).max(self.least)
    }

    /// The rate at which the shaping buffer is sent, in bit/s (RFC 8698 section 5.2.2, equations 12
    /// and 14).
    pub(crate) fn sending_rate(&self, queued: u64, frames_per_second: f64) -> f64 {
        (self.rate + self.shaping_offset(BETA_S, queued, frames_per_second)).min(self.most)
    }

    /// Offset from the reference rate that drains a share `beta` of the shaping buffer within a
    /// frame, at most 5% of the reference rate (RFC 8698 section 5.2.2, equations 11 and 12).
    fn shaping_offset(&self, beta: f64, queued: u64, frames_per_second: f64) -> f64 {
        (beta * 8.0 * queued as f64 * frames_per_second).min(0.05 * self.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Span = Span::from_millis(100);

    fn congested(signal: f64) -> Report {
        Report {
            ramp_up: false,
            signal,
            rate: 0.0,
        }
    }

    #[test]
    fn reports_are_packed_into_48_bits_and_unpacked_equal() {
        for report in [
            Report {
                ramp_up: true,
                signal: 0.0,
                rate: 1_234_567.0,
            },
            Report {
                ramp_up: false,
                signal: 123.4,
                rate: 0.0,
            },
            Report {
                ramp_up: false,
                signal: LARGEST_SIGNAL,
                rate: 4e9,
            },
        ] {
            assert_eq!(Report::unpack(report.pack()), report);
            assert!(report.pack() < 1 << 48);
        }
    }

    #[test]
    fn gradual_updates_converge_to_the_reference_signal() {
        // Equation 5: the offset is zero where x_curr = PRIO * XREF * RMAX / r_ref. With 20 ms that
        // is half of RMAX.
        for start in [1.0, 0.3] {
            let mut sender = Sender::new(150_000, 1_500_000);
            sender.rate *= 10.0 * start;
            sender.last_signal = 20.0;
            for n in 1..2_000 {
                let now = Time::ZERO + DELTA * n;
                sender.update(congested(20.0), ROUND_TRIP, now);
            }
            assert!((sender.rate - 750_000.0).abs() < 1_000.0, "{}", sender.rate);
        }
    }

    #[test]
    fn one_gradual_update_is_equation_7() {
        let mut sender = Sender::new(150_000, 1_500_000);
        sender.rate = 1e6;
        sender.last_signal = 10.0;
        sender.update(congested(30.0), ROUND_TRIP, Time::ZERO);
        // x_offset = 30 - 15, x_diff = 20, delta = 100: 1e6 * (0.5 * 0.2 * 0.03 + 0.5 * 2 * 0.04).
        assert!(
            (sender.rate - (1e6 - 3_000.0 - 40_000.0)).abs() < 1e-6,
            "{}",
            sender.rate
        );
    }

    #[test]
    fn the_shaping_buffer_moves_both_rates_by_at_most_5_percent() {
        let mut sender = Sender::new(150_000, 1_500_000);
        sender.rate = 1e6;
        // Equations 11 and 12: 0.1 of 1,000 bytes in 1/25 s is 20 kbit/s.
        assert_eq!(sender.encoder_rate(1_000, 25.0), 980_000.0);
        assert_eq!(sender.sending_rate(1_000, 25.0), 1_020_000.0);
        assert_eq!(sender.encoder_rate(1_000_000, 25.0), 950_000.0);
        assert_eq!(sender.sending_rate(1_000_000, 25.0), 1_050_000.0);
        // Equations 13 and 14: RMIN and RMAX.
        sender.rate = 150_000.0;
        assert_eq!(sender.encoder_rate(1_000_000, 25.0), 150_000.0);
        sender.rate = 1.5e6;
        assert_eq!(sender.sending_rate(1_000_000, 25.0), 1.5e6);
    }

    #[test]
    fn ramp_up_is_bounded_by_the_queue_that_it_may_cause() {
        for (round_trip_ms, gamma) in [(30, 50.0 / 250.0), (580, 50.0 / 800.0)] {
            let mut sender = Sender::new(150_000, 10_000_000);
            let report = Report {
                ramp_up: true,
                signal: 0.0,
                rate: 1e6,
            };
            sender.update(report, Span::from_millis(round_trip_ms), Time::ZERO);
            assert!((sender.rate - 1e6 * (1.0 + gamma)).abs() < 1e-6);
        }
    }

    /// Feeds packets of 1000 bytes, one each 10 ms, with the delays that `delay` says in ms;
    /// `None`: lost.
    fn received(delays: impl Iterator<Item = Option<u64>>) -> (Receiver, Time) {
        let mut receiver = Receiver::default();
        let mut now = Time::ZERO;
        for (sequence, delay) in delays.enumerate() {
            let sent = Time::ZERO + Span::from_millis(10) * sequence as u64;
            if let Some(delay) = delay {
                now = sent + Span::from_millis(delay);
                receiver.arrive(sequence as u64, 1000, sent, now);
            }
        }
        (receiver, now)
    }

    #[test]
    fn an_idle_path_is_reported_as_such() {
        let (mut receiver, now) = received((0..200).map(|_| Some(300)));
        let report = receiver.report(now);
        assert!(report.ramp_up);
        assert_eq!(report.signal, 0.0);
        // 51 packets in the window, both ends included.
        assert_eq!(report.rate, 51.0 * 8_000.0 / 0.5);
    }

    #[test]
    fn queueing_delay_is_the_signal_unless_packets_are_lost() {
        let (mut receiver, now) = received((0..200).map(|n| Some(if n < 100 { 50 } else { 150 })));
        let report = receiver.report(now);
        assert!(!report.ramp_up);
        assert_eq!(report.signal, 100.0);
        // One lost in twenty: 100 ms are warped to 50 exp(-0.5), and losses add their share.
        let delays = (0..400).map(|n| match n {
            0..100 => Some(50),
            n if n % 20 == 0 => None,
            _ => Some(150),
        });
        let (mut receiver, now) = received(delays);
        let report = receiver.report(now);
        let loss = receiver.loss;
        let expected = 50.0 * libm::exp(-0.5) + 10.0 * (loss / 0.01) * (loss / 0.01);
        assert!(
            (report.signal - expected).abs() < 1e-9,
            "{report:?} {expected}"
        );
        // 51 packets in half a second, two or three of them lost; the first report counts for a
        // tenth.
        assert!(
            (0.1 * 2.0 / 51.0..=0.1 * 3.0 / 51.0).contains(&loss),
            "{loss}"
        );
    }

    #[test]
    fn reordered_packets_are_not_counted_as_lost() {
        let mut intervals = LossIntervals::default();
        for sequence in [0, 2, 1, 3, 5, 6, 4, 7, 8, 9, 10, 11, 12] {
            intervals.arrive(sequence);
        }
        assert_eq!(intervals.average(), None);
        for sequence in [14, 15, 16, 17] {
            intervals.arrive(sequence);
        }
        // 0 to 12 before the loss, 14 since: the rest are not judged yet.
        assert_eq!(intervals.packets, [1, 13]);
    }
}
