//! `[probes]`.

use bentpipe_types::Span;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::quantity::{Interval, Length};

/// Series to record over time.
///
/// Series of a flow, at the sender: FLOW.congestion_window (B), FLOW.slow_start_threshold (B),
/// FLOW.in_flight (B), FLOW.sent, FLOW.retransmitted and FLOW.acknowledged (B: offsets in the
/// stream), FLOW.measured_rtt, FLOW.smoothed_rtt and FLOW.rtt_deviation (s),
/// FLOW.retransmission_timeout (s), FLOW.pacing_rate (bit/s, if it paces), FLOW.peer_window (B). At
/// the receiver: FLOW.delivered (B of the stream, in order), FLOW.goodput (bit/s). For each segment
/// with data: FLOW.sent_segment, FLOW.received_segment (B: its offset in the stream) and
/// FLOW.segment_delay (s, from host to host). For a flow with several connections, FLOW.delivered
/// and FLOW.goodput are totals; the others are those of the connection that was opened last.
///
/// Series of a link: LINK.forward.queue (packets), LINK.forward.queue_max (packets: the maximum
/// since the last sample), LINK.forward.queue_bytes (B), LINK.forward.utilization (share of the
/// time in which the transmitter is busy, 0 to 1), LINK.forward.granted (bit/s, with capacity on
/// demand), LINK.forward.dropped and LINK.forward.lost (packets so far: dropped at the full queue,
/// and lost to errors); LINK.return likewise.
///
/// If a flow or a link was created several times (`count`), FLOW.goodput stands for FLOW-1.goodput,
/// FLOW-2.goodput and so on.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProbesFile {
    /// The series to record. Default: none.
    #[schemars(example = example())]
    pub series: Vec<String>,
    /// Interval between samples, or "every-change": a sample whenever the value changes. Default:
    /// "100 ms".
    pub interval: Interval,
    /// With interval = "every-change", the interval of goodput, measured_rtt, utilization, granted
    /// and queue_max. They are averages or maxima since the last sample, and have no value at an
    /// instant. Default: "100 ms".
    pub averages_every: Option<Length>,
}

fn example() -> [&'static str; 2] {
    ["download.congestion_window", "satellite.forward.queue"]
}

impl Default for ProbesFile {
    fn default() -> Self {
        Self {
            series: Vec::new(),
            interval: Interval::Every(Span::from_millis(100)),
            averages_every: None,
        }
    }
}
