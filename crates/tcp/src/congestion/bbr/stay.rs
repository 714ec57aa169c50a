//! A stay in ProbeRTT: so long, and for a round, once little enough is in flight.

use bentpipe_types::{Span, Time};
use serde::{Deserialize, Serialize};

use super::Rounds;
use crate::rate_sample::RateSample;

/// bbr_probe_rtt_mode_ms, and BBR.ProbeRTTDuration.
const DURATION: Span = Span::from_millis(200);

/// A stay in ProbeRTT.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Stay {
    // Once so little is in flight: until then at least.
    until: Option<Time>,
    // And for a round.
    round_over: bool,
}

impl Stay {
    /// An acknowledgment, with `little` in flight or less where that is low enough. Is the round over?
    pub(super) fn goes_on(
        &mut self,
        little: u64,
        sample: &RateSample,
        rounds: &mut Rounds,
    ) -> bool {
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

    /// Has it lasted as long as it must?
    pub(super) fn is_over(&self, now: Time) -> bool {
        self.until.is_some_and(|until| now > until)
    }
}
