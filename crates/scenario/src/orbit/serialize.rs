//! Constellations, sites and paths, as data.

use serde_json::{Value, json};

use bentpipe_orbits::{Routing, Selection};

use crate::orbit::schema::{OverName, SelectName};
use crate::orbit::settings::{LinkPath, Orbits};

/// Returns a path as data: its ends, its rules, and what they amount to over the run.
pub(crate) fn path_data(path: &LinkPath, orbits: &Orbits) -> Value {
    let timeline = &path.timeline;
    let site = |index: usize| orbits.sites[index].name.as_str();
    json!({
        "constellation": orbits.constellations[path.constellation].name,
        "from": site(path.from),
        "to": path.to.iter().map(|index| site(*index)).collect::<Vec<_>>(),
        "over": match path.routing {
            Routing::BentPipe => OverName::BentPipe,
            Routing::InterSatellite => OverName::InterSatelliteLinks,
        },
        "select": match path.selection {
            Selection::Highest => SelectName::Highest,
            Selection::Longest => SelectName::Longest,
            Selection::Shortest => SelectName::Shortest,
        },
        "slot_s": path.slot.as_secs_f64(),
        "hysteresis_deg": path.hysteresis,
        "extra_delay_s": path.extra_delay.as_secs_f64(),
        "variation": path.variation.map(|variation| variation.data()),
        "handover_s": path.handover.as_secs_f64(),
        "gateway_handover_s": path.gateway_handover.as_secs_f64(),
        "handovers": timeline.handovers(),
        "gaps_s": timeline.gaps(),
    })
}
