//! Flows in the engine: their traffic, and when they start.

use bentpipe_sim::Traffic;
use bentpipe_types::{Bytes, RandomStream, Time};

use crate::application::settings::App;
use crate::flow::settings::Flow;
use crate::scenario::settings::Scenario;

/// Returns the traffic of a flow in the engine's type.
pub(crate) fn traffic_of(flow: &Flow) -> Traffic {
    match &flow.app {
        App::Bulk { size } => Traffic::bulk(size.map(Bytes::get)),
        App::Other(_, traffic) | App::Mix(_, traffic) => traffic.clone(),
    }
}

/// Returns the start of each flow. Random starts are drawn by the flow's name: another flow changes
/// no other draws.
pub(crate) fn starts(scenario: &Scenario, seed: u64) -> Vec<Time> {
    let mut starts: Vec<Time> = Vec::with_capacity(scenario.flows.len());
    let mut before: Option<(&str, Time)> = None;
    for flow in &scenario.flows {
        let alone = || match flow.late {
            None => flow.start,
            Some(late) => {
                // All members of a group receive at once, so their table's name is used.
                let drawn_by = flow.channel.map_or(&*flow.name, |_| &*flow.table);
                flow.start + late.span(&mut RandomStream::new(seed, drawn_by, "late"))
            }
        };
        let start = match flow.wait {
            None => alone(),
            Some(wait) => {
                let last = before.filter(|(table, _)| *table == &*flow.table);
                let from = last.map_or_else(alone, |(_, at)| at);
                from + wait.span(&mut RandomStream::new(seed, &flow.name, "start"))
            }
        };
        before = Some((&flow.table, start));
        starts.push(start);
    }
    starts
}
