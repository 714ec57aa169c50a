//! ACK aggregation: bytes acknowledged at once in excess of what the bandwidth explains.

use bentpipe_types::{Span, Time};
use serde::{Deserialize, Serialize};

use super::{Bandwidth, Bbr1, bytes_delivered, segments_of};
use crate::congestion::Window;
use crate::rate_sample::RateSample;

/// Rounds per slot of the maximum filter, which has two slots: bbr_extra_acked_win_rtts.
const ROUNDS: u32 = 5;
/// The excess is limited to what the bandwidth delivers in this time: bbr_extra_acked_max_us.
const MAXIMUM_EXCESS_TIME: Span = Span::from_millis(100);
/// Segments after which the epoch restarts: bbr_ack_epoch_acked_reset_thresh.
const EPOCH_SEGMENTS: u64 = 1 << 20;

/// Largest excess in the last rounds, and the current measurement epoch.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Aggregation {
    epoch: Time,
    acknowledged: u64,
    excess: [u64; 2],
    slot: usize,
    rounds: u32,
}

impl Aggregation {
    pub(super) fn restart(&mut self, now: Time) {
        self.epoch = now;
        self.acknowledged = 0;
    }
}

impl Bbr1 {
    /// Linux's bbr_update_ack_aggregation.
    pub(super) fn update_aggregation(&mut self, window: &Window, sample: &RateSample) {
        if sample.acknowledged == 0 || sample.interval.is_none() {
            return;
        }
        let bandwidth = self.bandwidth();
        let aggregation = &mut self.aggregation;
        if self.rounds.start {
            aggregation.rounds += 1;
            if aggregation.rounds >= ROUNDS {
                aggregation.rounds = 0;
                aggregation.slot = 1 - aggregation.slot;
                aggregation.excess[aggregation.slot] = 0;
            }
        }
        // Rounded down to whole segments: an ACK that comes half a segment early is a segment
        // early.
        let mut expected = segments_of(
            bandwidth,
            sample.now.since(aggregation.epoch),
            window.segment,
        );
        let too_many = EPOCH_SEGMENTS * u64::from(window.segment);
        if aggregation.acknowledged <= expected
            || aggregation.acknowledged + sample.acknowledged >= too_many
        {
            aggregation.restart(sample.now);
            expected = 0;
        }
        aggregation.acknowledged += sample.acknowledged;
        let excess = aggregation
            .acknowledged
            .saturating_sub(expected)
            .min(window.congestion_window);
        aggregation.excess[aggregation.slot] = aggregation.excess[aggregation.slot].max(excess);
    }

    /// Returns the largest excess of the last rounds, or 0 before the pipe is full.
    pub(super) fn excess(&self) -> u64 {
        let [one, other] = self.aggregation.excess;
        if self.full_pipe.reached() {
            one.max(other)
        } else {
            0
        }
    }
}

/// Returns the bytes to add to the window for an `excess`: Linux's bbr_ack_aggregation_cwnd.
pub(super) fn window_for_excess(excess: u64, bandwidth: Bandwidth, segment: u32) -> u64 {
    let most = bytes_delivered(bandwidth, MAXIMUM_EXCESS_TIME) as u64;
    let segment = u64::from(segment);
    excess.min(most) / segment * segment
}
