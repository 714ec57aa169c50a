//! Packet-timed round trips.

use serde::{Deserialize, Serialize};

use crate::rate_sample::RateSample;

/// Counter of packet-timed round trips. A round ends when a segment is acknowledged that was sent
/// after the round began: draft-ietf-ccwg-bbr section 5.5.1, Linux's next_rtt_delivered. Unlike a
/// timer, it does not advance without feedback.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Rounds {
    /// Number of completed rounds.
    pub(super) count: u64,
    /// Whether the last acknowledgment ended a round.
    pub(super) start: bool,
    ends_at: u64,
    delivered: u64,
}

impl Rounds {
    /// Updates the counter with an acknowledgment.
    pub(super) fn update(&mut self, sample: &RateSample) {
        self.delivered = sample.total_delivered;
        self.start = sample.interval.is_some() && sample.prior_delivered >= self.ends_at;
        if self.start {
            self.count += 1;
            self.begin(sample);
        }
    }

    /// Begins a round now.
    pub(super) fn begin(&mut self, sample: &RateSample) {
        self.begin_at(sample.total_delivered);
    }

    /// Begins a round at the delivery count `delivered`.
    pub(super) fn begin_at(&mut self, delivered: u64) {
        self.ends_at = delivered;
    }

    /// Returns the delivery count at the last acknowledgment.
    pub(super) const fn delivered(&self) -> u64 {
        self.delivered
    }
}
