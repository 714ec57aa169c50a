//! Duration of ProbeRTT: at least 200 ms and one round, counted from the time when few enough bytes
//! are in flight.

use bentpipe_types::{Span, Time};
use serde::{Deserialize, Serialize};

use super::Rounds;
use crate::rate_sample::RateSample;

/// Minimum duration: Linux's bbr_probe_rtt_mode_ms, the draft's BBR.ProbeRTTDuration.
const DURATION: Span = Span::from_millis(200);

/// Progress of one ProbeRTT.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(super) struct ProbeRttTimer {
    // Earliest end; set when few enough bytes are in flight.
    until: Option<Time>,
    // Whether a round has ended since then.
    round_over: bool,
}

impl ProbeRttTimer {
    /// Processes an acknowledgment; the timer starts when at most `little` bytes are in flight.
    /// Returns whether the round is over.
    pub(super) fn update(&mut self, little: u64, sample: &RateSample, rounds: &mut Rounds) -> bool {
        if self.until.is_some() {
            self.round_over |= rounds.start;
            return self.round_over;
        }
        if sample.in_flight <= little {
            self.until = Some(sample.now + DURATION);
            rounds.begin(sample);
        }
        false
    }

    /// Whether the minimum duration has passed.
    pub(super) fn has_elapsed(&self, now: Time) -> bool {
        self.until.is_some_and(|until| now > until)
    }
}
