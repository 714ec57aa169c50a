//! Startup and the detection of a full pipe (section 5.3.1).

use serde::{Deserialize, Serialize};

use super::{Bandwidth, Bbr3, State};
use crate::rate_sample::{RateSample, RecoveryPhase};

/// BBR.StartupPacingGain: 4 ln 2.
pub(super) const PACING_GAIN: f64 = 2.77;
/// Growth ratio below which the bandwidth counts as constant (section 5.3.1.2).
const GROWTH: f64 = 1.25;
/// Rounds without growth until the pipe counts as full.
const ROUNDS: u32 = 3;
/// Loss events in a round that end Startup: BBRStartupFullLossCnt.
const LOSSES: u32 = 6;

/// Detection of a full pipe, by bandwidth that no longer grows.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct FullPipe {
    baseline: Bandwidth,
    rounds_without_growth: u32,
    /// BBR.full_bw_now: no growth since the detection was last reset.
    pub(super) reached_now: bool,
    /// BBR.full_bw_reached: the pipe was full at least once.
    pub(super) reached: bool,
}

impl FullPipe {
    /// ResetFullBW: restarts the detection with `baseline`.
    pub(super) fn reset(&mut self, baseline: Bandwidth) {
        self.baseline = baseline;
        self.rounds_without_growth = 0;
        self.reached_now = false;
    }
}

impl Bbr3 {
    /// CheckFullBWReached (section 5.3.1.2).
    pub(super) fn check_full_pipe(&mut self, sample: &RateSample) {
        let pipe = &mut self.full_pipe;
        if pipe.reached_now || !self.rounds.start || sample.app_limited {
            return;
        }
        let Some(rate) = sample.rate() else {
            return;
        };
        if rate as f64 >= pipe.baseline as f64 * GROWTH {
            pipe.reset(rate);
            return;
        }
        pipe.rounds_without_growth += 1;
        pipe.reached_now = pipe.rounds_without_growth >= ROUNDS;
        pipe.reached |= pipe.reached_now;
    }

    /// CheckStartupDone.
    pub(super) fn check_startup(&mut self, sample: &RateSample) {
        self.check_losses(sample);
        if self.state == State::Startup && self.full_pipe.reached {
            self.enter_drain();
        }
    }

    /// CheckStartupHighLoss (section 5.3.1.3).
    fn check_losses(&mut self, sample: &RateSample) {
        if self.state != State::Startup || self.full_pipe.reached {
            return;
        }
        let recovering = sample.phase == RecoveryPhase::FastRecovery;
        let too_high = if sample.selective {
            // At the end of a loss round: recovery has then lasted for at least one round.
            recovering
                && self.short_term.round_start
                && self.short_term.losses >= LOSSES
                && super::parameters::is_inflight_too_high(
                    sample.lost_since_sent,
                    sample.sent_in_flight,
                    sample.selective,
                )
        } else {
            recovering && sample.newly_lost > 0
        };
        if too_high {
            self.undo.record_state(State::Startup);
            self.full_pipe.reached = true;
            let safe = self.bdp_multiple(1.0).max(self.short_term.latest_inflight);
            self.long_term.inflight = Some(safe);
        }
    }

    /// EnterStartup.
    pub(super) fn enter_startup(&mut self) {
        self.state = State::Startup;
    }
}
