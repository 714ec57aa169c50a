//! Summary of a gateway.

use std::collections::BTreeMap;

use bentpipe_sim::AgentOutcome;
use bentpipe_types::Time;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::gateway::counters::GatewayCounters;
use crate::gateway::schema::GatewayKind;
use crate::node::settings::NodeKind;
use crate::scenario::settings::Scenario;

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
    #[schemars(with = "GatewayCounters")]
    pub counters: Map<String, Value>,
}

impl GatewaySummary {
    pub(crate) fn new(agent: &AgentOutcome, known: &GatewayInfo, ended: Time) -> Self {
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

/// Properties of a gateway for its summary.
pub(crate) struct GatewayInfo {
    pub(crate) kind: GatewayKind,
    pub(crate) notes: Vec<String>,
}

/// Returns the properties of each gateway, by name.
pub(crate) fn gateway_info(scenario: &Scenario) -> BTreeMap<String, GatewayInfo> {
    let nodes = scenario.nodes.iter().enumerate();
    let gateways = nodes.filter_map(|(index, node)| match &node.kind {
        NodeKind::Gateway(gateway) => {
            let known = GatewayInfo {
                kind: gateway.kind(),
                notes: scenario.window_note(index).into_iter().collect(),
            };
            Some((node.name.clone(), known))
        }
        NodeKind::Host(_) => None,
    });
    gateways.collect()
}
