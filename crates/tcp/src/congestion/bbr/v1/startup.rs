//! Startup: the rate doubles every round trip until the pipe is full.

use serde::{Deserialize, Serialize};

use super::{Bandwidth, Bbr1};
use crate::rate_sample::RateSample;

/// bbr_high_gain, 2885/1000 in 256ths and one more: 2/ln 2 is the least gain that lets a paced rate
/// double each round trip.
pub(super) const HIGH_GAIN: f64 = 739.0 / 256.0;

/// bbr_full_bw_thresh: growth by a quarter is growth
const GROWTH: f64 = 1.25;
/// bbr_full_bw_cnt: rounds without
const ROUNDS: u32 = 3;

/// Whether the bandwidth still grows.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct FullPipe {
    baseline: Bandwidth,
    rounds_without_growth: u32,
    reached: bool,
}

impl FullPipe {
    /// Was the pipe ever full?
    pub(super) const fn reached(&self) -> bool {
        self.reached
    }

    /// The rounds to come are measured from nothing.
    pub(super) fn forget_baseline(&mut self) {
        self.baseline = 0;
        self.rounds_without_growth = 0;
    }
}

impl Bbr1 {
    /// Linux's bbr_check_full_bw_reached. Why three rounds: the peer's window may have held the
    /// first back, and its growth shows in the third.
    pub(super) fn check_full_pipe(&mut self, sample: &RateSample) {
        let pipe = &mut self.full_pipe;
        if pipe.reached || !self.rounds.start || sample.app_limited {
            return;
        }
        let bandwidth = self.bandwidth.get();
        if bandwidth as f64 >= pipe.baseline as f64 * GROWTH {
            pipe.baseline = bandwidth;
            pipe.rounds_without_growth = 0;
            return;
        }
        pipe.rounds_without_growth += 1;
        pipe.reached = pipe.rounds_without_growth >= ROUNDS;
    }
}
