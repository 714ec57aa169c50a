//! BBR: congestion control by a model of the path (bottleneck bandwidth and round-trip time without
//! queues) instead of a window that grows until a loss.
//!
//! There are two versions, each in its own folder: [`Bbr1`] is Linux's "bbr"; [`Bbr3`] is
//! draft-ietf-ccwg-bbr. This module contains their common parts.

mod bandwidth;
mod memo;
mod pacing_rate;
mod probe_rtt_timer;
mod rounds;
mod v1;
mod v3;
mod windowed_maximum;

use super::Window;
use bandwidth::{Bandwidth, bytes_delivered, segments_of};
use memo::Memo;
use pacing_rate::PacingRate;
use probe_rtt_timer::ProbeRttTimer;
use rounds::Rounds;
use windowed_maximum::WindowedMaximum;

#[cfg(test)]
mod testing;

pub use v1::Bbr1;
pub use v3::Bbr3;

/// Send buffer size, in congestion windows. Linux's bbr_sndbuf_expand: BBR may be slow to enter
/// recovery.
const SEND_BUFFER_WINDOWS: u64 = 3;

/// Returns the window to restore after loss recovery or ProbeRTT: Linux's bbr_save_cwnd, the
/// draft's SaveCwnd. `good`: neither is in progress, so the current window is representative.
fn saved_window(prior: u64, window: &Window, good: bool) -> u64 {
    let now = window.congestion_window;
    if good { now } else { prior.max(now) }
}
