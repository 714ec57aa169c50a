//! Summary of a link direction.

use std::collections::BTreeMap;

use bentpipe_sim::DirectionOutcome;
use schemars::JsonSchema;
use serde::Serialize;

use crate::access::settings::Carrier;
use crate::access::summary::AccessSummary;
use crate::class::summary::ClassSummary;
use crate::link::settings::Link;
use crate::quantity::count::QueueLimit;
use crate::queue::resolved::Queue;
use crate::scenario::settings::Scenario;

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

impl LinkSummary {
    pub(crate) fn new((direction, known): (&DirectionOutcome, &DirectionInfo)) -> Self {
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

/// Properties of a direction for its summary that the network does not have.
pub(crate) struct DirectionInfo {
    pub(crate) queue: Queue,
    /// The carrier on which it requests capacity.
    pub(crate) carrier: Option<Carrier>,
}

/// Returns the properties of every direction, in the order in which the network numbers them.
pub(crate) fn direction_info(scenario: &Scenario) -> Vec<DirectionInfo> {
    let all = scenario.links.iter().flat_map(Link::directions);
    all.map(|(_, direction)| DirectionInfo {
        queue: direction.queue.clone(),
        carrier: direction
            .access
            .as_ref()
            .map(|access| access.carrier.clone()),
    })
    .collect()
}
