//! Counters of a terminal.

use bentpipe_types::SpanStatistics;

/// Requested, granted and used capacity of a terminal. Bytes are those on the air, with framing and
/// redundancy.
#[derive(Clone, Debug, Default)]
pub struct AccessCounts {
    /// Requests sent to the hub: at most one per frame.
    pub requests: u64,
    /// Bytes requested by rate: the requested rates, for one frame each.
    pub asked_by_rate: u64,
    /// Bytes requested by volume.
    pub asked_by_volume: u64,
    /// Bytes granted without request, in every frame.
    pub granted_constant: u64,
    /// Bytes granted for rate requests.
    pub granted_by_rate: u64,
    /// Bytes granted for volume requests.
    pub granted_by_volume: u64,
    /// Unrequested bytes granted, in frames in which the terminal had data or outstanding requests.
    pub granted_free: u64,
    /// Total bytes granted: the sum of the four before each is rounded down.
    pub granted: u64,
    /// Bytes planned in a mode that the path no longer supported when the frame began, in frames in
    /// which the terminal had data or outstanding requests. `None` if its rate is constant.
    pub faded: Option<u64>,
    /// Bytes sent.
    pub used: u64,
    /// Carrier time granted and used.
    pub on_air: OnAir,
    /// Times from the arrival at an idle terminal until the first bit was sent.
    pub waits: SpanStatistics,
}

/// Carrier time, expressed as the bytes that could be sent in it in clear sky. A faded terminal
/// sends fewer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OnAir {
    /// Granted as constant, rate-based and volume-based capacity, used or not.
    pub granted: u64,
    /// Used for transmission.
    pub used: u64,
}

impl AccessCounts {
    /// Returns the unused share of the granted capacity, or `None` before any grant.
    #[must_use]
    pub fn unused_share(&self) -> Option<f64> {
        let unused = self.granted.saturating_sub(self.used);
        (self.granted > 0).then(|| unused as f64 / self.granted as f64)
    }
}
