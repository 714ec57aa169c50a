//! `[probes]`.

use bentpipe_sim::{FlowQuantity, HOST_GAUGES, LinkQuantity};
use bentpipe_types::{Gauge, Span, WithProcessor};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::gateway::schema::GatewayKind;
use crate::orbit::path::PathQuantity;
use crate::quantity::time::{Interval, Length};

/// Series to record over time.
///
/// The tables below list the quantities. A quantity of a flow is FLOW.NAME, one of a link direction
/// LINK.forward.NAME or LINK.return.NAME, one of a path over satellites LINK.path.NAME, one of a
/// host or gateway NODE.NAME. Totals count from the
/// start of the run. For a flow with several connections, delivered, received and goodput are
/// totals; the others are those of the connection that was opened last.
///
/// If a flow or a link was created several times (`count`), FLOW.goodput stands for FLOW-1.goodput,
/// FLOW-2.goodput and so on.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("x-quantities" = quantities()))]
pub struct ProbesFile {
    /// The series to record. Default: none.
    #[schemars(example = example())]
    pub series: Vec<String>,
    /// Interval between samples, or "every-change": a sample whenever the value changes. Default:
    /// "100 ms".
    pub interval: Interval,
    /// With interval = "every-change", the interval of goodput, measured_rtt, utilization, granted
    /// and queue_max. They are averages or maxima since the last sample, and have no value at an
    /// instant. Quantities of paths, which always change, have the same interval. Default: "100
    /// ms".
    pub averages_every: Option<Length>,
}

/// All quantities by subject, for the reference: name, unit and meaning. A share has the unit 1.
fn quantities() -> Value {
    let gauges = |gauges: &[Gauge]| {
        let all = gauges.iter();
        all.map(|each| entry(each.name, each.unit, each.description))
            .collect::<Value>()
    };
    let mut all = json!({
        "FLOW.NAME": FlowQuantity::ALL
            .iter()
            .map(|each| entry(each.name(), each.unit(), each.description()))
            .collect::<Value>(),
        "LINK.forward.NAME, LINK.return.NAME": LinkQuantity::ALL
            .iter()
            .map(|each| entry(each.name(), each.unit(), each.description()))
            .collect::<Value>(),
        "LINK.path.NAME, of a link with a path over satellites": PathQuantity::ALL
            .iter()
            .map(|each| entry(each.name(), each.unit(), each.description()))
            .collect::<Value>(),
        "HOST.NAME": gauges(HOST_GAUGES),
    });
    for kind in GatewayKind::ALL {
        if let Some((of, probes)) = kind.probes() {
            all[format!("GATEWAY.NAME of a {kind} gateway{of}")] = gauges(probes);
        }
    }
    all["NODE.NAME of any other node with `processing`"] = gauges(WithProcessor::GAUGES);
    all
}

fn entry(name: &str, unit: &str, description: &str) -> Value {
    json!({ "name": name, "unit": unit, "description": description })
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
