//! Policer detection. A policer is a token bucket that drops what exceeds its rate. It is detected
//! by two consecutive intervals with high loss and similar throughput.

use bentpipe_types::{Span, Time};
use serde::{Deserialize, Serialize};

use super::{Bandwidth, Bbr1, State};
use crate::rate_sample::RateSample;

/// Minimum length of an interval in rounds: bbr_lt_intvl_min_rtts.
const MINIMUM_ROUNDS: u32 = 4;
/// Loss ratio of a policed interval: bbr_lt_loss_thresh, 50/256.
const LOSS_THRESHOLD: (u64, u64) = (50, 256);
/// Divisor of the tolerated relative difference of two intervals: bbr_lt_bw_ratio, an eighth.
const RATIO_DIVISOR: u64 = 8;
/// Tolerated absolute difference, in bytes per second: bbr_lt_bw_diff, 4 kbit/s.
const ABSOLUTE_TOLERANCE: Bandwidth = 500;
/// Rounds for which a detected rate is used: bbr_lt_bw_max_rtts.
const MAXIMUM_ROUNDS: u32 = 48;

/// State of the policer detection.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Policer {
    sampling: bool,
    detected: bool,
    bandwidth: Bandwidth,
    rounds: u32,
    timed_out: bool,
    // At the beginning of the interval:
    at: Time,
    delivered: u64,
    lost: u64,
}

impl Policer {
    /// Returns the rate of the policer, if one was detected.
    pub(super) fn rate(&self) -> Option<Bandwidth> {
        self.detected.then_some(self.bandwidth)
    }

    /// Resets all state.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Records a timeout, which counts as a loss.
    pub(super) fn on_timeout(&mut self) {
        self.timed_out = true;
    }

    fn begin_interval(&mut self, sample: &RateSample) {
        self.at = sample.now;
        self.delivered = sample.total_delivered;
        self.lost = sample.total_lost;
        self.rounds = 0;
    }

    /// Ends an interval with throughput `bandwidth`: Linux's bbr_lt_bw_interval_done.
    fn end_interval(&mut self, bandwidth: Bandwidth, sample: &RateSample) {
        if self.bandwidth > 0 {
            let difference = bandwidth.abs_diff(self.bandwidth);
            if difference <= self.bandwidth / RATIO_DIVISOR || difference <= ABSOLUTE_TOLERANCE {
                self.bandwidth = (self.bandwidth + bandwidth) / 2;
                self.detected = true;
                self.rounds = 0;
                return;
            }
        }
        self.bandwidth = bandwidth;
        self.begin_interval(sample);
    }
}

impl Bbr1 {
    /// Linux's bbr_lt_bw_sampling.
    pub(super) fn sample_policer(&mut self, sample: &RateSample) {
        let round = u32::from(self.rounds.start);
        let policer = &mut self.policer;
        let lossy = std::mem::take(&mut policer.timed_out) || sample.newly_lost > 0;
        if policer.detected {
            if matches!(self.state, State::ProbeBw(_)) {
                policer.rounds += round;
                if policer.rounds >= MAXIMUM_ROUNDS {
                    policer.reset();
                    self.enter_probe_bw(sample.now);
                }
            }
            return;
        }
        // The token bucket is not empty before the first loss.
        if !policer.sampling {
            if !lossy {
                return;
            }
            policer.begin_interval(sample);
            policer.sampling = true;
        }
        if sample.app_limited {
            policer.reset();
            return;
        }
        policer.rounds += round;
        if policer.rounds < MINIMUM_ROUNDS {
            return;
        }
        if policer.rounds > 4 * MINIMUM_ROUNDS {
            policer.reset();
            return;
        }
        // The interval ends with a loss, when the bucket is empty again.
        if !lossy {
            return;
        }
        let lost = sample.total_lost - policer.lost;
        let delivered = sample.total_delivered - policer.delivered;
        let elapsed = sample.now.since(policer.at);
        if delivered == 0
            || lost * LOSS_THRESHOLD.1 < delivered * LOSS_THRESHOLD.0
            || elapsed < Span::from_millis(1)
        {
            return;
        }
        let bandwidth = (delivered as f64 / elapsed.as_secs_f64()) as Bandwidth;
        policer.end_interval(bandwidth, sample);
    }
}
