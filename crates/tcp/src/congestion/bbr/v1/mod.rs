//! BBR version 1, as in Linux.
//!
//! Sources: Cardwell, Cheng, Gunn, Hassas Yeganeh and Jacobson, "BBR: Congestion-Based Congestion
//! Control", ACM Queue 14(5), 2016; draft-cardwell-iccrg-bbr-congestion-control-00; and the
//! constants of Linux's net/ipv4/tcp_bbr.c, cited by name. Linux counts packets; this module counts
//! bytes and rounds up to segments. Bandwidth is in bytes per second.

mod aggregation;
mod drain;
mod gain_cycle;
mod policer;
mod probe_bw;
mod probe_rtt;
mod running_maximum;
mod startup;
mod state;
mod window;

use bentpipe_types::{BitRate, RandomStream, Span, Time};
use serde::{Deserialize, Serialize};

use super::{
    Bandwidth, Memo, PacingRate, ProbeRttTimer, Rounds, SEND_BUFFER_WINDOWS, bytes_delivered,
    saved_window, segments_of,
};
use crate::congestion::CongestionSettings;
use crate::congestion::built_in::RuleFamily;
use crate::congestion::{
    AckSample, BuiltIn, Congestion, CongestionControl, CongestionSample, Window,
};
use crate::rate_sample::{RateSample, RecoveryPhase};
use aggregation::Aggregation;
use policer::Policer;
use probe_rtt::MinimumRtt;
use running_maximum::RunningMaximum;
use startup::FullPipe;
use state::State;
use window::InflightInputs;

/// Rounds in the bandwidth filter: bbr_bw_rtts.
const BANDWIDTH_ROUNDS: u64 = 10;

/// BBR version 1.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bbr1 {
    state: State,
    rounds: Rounds,
    bandwidth: RunningMaximum<BANDWIDTH_ROUNDS>,
    minimum_rtt: MinimumRtt,
    full_pipe: FullPipe,
    aggregation: Aggregation,
    policer: Policer,
    // Window before loss recovery or ProbeRTT.
    prior_window: u64,
    initial_window: u64,
    // Recovery phase at the last acknowledgment.
    phase: RecoveryPhase,
    // Packet conservation in the first round of recovery: one segment sent per segment delivered.
    packet_conservation: bool,
    // Sending restarts after the application was idle.
    idle_restart: bool,
    pacing: PacingRate,
    // Last target window computed.
    #[serde(skip)]
    target: Memo<InflightInputs, u64>,
    random: RandomStream,
}

impl Bbr1 {
    /// Creates a rule without samples.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: State::Startup,
            rounds: Rounds::default(),
            bandwidth: RunningMaximum::default(),
            minimum_rtt: MinimumRtt::default(),
            full_pipe: FullPipe::default(),
            aggregation: Aggregation::default(),
            policer: Policer::default(),
            prior_window: 0,
            initial_window: 0,
            phase: RecoveryPhase::Open,
            packet_conservation: false,
            idle_restart: false,
            pacing: PacingRate::new(),
            target: Memo::default(),
            random: RandomStream::new(0, "bbr", "cycle"),
        }
    }

    /// Returns the bandwidth estimate: the rate of a detected policer, otherwise the largest sample
    /// of the last ten rounds. Linux's bbr_bw.
    fn bandwidth(&self) -> Bandwidth {
        self.policer.rate().unwrap_or_else(|| self.bandwidth.get())
    }

    /// Linux's bbr_update_bw.
    fn update_bandwidth(&mut self, sample: &RateSample) {
        self.rounds.update(sample);
        let Some(rate) = sample.rate() else {
            return;
        };
        if self.rounds.start {
            self.packet_conservation = false;
        }
        self.sample_policer(sample);
        // An application-limited sample is a lower bound of the bandwidth, so only a larger one
        // counts.
        if !sample.app_limited || rate >= self.bandwidth.get() {
            self.bandwidth.update(self.rounds.count, rate);
        }
    }

    fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => startup::HIGH_GAIN,
            State::Drain => drain::DRAIN_GAIN,
            State::ProbeBw(_) if self.policer.rate().is_some() => 1.0,
            State::ProbeBw(cycle) => cycle.gain(),
            State::ProbeRtt(_) => 1.0,
        }
    }

    fn window_gain(&self) -> f64 {
        match self.state {
            State::Startup | State::Drain => startup::HIGH_GAIN,
            State::ProbeBw(_) => probe_bw::WINDOW_GAIN,
            State::ProbeRtt(_) => 1.0,
        }
    }
}

impl Default for Bbr1 {
    fn default() -> Self {
        Self::new()
    }
}

impl BuiltIn for Box<Bbr1> {
    const HAS_OWN_SLOW_START: bool = true;
    const FAMILY: RuleFamily = RuleFamily::Bbr;
    const FOR_SATELLITES: bool = true;

    fn from_settings(_settings: &CongestionSettings) -> Self {
        Self::default()
    }
}

impl CongestionControl for Bbr1 {
    fn on_ack(&mut self, _window: &mut Window, _acknowledged: u64, _sample: &AckSample) {}

    fn owns_slow_start(&self) -> bool {
        true
    }

    fn models_path(&self) -> bool {
        true
    }

    fn send_buffer_windows(&self) -> u64 {
        SEND_BUFFER_WINDOWS
    }

    fn seed(&mut self, seed: u64) {
        self.random = RandomStream::new(seed, "bbr", "cycle");
    }

    /// Linux's bbr_init.
    fn on_established(&mut self, window: &mut Window, rtt: Option<Span>, now: Time) {
        self.initial_window = window.congestion_window;
        self.minimum_rtt.start(rtt, now);
        self.aggregation.restart(now);
        self.pacing.start(window, rtt, startup::HIGH_GAIN);
    }

    /// Linux's bbr_main: updates the model, then rate and window.
    #[inline(never)]
    fn on_path_sample(&mut self, window: &mut Window, sample: &RateSample) {
        self.update_bandwidth(sample);
        self.update_aggregation(window, sample);
        self.update_cycle(window, sample);
        self.check_full_pipe(sample);
        self.check_drain(window, sample);
        self.update_minimum_rtt(window, sample);
        self.set_rate(window, sample);
        self.set_window(window, sample);
        self.phase = sample.phase;
    }

    fn on_congestion(&mut self, window: &mut Window, sample: &CongestionSample) {
        // Linux's bbr_ssthresh: saves the window and leaves ssthresh unchanged.
        self.save_window(window);
        if sample.event == Congestion::Timeout {
            // Linux's bbr_set_state and tcp_enter_loss: nothing counts as in flight.
            self.full_pipe.forget_baseline();
            self.policer.on_timeout();
            self.phase = RecoveryPhase::AfterTimeout;
            window.congestion_window = u64::from(window.segment);
        }
    }

    /// Linux's bbr_undo_cwnd: a spurious loss may have been mistaken for a full pipe.
    fn on_spurious(&mut self, window: &mut Window, before: Window) {
        self.full_pipe.forget_baseline();
        self.policer.reset();
        window.congestion_window = window.congestion_window.max(before.congestion_window);
    }

    /// Linux's bbr_cwnd_event.
    fn on_transmit_start(&mut self, window: &mut Window, app_limited: bool, now: Time) {
        if !app_limited {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(now);
        match self.state {
            // The path's rate: there is nothing to catch up.
            State::ProbeBw(_) => self.pacing.set_bandwidth(self.bandwidth()),
            State::ProbeRtt(timer) => self.leave_probe_rtt(timer, window, now),
            State::Startup | State::Drain => {}
        }
    }

    fn limits_samples(&self) -> bool {
        matches!(self.state, State::ProbeRtt(_))
    }

    fn paces(&self) -> bool {
        true
    }

    fn pacing_rate(&self, _window: &Window) -> Option<BitRate> {
        Some(self.pacing.rate())
    }
}

#[cfg(test)]
mod tests;
