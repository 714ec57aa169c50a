//! Drain (section 5.3.2).

use super::{Bbr3, State};
use crate::congestion::Window;
use crate::rate_sample::RateSample;

/// BBR.DrainPacingGain.
pub(super) const PACING_GAIN: f64 = 0.5;
/// Maximum number of rounds in Drain.
const MAXIMUM_ROUNDS: u64 = 3;

impl Bbr3 {
    /// EnterDrain.
    pub(super) fn enter_drain(&mut self) {
        self.state = State::Drain(self.rounds.count);
    }

    /// CheckDrainDone.
    pub(super) fn check_drain(&mut self, window: &mut Window, sample: &RateSample) {
        let State::Drain(since) = self.state else {
            return;
        };
        let target = self.inflight(self.bandwidth(), 1.0, window.segment);
        if sample.in_flight <= target || self.rounds.count > since + MAXIMUM_ROUNDS {
            // Not used here; traces show by it where Startup ended.
            window.slow_start_threshold = target;
            self.start_down(sample.total_delivered, sample.now);
        }
    }
}
