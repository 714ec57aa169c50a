//! Pacing rate and congestion window (section 5.6).

use bentpipe_types::{BitRate, Span};

use super::parameters::minimum;
use super::phase::Phase;
use super::{Bandwidth, Bbr3, State, bytes_delivered, saved_window, startup};
use crate::congestion::Window;
use crate::pacing;
use crate::rate_sample::{RateSample, RecoveryPhase};

/// Quanta added to the window, one each for the sender's queue, its interface and the receiver
/// (section 5.5.8.1).
const QUANTA: u64 = 3;

/// BDPMultiple.
fn bdp_multiple(rtt: Option<Span>, initial_window: u64, bandwidth: Bandwidth, gain: f64) -> u64 {
    rtt.map_or(initial_window, |rtt| {
        (bytes_delivered(bandwidth, rtt) * gain) as u64
    })
}

/// Inputs of the target for bytes in flight.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct InflightInputs {
    bandwidth: Bandwidth,
    gain: f64,
    minimum_rtt: Option<Span>,
    initial_window: u64,
    // Bytes for ACK aggregation.
    excess: u64,
    rate: BitRate,
    // Whether the phase is Up.
    probes: bool,
    segment: u32,
}

impl InflightInputs {
    /// Inflight: `gain` times the BDP, plus aggregation and quantization.
    pub(super) fn inflight(&self) -> u64 {
        let bytes = bdp_multiple(
            self.minimum_rtt,
            self.initial_window,
            self.bandwidth,
            self.gain,
        );
        self.with_quantization_budget(bytes + self.excess)
    }

    /// QuantizationBudget.
    fn with_quantization_budget(&self, bytes: u64) -> u64 {
        let budget = QUANTA * pacing::burst(self.rate, self.segment);
        let room = bytes.max(budget).max(minimum(self.segment));
        if self.probes {
            room + 2 * u64::from(self.segment)
        } else {
            room
        }
    }
}

impl Bbr3 {
    fn inputs(&self, bandwidth: Bandwidth, gain: f64, excess: u64, segment: u32) -> InflightInputs {
        InflightInputs {
            bandwidth,
            gain,
            minimum_rtt: self.minimum_rtt.get(),
            initial_window: self.initial_window,
            excess,
            rate: self.pacing.rate(),
            probes: self.state == State::ProbeBw(Phase::Up),
            segment,
        }
    }

    /// BDPMultiple: `gain` times the BDP.
    pub(super) fn bdp_multiple(&self, gain: f64) -> u64 {
        let rtt = self.minimum_rtt.get();
        bdp_multiple(rtt, self.initial_window, self.bandwidth(), gain)
    }

    /// Inflight, without aggregation.
    pub(super) fn inflight(&self, bandwidth: Bandwidth, gain: f64, segment: u32) -> u64 {
        self.inputs(bandwidth, gain, 0, segment).inflight()
    }

    /// SetPacingRate.
    pub(super) fn set_rate(&mut self, window: &Window, sample: &RateSample) {
        self.pacing.on_rtt(window, sample.rtt, startup::PACING_GAIN);
        let full = self.full_pipe.reached;
        (self.pacing).update(self.bandwidth(), self.pacing_gain(), full);
    }

    /// SetCwnd (section 5.6.4.6).
    pub(super) fn set_window(&mut self, window: &mut Window, sample: &RateSample) {
        let segment = window.segment;
        let (bandwidth, gain) = (self.bandwidth(), self.window_gain());
        let inputs = self.inputs(bandwidth, gain, self.aggregation.excess(), segment);
        let most = self.target.get(inputs, InflightInputs::inflight);
        let grown = window.congestion_window + sample.acknowledged;
        if self.full_pipe.reached {
            window.congestion_window = grown.min(most);
        } else if window.congestion_window < most || sample.total_delivered < self.initial_window {
            window.congestion_window = grown;
        }
        window.congestion_window = window.congestion_window.max(minimum(segment));
        // BoundCwndForProbeRTT
        if matches!(self.state, State::ProbeRtt(_)) {
            let bound = self.probe_rtt_window(segment);
            window.congestion_window = window.congestion_window.min(bound);
        }
        self.bound_window(window);
    }

    /// BoundCwndForModel (section 5.6.4.7).
    fn bound_window(&self, window: &mut Window) {
        let long = match self.state {
            State::ProbeBw(Phase::Cruise) | State::ProbeRtt(_) => {
                self.long_term.with_headroom(window.segment)
            }
            State::ProbeBw(_) => self.long_term.inflight,
            State::Startup | State::Drain(_) => None,
        };
        let bound = long
            .unwrap_or(u64::MAX)
            .min(self.short_term.inflight.unwrap_or(u64::MAX))
            .max(minimum(window.segment));
        window.congestion_window = window.congestion_window.min(bound);
    }

    /// SaveCwnd.
    pub(super) fn save_window(&mut self, window: &Window) {
        let good = self.phase == RecoveryPhase::Open && !matches!(self.state, State::ProbeRtt(_));
        self.prior_window = saved_window(self.prior_window, window, good);
    }

    /// RestoreCwnd.
    pub(super) fn restore_window(&self, window: &mut Window) {
        window.congestion_window = window.congestion_window.max(self.prior_window);
    }
}
