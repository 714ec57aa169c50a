//! Pacing rate and congestion window, computed from the model.

use bentpipe_types::{BitRate, Span};

use super::{
    Bandwidth, Bbr1, State, aggregation, bytes_delivered, saved_window, segments_of, startup,
};
use crate::congestion::Window;
use crate::pacing;
use crate::rate_sample::{RateSample, RecoveryPhase};

/// bbr_cwnd_min_target: with fewer segments, a peer that acknowledges every second one would stall.
pub(super) const MINIMUM_SEGMENTS: u64 = 4;
/// Window in segments without an RTT sample: TCP_INIT_CWND.
const WITHOUT_RTT_SEGMENTS: u64 = 10;
/// Bursts added to the window, one each for the sender's queue, its interface and the receiver:
/// Linux's bbr_quantization_budget.
const BURSTS: u64 = 3;

/// Inputs of the target for bytes in flight.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct InflightInputs {
    bandwidth: Bandwidth,
    gain: f64,
    minimum_rtt: Option<Span>,
    // Bytes for ACK aggregation.
    excess: u64,
    rate: BitRate,
    // Whether ProbeBW is in the phase with gain 1.25.
    probes: bool,
    segment: u32,
}

impl InflightInputs {
    /// Returns the target: `gain` times the BDP, plus aggregation and bursts. Linux's bbr_inflight.
    pub(super) fn inflight(&self) -> u64 {
        let excess = aggregation::window_for_excess(self.excess, self.bandwidth, self.segment);
        self.with_quantization_budget(self.bdp() + excess)
    }

    /// Returns `gain` times the BDP, in bytes of whole segments: Linux's bbr_bdp.
    fn bdp(&self) -> u64 {
        let segment = u64::from(self.segment);
        match self.minimum_rtt {
            None => WITHOUT_RTT_SEGMENTS * segment,
            Some(rtt) => {
                // Rounded up, because rounding down would feed back into lower estimates.
                let bytes = (bytes_delivered(self.bandwidth, rtt) * self.gain) as u64;
                bytes.div_ceil(segment) * segment
            }
        }
    }

    /// Adds bytes for end systems that work in bursts and acknowledge every second segment: Linux's
    /// bbr_quantization_budget.
    fn with_quantization_budget(&self, bytes: u64) -> u64 {
        let pair = 2 * u64::from(self.segment);
        let mut room = bytes + BURSTS * pacing::burst(self.rate, self.segment);
        room = room.div_ceil(pair) * pair;
        if self.probes {
            // The probing phase must exceed even a small BDP.
            room += pair;
        }
        room
    }
}

impl Bbr1 {
    fn inputs(&self, bandwidth: Bandwidth, gain: f64, excess: u64, segment: u32) -> InflightInputs {
        InflightInputs {
            bandwidth,
            gain,
            minimum_rtt: self.minimum_rtt.get(),
            excess,
            rate: self.pacing.rate(),
            probes: matches!(self.state, State::ProbeBw(cycle) if cycle.probes()),
            segment,
        }
    }

    /// Returns `gain` times the BDP plus bursts, the target for bytes in flight.
    pub(super) fn inflight(&self, bandwidth: Bandwidth, gain: f64, segment: u32) -> u64 {
        self.inputs(bandwidth, gain, 0, segment).inflight()
    }

    /// Returns the part of `in_flight` that is still in the network when the pacer releases the
    /// next burst: Linux's bbr_packets_in_net_at_edt.
    pub(super) fn in_network_at_next_send(
        &self,
        in_flight: u64,
        sample: &RateSample,
        segment: u32,
    ) -> u64 {
        let wait: Span = sample.next_send.since(sample.now);
        let delivered = segments_of(self.bandwidth(), wait, segment);
        let mut then = in_flight;
        if self.pacing_gain() > 1.0 {
            then += pacing::burst(self.pacing.rate(), segment);
        }
        then.saturating_sub(delivered)
    }

    /// Linux's bbr_set_pacing_rate.
    pub(super) fn set_rate(&mut self, window: &Window, sample: &RateSample) {
        self.pacing.on_rtt(window, sample.rtt, startup::HIGH_GAIN);
        let full = self.full_pipe.reached();
        (self.pacing).update(self.bandwidth(), self.pacing_gain(), full);
    }

    /// Saves the last representative window: Linux's bbr_save_cwnd.
    pub(super) fn save_window(&mut self, window: &Window) {
        let good = self.phase == RecoveryPhase::Open && !matches!(self.state, State::ProbeRtt(_));
        self.prior_window = saved_window(self.prior_window, window, good);
    }

    /// Linux's bbr_set_cwnd.
    pub(super) fn set_window(&mut self, window: &mut Window, sample: &RateSample) {
        let segment = window.segment;
        let least = MINIMUM_SEGMENTS * u64::from(segment);
        if sample.acknowledged > 0 && !self.recover_or_restore(window, sample) {
            let (bandwidth, gain) = (self.bandwidth(), self.window_gain());
            let inputs = self.inputs(bandwidth, gain, self.excess(), segment);
            let target = self.target.get(inputs, InflightInputs::inflight);
            let grown = window.congestion_window + sample.acknowledged;
            if self.full_pipe.reached() {
                // A lower target reduces the window only after the pipe was full.
                window.congestion_window = grown.min(target);
            } else if window.congestion_window < target
                || sample.total_delivered < self.initial_window
            {
                window.congestion_window = grown;
            }
            window.congestion_window = window.congestion_window.max(least);
        }
        if matches!(self.state, State::ProbeRtt(_)) {
            window.congestion_window = window.congestion_window.min(least);
        }
    }

    /// Linux's bbr_set_cwnd_to_recover_or_restore. The first round of recovery conserves packets:
    /// each delivered byte allows one new byte. In the following rounds it allows at most two. At
    /// the end the window from before recovery is restored. Returns whether the window is final.
    fn recover_or_restore(&mut self, window: &mut Window, sample: &RateSample) -> bool {
        let mut bytes = window.congestion_window;
        if sample.newly_lost > 0 {
            bytes = bytes
                .saturating_sub(sample.newly_lost)
                .max(u64::from(window.segment));
        }
        let recovering = RecoveryPhase::FastRecovery;
        if sample.phase == recovering && self.phase != recovering {
            self.packet_conservation = true;
            self.rounds.begin(sample);
            bytes = sample.in_flight + sample.acknowledged;
        } else if self.phase >= recovering && sample.phase < recovering {
            bytes = bytes.max(self.prior_window);
            self.packet_conservation = false;
        }
        if self.packet_conservation {
            bytes = bytes.max(sample.in_flight + sample.acknowledged);
        }
        window.congestion_window = bytes;
        self.packet_conservation
    }
}
