//! ProbeBW (section 5.3.3): a cycle of Down, Cruise, Refill and Up. It takes two to three seconds,
//! or as many round trips as Reno would need to grow by as much.

use bentpipe_types::{Span, Time};
use serde::{Deserialize, Serialize};

use super::phase::Phase;
use super::{Bbr3, State};
use crate::congestion::Window;
use crate::rate_sample::RateSample;

/// Maximum number of round trips between two probes (section 5.3.3.8.3).
const MAXIMUM_ROUNDS: u64 = 63;
/// Minimum time between two probes, to which up to a second is added at random.
const MINIMUM_WAIT: Span = Span::from_secs(2);

/// BBR.ack_phase: the part of the cycle that current acknowledgments are feedback for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) enum Feedback {
    /// No probe: ACKS_INIT.
    #[default]
    None,
    Refilling,
    ProbeStarting,
    Probe,
    ProbeStopping,
}

/// State of the cycle other than the phase.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Cycle {
    pub(super) feedback: Feedback,
    /// BBR.is_bw_probe_sample: losses are of data sent in a probe and have not been handled.
    pub(super) probing: bool,
    /// BBR.prev_probe_too_high.
    pub(super) too_high: bool,
    /// BBR.prev_probe_precautionary.
    pub(super) precautionary: bool,
    /// BBR.rounds_since_probe_up.
    pub(super) rounds_since_probe: u64,
    since: Time,
    wait: Span,
}

impl Bbr3 {
    /// StartProbeBW_DOWN.
    pub(super) fn start_down(&mut self, delivered: u64, now: Time) {
        self.short_term.reset_signals();
        self.long_term.stop_growing();
        // PickProbeWait: a random wait, so that flows that share a bottleneck do not probe
        // together.
        self.cycle.rounds_since_probe = self.random.bits() & 1;
        let random = Span::from_secs_f64(self.random.uniform());
        self.cycle.wait = MINIMUM_WAIT + random;
        self.cycle.since = now;
        self.cycle.feedback = Feedback::ProbeStopping;
        self.rounds.begin_at(delivered);
        self.state = State::ProbeBw(Phase::Down);
    }

    /// StartProbeBW_CRUISE.
    pub(super) fn start_cruise(&mut self) {
        self.state = State::ProbeBw(Phase::Cruise);
    }

    /// StartProbeBW_REFILL.
    pub(super) fn start_refill(&mut self, delivered: u64) {
        self.short_term.reset_model();
        self.long_term.begin_probe();
        self.cycle.precautionary = false;
        self.cycle.feedback = Feedback::Refilling;
        self.rounds.begin_at(delivered);
        self.state = State::ProbeBw(Phase::Refill);
    }

    /// StartProbeBW_UP.
    fn start_up(&mut self, window: &Window, sample: &RateSample) {
        self.cycle.feedback = Feedback::ProbeStarting;
        self.rounds.begin(sample);
        self.full_pipe.reset(sample.rate().unwrap_or(0));
        self.state = State::ProbeBw(Phase::Up);
        self.long_term.raise_slope(window);
    }

    /// UpdateProbeBWCyclePhase.
    pub(super) fn update_cycle(&mut self, window: &mut Window, sample: &RateSample) {
        if !self.full_pipe.reached || self.adapt_long_term(window, sample) {
            return;
        }
        let State::ProbeBw(phase) = self.state else {
            return;
        };
        match phase {
            Phase::Down | Phase::Cruise if self.is_time_to_probe(window, sample) => {
                self.start_refill(sample.total_delivered);
            }
            Phase::Down if self.is_time_to_cruise(window, sample) => self.start_cruise(),
            Phase::Refill if self.rounds.start => {
                self.cycle.probing = true;
                self.start_up(window, sample);
            }
            Phase::Up if self.is_time_to_go_down(window, sample) => {
                self.cycle.too_high = false;
                self.start_down(sample.total_delivered, sample.now);
            }
            _ => {}
        }
    }

    /// IsTimeToProbeBW, with IsRenoCoexistenceProbeTime: whether the wait is over, or Reno's window
    /// would by now have grown from half of the inflight target to all of it.
    fn is_time_to_probe(&self, window: &Window, sample: &RateSample) -> bool {
        let waited = sample.now > self.cycle.since + self.cycle.wait;
        let rounds = self.target_inflight(window) / u64::from(window.segment);
        waited || self.cycle.rounds_since_probe >= rounds.min(MAXIMUM_ROUNDS)
    }

    /// IsTimeToCruise.
    fn is_time_to_cruise(&self, window: &Window, sample: &RateSample) -> bool {
        let headroom = self.long_term.with_headroom(window.segment);
        headroom.is_none_or(|most| sample.in_flight <= most)
            && sample.in_flight <= self.inflight(self.bandwidth.get(), 1.0, window.segment)
    }

    /// IsTimeToGoDown.
    fn is_time_to_go_down(&mut self, window: &Window, sample: &RateSample) -> bool {
        if let Some(most) = self.long_term.inflight {
            // Precautionary bandwidth probing: deceleration.
            if self.cycle.too_high && sample.in_flight >= most {
                self.cycle.precautionary = true;
                return true;
            }
            if sample.window_limited && window.congestion_window >= most {
                // The bound limits the bandwidth, not the path.
                self.full_pipe.reset(sample.rate().unwrap_or(0));
                return false;
            }
        }
        self.full_pipe.reached_now
    }
}
