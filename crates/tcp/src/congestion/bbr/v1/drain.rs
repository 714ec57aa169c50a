//! Drain: empties the queue that Startup built.

use super::{Bbr1, State};
use crate::congestion::Window;
use crate::rate_sample::RateSample;

/// bbr_drain_gain, 1000/2885 in 256ths: drains in one round what was queued in one round.
pub(super) const DRAIN_GAIN: f64 = 88.0 / 256.0;

impl Bbr1 {
    /// Linux's bbr_check_drain.
    pub(super) fn check_drain(&mut self, window: &mut Window, sample: &RateSample) {
        if self.state == State::Startup && self.full_pipe.reached() {
            self.state = State::Drain;
            // Not used here; traces show by it where Startup ended.
            window.slow_start_threshold = self.inflight(self.bandwidth.get(), 1.0, window.segment);
        }
        if self.state == State::Drain {
            let target = self.inflight(self.bandwidth.get(), 1.0, window.segment);
            if self.in_network_at_next_send(sample.in_flight, sample, window.segment) <= target {
                self.enter_probe_bw(sample.now);
            }
        }
    }
}
