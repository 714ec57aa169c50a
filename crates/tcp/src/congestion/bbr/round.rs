//! Round trips counted by packets.

use serde::{Deserialize, Serialize};

use crate::rate_sample::RateSample;

/// A round ends when a segment is acknowledged that left after it had begun: draft-ietf-ccwg-bbr
/// section 5.5.1, Linux's next_rtt_delivered. Unlike a time, it can't end without feedback.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Rounds {
    /// How many have ended.
    pub(super) count: u64,
    /// Did one end with the last acknowledgment?
    pub(super) start: bool,
    ends_at: u64,
    delivered: u64,
}

impl Rounds {
    /// Takes an acknowledgment in.
    pub(super) fn update(&mut self, sample: &RateSample) {
        self.delivered = sample.total_delivered;
        self.start = sample.interval.is_some() && sample.prior_delivered >= self.ends_at;
        if self.start {
            self.count += 1;
            self.begin(sample);
        }
    }

    /// A round begins now.
    pub(super) fn begin(&mut self, sample: &RateSample) {
        self.begin_at(sample.total_delivered);
    }

    /// A round begins, where so much was delivered.
    pub(super) fn begin_at(&mut self, delivered: u64) {
        self.ends_at = delivered;
    }

    /// All that had been delivered at the last acknowledgment.
    pub(super) const fn delivered(&self) -> u64 {
        self.delivered
    }
}
