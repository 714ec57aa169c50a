//! Looks up the nodes and links of a scenario that are named in a request.

use crate::node::settings::NodeKind;
use crate::scenario::settings::Scenario;
use crate::station_error::StationError;
use crate::suggest::suggest;

pub(crate) fn find_gateway(scenario: &Scenario, name: &str) -> Result<usize, StationError> {
    let nodes = scenario.nodes.iter().enumerate();
    let gateways = nodes.filter(|(_, node)| matches!(node.kind, NodeKind::Gateway(_)));
    let names = gateways.map(|(index, node)| (index, node.name.as_str()));
    find("gateway", name, names)
}

/// Returns a link by name, among all or among those of a gateway, which is given with its name.
pub(crate) fn find_link(
    scenario: &Scenario,
    of: Option<(usize, &str)>,
    name: &str,
) -> Result<usize, StationError> {
    let links = scenario.links.iter().enumerate();
    let own = links
        .filter(|(_, link)| of.is_none_or(|(gateway, _)| link.ends().any(|end| end == gateway)));
    let names = own.map(|(index, link)| (index, link.name.as_str()));
    match of {
        Some((_, gateway)) => find(&format!("link of \"{gateway}\""), name, names),
        None => find("link", name, names),
    }
}

/// Returns the index of the entry with this name among the permitted ones.
fn find<'n>(
    what: &str,
    name: &str,
    known: impl Iterator<Item = (usize, &'n str)> + Clone,
) -> Result<usize, StationError> {
    if let Some((index, _)) = known.clone().find(|(_, other)| *other == name) {
        return Ok(index);
    }
    let known = known.map(|(_, other)| other);
    let hint = match suggest(name, known.clone()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => {
            let known: Vec<&str> = known.take(20).collect();
            if known.is_empty() {
                "the file has none".to_owned()
            } else {
                format!("known: {}", known.join(", "))
            }
        }
    };
    let message = format!("no {what} is \"{name}\"; {hint}");
    Err(StationError::new("", message))
}
