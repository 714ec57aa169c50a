//! `[probes]`.

use bentpipe_types::Span;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::quantity::Interval;

/// What to record over time.
///
/// Series of a flow: FLOW.congestion_window (B), FLOW.slow_start_threshold (B), FLOW.in_flight (B),
/// FLOW.sent, FLOW.acknowledged, FLOW.delivered (bytes of the stream so far: sent and acknowledged
/// at the sender, delivered in order at the receiver), FLOW.goodput (bit/s delivered since the last
/// record), FLOW.smoothed_rtt (s), FLOW.retransmission_timeout (s).
///
/// Series of a link: LINK.forward.queue (packets), LINK.forward.queue_bytes (B),
/// LINK.forward.utilization (share of the time since the last record that the transmitter worked,
/// 0 to 1); LINK.return likewise.
///
/// Where a flow or a link was made several times (`count`), FLOW.goodput stands for FLOW-1.goodput,
/// FLOW-2.goodput and so on.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProbesFile {
    /// The series to record. Default: none.
    #[schemars(example = example())]
    pub series: Vec<String>,
    /// How often, or "every-change": whenever the value changes (not for goodput and utilization,
    /// which are averages over the interval). Default: "100 ms".
    pub interval: Interval,
}

fn example() -> [&'static str; 2] {
    ["download.congestion_window", "satellite.forward.queue"]
}

impl Default for ProbesFile {
    fn default() -> Self {
        Self {
            series: Vec::new(),
            interval: Interval::Every(Span::from_millis(100)),
        }
    }
}
