//! Parameters that several phases share.

/// Loss ratio above which inflight is too high: BBR.LossThresh.
pub(super) const LOSS_THRESHOLD: f64 = 0.02;
/// Multiplicative decrease: BBR.Beta.
pub(super) const BETA: f64 = 0.7;
/// BBR.DefaultCwndGain.
pub(super) const WINDOW_GAIN: f64 = 2.0;

/// BBR.MinPipeCwnd.
pub(super) fn minimum(segment: u32) -> u64 {
    4 * u64::from(segment)
}

/// IsInflightTooHigh: whether `lost` bytes are too many of `in_flight`.
pub(super) fn is_inflight_too_high(lost: u64, in_flight: u64, selective: bool) -> bool {
    lost > 0 && (!selective || lost as f64 > in_flight as f64 * LOSS_THRESHOLD)
}
