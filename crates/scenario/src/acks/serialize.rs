//! Reduction of acknowledgments, as data.

use serde_json::{Value, json};

use crate::acks::settings::Acks;

pub(crate) fn acks_data(acks: Acks) -> Value {
    let marks = acks.marks();
    let mode = match acks {
        Acks::Filter(mode) => Some(mode),
        _ => None,
    };
    let threshold = match acks {
        Acks::Reconstruction { threshold, .. } => Some(threshold.get()),
        _ => None,
    };
    json!({
        "kind": acks.kind(),
        "low": marks.map(|marks| marks.low),
        "high": marks.map(|marks| marks.high),
        "duplicates": marks.and_then(|marks| marks.duplicates),
        "mode": mode,
        "threshold_bytes": threshold,
        "spacing": acks.spacing(),
    })
}
