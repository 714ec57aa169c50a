//! What of a scenario is meant, by its name.

use super::StationError;
use crate::suggest::suggest;
use crate::{NodeKind, Scenario};

pub(super) fn find_gateway(scenario: &Scenario, name: &str) -> Result<usize, StationError> {
    let gateways = (scenario.nodes.iter().enumerate())
        .filter(|(_, node)| matches!(node.kind, NodeKind::Gateway(_)));
    let mut named = gateways.clone().filter(|(_, node)| node.name == name);
    match named.next() {
        Some((index, _)) => Ok(index),
        None => {
            let names = gateways.map(|(_, node)| node.name.as_str());
            Err(unknown("gateway", name, names))
        }
    }
}

pub(super) fn find_link(
    scenario: &Scenario,
    gateway: usize,
    name: &str,
    link: &str,
) -> Result<usize, StationError> {
    let own = (scenario.links.iter().enumerate())
        .filter(|(_, link)| link.ends().any(|end| end == gateway));
    let mut named = own.clone().filter(|(_, own)| own.name == link);
    match named.next() {
        Some((index, _)) => Ok(index),
        None => {
            let what = format!("link of \"{name}\"");
            Err(unknown(
                &what,
                link,
                own.map(|(_, link)| link.name.as_str()),
            ))
        }
    }
}

pub(super) fn unknown<'n>(
    what: &str,
    name: &str,
    known: impl Iterator<Item = &'n str> + Clone,
) -> StationError {
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
    StationError::new("", format!("no {what} is \"{name}\"; {hint}"))
}
