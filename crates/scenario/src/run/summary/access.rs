//! What became of capacity on demand.

use bentpipe_link::AccessCounts;
use schemars::JsonSchema;
use serde::Serialize;

use super::WaitSummary;
use crate::Carrier;

/// What a direction with capacity on demand has asked for, got and used. Bytes are those on the air: headers, framing
/// and redundancy included.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct AccessSummary {
    /// The carrier that it shares; null if it has one of its own.
    pub carrier: Option<String>,
    /// What all who share the carrier send together at most, in bit/s.
    pub carrier_rate_bps: u64,
    /// Requests that it made: one a frame at most.
    pub requests: u64,
    /// Bytes asked for by rate: of each request, what the rate comes to in a frame.
    pub asked_rate_based_bytes: u64,
    /// Bytes asked for by volume.
    pub asked_volume_based_bytes: u64,
    /// Bytes granted in all.
    pub granted_bytes: u64,
    /// Bytes granted as constant capacity, in each frame of the run.
    pub granted_constant_bytes: u64,
    /// Bytes granted of what was asked for by rate.
    pub granted_rate_based_bytes: u64,
    /// Bytes granted of what was asked for by volume.
    pub granted_volume_based_bytes: u64,
    /// Bytes granted though nobody had asked for them, in frames for which there was something to send or to wait for.
    pub granted_free_bytes: u64,
    /// Bytes that were planned besides, in a mode that the path no longer allowed when the frame came, of frames for which there
    /// was something to send or to wait for. Only of a direction whose rate changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub faded_bytes: Option<u64>,
    /// Bytes sent.
    pub used_bytes: u64,
    /// What was granted, but for what was free, as time on the carrier: bytes that could have been sent in it in clear sky. Only of a
    /// direction whose rate changes; in clear sky it is what was granted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub granted_air_bytes: Option<u64>,
    /// What the bytes sent took of the carrier, in the same way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_air_bytes: Option<u64>,
    /// The share of the granted bytes that went unused; null if none were granted.
    pub unused_share: Option<f64>,
    /// How long what came to an idle terminal waited for the first grant that it could use, in milliseconds.
    pub wait_ms: WaitSummary,
}

impl AccessSummary {
    pub(super) fn new((counts, carrier): (&AccessCounts, &Carrier)) -> Self {
        Self {
            carrier: carrier.name.as_deref().map(str::to_owned),
            carrier_rate_bps: carrier.rate.bits_per_second(),
            requests: counts.requests,
            asked_rate_based_bytes: counts.asked_by_rate,
            asked_volume_based_bytes: counts.asked_by_volume,
            granted_bytes: counts.granted,
            granted_constant_bytes: counts.granted_constant,
            granted_rate_based_bytes: counts.granted_by_rate,
            granted_volume_based_bytes: counts.granted_by_volume,
            granted_free_bytes: counts.granted_free,
            faded_bytes: counts.faded,
            used_bytes: counts.used,
            granted_air_bytes: counts.faded.map(|_| counts.on_air.granted),
            used_air_bytes: counts.faded.map(|_| counts.on_air.used),
            unused_share: counts.unused_share(),
            wait_ms: WaitSummary::new(&counts.waits),
        }
    }
}
