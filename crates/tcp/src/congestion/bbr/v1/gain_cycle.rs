//! Cycle of pacing gains in ProbeBW.

use bentpipe_types::Time;
use serde::{Deserialize, Serialize};

/// bbr_pacing_gain.
pub(super) const GAINS: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Number of phases that the cycle may begin with, all but the second: bbr_cycle_rand.
const FIRST_PHASE_CHOICES: u64 = 7;

/// Position in the gain cycle.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Cycle {
    phase: usize,
    pub(super) since: Time,
}

impl Cycle {
    /// Begins at one of all phases but the second, selected by `random`: Linux's
    /// bbr_reset_probe_bw_mode.
    pub(super) fn begin(random: u64, now: Time) -> Self {
        let back = (random % FIRST_PHASE_CHOICES) as usize;
        let before = Self {
            phase: GAINS.len() - 1 - back,
            since: now,
        };
        before.next(now)
    }

    /// Pacing gain of the phase.
    pub(super) fn gain(self) -> f64 {
        GAINS[self.phase % GAINS.len()]
    }

    /// Returns the next phase.
    pub(super) fn next(self, now: Time) -> Self {
        Self {
            phase: (self.phase + 1) % GAINS.len(),
            since: now,
        }
    }

    /// Whether this phase probes for more bandwidth.
    pub(super) const fn probes(self) -> bool {
        self.phase == 0
    }
}
