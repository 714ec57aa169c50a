//! Refuses split gateways that only one direction of a flow passes: no connection can be split
//! there (RFC 3135 section 4.2), and none gets through.

use std::collections::BTreeSet;

use crate::application::settings::App;
use crate::error::quoted;
use crate::fault::{Fault, fault};
use crate::flow::settings::Flow;
use crate::node::settings::NodeKind;
use crate::scenario::settings::Scenario;

/// Refuses a gateway that would split a flow of which it sees one direction only. A gateway whose
/// file selects the flows to split is not checked.
pub(crate) fn check_one_sided(scenario: &Scenario) -> Result<(), Fault> {
    let splits: Vec<usize> = (scenario.nodes.iter().enumerate())
        .filter(|(_, node)| {
            matches!(&node.kind, NodeKind::Gateway(gateway) if gateway.needs_both_directions())
        })
        .map(|(index, _)| index)
        .collect();
    // In a tree both directions use the same route.
    if splits.is_empty() || scenario.links.len() < scenario.nodes.len() {
        return Ok(());
    }
    let Some(routes) = scenario.routes() else {
        return Ok(());
    };
    let mut ends = Vec::new();
    for link in &scenario.links {
        // For a broadcast channel, the next link shows which receiver is on the route.
        let [first, second] = link.between;
        let between = [first, if link.broadcast { first } else { second }];
        ends.extend(link.directions().map(|_| between));
    }
    let passed = |route: &[usize]| -> BTreeSet<usize> {
        let ends = route.iter().filter_map(|direction| ends.get(*direction));
        ends.flatten().copied().collect()
    };
    for (flow, [there, back]) in scenario.flows.iter().zip(&routes) {
        if !has_connections(flow) {
            continue;
        }
        let (there, back) = (passed(there), passed(back));
        for gateway in &splits {
            if there.contains(gateway) != back.contains(gateway) {
                let name = &scenario.nodes[*gateway].name;
                let message = format!(
                    "expected both directions of a connection to pass, to be split: one of flow {} goes \
                     another way (to let it pass unsplit, name its hosts in gateways.{name}.except)",
                    quoted(&flow.name)
                );
                return Err(fault(&["gateways", name, "kind"], message));
            }
        }
    }
    Ok(())
}

fn has_connections(flow: &Flow) -> bool {
    match &flow.app {
        App::Bulk { .. } => true,
        App::Other(_, traffic) | App::Mix(_, traffic) => !traffic.has_datagrams(),
    }
}
