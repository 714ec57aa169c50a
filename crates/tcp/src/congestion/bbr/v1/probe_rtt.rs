//! ProbeRTT: every ten seconds four segments in flight, so that the queue, if there is one, is gone
//! and shows the path's own round-trip time.

use bentpipe_types::{Span, Time};
use serde::{Deserialize, Serialize};

use super::window::MINIMUM_SEGMENTS;
use super::{Bbr1, State};
use crate::congestion::Window;
use crate::rate_sample::RateSample;

/// bbr_min_rtt_win_sec
const WINDOW: Span = Span::from_secs(10);
/// bbr_probe_rtt_mode_ms: of ten seconds, two percent
const DURATION: Span = Span::from_millis(200);

/// The least round-trip time of the last ten seconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct MinimumRtt {
    value: Option<Span>,
    at: Time,
}

impl MinimumRtt {
    pub(super) const fn get(&self) -> Option<Span> {
        self.value
    }

    pub(super) fn start(&mut self, rtt: Option<Span>, now: Time) {
        self.value = rtt;
        self.at = now;
    }
}

/// A stay in ProbeRTT.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Stay {
    // Once so little is in flight: until then at least.
    until: Option<Time>,
    // And for a round.
    round_over: bool,
}

impl Bbr1 {
    /// Linux's bbr_update_min_rtt.
    pub(super) fn update_minimum_rtt(&mut self, window: &mut Window, sample: &RateSample) {
        let minimum = &mut self.minimum_rtt;
        let expired = sample.now > minimum.at + WINDOW;
        if let Some(rtt) = sample.rtt
            && (minimum.value.is_none_or(|least| rtt < least) || expired && !sample.delayed)
        {
            minimum.value = Some(rtt);
            minimum.at = sample.now;
        }
        if expired && !self.restarting && !matches!(self.state, State::ProbeRtt(_)) {
            self.save_window(window);
            self.state = State::ProbeRtt(Stay::default());
        }
        if let State::ProbeRtt(stay) = self.state {
            self.stay_in_probe_rtt(stay, window, sample);
        }
        // The restart is over with the first delivery.
        if sample.delivered > 0 {
            self.restarting = false;
        }
    }

    fn stay_in_probe_rtt(&mut self, mut stay: Stay, window: &mut Window, sample: &RateSample) {
        if stay.until.is_none() {
            if sample.in_flight <= MINIMUM_SEGMENTS * u64::from(window.segment) {
                stay.until = Some(sample.now + DURATION);
                stay.round_over = false;
                self.rounds.begin(sample);
            }
            self.state = State::ProbeRtt(stay);
            return;
        }
        stay.round_over |= self.rounds.start;
        self.state = State::ProbeRtt(stay);
        if stay.round_over {
            self.leave_probe_rtt(stay, window, sample.now);
        }
    }

    /// Linux's bbr_check_probe_rtt_done: leaves, if it is time.
    pub(super) fn leave_probe_rtt(&mut self, stay: Stay, window: &mut Window, now: Time) {
        if stay.until.is_none_or(|until| now <= until) {
            return;
        }
        // Another ten seconds
        self.minimum_rtt.at = now;
        window.congestion_window = window.congestion_window.max(self.prior_window);
        if self.full_pipe.reached() {
            self.enter_probe_bw(now);
        } else {
            self.state = State::Startup;
        }
    }
}
