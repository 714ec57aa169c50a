//! The rate that BBR paces at.

use bentpipe_types::{BitRate, Span};
use serde::{Deserialize, Serialize};

use super::{Bandwidth, Remembered, bandwidth_of_window, pacing_rate};
use crate::congestion::Window;

/// The rate, which before the pipe is full only grows.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Pace {
    rate: BitRate,
    // The rate follows from a round-trip time, and not from a nominal one.
    has_rtt: bool,
    // Of a bandwidth and a gain.
    #[serde(skip)]
    followed: Remembered<(Bandwidth, f64), BitRate>,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self {
            rate: super::SLOWEST,
            has_rtt: false,
            followed: Remembered::default(),
        }
    }

    pub(super) const fn rate(&self) -> BitRate {
        self.rate
    }

    /// `startup_gain` times what sends the window in a round-trip time: Linux's
    /// bbr_init_pacing_rate_from_rtt, the draft's InitPacingRate (section 5.6.2).
    pub(super) fn start(&mut self, window: &Window, rtt: Option<Span>, startup_gain: f64) {
        self.has_rtt = rtt.is_some();
        let bandwidth = bandwidth_of_window(window.congestion_window, rtt);
        self.rate = pacing_rate(bandwidth, startup_gain);
    }

    /// The first round-trip time there is gives a nominal one's place up.
    pub(super) fn measured(&mut self, window: &Window, rtt: Option<Span>, startup_gain: f64) {
        if !self.has_rtt && rtt.is_some() {
            self.start(window, rtt, startup_gain);
        }
    }

    /// Linux's bbr_set_pacing_rate, the draft's SetPacingRate: until the pipe is full, the rate only grows.
    pub(super) fn follow(&mut self, bandwidth: Bandwidth, gain: f64, pipe_is_full: bool) {
        let rate = (self.followed).get((bandwidth, gain), |&(bandwidth, gain)| {
            pacing_rate(bandwidth, gain)
        });
        if pipe_is_full || rate > self.rate {
            self.rate = rate;
        }
    }

    /// No faster than the path, whatever it was.
    pub(super) fn set(&mut self, bandwidth: Bandwidth) {
        self.rate = pacing_rate(bandwidth, 1.0);
    }
}
