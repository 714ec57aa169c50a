//! The summary of a run: the JSON object that `bentpipe run --json` prints.
//!
//! The names are a contract: fields may be added, but renaming one increments [`RESULTS_VERSION`]
//! (`tests/results.rs` has the names of this version).

mod access;
mod gateway;

use std::collections::BTreeMap;
use std::sync::Arc;

use bentpipe_link::ClassCounts;
use bentpipe_sim::{AgentOutcome, DirectionOutcome, FlowOutcome, Outcome};
use bentpipe_tcp::{Limit, LimitedTimes, Statistics};
use bentpipe_types::{DropReason, Span, SpanStatistics, Time};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::applications::ApplicationSummary;
use super::direction::DirectionInfo;
use super::gateway::GatewayInfo as Gateway;
use super::groups::{GroupSummary, groups};
use crate::quantity::QueueLimit;
use crate::schema::GatewayKind;

pub use access::AccessSummary;

/// Version of the names below. It does not change when a field is added.
pub const RESULTS_VERSION: u32 = 1;

/// The summary of a run: the object that `bentpipe run --json` prints.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Summary {
    /// Version of these names: 1. It is incremented when a name or its meaning changes.
    pub results_version: u32,
    /// Name of the scenario.
    pub scenario: String,
    /// Seed of the run.
    pub seed: u64,
    /// Duration that the scenario gives, in seconds.
    pub duration_s: f64,
    /// Simulated time at the end of the run, in seconds: of the last event, or the duration.
    pub ended_s: f64,
    /// Wall-clock time that the run took, in seconds. Zero until the program that drives the run
    /// sets it.
    pub wall_s: f64,
    /// Packets that arrived at nodes, counted at each hop. It includes each acknowledgment that a
    /// link's far end regenerated.
    pub packet_hops: u64,
    /// Packets that nodes discarded, for any reason.
    pub packets_discarded: u64,
    /// Number of discarded packets by reason, for reasons that occurred: `no_route`,
    /// `no_connection`, `table_full` (of connections), `malformed`, `hop_limit`, `processor_busy`
    /// (and its queue full), `too_long` (for the next link), `wrong_checksum`, `node_down`,
    /// `no_link_address` (of the neighbour).
    pub discards: BTreeMap<&'static str, u64>,
    /// Flows.
    pub flows: Vec<FlowSummary>,
    /// The flows of each table together.
    pub groups: Vec<GroupSummary>,
    /// Link directions.
    pub links: Vec<LinkSummary>,
    /// Gateways that do more than route.
    pub gateways: Vec<GatewaySummary>,
}

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

/// Time in seconds during which each limit kept the sender from sending more. The sum is the time
/// during which any data were unsent or unacknowledged. For a flow with several connections, or two
/// senders, the times are added up and may exceed the duration of the run.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct LimitedSummary {
    /// Limited by the congestion window, in slow start.
    pub slow_start: f64,
    /// Limited by the congestion window, after slow start.
    pub congestion_window: f64,
    /// Limited by the window that the receiver advertised.
    pub receive_window: f64,
    /// Limited by the send buffer: all data that it can hold were sent.
    pub send_buffer: f64,
    /// Limited by the application: all data that it had written were sent.
    pub application: f64,
    /// Limited by the pacing rate.
    pub pacing: f64,
    /// In loss recovery: fast recovery, or recovery after a timeout.
    pub recovery: f64,
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

/// Summary of a link direction.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct LinkSummary {
    /// Name: `satellite.forward`.
    pub name: String,
    /// Share of the run during which it transmitted.
    pub utilization: f64,
    /// Packets offered to the queue. At any time `packets_offered` + `packets_duplicated` +
    /// `packets_copied` = `packets_delivered` + `packets_lost` + `packets_dropped` +
    /// `packets_removed` + `packets_undecodable` + `packets_in_flight`. If the link fragments
    /// packets, each fragment is a packet.
    pub packets_offered: u64,
    /// Packets that arrived, including corrupted ones; on a broadcast channel, at each receiver.
    /// Acknowledgments that the far end regenerates do not count.
    pub packets_delivered: u64,
    /// Packets that arrived a second time: additional copies, which `packets_offered` does not
    /// count.
    pub packets_duplicated: u64,
    /// For a link with `broadcast`: copies beyond the first, made for the receivers of a packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets_copied: Option<u64>,
    /// Packets lost in transit, by errors, outages and other changes of the path.
    pub packets_lost: u64,
    /// Packets that the queue dropped.
    pub packets_dropped: u64,
    /// Acknowledgments that the queue removed because a later one replaces them (`acks`).
    pub packets_removed: u64,
    /// Packets that arrived and were not delivered: those that could not be decompressed, and on a
    /// link with `broadcast` those without a receiver.
    pub packets_undecodable: u64,
    /// Packets queued, in transmission or in transit at the end of the run.
    pub packets_in_flight: u64,
    /// Maximum queue length in packets.
    pub queue_max_packets: u64,
    /// Maximum queue length in bytes.
    pub queue_max_bytes: u64,
    /// Capacity of the queue, if it is in packets.
    pub queue_limit_packets: Option<u64>,
    /// Capacity of the queue, if it is in bytes (as the default is).
    pub queue_limit_bytes: Option<u64>,
    /// Bytes that arrived, as they were on the link: with compressed headers, and with tunnel
    /// headers.
    pub bytes_delivered: u64,
    /// Counters of its components, if they have any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counters: Option<CountersSummary>,
    /// Capacity on demand: requests, grants and use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<AccessSummary>,
    /// Classes of its queue, if it has classes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<ClassSummary>,
}

impl WaitSummary {
    fn new(waits: &SpanStatistics) -> Self {
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
    fn new(counts: &ClassCounts) -> Self {
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

/// Counters of the components of a link direction, by reason: packets dropped, and acknowledgments
/// removed, restored, delayed and refused.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct CountersSummary {
    /// All flows together.
    pub total: Counted,
    /// By flow.
    pub flows: BTreeMap<String, Counted>,
}

/// Counters by name.
pub type Counted = BTreeMap<&'static str, u64>;

/// Summary of a gateway.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct GatewaySummary {
    /// Name.
    pub name: String,
    /// Kind.
    pub kind: GatewayKind,
    /// Notes about settings that limit connections, and better values: one line each, beginning
    /// with the key.
    pub notes: Vec<String>,
    /// Counters: a counter called `connections.split` is the field `split` in the table
    /// `connections`.
    #[serde(flatten)]
    #[schemars(with = "gateway::GatewayCounters")]
    pub counters: Map<String, Value>,
}

impl Summary {
    /// Creates the summary. `directions` has further properties of `outcome.directions`, and
    /// `tables` those of `outcome.flows`, in the same order.
    pub(super) fn new(
        scenario: String,
        seed: u64,
        duration: Span,
        outcome: &Outcome,
        directions: &[DirectionInfo],
        tables: &[Arc<str>],
        gateways: &BTreeMap<String, Gateway>,
    ) -> Self {
        Self {
            results_version: RESULTS_VERSION,
            scenario,
            seed,
            duration_s: duration.as_secs_f64(),
            ended_s: outcome.ended.as_secs_f64(),
            wall_s: 0.0,
            packet_hops: outcome.packet_hops,
            packets_discarded: outcome.discards.total(),
            discards: DropReason::ALL
                .into_iter()
                .map(|reason| (reason.name(), outcome.discards.of(reason)))
                .filter(|(_, count)| *count > 0)
                .collect(),
            flows: outcome
                .flows
                .iter()
                .map(|flow| FlowSummary::new(flow, outcome.ended))
                .collect(),
            groups: groups(&outcome.flows, tables, outcome.ended),
            links: outcome
                .directions
                .iter()
                .zip(directions)
                .map(LinkSummary::new)
                .collect(),
            gateways: outcome
                .agents
                .iter()
                .filter_map(|agent| {
                    let known = gateways.get(&agent.name)?;
                    Some(GatewaySummary::new(agent, known, outcome.ended))
                })
                .collect(),
        }
    }
}

impl FlowSummary {
    fn new(flow: &FlowOutcome, ended: Time) -> Self {
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
            limited_s: flow
                .sender
                .as_ref()
                .map(|sender| LimitedSummary::new(&sender.limited, ended))
                .unwrap_or_default(),
            path_mtu: flow
                .sender
                .as_ref()
                .map(PathMtuSummary::new)
                .unwrap_or_default(),
        }
    }
}

impl LimitedSummary {
    /// Creates the summary of a connection's sender at the time `ended`.
    #[must_use]
    pub fn new(times: &LimitedTimes, ended: Time) -> Self {
        let spent = |limit| times.spent(limit, ended).as_secs_f64();
        Self {
            slow_start: spent(Limit::SlowStart),
            congestion_window: spent(Limit::CongestionWindow),
            receive_window: spent(Limit::ReceiveWindow),
            send_buffer: spent(Limit::SendBuffer),
            application: spent(Limit::Application),
            pacing: spent(Limit::Pacing),
            recovery: spent(Limit::Recovery),
        }
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

impl GatewaySummary {
    fn new(agent: &AgentOutcome, known: &Gateway, ended: Time) -> Self {
        let mut counters = Map::new();
        for (name, value) in &agent.counters {
            put(&mut counters, name, Value::from(*value));
            // The bytes delivered give a goodput, too.
            let seconds = ended.as_secs_f64();
            if let Some(part) = name.strip_suffix(".bytes_delivered")
                && seconds > 0.0
            {
                let goodput = 8.0 * *value as f64 / seconds;
                put(
                    &mut counters,
                    &format!("{part}.goodput_bps"),
                    goodput.into(),
                );
            }
        }
        Self {
            name: agent.name.clone(),
            kind: known.kind,
            notes: known.notes.clone(),
            counters,
        }
    }
}

/// Inserts a value at a dotted name.
fn put(table: &mut Map<String, Value>, name: &str, value: Value) {
    match name.split_once('.') {
        None => {
            table.insert(name.to_owned(), value);
        }
        Some((section, rest)) => {
            let inner = table
                .entry(section)
                .or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}

impl LinkSummary {
    fn new((direction, known): (&DirectionOutcome, &DirectionInfo)) -> Self {
        let counters = &direction.counters;
        let (queue_limit_packets, queue_limit_bytes) = match known.queue.limit {
            QueueLimit::Packets(packets) => (Some(u64::from(packets)), None),
            QueueLimit::Bytes(bytes) => (None, Some(bytes.get())),
        };
        Self {
            name: direction.name.clone(),
            utilization: direction.utilization,
            packets_offered: counters.offered,
            packets_delivered: counters.delivered,
            packets_duplicated: counters.duplicated,
            packets_copied: direction.broadcast.then_some(counters.copied),
            packets_lost: counters.lost,
            packets_dropped: counters.dropped,
            packets_removed: counters.removed,
            packets_undecodable: counters.undecodable,
            packets_in_flight: direction.in_transit,
            queue_max_packets: counters.queue_max_packets,
            queue_max_bytes: counters.queue_max_bytes,
            queue_limit_packets,
            queue_limit_bytes,
            bytes_delivered: counters.delivered_bytes,
            access: direction
                .access
                .as_ref()
                .zip(known.carrier.as_ref())
                .map(AccessSummary::new),
            classes: direction.classes.iter().map(ClassSummary::new).collect(),
            counters: (!direction.counts.is_empty()).then(|| CountersSummary {
                total: direction.counts.iter().copied().collect(),
                flows: direction
                    .flow_counts
                    .iter()
                    .map(|(flow, counts)| (flow.clone(), counts.iter().copied().collect()))
                    .collect(),
            }),
        }
    }
}
