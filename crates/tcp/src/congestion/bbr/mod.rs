//! BBR: congestion control by a model of the path (bottleneck bandwidth and round-trip time without
//! queues) instead of a window that grows until a loss.
//!
//! There are two versions, each in its own folder: [`Bbr1`] is Linux's "bbr"; [`Bbr3`] is
//! draft-ietf-ccwg-bbr. This module contains their common parts.

mod memo;
mod pacing_rate;
mod probe_rtt_timer;
mod rounds;
mod v1;
mod v3;
mod windowed_maximum;

use bentpipe_types::{BitRate, Span};

use super::Window;
use memo::Memo;
use pacing_rate::PacingRate;
use probe_rtt_timer::ProbeRttTimer;
use rounds::Rounds;
use windowed_maximum::WindowedMaximum;

#[cfg(test)]
mod testing;

pub use v1::Bbr1;
pub use v3::Bbr3;

/// Bytes per second.
type Bandwidth = u64;

/// Send buffer size, in congestion windows. Linux's bbr_sndbuf_expand: BBR may be slow to enter
/// recovery.
const SEND_BUFFER_WINDOWS: u64 = 3;

/// Returns the pacing rate: `gain` times `bandwidth`, less a margin of 1%, so that on average the
/// sender is slightly slower than the path. Linux's bbr_pacing_margin_percent, the draft's
/// BBR.PacingMarginPercent.
fn pacing_rate(bandwidth: Bandwidth, gain: f64) -> BitRate {
    let bits = bandwidth as f64 * 8.0 * gain * 0.99;
    BitRate::new(bits as u64).unwrap_or(SLOWEST)
}

/// Lowest pacing rate. The pacer has its own, higher minimum.
const SLOWEST: BitRate = match BitRate::new(1) {
    Some(rate) => rate,
    None => unreachable!(),
};

/// Returns the window to restore after loss recovery or ProbeRTT: Linux's bbr_save_cwnd, the
/// draft's SaveCwnd. `good`: neither is in progress, so the current window is representative.
fn saved_window(prior: u64, window: &Window, good: bool) -> u64 {
    let now = window.congestion_window;
    if good { now } else { prior.max(now) }
}

/// Returns the bytes that `bandwidth` delivers in `span`.
fn bytes_delivered(bandwidth: Bandwidth, span: Span) -> f64 {
    bandwidth as f64 * span.as_secs_f64()
}

/// Returns the bandwidth that sends `window` bytes per `rtt`. Before the first RTT sample it
/// assumes 1 ms, as Linux and the draft (section 5.6.2) do.
fn bandwidth_of_window(window: u64, rtt: Option<Span>) -> Bandwidth {
    let rtt = rtt
        .unwrap_or(Span::from_millis(1))
        .max(Span::from_micros(1));
    (window as f64 / rtt.as_secs_f64()) as Bandwidth
}
