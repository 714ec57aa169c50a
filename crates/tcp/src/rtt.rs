//! Round-trip time estimation and the retransmission timeout (RFC 6298, which
//! RFC 9293 section 3.8.1 requires).

use bentpipe_types::Span;
use serde::{Deserialize, Serialize};

use crate::config::{Config, RtoRule};
use crate::linux_ticks;

/// RFC 6298 section 2: G, the clock granularity. Timers here are exact to the nanosecond; a
/// millisecond is the granularity of a host's clock and of timestamps.
const CLOCK_GRANULARITY: u64 = 1_000_000;

/// Unit of a coarser granularity (`Config::timer_granularity`).
pub const GRANULE: Span = Span::from_millis(10);

/// Value of a round-trip time that was not measured.
const UNMEASURED: Span = Span::from_nanos(u64::MAX);

/// Upper limit of round trips and timeouts, almost two days, which avoids overflows.
const MAXIMUM_RTT: u64 = 1 << 47;

/// RFC 6298 section 5.7: the RTO when data transmission begins, if the SYN was retransmitted.
const AFTER_LOST_SYN: Span = Span::from_secs(3);

/// Estimates the round-trip time and the retransmission timeout of one connection.
#[derive(Debug, Serialize, Deserialize)]
#[repr(C)]
pub(crate) struct RttEstimator {
    // Nanoseconds; 0 before the first sample.
    smoothed: u64,
    maximum: u64,
    base: u64,
    backoff: u32,
    rule: RtoRule,
    // See `TimerQuirks::ticks`.
    in_ticks: bool,
    // Granularity of the clock, in `GRANULE`s, or 0.
    granularity: u8,
    // Linux's icsk_backoff: number of doublings of the zero-window probe interval.
    probe_backoff: u8,
    // Minimum so far; `UNMEASURED` before the first sample.
    minimum_rtt: Span,
    minimum: u64,
    // RFC 6298: RTTVAR. Linux: four times RTTVAR, and at least the minimum.
    variation: u64,
    // Linux only: four times the mean deviation, and its maximum in this round trip.
    deviation: u64,
    deviation_maximum: u64,
    // The round trip ends when this position is acknowledged.
    round_end: u64,
}

impl RttEstimator {
    pub(crate) fn new(config: &Config) -> Self {
        let maximum = config
            .maximum_rto
            .as_nanos()
            .clamp(CLOCK_GRANULARITY, MAXIMUM_RTT);
        Self {
            rule: config.rto_rule,
            in_ticks: config.linux_quirks.timers.ticks,
            granularity: config.timer_granularity.map_or(0, |granularity| {
                u8::try_from(granularity.as_nanos() / GRANULE.as_nanos()).unwrap_or(u8::MAX)
            }),
            minimum: config.minimum_rto.as_nanos().min(maximum),
            maximum,
            smoothed: 0,
            variation: 0,
            deviation: 0,
            deviation_maximum: 0,
            round_end: 0,
            base: config
                .initial_rto
                .as_nanos()
                .clamp(CLOCK_GRANULARITY, maximum),
            backoff: 0,
            probe_backoff: 0,
            minimum_rtt: UNMEASURED,
        }
    }

    /// Interval of zero-window probes: the retransmission timeout with backoff, doubled for each
    /// timeout or probe since (tcp_probe0_when).
    pub(crate) fn probe_wait(&self) -> Span {
        let wait = self.rto().as_nanos() << self.probe_backoff;
        Span::from_nanos(wait.min(self.maximum))
    }

    /// Doubles the probe interval after an unsuccessful probe.
    pub(crate) fn back_off_probe(&mut self) {
        if self.rto().as_nanos() << self.probe_backoff < self.maximum {
            self.probe_backoff += 1;
        }
    }

    /// Resets the probe interval when the window has opened.
    pub(crate) fn forget_probes(&mut self) {
        self.probe_backoff = 0;
    }

    /// The retransmission timeout, with backoff.
    #[inline]
    pub(crate) fn rto(&self) -> Span {
        // RFC 6298 section 5.5: "The maximum value discussed in (2.5) above may be used to provide
        // an upper bound to this doubling operation."
        Span::from_nanos((self.base << self.backoff).min(self.maximum))
    }

    /// The retransmission timeout without backoff.
    pub(crate) fn rto_without_backoff(&self) -> Span {
        Span::from_nanos(self.base)
    }

    /// Number of doublings of the timeout.
    pub(crate) fn backoff(&self) -> u32 {
        self.backoff
    }

    /// The smoothed round-trip time.
    #[inline]
    pub(crate) fn smoothed(&self) -> Option<Span> {
        (self.smoothed > 0).then(|| Span::from_nanos(self.smoothed))
    }

    /// Mean deviation of the round-trip times: RTTVAR of RFC 6298, Linux's mdev.
    pub(crate) fn mean_deviation(&self) -> Option<Span> {
        let deviation = match self.rule {
            RtoRule::Rfc6298 => self.variation,
            RtoRule::Linux => self.deviation / 4,
        };
        (self.smoothed > 0).then(|| Span::from_nanos(deviation))
    }

    /// Minimum round-trip time, measured by the latest acknowledged segment, and so without the ACK
    /// delay.
    #[inline]
    pub(crate) fn minimum(&self) -> Option<Span> {
        (self.minimum_rtt != UNMEASURED).then_some(self.minimum_rtt)
    }

    /// Records a round trip measured exactly, not by timestamps.
    #[inline]
    pub(crate) fn note_minimum(&mut self, rtt: Span) {
        self.minimum_rtt = self.minimum_rtt.min(rtt);
    }

    /// RFC 6298 section 5.5: doubles the timeout ("back off the timer").
    pub(crate) fn back_off(&mut self) {
        self.back_off_probe();
        if self.base << self.backoff < self.maximum {
            self.backoff += 1;
        }
    }

    /// Undoes the last doubling. Returns false if there is none.
    pub(crate) fn undo_backoff(&mut self) -> bool {
        let doubled = self.backoff > 0;
        self.backoff -= u32::from(doubled);
        doubled
    }

    /// Ends the backoff.
    pub(crate) fn reset_backoff(&mut self) {
        self.backoff = 0;
        self.probe_backoff = 0;
    }

    /// Sets the RTO at the end of a handshake with a retransmitted SYN.
    pub(crate) fn set_rto_after_lost_syn(&mut self) {
        if self.smoothed > 0 {
            return; // Timestamps have identified the acknowledged SYN.
        }
        self.reset_backoff();
        self.base = self.base.max(AFTER_LOST_SYN.as_nanos()).min(self.maximum);
    }

    /// Takes an unambiguous sample (RFC 6298 section 3, Karn's algorithm, is up to the caller),
    /// from an acknowledgment up to `acknowledged` while data up to `highest` was sent.
    #[inline(always)]
    pub(crate) fn on_sample(&mut self, rtt: Span, acknowledged: u64, highest: u64) {
        // Zero means that there is no sample yet.
        let rtt = rtt.as_nanos().clamp(1, MAXIMUM_RTT);
        // RFC 6298 section 5: the backed-off RTO holds until a new sample ("the retransmission
        // timer is computed anew").
        self.reset_backoff();
        match self.rule {
            RtoRule::Linux => self.linux(rtt, acknowledged, highest),
            RtoRule::Rfc6298 => {
                // RFC 7323 section 4.2: one sample per round trip, however many there are.
                if acknowledged >= self.round_end {
                    self.round_end = highest;
                    self.rfc6298(rtt);
                }
            }
        }
    }

    fn rfc6298(&mut self, rtt: u64) {
        let rtt = self.in_granules(rtt);
        if self.smoothed == 0 {
            // RFC 6298 section 2.2: the first sample.
            self.smoothed = rtt;
            self.variation = rtt / 2;
        } else {
            // RFC 6298 section 2.3: alpha = 1/8, beta = 1/4.
            let error = self.smoothed.abs_diff(rtt);
            self.variation = self.variation - self.variation / 4 + error / 4;
            self.smoothed = (self.smoothed - self.smoothed / 8 + rtt / 8).max(1);
        }
        // RFC 6298 section 2.3 and RFC 6298 section 2.4, with a configurable minimum (1 second in
        // the RFC).
        // RFC 6298 section 4: the variance term is at least G. RFC 6298 section 1: no setting of
        // this rule is more aggressive, except a lower minimum.
        let least = CLOCK_GRANULARITY.max(self.granularity());
        let base = self.smoothed + (4 * self.variation).max(least);
        self.base = base.max(self.minimum).min(self.maximum);
    }

    /// Rounds a round-trip time up to a multiple of the granularity, if there is one.
    fn in_granules(&self, rtt: u64) -> u64 {
        match self.granularity() {
            0 => rtt,
            granularity => rtt.div_ceil(granularity) * granularity,
        }
    }

    /// The granularity of the clock in nanoseconds, or 0.
    fn granularity(&self) -> u64 {
        u64::from(self.granularity) * GRANULE.as_nanos()
    }

    /// tcp_rtt_estimator of Linux 6. With a sample per acknowledgment, RFC 6298's gains would
    /// forget the variation within one round trip, so the maximum of the round trip is used.
    #[inline]
    fn linux(&mut self, rtt: u64, acknowledged: u64, highest: u64) {
        if self.smoothed == 0 {
            self.smoothed = rtt;
            self.deviation = rtt * 2;
            self.variation = self.deviation.max(self.minimum);
            self.deviation_maximum = self.variation;
            self.round_end = highest;
        } else {
            let error = self.smoothed.abs_diff(rtt);
            if rtt >= self.smoothed {
                self.smoothed += error / 8;
                self.deviation = self.deviation - self.deviation / 4 + error;
            } else {
                self.smoothed = (self.smoothed - error / 8).max(1);
                if error > self.deviation / 4 {
                    // A decrease of the round trip says little about delays to come: an eighth of
                    // the gain.
                    self.deviation += (error - self.deviation / 4) / 8;
                } else {
                    self.deviation = self.deviation - self.deviation / 4 + error;
                }
            }
            if self.deviation > self.deviation_maximum {
                self.deviation_maximum = self.deviation;
                self.variation = self.variation.max(self.deviation_maximum);
            }
            if acknowledged > self.round_end {
                if self.deviation_maximum < self.variation {
                    self.variation -= (self.variation - self.deviation_maximum) / 4;
                }
                self.round_end = highest;
                self.deviation_maximum = self.minimum;
            }
        }
        let base = (self.smoothed + self.variation).min(self.maximum);
        self.base = if self.in_ticks {
            linux_ticks::whole(base)
        } else {
            base
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimator(rule: RtoRule, minimum: Span) -> RttEstimator {
        RttEstimator::new(&Config {
            rto_rule: rule,
            minimum_rto: minimum,
            maximum_rto: Span::from_secs(60),
            ..Config::default()
        })
    }

    #[test]
    fn rfc6298_first_and_second_sample() {
        let mut rtt = estimator(RtoRule::Rfc6298, Span::ZERO);
        // RFC 6298 section 2.1.
        assert_eq!(rtt.rto(), Span::from_secs(1));
        // RFC 6298 section 2.2: SRTT = R, RTTVAR = R/2, RTO = SRTT + 4 RTTVAR.
        rtt.on_sample(Span::from_millis(400), 1, 1);
        assert_eq!(rtt.smoothed(), Some(Span::from_millis(400)));
        assert_eq!(rtt.rto(), Span::from_millis(1200));
        // RFC 6298 section 2.3: RTTVAR = 3/4 * 200 + 1/4 * 200 = 200, SRTT = 7/8 * 400 + 1/8 * 600
        // = 425.
        rtt.on_sample(Span::from_millis(600), 2, 2);
        assert_eq!(rtt.smoothed(), Some(Span::from_millis(425)));
        assert_eq!(rtt.rto(), Span::from_millis(425 + 4 * 200));
    }

    /// RFC 6298 section 4: with ticks of 500 ms a round trip of 600 ms is measured as a second, and
    /// the variance term is a tick at least.
    #[test]
    fn a_coarse_clock_rounds_round_trips_up() {
        let mut rtt = RttEstimator::new(&Config {
            rto_rule: RtoRule::Rfc6298,
            minimum_rto: Span::ZERO,
            timer_granularity: Some(Span::from_millis(500)),
            ..Config::default()
        });
        rtt.on_sample(Span::from_millis(600), 1, 1);
        assert_eq!(rtt.smoothed(), Some(Span::from_secs(1)));
        assert_eq!(rtt.rto(), Span::from_secs(3));
        for n in 2..1000 {
            rtt.on_sample(Span::from_millis(501), n, n);
        }
        assert_eq!(rtt.rto(), Span::from_millis(1500));
    }

    #[test]
    fn rfc6298_samples_once_a_round_trip() {
        let mut rtt = estimator(RtoRule::Rfc6298, Span::ZERO);
        rtt.on_sample(Span::from_millis(400), 1, 10);
        rtt.on_sample(Span::from_millis(800), 5, 12);
        assert_eq!(rtt.smoothed(), Some(Span::from_millis(400)));
        rtt.on_sample(Span::from_millis(800), 10, 20);
        assert_eq!(rtt.smoothed(), Some(Span::from_millis(450)));
    }

    #[test]
    fn minimum_applies_to_the_rto_or_to_the_variation() {
        for (rule, expected) in [
            (RtoRule::Rfc6298, Span::from_millis(1000)),
            (RtoRule::Linux, Span::from_millis(1100)),
        ] {
            let mut rtt = estimator(rule, Span::from_secs(1));
            for n in 0..1000 {
                rtt.on_sample(Span::from_millis(100), n, n);
            }
            assert_eq!(rtt.rto(), expected, "{rule:?}");
        }
    }

    #[test]
    fn linux_remembers_the_largest_deviation_of_a_round_trip() {
        let mut rtt = estimator(RtoRule::Linux, Span::from_millis(200));
        for n in 0..100 {
            rtt.on_sample(Span::from_millis(100), n, n);
        }
        assert_eq!(rtt.rto(), Span::from_millis(300));
        // One late acknowledgment in a round trip of a hundred.
        rtt.on_sample(Span::from_millis(500), 101, 200);
        let high = rtt.rto();
        assert!(high > Span::from_millis(500));
        for n in 102..200 {
            rtt.on_sample(Span::from_millis(100), n, 200);
        }
        assert!(rtt.rto() >= Span::from_millis(500), "{:?}", rtt.rto());
    }

    #[test]
    fn backoff_doubles_up_to_the_maximum_and_ends_with_a_sample() {
        let mut rtt = estimator(RtoRule::Rfc6298, Span::from_secs(1));
        let mut previous = rtt.rto();
        for _ in 0..100 {
            rtt.back_off();
            assert!(rtt.rto() >= previous);
            previous = rtt.rto();
        }
        assert_eq!(previous, Span::from_secs(60));
        rtt.on_sample(Span::from_millis(100), 1, 1);
        assert_eq!(rtt.rto(), Span::from_secs(1));
    }

    #[test]
    fn rto_stays_in_bounds_for_any_sample() {
        for rule in [RtoRule::Linux, RtoRule::Rfc6298] {
            let mut rtt = estimator(rule, Span::from_millis(200));
            for n in [0, 1, u64::MAX, 5, 0, u64::MAX / 2, 1_000_000, 0] {
                rtt.on_sample(Span::from_nanos(n), 0, 0);
                assert!(rtt.rto() >= Span::from_millis(200));
                assert!(rtt.rto() <= Span::from_secs(60));
            }
        }
    }
}
