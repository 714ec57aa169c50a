//! Long-term model (inflight_longterm, sections 5.3.3.9 and 5.5.10.2): the data in flight that the
//! path has carried without high loss.

use serde::{Deserialize, Serialize};

use super::parameters::{BETA, LOSS_THRESHOLD, is_inflight_too_high, minimum};
use super::phase::Phase;
use super::probe_bw::Feedback;
use super::{Bbr3, State};
use crate::congestion::Window;
use crate::rate_sample::{LossSample, RateSample};

/// BBR.Headroom.
const HEADROOM: f64 = 0.15;
/// Maximum exponent of the slope.
const MAXIMUM_EXPONENT: u32 = 30;
/// Upper limit of the bound.
const MAXIMUM_INFLIGHT: u64 = 1 << 40;

/// Long-term bound and its growth.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct LongTerm {
    /// BBR.inflight_longterm, `inflight_hi`.
    pub(super) inflight: Option<u64>,
    // BBR.bw_probe_up_acked.
    acknowledged: u64,
    // BBR.probe_up_acked_per_inc; `None` if the bound does not grow.
    per_segment: Option<u64>,
    // BBR.bw_probe_up_rounds.
    rounds: u32,
}

impl LongTerm {
    pub(super) fn stop_growing(&mut self) {
        self.per_segment = None;
    }

    pub(super) fn begin_probe(&mut self) {
        self.rounds = 0;
        self.acknowledged = 0;
    }

    /// InflightWithHeadroom.
    pub(super) fn with_headroom(&self, segment: u32) -> Option<u64> {
        let bound = self.inflight?;
        let headroom = ((HEADROOM * bound as f64) as u64).max(u64::from(segment));
        Some(bound.saturating_sub(headroom).max(minimum(segment)))
    }

    /// RaiseInflightLongtermSlope: raises growth to 1, 2, 4, ... segments per round trip.
    pub(super) fn raise_slope(&mut self, window: &Window) {
        let growth = 1_u64 << self.rounds;
        self.rounds = (self.rounds + 1).min(MAXIMUM_EXPONENT);
        let per_segment = window.congestion_window / growth;
        self.per_segment = Some(per_segment.max(u64::from(window.segment)));
    }

    /// ProbeInflightLongtermUpward.
    fn grow(&mut self, round_start: bool, window: &Window, sample: &RateSample) {
        let (Some(bound), Some(per_segment)) = (self.inflight, self.per_segment) else {
            return;
        };
        if !sample.window_limited || window.congestion_window < bound {
            return;
        }
        self.acknowledged += sample.acknowledged;
        let segments = self.acknowledged / per_segment;
        self.acknowledged -= segments * per_segment;
        let grown = bound.saturating_add(segments.saturating_mul(u64::from(window.segment)));
        self.inflight = Some(grown.min(MAXIMUM_INFLIGHT));
        if round_start {
            self.raise_slope(window);
        }
    }
}

impl Bbr3 {
    /// AdaptLongTermModel. Returns whether it changed the state.
    pub(super) fn adapt_long_term(&mut self, window: &Window, sample: &RateSample) -> bool {
        let probes_bandwidth = matches!(self.state, State::ProbeBw(_));
        if self.rounds.start {
            match self.cycle.feedback {
                Feedback::ProbeStarting => self.cycle.feedback = Feedback::Probe,
                Feedback::ProbeStopping => {
                    // The last samples of the probe have arrived.
                    self.cycle.probing = false;
                    self.cycle.feedback = Feedback::None;
                    if probes_bandwidth && !sample.app_limited {
                        // AdvanceMaxBwFilter
                        self.cycles += 1;
                    }
                    // Precautionary bandwidth probing: acceleration.
                    if probes_bandwidth && self.cycle.precautionary && !self.cycle.too_high {
                        self.start_refill(sample.total_delivered);
                        return true;
                    }
                }
                _ => {}
            }
        }
        let (lost, in_flight) = (sample.lost_since_sent, sample.sent_in_flight);
        if is_inflight_too_high(lost, in_flight, sample.selective) {
            return false;
        }
        // Data in flight that was delivered without high loss is not too high.
        if let Some(bound) = self.long_term.inflight {
            self.long_term.inflight = Some(bound.max(in_flight.min(MAXIMUM_INFLIGHT)));
            if self.state == State::ProbeBw(Phase::Up) {
                self.long_term.grow(self.rounds.start, window, sample);
            }
        }
        false
    }

    /// HandleLostPacket.
    pub(super) fn handle_loss(&mut self, window: &mut Window, loss: &LossSample) {
        if self.short_term.note_loss(loss) {
            self.save_state(window);
        }
        if !self.cycle.probing {
            return;
        }
        if is_inflight_too_high(loss.lost_since_sent, loss.sent_in_flight, loss.selective) {
            self.handle_too_high(window, loss);
        }
    }

    /// HandleInflightTooHigh.
    fn handle_too_high(&mut self, window: &Window, loss: &LossSample) {
        self.cycle.too_high = true;
        // One reaction per probe.
        self.cycle.probing = false;
        if !loss.app_limited {
            let least = (self.target_inflight(window) as f64 * BETA) as u64;
            self.long_term.inflight = Some(inflight_at_loss(loss).max(least));
        }
        if self.state == State::ProbeBw(Phase::Up) {
            self.undo.record_state(State::ProbeBw(Phase::Up));
            self.start_down(loss.total_delivered, loss.now);
        }
    }

    /// TargetInflight.
    pub(super) fn target_inflight(&self, window: &Window) -> u64 {
        self.bdp_multiple(1.0).min(window.congestion_window)
    }
}

/// InflightAtLoss: bytes in flight at which the losses crossed the threshold.
fn inflight_at_loss(loss: &LossSample) -> u64 {
    let before = loss.sent_in_flight.saturating_sub(loss.length) as f64;
    let lost_before = loss.lost_since_sent.saturating_sub(loss.length) as f64;
    let prefix = (LOSS_THRESHOLD * before - lost_before) / (1.0 - LOSS_THRESHOLD);
    (before + prefix).clamp(0.0, MAXIMUM_INFLIGHT as f64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate_sample::RecoveryPhase;
    use bentpipe_types::{Span, Time};

    const SEGMENT: u64 = 1000;

    fn window(segments: u64) -> Window {
        Window::new(SEGMENT as u32, segments * SEGMENT, u64::MAX)
    }

    /// A sample in a round trip that the window limits.
    fn limited(segments: u64) -> RateSample {
        RateSample {
            now: Time::ZERO,
            delivered: segments * SEGMENT,
            interval: Some(Span::from_millis(100)),
            prior_delivered: 0,
            app_limited: false,
            sent_in_flight: 0,
            lost_since_sent: 0,
            acknowledged: segments * SEGMENT,
            newly_lost: 0,
            total_delivered: segments * SEGMENT,
            total_lost: 0,
            prior_in_flight: 0,
            in_flight: 0,
            rtt: None,
            delayed: false,
            window_limited: true,
            next_send: Time::ZERO,
            phase: RecoveryPhase::Open,
            selective: true,
        }
    }

    /// Section 5.3.3.9: the bound grows by 1, 2, 4, ... segments per round trip.
    #[test]
    fn the_slope_doubles_every_round_trip() {
        let window = window(64);
        let mut bound = LongTerm {
            inflight: Some(10 * SEGMENT),
            ..LongTerm::default()
        };
        bound.begin_probe();
        bound.raise_slope(&window);
        let mut grown = Vec::new();
        for _ in 0..4 {
            let before = bound.inflight.expect("a bound");
            for acknowledgment in 0..32 {
                bound.grow(acknowledgment == 31, &window, &limited(2));
            }
            grown.push((bound.inflight.expect("a bound") - before) / SEGMENT);
        }
        assert_eq!(grown, [1, 2, 4, 8]);
    }

    #[test]
    fn a_window_below_the_bound_raises_nothing() {
        let mut bound = LongTerm {
            inflight: Some(64 * SEGMENT),
            ..LongTerm::default()
        };
        bound.raise_slope(&window(64));
        bound.grow(true, &window(63), &limited(63));
        assert_eq!(bound.inflight, Some(64 * SEGMENT));
        let idle = RateSample {
            window_limited: false,
            ..limited(64)
        };
        bound.grow(true, &window(64), &idle);
        assert_eq!(bound.inflight, Some(64 * SEGMENT));
        bound.grow(false, &window(64), &limited(64));
        assert_eq!(bound.inflight, Some(65 * SEGMENT));
        bound.stop_growing();
        bound.grow(false, &window(65), &limited(650));
        assert_eq!(bound.inflight, Some(65 * SEGMENT));
    }
}
