//! The summary of a run: the JSON object that `bentpipe run --json` prints.
//!
//! The names are a contract: fields may be added, but renaming one increments [`RESULTS_VERSION`]
//! (`tests/results.rs` has the names of this version).

use std::collections::BTreeMap;
use std::sync::Arc;

use bentpipe_sim::Outcome;
use bentpipe_types::{DropReason, Span};
use schemars::JsonSchema;
use serde::Serialize;

use crate::flow::summary::FlowSummary;
use crate::flow::table_summary::{GroupSummary, table_summaries};
use crate::gateway::summary::{GatewayInfo, GatewaySummary};
use crate::link::summary::{DirectionInfo, LinkSummary};

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
    /// `no_link_address` (of the neighbour), `over_rate` (of a gateway's `rate_limits`).
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

impl Summary {
    /// Creates the summary. `directions` has further properties of `outcome.directions`, and
    /// `tables` those of `outcome.flows`, in the same order.
    pub(crate) fn new(
        scenario: String,
        seed: u64,
        duration: Span,
        outcome: &Outcome,
        directions: &[DirectionInfo],
        tables: &[Arc<str>],
        gateways: &BTreeMap<String, GatewayInfo>,
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
            groups: table_summaries(&outcome.flows, tables, outcome.ended),
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
