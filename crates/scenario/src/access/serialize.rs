//! Capacity on demand, as data.

use bentpipe_types::BitRate;
use serde_json::{Value, json};

use crate::access::settings::OnDemand;

/// Returns capacity on demand as data; `lag` is the number of frames from a request to its grant.
pub(crate) fn access_data(access: &OnDemand, lag: u64) -> Value {
    let bps = |rate: Option<BitRate>| rate.map(BitRate::bits_per_second);
    let terminal = &access.terminal;
    json!({
        "kind": "on-demand",
        "carrier": access.carrier.name.as_deref(),
        "carrier_rate_bps": access.carrier.rate.bits_per_second(),
        "frame_s": access.carrier.frame.as_secs_f64(),
        "processing_s": access.carrier.processing.as_secs_f64(),
        "constant_bps": bps(terminal.constant),
        "rate_based_bps": bps(terminal.rate_based),
        "volume_based": terminal.volume_based,
        "free": terminal.free,
        "request_delay_s": terminal.request_delay.as_secs_f64(),
        "grant_delay_s": terminal.grant_delay.as_secs_f64(),
        "granted_after_frames": lag,
    })
}
