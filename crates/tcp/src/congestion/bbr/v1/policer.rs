//! Policer detection. A policer is a token bucket that drops what exceeds its rate. It is detected
//! by two consecutive intervals with high loss and similar throughput.

use bentpipe_types::{Span, Time};
use serde::{Deserialize, Serialize};

use super::{Bandwidth, Bbr1, State};
use crate::rate_sample::RateSample;

/// Minimum length of an interval in rounds: bbr_lt_intvl_min_rtts.
const SHORTEST: u32 = 4;
/// Loss ratio of a policed interval: bbr_lt_loss_thresh, 50/256.
const LOSS: (u64, u64) = (50, 256);
/// Divisor of the tolerated relative difference of two intervals: bbr_lt_bw_ratio, an eighth.
const ALIKE: u64 = 8;
/// Tolerated absolute difference, in bytes per second: bbr_lt_bw_diff, 4 kbit/s.
const ALIKE_AT_LEAST: Bandwidth = 500;
/// Rounds for which a detected rate is used: bbr_lt_bw_max_rtts.
const BELIEVED: u32 = 48;

/// State of the policer detection.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Policer {
    sampling: bool,
    believed: bool,
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
        self.believed.then_some(self.bandwidth)
    }

    /// Resets all state.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Records a timeout, which counts as a loss.
    pub(super) fn on_timeout(&mut self) {
        self.timed_out = true;
    }

    fn begin(&mut self, sample: &RateSample) {
        self.at = sample.now;
        self.delivered = sample.total_delivered;
        self.lost = sample.total_lost;
        self.rounds = 0;
    }

    /// Ends an interval with throughput `bandwidth`: Linux's bbr_lt_bw_interval_done.
    fn judge(&mut self, bandwidth: Bandwidth, sample: &RateSample) {
        if self.bandwidth > 0 {
            let apart = bandwidth.abs_diff(self.bandwidth);
            if apart <= self.bandwidth / ALIKE || apart <= ALIKE_AT_LEAST {
                self.bandwidth = (self.bandwidth + bandwidth) / 2;
                self.believed = true;
                self.rounds = 0;
                return;
            }
        }
        self.bandwidth = bandwidth;
        self.begin(sample);
    }
}

impl Bbr1 {
    /// Linux's bbr_lt_bw_sampling.
    pub(super) fn sample_policer(&mut self, sample: &RateSample) {
        let round = u32::from(self.rounds.start);
        let it = &mut self.policer;
        let lossy = std::mem::take(&mut it.timed_out) || sample.newly_lost > 0;
        if it.believed {
            if matches!(self.state, State::ProbeBw(_)) {
                it.rounds += round;
                if it.rounds >= BELIEVED {
                    it.reset();
                    self.enter_probe_bw(sample.now);
                }
            }
            return;
        }
        // The token bucket is not empty before the first loss.
        if !it.sampling {
            if !lossy {
                return;
            }
            it.begin(sample);
            it.sampling = true;
        }
        if sample.app_limited {
            it.reset();
            return;
        }
        it.rounds += round;
        if it.rounds < SHORTEST {
            return;
        }
        if it.rounds > 4 * SHORTEST {
            it.reset();
            return;
        }
        // The interval ends with a loss, when the bucket is empty again.
        if !lossy {
            return;
        }
        let lost = sample.total_lost - it.lost;
        let delivered = sample.total_delivered - it.delivered;
        let elapsed = sample.now.since(it.at);
        if delivered == 0 || lost * LOSS.1 < delivered * LOSS.0 || elapsed < Span::from_millis(1) {
            return;
        }
        let bandwidth = (delivered as f64 / elapsed.as_secs_f64()) as Bandwidth;
        it.judge(bandwidth, sample);
    }
}
