//! What a run has come to, as the JSON object that `bentpipe run --json` prints.
//!
//! The names are a contract: fields may be added, none renamed, or [`RESULTS_VERSION`] goes up
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
use super::direction::Known;
use super::gateway::Known as Gateway;
use super::groups::{GroupSummary, groups};
use crate::quantity::QueueLimit;
use crate::schema::GatewayKind;

pub use access::AccessSummary;

/// The version of the names below. A field that is added leaves it as it is.
pub const RESULTS_VERSION: u32 = 1;

/// What a run has come to: the object that `bentpipe run --json` prints.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Summary {
    /// The version of these names: 1. It goes up when one is renamed or means something else.
    pub results_version: u32,
    /// The scenario's name.
    pub scenario: String,
    /// The seed it ran with.
    pub seed: u64,
    /// The duration the scenario asks for, in seconds.
    pub duration_s: f64,
    /// When the last happened that could, or the duration, in simulated seconds.
    pub ended_s: f64,
    /// How long the run took, in seconds of wall time. Zero until whoever drives the run, and has a
    /// clock, says.
    pub wall_s: f64,
    /// Packets that arrived at a node, hop by hop; of acknowledgments that a link's far end regenerated, each of them.
    pub packet_hops: u64,
    /// Packets that nodes discarded, for whatever reason.
    pub packets_discarded: u64,
    /// How many of them for which reason, of those that there were: `no_route`, `no_connection`, `table_full`
    /// (of connections), `malformed`, `hop_limit`, `processor_busy` (and its queue full), `too_long` (for the
    /// next link), `wrong_checksum`, `node_down`, `no_link_address` (of the neighbour).
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

/// A flow's summary.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct FlowSummary {
    /// Its name.
    pub name: String,
    /// How it stands at the end: `finished`, `running`, `gave up`, `refused` or `reset`.
    #[schemars(extend("enum" = ["finished", "running", "gave up", "refused", "reset"]))]
    pub outcome: &'static str,
    /// Bytes delivered in order to the receiving application.
    pub bytes_delivered: u64,
    /// When it was to start, in seconds.
    pub start_s: f64,
    /// When its first segment with payload was sent, in seconds.
    pub first_data_s: Option<f64>,
    /// When its last byte was delivered, in seconds; null if it was not.
    pub finish_s: Option<f64>,
    /// When it was over, in seconds: finished, given up, refused or reset; null while it runs.
    pub ended_s: Option<f64>,
    /// Bits delivered in order over (finish, or the end of the run, less start).
    pub goodput_bps: f64,
    /// Segments with payload sent, retransmissions included.
    pub segments_sent: u64,
    /// Segments with payload sent again.
    pub segments_retransmitted: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Times the sender entered fast recovery.
    pub fast_recoveries: u64,
    /// Round-trip times that the sender measured, in milliseconds.
    pub rtt_ms: RttSummary,
    /// What kept the sender from sending more, and for how long.
    pub limited_s: LimitedSummary,
    /// What the path has said to the sender.
    pub path_mtu: PathMtuSummary,
    /// What its applications tell: `responses`, `pages`, `messages`, `files`, `mails`, `calls`, `video`,
    /// `echoes`, `activities`.
    #[serde(flatten)]
    pub application: ApplicationSummary,
}

/// For how many seconds each of these kept the sender from sending more. Together, they are the time
/// during which anything was unsent or unacknowledged. Of a flow with several connections, or two senders, the
/// seconds of all of them are added up: they may be more than the run's.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct LimitedSummary {
    /// The congestion window, which slow start still opened.
    pub slow_start: f64,
    /// The congestion window.
    pub congestion_window: f64,
    /// The window that the receiver advertised.
    pub receive_window: f64,
    /// The send buffer: all that it can hold was sent.
    pub send_buffer: f64,
    /// The application: all that it had written was sent.
    pub application: f64,
    /// The pace.
    pub pacing: f64,
    /// Loss recovery: fast recovery, or what follows a timeout.
    pub recovery: f64,
}

/// How the sender has learnt how long packets may be (RFC 1191, RFC 8201, RFC 4821).
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct PathMtuSummary {
    /// ICMP errors about what was outstanding: too long a packet, or another.
    pub icmp_errors: u64,
    /// Times that segments became smaller because the path takes no longer ones.
    pub reductions: u64,
    /// Longer segments sent to see whether the path takes them.
    pub probes: u64,
}

/// Round-trip times in milliseconds; null before the first sample. What is told from buckets is off by less than a bucket
/// is wide, 1/32 of it, and much less where times lie evenly; where all are alike, or three at most, it is exact.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct RttSummary {
    /// The shortest.
    pub min: Option<f64>,
    /// The arithmetic mean.
    pub mean: Option<f64>,
    /// The 95th percentile, told from buckets.
    pub p95: Option<f64>,
    /// The longest.
    pub max: Option<f64>,
}

/// A link direction's summary.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct LinkSummary {
    /// `satellite.forward`.
    pub name: String,
    /// Share of the run during which it transmitted.
    pub utilization: f64,
    /// Packets offered to the queue. At any time `packets_offered` + `packets_duplicated` + `packets_copied` =
    /// `packets_delivered` + `packets_lost` + `packets_dropped` + `packets_removed` + `packets_undecodable` +
    /// `packets_in_flight`. Where the link cuts packets into fragments, each fragment is a packet.
    pub packets_offered: u64,
    /// Packets that arrived, corrupted ones too; of one that many hear, at each of them. Not the acknowledgments that
    /// the far end regenerates from those that arrived.
    pub packets_delivered: u64,
    /// Packets that arrived a second time: further copies, which `packets_offered` does not count.
    pub packets_duplicated: u64,
    /// Copies beyond the first that were made for all who were to hear a packet: of a link with `broadcast`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets_copied: Option<u64>,
    /// Packets lost on the way: to errors, and to outages and what else of the path changes.
    pub packets_lost: u64,
    /// Packets that the queue dropped.
    pub packets_dropped: u64,
    /// Acknowledgments that the queue removed because a later one stands for them (`acks`).
    pub packets_removed: u64,
    /// Packets that arrived and that nobody got: those that could not be decompressed, and those of a link with `broadcast`
    /// that were for nobody behind it.
    pub packets_undecodable: u64,
    /// Packets that were in the queue, in transmission or on the way when the run ended.
    pub packets_in_flight: u64,
    /// Most packets that ever waited.
    pub queue_max_packets: u64,
    /// Most bytes that ever waited.
    pub queue_max_bytes: u64,
    /// The queue's limit, if it is in packets.
    pub queue_limit_packets: Option<u64>,
    /// The queue's limit, if it is in bytes (as the default is).
    pub queue_limit_bytes: Option<u64>,
    /// Bytes that arrived, as they were on the link: headers as compressed, tunnels' headers too.
    pub bytes_delivered: u64,
    /// What its parts have counted, where it has parts that count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counters: Option<CountersSummary>,
    /// What it has asked for, got and used, where capacity is on demand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<AccessSummary>,
    /// The classes of its queue, where it has classes.
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

/// What has become of a class of a queue.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct ClassSummary {
    /// Its name; `others` is what belongs to no class.
    pub name: String,
    /// Packets whose transmission has begun.
    pub packets_sent: u64,
    /// Their bytes, IP headers included.
    pub bytes_sent: u64,
    /// Packets that the queue dropped.
    pub packets_dropped: u64,
    /// Most packets that ever waited.
    pub queue_max_packets: u64,
    /// How long packets waited for the transmitter, in milliseconds.
    pub wait_ms: WaitSummary,
}

/// How long packets waited, in milliseconds; null before the first was sent. Told from buckets as round trips are.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct WaitSummary {
    /// The arithmetic mean.
    pub mean: Option<f64>,
    /// The 95th percentile, told from buckets.
    pub p95: Option<f64>,
    /// The longest.
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

/// What the parts of a link direction have counted: packets dropped and acknowledgments removed,
/// restored, delayed and refused, by reason.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct CountersSummary {
    /// All flows together.
    pub total: Counted,
    /// By flow.
    pub flows: BTreeMap<String, Counted>,
}

/// Counters by name.
pub type Counted = BTreeMap<&'static str, u64>;

/// A gateway's summary.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct GatewaySummary {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: GatewayKind,
    /// Settings that hold connections up, and what to set instead: a line each, which begins with the key.
    pub notes: Vec<String>,
    /// What it has counted: a counter called `connections.split` is `split` in the table
    /// `connections`.
    #[serde(flatten)]
    #[schemars(with = "gateway::GatewayCounters")]
    pub counters: Map<String, Value>,
}

impl Summary {
    /// Sums up. `directions` is what else is known of `outcome.directions`, in the same order, `tables` those of
    /// `outcome.flows`.
    pub(super) fn new(
        scenario: String,
        seed: u64,
        duration: Span,
        outcome: &Outcome,
        directions: &[Known],
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
    /// Of a connection's sender that has been there until `ended`.
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
    /// Of what a sender has counted.
    #[must_use]
    pub fn new(sender: &Statistics) -> Self {
        Self {
            icmp_errors: sender.icmp_errors,
            reductions: sender.path_mtu_reductions,
            probes: sender.path_mtu_probes,
        }
    }
}

impl RttSummary {
    /// Of the round trips that a connection has measured.
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
            // Bytes that have got there are a goodput, too.
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

/// Puts a value where its dotted name says.
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
    fn new((direction, known): (&DirectionOutcome, &Known)) -> Self {
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
