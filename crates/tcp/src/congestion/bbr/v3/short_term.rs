//! Short-term model (bw_shortterm and inflight_shortterm, section 5.5.10.3): what the path delivers
//! between probes.

use serde::{Deserialize, Serialize};

use super::parameters::BETA;
use super::phase::Phase;
use super::{Bandwidth, Bbr3, State};
use crate::congestion::Window;
use crate::rate_sample::{LossSample, RateSample};

/// Short-term bounds and the congestion signals that they are computed from.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct ShortTerm {
    /// BBR.bw_shortterm, `bw_lo`.
    pub(super) bandwidth: Option<Bandwidth>,
    /// BBR.inflight_shortterm, `inflight_lo`.
    pub(super) inflight: Option<u64>,
    /// BBR.bw_latest.
    latest_bandwidth: Bandwidth,
    /// BBR.inflight_latest.
    pub(super) latest_inflight: u64,
    /// BBR.is_loss_in_round.
    pub(super) loss_in_round: bool,
    /// Discontiguous ranges lost in the round.
    pub(super) losses: u32,
    /// BBR.loss_round_start.
    pub(super) round_start: bool,
    // BBR.loss_round_delivered.
    round_delivered: u64,
    // End of the last lost segment.
    lost_end: u64,
}

impl ShortTerm {
    /// ResetShortTermModel.
    pub(super) fn reset_model(&mut self) {
        self.bandwidth = None;
        self.inflight = None;
    }

    /// ResetCongestionSignals.
    pub(super) fn reset_signals(&mut self) {
        self.loss_in_round = false;
        self.losses = 0;
        self.latest_bandwidth = 0;
        self.latest_inflight = 0;
    }

    /// NoteLoss. Returns whether this is the first loss of the round.
    pub(super) fn note_loss(&mut self, loss: &LossSample) -> bool {
        if loss.position != self.lost_end {
            self.losses = self.losses.saturating_add(1);
        }
        self.lost_end = loss.position + loss.length;
        let first = !self.loss_in_round;
        if first {
            self.round_delivered = loss.total_delivered;
        }
        self.loss_in_round = true;
        first
    }
}

impl Bbr3 {
    /// UpdateLatestDeliverySignals.
    pub(super) fn update_latest(&mut self, sample: &RateSample) {
        let signals = &mut self.short_term;
        signals.latest_bandwidth = signals.latest_bandwidth.max(sample.rate().unwrap_or(0));
        signals.latest_inflight = signals.latest_inflight.max(sample.delivered);
        signals.round_start = sample.prior_delivered >= signals.round_delivered;
        if signals.round_start {
            signals.round_delivered = sample.total_delivered;
        }
    }

    /// AdvanceLatestDeliverySignals.
    pub(super) fn advance_latest(&mut self, sample: &RateSample) {
        let signals = &mut self.short_term;
        if signals.round_start {
            signals.latest_bandwidth = sample.rate().unwrap_or(0);
            signals.latest_inflight = sample.delivered;
            signals.losses = 0;
        }
    }

    /// UpdateCongestionSignals.
    pub(super) fn update_congestion(&mut self, window: &Window, sample: &RateSample) {
        self.update_bandwidth(sample);
        if !self.short_term.round_start {
            return;
        }
        // AdaptLowerBoundsFromCongestion: once per round, except in probing phases, which cause
        // losses.
        if self.short_term.loss_in_round && !self.is_probing() {
            let signals = &mut self.short_term;
            let bandwidth = signals.bandwidth.unwrap_or(self.bandwidth.get());
            let inflight = signals.inflight.unwrap_or(window.congestion_window);
            let less = |value: u64| (BETA * value as f64) as u64;
            signals.bandwidth = Some(signals.latest_bandwidth.max(less(bandwidth)));
            signals.inflight = Some(signals.latest_inflight.max(less(inflight)));
        }
        self.short_term.loss_in_round = false;
    }

    /// IsProbingBW.
    fn is_probing(&self) -> bool {
        matches!(
            self.state,
            State::Startup | State::ProbeBw(Phase::Refill | Phase::Up)
        )
    }
}
