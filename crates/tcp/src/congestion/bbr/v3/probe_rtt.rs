//! ProbeRTT (section 5.3.4). Every five seconds, it reduces the data in flight to half of the BDP,
//! so that a queue drains and the round-trip time of the path itself is measured.

use bentpipe_types::{Span, Time};
use serde::{Deserialize, Serialize};

use super::probe_bw::Feedback;
use super::window::minimum;
use super::{Bbr3, State, Stay};
use crate::congestion::Window;
use crate::rate_sample::RateSample;

/// BBR.ProbeRTTCwndGain.
pub(super) const WINDOW_GAIN: f64 = 0.5;
/// BBR.MinRTTFilterLen.
const WINDOW: Span = Span::from_secs(10);
/// BBR.ProbeRTTInterval.
const INTERVAL: Span = Span::from_secs(5);

/// Minimum round-trip times of the last ten and of the last five seconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct MinimumRtt {
    value: Option<Span>,
    at: Time,
    // BBR.probe_rtt_min_delay and BBR.probe_rtt_min_stamp.
    recent: Option<Span>,
    recent_at: Time,
    // BBR.probe_rtt_expired.
    expired: bool,
}

impl MinimumRtt {
    pub(super) const fn get(&self) -> Option<Span> {
        self.value
    }

    pub(super) fn start(&mut self, rtt: Option<Span>, now: Time) {
        (self.value, self.recent) = (rtt, rtt);
        (self.at, self.recent_at) = (now, now);
    }
}

impl Bbr3 {
    /// UpdateMinRTT.
    pub(super) fn update_minimum_rtt(&mut self, sample: &RateSample) {
        let it = &mut self.minimum_rtt;
        it.expired = sample.now > it.recent_at + INTERVAL;
        if let Some(rtt) = sample.rtt
            && (it.recent.is_none_or(|least| rtt < least) || it.expired)
        {
            it.recent = Some(rtt);
            it.recent_at = sample.now;
        }
        let expired = sample.now > it.at + WINDOW;
        if let Some(recent) = it.recent
            && (it.value.is_none_or(|least| recent < least) || expired)
        {
            it.value = Some(recent);
            it.at = it.recent_at;
        }
    }

    /// CheckProbeRTT.
    pub(super) fn check_probe_rtt(&mut self, window: &mut Window, sample: &RateSample) {
        let probes = matches!(self.state, State::ProbeRtt(_));
        if !probes && self.minimum_rtt.expired && !self.restarting {
            self.save_window(window);
            self.state = State::ProbeRtt(Stay::default());
            self.cycle.feedback = Feedback::ProbeStopping;
            self.rounds.begin(sample);
        }
        if let State::ProbeRtt(stay) = self.state {
            self.stay_in_probe_rtt(stay, window, sample);
        }
        if sample.delivered > 0 {
            self.restarting = false;
        }
    }

    /// HandleProbeRTT.
    fn stay_in_probe_rtt(&mut self, mut stay: Stay, window: &mut Window, sample: &RateSample) {
        let little = self.probe_rtt_window(window.segment);
        let round_over = stay.goes_on(little, sample, &mut self.rounds);
        self.state = State::ProbeRtt(stay);
        if round_over {
            self.leave_probe_rtt(stay, window, sample.now);
        }
    }

    /// CheckProbeRTTDone, and ExitProbeRTT (section 5.3.4.4).
    pub(super) fn leave_probe_rtt(&mut self, stay: Stay, window: &mut Window, now: Time) {
        if !stay.is_over(now) {
            return;
        }
        self.minimum_rtt.recent_at = now;
        self.restore_window(window);
        self.short_term.reset_model();
        if self.full_pipe.reached {
            // Conservative: the next probe is some time away. Little is in flight, so Down ends at
            // once.
            self.start_down(self.rounds.delivered(), now);
            self.start_cruise();
        } else {
            self.enter_startup();
        }
    }

    /// ProbeRTTCwnd.
    pub(super) fn probe_rtt_window(&self, segment: u32) -> u64 {
        self.product(WINDOW_GAIN).max(minimum(segment))
    }
}
