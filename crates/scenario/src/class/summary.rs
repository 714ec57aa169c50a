//! Summary of a class of a queue.

use bentpipe_link::ClassCounts;
use bentpipe_types::{Span, SpanStatistics};
use schemars::JsonSchema;
use serde::Serialize;

impl WaitSummary {
    pub(crate) fn new(waits: &SpanStatistics) -> Self {
        let ms = |span: Option<Span>| span.map(Span::as_millis_f64);
        Self {
            mean: ms(waits.mean()),
            p95: ms(waits.p95()),
            max: ms(waits.max()),
        }
    }
}

/// Counters of a class of a queue.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct ClassSummary {
    /// Name; `others` stands for packets of no class.
    pub name: String,
    /// Packets whose transmission has begun.
    pub packets_sent: u64,
    /// Their bytes, IP headers included.
    pub bytes_sent: u64,
    /// Packets that the queue dropped.
    pub packets_dropped: u64,
    /// Maximum queue length in packets.
    pub queue_max_packets: u64,
    /// Queuing time of packets, in milliseconds.
    pub wait_ms: WaitSummary,
}

/// Waiting time in milliseconds; null before the first packet was sent. Quantiles are estimated
/// from buckets, as for round-trip times.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct WaitSummary {
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// 95th percentile, estimated from buckets.
    pub p95: Option<f64>,
    /// Maximum.
    pub max: Option<f64>,
}

impl ClassSummary {
    pub(crate) fn new(counts: &ClassCounts) -> Self {
        Self {
            name: counts.name.to_string(),
            packets_sent: counts.sent,
            bytes_sent: counts.sent_bytes,
            packets_dropped: counts.dropped,
            queue_max_packets: counts.most_packets,
            wait_ms: WaitSummary::new(&counts.waits),
        }
    }
}
