//! ProbeBW: a cycle of eight pacing gains. One probes for more bandwidth, one drains the queue that
//! the probe built, and six cruise.

use bentpipe_types::Time;

use super::gain_cycle::Cycle;
use super::{Bbr1, State};
use crate::congestion::Window;
use crate::rate_sample::RateSample;

/// bbr_cwnd_gain: twice the BDP, because acknowledgments may be delayed or aggregated.
pub(super) const WINDOW_GAIN: f64 = 2.0;

impl Bbr1 {
    /// Linux's bbr_reset_probe_bw_mode: starts at a random phase, so that flows that begin together
    /// do not probe together.
    pub(super) fn enter_probe_bw(&mut self, now: Time) {
        self.state = State::ProbeBw(Cycle::begin(self.random.bits(), now));
    }

    /// Linux's bbr_update_cycle_phase.
    pub(super) fn update_cycle(&mut self, window: &Window, sample: &RateSample) {
        if let State::ProbeBw(cycle) = self.state
            && self.phase_is_over(cycle, window, sample)
        {
            self.state = State::ProbeBw(cycle.next(sample.now));
        }
    }

    fn phase_is_over(&self, cycle: Cycle, window: &Window, sample: &RateSample) -> bool {
        let Some(minimum_rtt) = self.minimum_rtt.get() else {
            return true;
        };
        let full_length = sample.now.since(cycle.since) > minimum_rtt;
        let gain = self.pacing_gain();
        if gain == 1.0 {
            return full_length;
        }
        let in_flight =
            || self.in_network_at_next_send(sample.prior_in_flight, sample, window.segment);
        let target = |gain| self.inflight(self.bandwidth.get(), gain, window.segment);
        if gain > 1.0 {
            // Until the path holds that much more or loses segments.
            full_length && (sample.newly_lost > 0 || in_flight() >= target(gain))
        } else {
            // Ends early if the queue is empty, because an empty queue wastes capacity.
            full_length || in_flight() <= target(1.0)
        }
    }
}
