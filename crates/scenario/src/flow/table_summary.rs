//! Summaries of the flows of each table together.

use std::collections::BTreeMap;
use std::sync::Arc;

use bentpipe_sim::{FlowOutcome, Report};
use bentpipe_types::Time;
use schemars::JsonSchema;
use serde::Serialize;

use crate::application::summary::{ApplicationSummary, Quantiles};

/// The flows of one table of the scenario together.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct GroupSummary {
    /// Name of the table.
    pub name: String,
    /// Number of flows.
    pub flows: u64,
    /// Number of flows with each outcome.
    pub outcomes: BTreeMap<&'static str, u64>,
    /// Bytes delivered in order to all receiving applications.
    pub bytes_delivered: u64,
    /// Bits delivered, divided by the time from the first start to the last end.
    pub goodput_bps: f64,
    /// For flows to a group: the share of the sent data that each member received, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received_percent: Option<Quantiles>,
    /// Metrics of all their applications together, with `percentiles`, and without each page and
    /// call.
    #[serde(flatten)]
    pub application: ApplicationSummary,
}

/// Returns the groups in the order of the file. `tables` are those of the flows, in the same order.
pub(crate) fn table_summaries(
    flows: &[FlowOutcome],
    tables: &[Arc<str>],
    ended: Time,
) -> Vec<GroupSummary> {
    let mut groups = Vec::new();
    let mut first = 0;
    for tables in tables.chunk_by(|one, other| one == other) {
        let members = &flows[first..first + tables.len()];
        first += tables.len();
        groups.push(GroupSummary::new(&tables[0], members, ended));
    }
    groups
}

/// Returns the distribution of the share of the sent data that each flow received, in percent.
fn received(flows: &[FlowOutcome]) -> Quantiles {
    let messages = flows
        .iter()
        .filter_map(|flow| flow.report.messages.as_ref());
    let sent = messages.filter(|messages| messages.sent > 0);
    let shares = sent.map(|messages| 100.0 * messages.received as f64 / messages.sent as f64);
    Quantiles::of_group(shares.collect())
}

impl GroupSummary {
    fn new(name: &str, flows: &[FlowOutcome], ended: Time) -> Self {
        let mut outcomes = BTreeMap::new();
        let mut told = Report::default();
        for flow in flows {
            *outcomes.entry(flow.state.name()).or_insert(0) += 1;
            let mut report = flow.report.clone();
            // Merges activities by application.
            for activity in std::mem::take(&mut report.activities) {
                let known = told.activities.iter_mut();
                match known.into_iter().find(|known| known.name == activity.name) {
                    Some(known) => {
                        known.begun += activity.begun;
                        known.finished += activity.finished;
                        known.failed += activity.failed;
                    }
                    None => told.activities.push(activity),
                }
            }
            told.absorb(report);
        }
        let bytes_delivered = flows.iter().map(FlowOutcome::bytes_delivered).sum();
        let from = flows.iter().map(|flow| flow.start).min();
        let to = flows.iter().map(|flow| flow.ended.unwrap_or(ended)).max();
        let seconds = to
            .unwrap_or(ended)
            .since(from.unwrap_or(ended))
            .as_secs_f64();
        Self {
            name: name.to_owned(),
            flows: flows.len() as u64,
            outcomes,
            bytes_delivered,
            goodput_bps: if seconds > 0.0 {
                8.0 * bytes_delivered as f64 / seconds
            } else {
                0.0
            },
            received_percent: (flows.iter().any(|flow| flow.multicast)).then(|| received(flows)),
            application: ApplicationSummary::of_group(&told),
        }
    }
}
