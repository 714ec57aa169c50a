//! Summary of a flow.

use bentpipe_sim::FlowOutcome;
use bentpipe_tcp::{LimitedTimes, Statistics};
use bentpipe_types::{Span, SpanStatistics, Time};
use schemars::JsonSchema;
use serde::Serialize;

use crate::application::summary::ApplicationSummary;
use crate::flow::limited::LimitedSummary;

/// Summary of a flow.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct FlowSummary {
    /// Name.
    pub name: String,
    /// State at the end: `finished`, `running`, `gave up`, `refused` or `reset`.
    #[schemars(extend("enum" = ["finished", "running", "gave up", "refused", "reset"]))]
    pub outcome: &'static str,
    /// Bytes delivered in order to the receiving application.
    pub bytes_delivered: u64,
    /// Planned start time, in seconds.
    pub start_s: f64,
    /// Time at which its first segment with payload was sent, in seconds.
    pub first_data_s: Option<f64>,
    /// Time at which its last byte was delivered, in seconds; null if it was not.
    pub finish_s: Option<f64>,
    /// Time at which it finished, was given up, was refused or was reset, in seconds; null while it
    /// runs.
    pub ended_s: Option<f64>,
    /// Bits delivered in order, divided by the time from the start to the finish or the end of the
    /// run.
    pub goodput_bps: f64,
    /// Segments with payload sent, retransmissions included.
    pub segments_sent: u64,
    /// Segments with payload retransmitted.
    pub segments_retransmitted: u64,
    /// Retransmission timeouts of data, SYN or FIN.
    pub timeouts: u64,
    /// Timeouts of a SYN or FIN alone, which `timeouts` includes. They occur without loss if a
    /// gateway confirms the opening or closing of a connection end to end.
    pub control_timeouts: u64,
    /// Number of times that the sender entered fast recovery.
    pub fast_recoveries: u64,
    /// Round-trip times that the sender measured, in milliseconds.
    pub rtt_ms: RttSummary,
    /// Time during which each limit kept the sender from sending more, in seconds.
    pub limited_s: LimitedSummary,
    /// Path MTU discovery of the sender.
    pub path_mtu: PathMtuSummary,
    /// Metrics of its applications: `responses`, `pages`, `messages`, `files`, `mails`, `calls`,
    /// `video`, `echoes`, `activities`.
    #[serde(flatten)]
    pub application: ApplicationSummary,
}

/// Path MTU discovery of the sender (RFC 1191, RFC 8201, RFC 4821).
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct PathMtuSummary {
    /// ICMP errors about outstanding segments: too long a packet, or another error.
    pub icmp_errors: u64,
    /// Number of times that segments became smaller because the path does not take longer ones.
    pub reductions: u64,
    /// Longer segments sent to test whether the path takes them.
    pub probes: u64,
}

/// Round-trip times in milliseconds; null before the first sample. Values that are estimated from
/// buckets have an error below the width of a bucket, 1/32 of the value, and much less for evenly
/// distributed times. They are exact if all times are equal, or if there are at most three.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct RttSummary {
    /// Minimum.
    pub min: Option<f64>,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// 95th percentile, estimated from buckets.
    pub p95: Option<f64>,
    /// Maximum.
    pub max: Option<f64>,
}

impl FlowSummary {
    pub(crate) fn new(flow: &FlowOutcome, ended: Time) -> Self {
        let sender = |count: fn(&Statistics) -> u64| flow.sender.as_ref().map_or(0, count);
        let bytes_delivered = flow.bytes_delivered();
        let elapsed_s = flow.finish.unwrap_or(ended).since(flow.start).as_secs_f64();
        let bits = 8.0 * bytes_delivered as f64;
        Self {
            name: flow.name.clone(),
            outcome: flow.state.name(),
            bytes_delivered,
            start_s: flow.start.as_secs_f64(),
            first_data_s: flow
                .sender
                .as_ref()
                .and_then(|sender| sender.first_data_at)
                .map(Time::as_secs_f64),
            finish_s: flow.finish.map(Time::as_secs_f64),
            ended_s: flow.ended.map(Time::as_secs_f64),
            goodput_bps: if elapsed_s > 0.0 {
                bits / elapsed_s
            } else {
                0.0
            },
            segments_sent: sender(|sender| sender.segments_sent),
            segments_retransmitted: sender(|sender| sender.segments_retransmitted),
            timeouts: sender(|sender| sender.timeouts),
            control_timeouts: sender(|sender| u64::from(sender.control_timeouts)),
            fast_recoveries: sender(|sender| sender.fast_recoveries),
            rtt_ms: flow
                .sender
                .as_ref()
                .map(|sender| RttSummary::new(&sender.rtt))
                .unwrap_or_default(),
            application: ApplicationSummary::new(&flow.report),
            limited_s: limited_times(flow)
                .map(|times| LimitedSummary::new(times, ended))
                .unwrap_or_default(),
            path_mtu: flow
                .sender
                .as_ref()
                .map(PathMtuSummary::new)
                .unwrap_or_default(),
        }
    }
}

/// Returns the times of the sender's limits. Over QUIC, the sender is the end that sent more bytes.
fn limited_times(flow: &FlowOutcome) -> Option<&LimitedTimes> {
    let ends = [&flow.report.quic, &flow.report.quic_server];
    let quic = ends.into_iter().flatten().max_by_key(|end| end.bytes_sent);
    match quic {
        Some(end) => Some(&end.limited),
        None => (flow.sender.as_ref()).map(|sender| &sender.limited),
    }
}

impl PathMtuSummary {
    /// Creates the summary from a sender's statistics.
    #[must_use]
    pub fn new(sender: &Statistics) -> Self {
        Self {
            icmp_errors: sender.icmp_errors,
            reductions: sender.path_mtu_reductions,
            probes: u64::from(sender.path_mtu_probes),
        }
    }
}

impl RttSummary {
    /// Creates the summary from the round-trip times that a connection measured.
    #[must_use]
    pub fn new(rtt: &SpanStatistics) -> Self {
        let ms = |span: Option<Span>| span.map(Span::as_millis_f64);
        Self {
            min: ms(rtt.min()),
            mean: ms(rtt.mean()),
            p95: ms(rtt.p95()),
            max: ms(rtt.max()),
        }
    }
}
