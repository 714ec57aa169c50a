//! Summary of capacity on demand.

use bentpipe_link::AccessCounts;
use schemars::JsonSchema;
use serde::Serialize;

use crate::access::settings::Carrier;
use crate::class::summary::WaitSummary;

/// Capacity on demand of a direction: requests, grants and use. Bytes are those on the air:
/// headers, framing and redundancy included.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct AccessSummary {
    /// The carrier that it shares; null if it has one of its own.
    pub carrier: Option<String>,
    /// Total rate of all directions on the carrier, in bit/s.
    pub carrier_rate_bps: u64,
    /// Number of requests, at most one per frame.
    pub requests: u64,
    /// Bytes requested by rate: for each request, the rate times the duration of a frame.
    pub asked_rate_based_bytes: u64,
    /// Bytes requested by volume.
    pub asked_volume_based_bytes: u64,
    /// Bytes granted in total.
    pub granted_bytes: u64,
    /// Bytes granted as constant capacity, in each frame of the run.
    pub granted_constant_bytes: u64,
    /// Bytes granted of those requested by rate.
    pub granted_rate_based_bytes: u64,
    /// Bytes granted of those requested by volume.
    pub granted_volume_based_bytes: u64,
    /// Bytes granted without a request, in frames in which packets were queued or expected.
    pub granted_free_bytes: u64,
    /// Bytes planned in addition, for a mode that the path no longer allowed in that frame. It
    /// counts frames in which packets were queued or expected. Only for a direction whose rate
    /// changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub faded_bytes: Option<u64>,
    /// Bytes sent.
    pub used_bytes: u64,
    /// Carrier time of the constant, rate-based and volume-based grants, as the bytes that it would
    /// carry in clear sky. Only for a direction whose rate changes. In clear sky it equals the
    /// bytes granted without free capacity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub granted_air_bytes: Option<u64>,
    /// Time on the carrier of the bytes sent, in the same unit. Only for a direction whose rate
    /// changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_air_bytes: Option<u64>,
    /// Share of the granted bytes that was not used; null if none were granted.
    pub unused_share: Option<f64>,
    /// Time from a packet's arrival at an idle terminal to the first grant that it could use, in
    /// milliseconds.
    pub wait_ms: WaitSummary,
}

impl AccessSummary {
    pub(crate) fn new((counts, carrier): (&AccessCounts, &Carrier)) -> Self {
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
