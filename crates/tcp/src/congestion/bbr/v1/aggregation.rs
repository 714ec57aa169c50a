//! Acknowledgments that come in lumps: how much more at once than the bandwidth explains.

use bentpipe_types::{Span, Time};
use serde::{Deserialize, Serialize};

use super::{Bandwidth, Bbr1, product, segments_of};
use crate::congestion::Window;
use crate::rate_sample::RateSample;

/// bbr_extra_acked_win_rtts: two slots of so many rounds
const ROUNDS: u32 = 5;
/// bbr_extra_acked_max_us: no more than the bandwidth delivers in this time
const LONGEST: Span = Span::from_millis(100);
/// bbr_ack_epoch_acked_reset_thresh, in segments
const EPOCH_SEGMENTS: u64 = 1 << 20;

/// The excess, and what it is measured by.
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
        let it = &mut self.aggregation;
        if self.rounds.start {
            it.rounds += 1;
            if it.rounds >= ROUNDS {
                it.rounds = 0;
                it.slot = 1 - it.slot;
                it.excess[it.slot] = 0;
            }
        }
        // Whole segments: of half a one that was not expected, a whole one came too early.
        let mut expected = segments_of(bandwidth, sample.now.since(it.epoch), window.segment);
        let too_many = EPOCH_SEGMENTS * u64::from(window.segment);
        if it.acknowledged <= expected || it.acknowledged + sample.acknowledged >= too_many {
            it.restart(sample.now);
            expected = 0;
        }
        it.acknowledged += sample.acknowledged;
        let excess = it
            .acknowledged
            .saturating_sub(expected)
            .min(window.congestion_window);
        it.excess[it.slot] = it.excess[it.slot].max(excess);
    }

    /// The most of the last rounds, once the pipe is full.
    pub(super) fn excess(&self) -> u64 {
        let [one, other] = self.aggregation.excess;
        if self.full_pipe.reached() {
            one.max(other)
        } else {
            0
        }
    }
}

/// What to add to the window for so much excess: Linux's bbr_ack_aggregation_cwnd.
pub(super) fn aggregated(excess: u64, bandwidth: Bandwidth, segment: u32) -> u64 {
    let most = product(bandwidth, LONGEST) as u64;
    let segment = u64::from(segment);
    excess.min(most) / segment * segment
}
