//! BBR version 3.
//!
//! Source: "BBR Congestion Control", draft-ietf-ccwg-bbr, after revision 06: the working group's
//! copy of 3 August 2026. Comments cite its sections, functions and parameters. Its
//! `inflight_longterm`, `inflight_shortterm` and `bw_shortterm` are called `inflight_hi`,
//! `inflight_lo` and `bw_lo` in earlier descriptions and in Linux. `None` represents its
//! "Infinity".

mod aggregation;
mod drain;
mod long_term;
mod parameters;
mod phase;
mod probe_bw;
mod probe_rtt;
mod short_term;
mod startup;
mod state;
mod undo;
mod window;

use bentpipe_types::{BitRate, RandomStream, Span, Time};
use serde::{Deserialize, Serialize};

use super::{
    Bandwidth, Memo, PacingRate, ProbeRttTimer, Rounds, SEND_BUFFER_WINDOWS, WindowedMaximum,
    bytes_delivered, saved_window,
};
use crate::congestion::CongestionSettings;
use crate::congestion::built_in::RuleFamily;
use crate::congestion::{
    AckSample, BuiltIn, Congestion, CongestionControl, CongestionSample, Window,
};
use crate::rate_sample::{LossSample, RateSample, RecoveryPhase};
use aggregation::Aggregation;
use long_term::LongTerm;
use parameters::WINDOW_GAIN;
use probe_bw::Cycle;
use probe_rtt::MinimumRtt;
use short_term::ShortTerm;
use startup::FullPipe;
use state::State;
use undo::Undo;
use window::InflightInputs;

/// BBR.MaxBwFilterLen: the current ProbeBW cycle and the previous one.
const BANDWIDTH_CYCLES: usize = 2;

/// BBR version 3.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bbr3 {
    state: State,
    rounds: Rounds,
    bandwidth: WindowedMaximum<BANDWIDTH_CYCLES>,
    // BBR.cycle_count: virtual clock of the bandwidth filter.
    cycles: u64,
    minimum_rtt: MinimumRtt,
    full_pipe: FullPipe,
    aggregation: Aggregation,
    short_term: ShortTerm,
    long_term: LongTerm,
    cycle: Cycle,
    undo: Undo,
    // Window before loss recovery or ProbeRTT.
    prior_window: u64,
    initial_window: u64,
    // Recovery phase at the last acknowledgment.
    phase: RecoveryPhase,
    // Sending restarts after the application was idle.
    idle_restart: bool,
    pacing: PacingRate,
    // Last target window computed.
    #[serde(skip)]
    target: Memo<InflightInputs, u64>,
    random: RandomStream,
}

impl Bbr3 {
    /// Creates a rule without samples.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: State::Startup,
            rounds: Rounds::default(),
            bandwidth: WindowedMaximum::new(),
            cycles: 0,
            minimum_rtt: MinimumRtt::default(),
            full_pipe: FullPipe::default(),
            aggregation: Aggregation::default(),
            short_term: ShortTerm::default(),
            long_term: LongTerm::default(),
            cycle: Cycle::default(),
            undo: Undo::default(),
            prior_window: 0,
            initial_window: 0,
            phase: RecoveryPhase::Open,
            idle_restart: false,
            pacing: PacingRate::new(),
            target: Memo::default(),
            random: RandomStream::new(0, "bbr", "cycle"),
        }
    }

    /// Returns BBR.bw (BoundBWForModel, section 5.5.10.3).
    fn bandwidth(&self) -> Bandwidth {
        let long = self.bandwidth.get();
        self.short_term
            .bandwidth
            .map_or(long, |short| long.min(short))
    }

    /// UpdateMaxBw (section 5.5.5).
    fn update_bandwidth(&mut self, sample: &RateSample) {
        self.rounds.update(sample);
        self.cycle.rounds_since_probe += u64::from(self.rounds.start);
        if let Some(rate) = sample.rate()
            && (rate >= self.bandwidth.get() || !sample.app_limited)
        {
            self.bandwidth.update(self.cycles, rate);
        }
    }

    /// Pacing gain of the state (table of section 5.6.1).
    fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => startup::PACING_GAIN,
            State::Drain(_) => drain::PACING_GAIN,
            State::ProbeBw(phase) => phase.pacing_gain(),
            State::ProbeRtt(_) => 1.0,
        }
    }

    fn window_gain(&self) -> f64 {
        match self.state {
            State::Startup | State::Drain(_) => WINDOW_GAIN,
            State::ProbeBw(phase) => phase.window_gain(),
            State::ProbeRtt(_) => probe_rtt::WINDOW_GAIN,
        }
    }

    /// UpdateModelAndState (section 5.2.3).
    fn update_model(&mut self, window: &mut Window, sample: &RateSample) {
        self.update_latest(sample);
        self.update_congestion(window, sample);
        self.update_aggregation(window, sample);
        self.check_full_pipe(sample);
        self.check_startup(sample);
        self.check_drain(window, sample);
        self.update_cycle(window, sample);
        self.update_minimum_rtt(sample);
        self.check_probe_rtt(window, sample);
        self.advance_latest(sample);
    }
}

impl Default for Bbr3 {
    fn default() -> Self {
        Self::new()
    }
}

impl BuiltIn for Box<Bbr3> {
    const HAS_OWN_SLOW_START: bool = true;
    const FAMILY: RuleFamily = RuleFamily::Bbr;

    fn from_settings(_settings: &CongestionSettings) -> Self {
        Self::default()
    }
}

impl CongestionControl for Bbr3 {
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

    /// OnInit (section 5.2.1).
    fn on_established(&mut self, window: &mut Window, rtt: Option<Span>, now: Time) {
        self.initial_window = window.congestion_window;
        self.minimum_rtt.start(rtt, now);
        self.aggregation.restart(now);
        self.pacing.start(window, rtt, startup::PACING_GAIN);
    }

    /// UpdateOnACK (section 5.2.3).
    #[inline(never)]
    fn on_path_sample(&mut self, window: &mut Window, sample: &RateSample) {
        if self.phase > RecoveryPhase::Open && sample.phase == RecoveryPhase::Open {
            self.restore_window(window);
        }
        self.phase = sample.phase;
        if sample.interval.is_some() {
            self.update_model(window, sample);
        }
        self.set_rate(window, sample);
        self.set_window(window, sample);
    }

    /// HandleLostPacket (section 5.5.10.2).
    fn on_path_loss(&mut self, window: &mut Window, loss: &LossSample) {
        self.handle_loss(window, loss);
    }

    /// OnEnterRTO and OnEnterFastRecovery (section 5.6.4.4).
    fn on_congestion(&mut self, window: &mut Window, sample: &CongestionSample) {
        self.save_state(window);
        if sample.event == Congestion::Timeout {
            self.phase = RecoveryPhase::AfterTimeout;
            window.congestion_window = u64::from(window.segment);
        } else {
            self.phase = self.phase.max(RecoveryPhase::FastRecovery);
        }
    }

    /// HandleSpuriousLossDetection (section 5.5.11.2).
    fn on_spurious(&mut self, window: &mut Window, _before: Window) {
        self.handle_spurious(window);
    }

    /// HandleRestartFromIdle (section 5.4.1).
    fn on_transmit_start(&mut self, window: &mut Window, app_limited: bool, now: Time) {
        if !app_limited {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(now);
        match self.state {
            State::ProbeBw(_) => self.pacing.set_bandwidth(self.bandwidth()),
            State::ProbeRtt(timer) => self.leave_probe_rtt(timer, window, now),
            State::Startup | State::Drain(_) => {}
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
