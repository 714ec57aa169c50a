//! ProbeRTT (section 5.3.4). Every five seconds, it reduces the data in flight to half of the BDP,
//! so that a queue drains and the round-trip time of the path itself is measured.

use bentpipe_types::{Span, Time};
use serde::{Deserialize, Serialize};

use super::parameters::minimum;
use super::probe_bw::Feedback;
use super::{Bbr3, ProbeRttTimer, State};
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
        let minimum = &mut self.minimum_rtt;
        minimum.expired = sample.now > minimum.recent_at + INTERVAL;
        if let Some(rtt) = sample.rtt
            && (minimum.recent.is_none_or(|least| rtt < least) || minimum.expired)
        {
            minimum.recent = Some(rtt);
            minimum.recent_at = sample.now;
        }
        let expired = sample.now > minimum.at + WINDOW;
        if let Some(recent) = minimum.recent
            && (minimum.value.is_none_or(|least| recent < least) || expired)
        {
            minimum.value = Some(recent);
            minimum.at = minimum.recent_at;
        }
    }

    /// CheckProbeRTT.
    pub(super) fn check_probe_rtt(&mut self, window: &mut Window, sample: &RateSample) {
        let probes = matches!(self.state, State::ProbeRtt(_));
        if !probes && self.minimum_rtt.expired && !self.idle_restart {
            self.save_window(window);
            self.state = State::ProbeRtt(ProbeRttTimer::default());
            self.cycle.feedback = Feedback::ProbeStopping;
            self.rounds.begin(sample);
        }
        if let State::ProbeRtt(timer) = self.state {
            self.handle_probe_rtt(timer, window, sample);
        }
        if sample.delivered > 0 {
            self.idle_restart = false;
        }
    }

    /// HandleProbeRTT.
    fn handle_probe_rtt(
        &mut self,
        mut timer: ProbeRttTimer,
        window: &mut Window,
        sample: &RateSample,
    ) {
        let little = self.probe_rtt_window(window.segment);
        let round_over = timer.update(little, sample, &mut self.rounds);
        self.state = State::ProbeRtt(timer);
        if round_over {
            self.leave_probe_rtt(timer, window, sample.now);
        }
    }

    /// CheckProbeRTTDone, and ExitProbeRTT (section 5.3.4.4).
    pub(super) fn leave_probe_rtt(&mut self, timer: ProbeRttTimer, window: &mut Window, now: Time) {
        if !timer.has_elapsed(now) {
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
        self.bdp_multiple(WINDOW_GAIN).max(minimum(segment))
    }
}
