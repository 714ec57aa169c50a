//! What is counted of a terminal.

use bentpipe_types::SpanStatistics;

/// What a terminal has asked for, got and used so far. Bytes are those on the air: framings and redundancy included.
#[derive(Clone, Debug, Default)]
pub struct AccessCounts {
    /// Requests that went to the hub: one a frame at most.
    pub requests: u64,
    /// Bytes asked for by rate: each request's rate, for a frame.
    pub asked_by_rate: u64,
    /// Bytes asked for by volume.
    pub asked_by_volume: u64,
    /// Bytes granted without a request, in every frame from the first on.
    pub granted_constant: u64,
    /// Bytes granted of what was asked for by rate.
    pub granted_by_rate: u64,
    /// Bytes granted of what was asked for by volume.
    pub granted_by_volume: u64,
    /// Bytes granted because nobody else wanted them, in frames for which there was anything to send or to wait for.
    pub granted_free: u64,
    /// Bytes granted in all: the four together, before each is rounded down.
    pub granted: u64,
    /// Bytes of plans besides, in a mode that its path no longer allowed when the frame came, of frames for which there was anything
    /// to send or to wait for; `None` where its rate stays.
    pub faded: Option<u64>,
    /// Bytes sent.
    pub used: u64,
    /// What that took of the carrier.
    pub on_air: OnAir,
    /// How long what came to an idle terminal waited until its first bit was sent.
    pub waits: SpanStatistics,
}

/// Time on a carrier, as bytes that could have been sent in it in clear sky: who has faded sends less.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OnAir {
    /// Granted as constant capacity, by rate, and by volume: what nobody else could have, used or not.
    pub granted: u64,
    /// In which it has sent.
    pub used: u64,
}

impl AccessCounts {
    /// The share of what was granted that was not used; `None` before anything was.
    #[must_use]
    pub fn unused_share(&self) -> Option<f64> {
        let unused = self.granted.saturating_sub(self.used);
        (self.granted > 0).then(|| unused as f64 / self.granted as f64)
    }
}
