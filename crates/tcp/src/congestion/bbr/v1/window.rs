//! Rate and window: what follows from the model.

use bentpipe_types::{BitRate, Span};

use super::{Bandwidth, Bbr1, State, aggregation, product, saved_window, segments_of, startup};
use crate::congestion::Window;
use crate::pacing;
use crate::rate_sample::{RateSample, RecoveryPhase};

/// bbr_cwnd_min_target: with fewer in flight, a peer that acknowledges every second segment stalls.
pub(super) const MINIMUM_SEGMENTS: u64 = 4;
/// TCP_INIT_CWND, where there is no round-trip time to make a product with
const WITHOUT_RTT_SEGMENTS: u64 = 10;
/// Linux's bbr_quantization_budget: a burst in the sender's queue, one in its interface, and one in
/// the receiver.
const BURSTS: u64 = 3;

/// All that the bytes follow from that are to be in flight.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Basis {
    bandwidth: Bandwidth,
    gain: f64,
    minimum_rtt: Option<Span>,
    // Of acknowledgments that come in lumps.
    excess: u64,
    rate: BitRate,
    // This is the first phase of the cycle.
    probes: bool,
    segment: u32,
}

impl Basis {
    /// The bytes in flight that fill the path `gain` times: Linux's bbr_inflight.
    pub(super) fn inflight(&self) -> u64 {
        let excess = aggregation::aggregated(self.excess, self.bandwidth, self.segment);
        self.with_room_for_bursts(self.product() + excess)
    }

    /// `gain` times the bandwidth-delay product, in bytes of whole segments: Linux's bbr_bdp.
    fn product(&self) -> u64 {
        let segment = u64::from(self.segment);
        match self.minimum_rtt {
            None => WITHOUT_RTT_SEGMENTS * segment,
            Some(rtt) => {
                // Rounded up: down would feed on itself
                let bytes = (product(self.bandwidth, rtt) * self.gain) as u64;
                bytes.div_ceil(segment) * segment
            }
        }
    }

    /// What end systems that work in bursts, and acknowledge every second segment, need besides:
    /// Linux's bbr_quantization_budget.
    fn with_room_for_bursts(&self, bytes: u64) -> u64 {
        let pair = 2 * u64::from(self.segment);
        let mut room = bytes + BURSTS * pacing::burst(self.rate, self.segment);
        room = room.div_ceil(pair) * pair;
        if self.probes {
            // So that the first phase gets above a small product, too
            room += pair;
        }
        room
    }
}

impl Bbr1 {
    fn basis(&self, bandwidth: Bandwidth, gain: f64, excess: u64, segment: u32) -> Basis {
        Basis {
            bandwidth,
            gain,
            minimum_rtt: self.minimum_rtt.get(),
            excess,
            rate: self.pace.rate(),
            probes: matches!(self.state, State::ProbeBw(cycle) if cycle.probes()),
            segment,
        }
    }

    /// The bytes in flight that fill the path `gain` times.
    pub(super) fn inflight(&self, bandwidth: Bandwidth, gain: f64, segment: u32) -> u64 {
        self.basis(bandwidth, gain, 0, segment).inflight()
    }

    /// Of `in_flight`, what will still be in the network when the pacer lets the next burst go:
    /// Linux's bbr_packets_in_net_at_edt.
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
            then += pacing::burst(self.pace.rate(), segment);
        }
        then.saturating_sub(delivered)
    }

    /// Linux's bbr_set_pacing_rate.
    pub(super) fn set_rate(&mut self, window: &Window, sample: &RateSample) {
        self.pace.measured(window, sample.rtt, startup::HIGH_GAIN);
        let full = self.full_pipe.reached();
        (self.pace).follow(self.bandwidth(), self.pacing_gain(), full);
    }

    /// Remembers the last window that was good: Linux's bbr_save_cwnd.
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
            let basis = self.basis(bandwidth, gain, self.excess(), segment);
            let target = self.target.get(basis, Basis::inflight);
            let grown = window.congestion_window + sample.acknowledged;
            if self.full_pipe.reached() {
                // Only a pipe that was full says that a window is too large
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

    /// Linux's bbr_set_cwnd_to_recover_or_restore. In the first round of recovery, as much leaves as
    /// arrives; afterwards at most twice that; then the window from before. True: nothing more is
    /// to be done to the window.
    fn recover_or_restore(&mut self, window: &mut Window, sample: &RateSample) -> bool {
        let mut bytes = window.congestion_window;
        if sample.newly_lost > 0 {
            bytes = bytes
                .saturating_sub(sample.newly_lost)
                .max(u64::from(window.segment));
        }
        let recovering = RecoveryPhase::FastRecovery;
        if sample.phase == recovering && self.phase != recovering {
            self.conserving = true;
            self.rounds.begin(sample);
            bytes = sample.in_flight + sample.acknowledged;
        } else if self.phase >= recovering && sample.phase < recovering {
            bytes = bytes.max(self.prior_window);
            self.conserving = false;
        }
        if self.conserving {
            bytes = bytes.max(sample.in_flight + sample.acknowledged);
        }
        window.congestion_window = bytes;
        self.conserving
    }
}
