//! BBR: a model of the path, its bottleneck's bandwidth and its round-trip time without queues, in
//! the place of a window that grows until something is lost.
//!
//! Two versions, one folder each: [`Bbr1`] is what Linux calls "bbr", [`Bbr3`] is the Internet-Draft
//! of the IETF's working group on congestion control. What they share is here.

mod filter;
mod pace;
mod remembered;
mod round;
mod stay;
mod v1;
mod v3;

use bentpipe_types::{BitRate, Span};

use super::Window;
use filter::WindowedMaximum;
use pace::Pace;
use remembered::Remembered;
use round::Rounds;
use stay::Stay;

#[cfg(test)]
mod testing;

pub use v1::Bbr1;
pub use v3::Bbr3;

/// Bytes per second.
type Bandwidth = u64;

/// Linux's bbr_sndbuf_expand: BBR may be slow to enter recovery.
const SEND_BUFFER_WINDOWS: u64 = 3;

/// A rate to pace at: `gain` times `bandwidth`, less 1%, so that on average a little less leaves
/// than the path can carry. Linux's bbr_pacing_margin_percent, the draft's BBR.PacingMarginPercent.
fn pacing_rate(bandwidth: Bandwidth, gain: f64) -> BitRate {
    let bits = bandwidth as f64 * 8.0 * gain * 0.99;
    BitRate::new(bits as u64).unwrap_or(SLOWEST)
}

/// One bit per second: the pacer has a floor of its own.
const SLOWEST: BitRate = match BitRate::new(1) {
    Some(rate) => rate,
    None => unreachable!(),
};

/// The window to return to after loss recovery or ProbeRTT: Linux's bbr_save_cwnd, the draft's SaveCwnd.
/// `good`: neither is under way, so that the window of now is as it should be.
fn saved_window(prior: u64, window: &Window, good: bool) -> u64 {
    let now = window.congestion_window;
    if good { now } else { prior.max(now) }
}

/// Bytes that `bandwidth` delivers in `span`.
fn product(bandwidth: Bandwidth, span: Span) -> f64 {
    bandwidth as f64 * span.as_secs_f64()
}

/// A pacing rate in bytes per second for `window` bytes in every `rtt`; before there is a sample,
/// of the nominal 1 ms that Linux and the draft (section 5.6.2) have.
fn bandwidth_of_window(window: u64, rtt: Option<Span>) -> Bandwidth {
    let rtt = rtt
        .unwrap_or(Span::from_millis(1))
        .max(Span::from_micros(1));
    (window as f64 / rtt.as_secs_f64()) as Bandwidth
}
