//! BBR's pacing rate.

use bentpipe_types::{BitRate, Span};
use serde::{Deserialize, Serialize};

use super::{Bandwidth, Memo};
use crate::congestion::Window;

/// Lowest pacing rate. The pacer has its own, higher minimum.
const SLOWEST: BitRate = match BitRate::new(1) {
    Some(rate) => rate,
    None => unreachable!(),
};

/// Pacing rate. It only increases until the pipe is full.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct PacingRate {
    rate: BitRate,
    // Whether the rate was initialized with a measured round-trip time instead of the nominal one.
    has_rtt: bool,
    // Last rate computed from a bandwidth and a gain.
    #[serde(skip)]
    last_computed: Memo<(Bandwidth, f64), BitRate>,
}

impl PacingRate {
    pub(super) fn new() -> Self {
        Self {
            rate: SLOWEST,
            has_rtt: false,
            last_computed: Memo::default(),
        }
    }

    pub(super) const fn rate(&self) -> BitRate {
        self.rate
    }

    /// Sets the rate to `startup_gain` windows per round-trip time: Linux's
    /// bbr_init_pacing_rate_from_rtt, the draft's InitPacingRate (section 5.6.2).
    pub(super) fn start(&mut self, window: &Window, rtt: Option<Span>, startup_gain: f64) {
        self.has_rtt = rtt.is_some();
        let bandwidth = bandwidth_of_window(window.congestion_window, rtt);
        self.rate = pacing_rate(bandwidth, startup_gain);
    }

    /// Reinitializes the rate with the first measured round-trip time.
    pub(super) fn on_rtt(&mut self, window: &Window, rtt: Option<Span>, startup_gain: f64) {
        if !self.has_rtt && rtt.is_some() {
            self.start(window, rtt, startup_gain);
        }
    }

    /// Sets the rate to `gain` times `bandwidth`, but never lowers it until the pipe is full:
    /// Linux's bbr_set_pacing_rate, the draft's SetPacingRate.
    pub(super) fn update(&mut self, bandwidth: Bandwidth, gain: f64, pipe_is_full: bool) {
        let rate = (self.last_computed).get((bandwidth, gain), |&(bandwidth, gain)| {
            pacing_rate(bandwidth, gain)
        });
        if pipe_is_full || rate > self.rate {
            self.rate = rate;
        }
    }

    /// Sets the rate to that of the path, higher or lower than before.
    pub(super) fn set_bandwidth(&mut self, bandwidth: Bandwidth) {
        self.rate = pacing_rate(bandwidth, 1.0);
    }
}

/// Returns the pacing rate: `gain` times `bandwidth`, less a margin of 1%, so that on average the
/// sender is slightly slower than the path. Linux's bbr_pacing_margin_percent, the draft's
/// BBR.PacingMarginPercent.
fn pacing_rate(bandwidth: Bandwidth, gain: f64) -> BitRate {
    let bits = bandwidth as f64 * 8.0 * gain * 0.99;
    BitRate::new(bits as u64).unwrap_or(SLOWEST)
}

/// Returns the bandwidth that sends `window` bytes per `rtt`. Before the first RTT sample it
/// assumes 1 ms, as Linux and the draft (section 5.6.2) do.
fn bandwidth_of_window(window: u64, rtt: Option<Span>) -> Bandwidth {
    let rtt = rtt
        .unwrap_or(Span::from_millis(1))
        .max(Span::from_micros(1));
    (window as f64 / rtt.as_secs_f64()) as Bandwidth
}
