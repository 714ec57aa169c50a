//! ProbeRTT: every ten seconds, reduces the window to four segments, so that the queue drains and
//! the round-trip time of the path itself is measured.

use bentpipe_types::{Span, Time};
use serde::{Deserialize, Serialize};

use super::window::MINIMUM_SEGMENTS;
use super::{Bbr1, ProbeRttTimer, State};
use crate::congestion::Window;
use crate::rate_sample::RateSample;

/// Length of the minimum filter: bbr_min_rtt_win_sec.
const WINDOW: Span = Span::from_secs(10);

/// Minimum round-trip time of the last ten seconds.
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
        if expired && !self.idle_restart && !matches!(self.state, State::ProbeRtt(_)) {
            self.save_window(window);
            self.state = State::ProbeRtt(ProbeRttTimer::default());
        }
        if let State::ProbeRtt(timer) = self.state {
            self.handle_probe_rtt(timer, window, sample);
        }
        // The first delivery ends the restart from idle.
        if sample.delivered > 0 {
            self.idle_restart = false;
        }
    }

    fn handle_probe_rtt(
        &mut self,
        mut timer: ProbeRttTimer,
        window: &mut Window,
        sample: &RateSample,
    ) {
        let little = MINIMUM_SEGMENTS * u64::from(window.segment);
        let round_over = timer.update(little, sample, &mut self.rounds);
        self.state = State::ProbeRtt(timer);
        if round_over {
            self.leave_probe_rtt(timer, window, sample.now);
        }
    }

    /// Linux's bbr_check_probe_rtt_done: leaves ProbeRTT if its duration has passed.
    pub(super) fn leave_probe_rtt(&mut self, timer: ProbeRttTimer, window: &mut Window, now: Time) {
        if !timer.has_elapsed(now) {
            return;
        }
        // The next ProbeRTT is due in ten seconds.
        self.minimum_rtt.at = now;
        window.congestion_window = window.congestion_window.max(self.prior_window);
        if self.full_pipe.reached() {
            self.enter_probe_bw(now);
        } else {
            self.state = State::Startup;
        }
    }
}
