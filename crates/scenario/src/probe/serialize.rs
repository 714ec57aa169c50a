//! The series to record, as data.

use serde_json::{Value, json};

use crate::probe::settings::Probes;
use crate::quantity::time::Interval;

pub(crate) fn probes_data(probes: &Probes) -> Value {
    let series = probes.series.iter();
    json!({
        "series": series
            .map(|probe| json!({ "name": probe.name, "unit": probe.of.unit() }))
            .collect::<Vec<_>>(),
        "interval_s": match probes.interval {
            Interval::Every(span) => Some(span.as_secs_f64()),
            Interval::EveryChange => None,
        },
        "averages_every_s": probes.averages_every.as_secs_f64(),
    })
}
