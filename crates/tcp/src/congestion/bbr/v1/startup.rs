//! Startup: doubles the rate each round trip until the pipe is full.

use serde::{Deserialize, Serialize};

use super::{Bandwidth, Bbr1};
use crate::rate_sample::RateSample;

/// bbr_high_gain, 2885/1000 in 256ths plus one: 2/ln 2 is the smallest gain with which a paced rate
/// doubles each round trip.
pub(super) const HIGH_GAIN: f64 = 739.0 / 256.0;

/// Growth ratio below which the bandwidth counts as constant: bbr_full_bw_thresh.
const GROWTH: f64 = 1.25;
/// Rounds without growth until the pipe counts as full: bbr_full_bw_cnt.
const ROUNDS: u32 = 3;

/// Detection of a full pipe, by bandwidth that no longer grows.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct FullPipe {
    baseline: Bandwidth,
    rounds_without_growth: u32,
    reached: bool,
}

impl FullPipe {
    /// Whether the pipe was ever full.
    pub(super) const fn reached(&self) -> bool {
        self.reached
    }

    /// Restarts the detection with baseline 0.
    pub(super) fn forget_baseline(&mut self) {
        self.baseline = 0;
        self.rounds_without_growth = 0;
    }
}

impl Bbr1 {
    /// Linux's bbr_check_full_bw_reached. It waits for three rounds because the receive window may
    /// limit the first, and its growth shows in the third.
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
