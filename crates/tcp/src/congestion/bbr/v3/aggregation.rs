//! ACK aggregation (section 5.5.9): bytes acknowledged at once in excess of what the bandwidth
//! explains.

use bentpipe_types::Time;
use serde::{Deserialize, Serialize};

use super::{Bbr3, WindowedMaximum, bytes_delivered};
use crate::congestion::Window;
use crate::rate_sample::RateSample;

/// Rounds in the maximum filter: BBR.ExtraAckedFilterLen.
const ROUNDS: usize = 10;

/// Excess of acknowledged bytes over what the bandwidth explains.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Aggregation {
    start: Time,
    delivered: u64,
    excess: WindowedMaximum<ROUNDS>,
}

impl Default for Aggregation {
    fn default() -> Self {
        Self {
            start: Time::ZERO,
            delivered: 0,
            excess: WindowedMaximum::new(),
        }
    }
}

impl Aggregation {
    /// Restarts the measurement interval at `now`.
    pub(super) fn restart(&mut self, now: Time) {
        self.start = now;
    }

    /// Returns BBR.extra_acked: the largest excess of the last rounds.
    pub(super) fn excess(&self) -> u64 {
        self.excess.get()
    }
}

impl Bbr3 {
    /// UpdateACKAggregation.
    pub(super) fn update_aggregation(&mut self, window: &Window, sample: &RateSample) {
        let bandwidth = self.bandwidth();
        let aggregation = &mut self.aggregation;
        let mut expected = bytes_delivered(bandwidth, sample.now.since(aggregation.start)) as u64;
        if aggregation.delivered <= expected {
            aggregation.delivered = 0;
            aggregation.start = sample.now;
            expected = 0;
        }
        aggregation.delivered += sample.acknowledged;
        let excess = aggregation
            .delivered
            .saturating_sub(expected)
            .min(window.congestion_window);
        // The filter covers one round only in Startup.
        if !self.full_pipe.reached && self.rounds.start {
            aggregation.excess = WindowedMaximum::new();
        }
        aggregation.excess.update(self.rounds.count, excess);
    }
}
