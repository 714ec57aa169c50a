//! The gateway of a machine's part, between two real links.

use std::sync::Arc;

use super::{NO_ADDRESS, StationError};
use crate::{Gateway, Scenario, TrafficClass};

/// The gateway, among the links that it has here: `own` are their indices in the file.
pub(super) fn placed(
    gateway: &Gateway,
    name: &str,
    own: &[usize],
    scenario: &Scenario,
    notes: &mut Vec<String>,
) -> Result<Gateway, StationError> {
    let facing = |of: usize| {
        own.iter().position(|link| *link == of).ok_or_else(|| {
            let link = &scenario.links[of].name;
            let message = format!("the gateway is there for the link \"{link}\", and that is none of the two; expected an interface for it");
            StationError::new(format!("gateways.{name}.facing"), message)
        })
    };
    let mut note_processing = || {
        notes.push(format!(
            "gateways.{name}.processing: no effect, a real processor takes its own time"
        ));
    };
    Ok(match gateway {
        Gateway::Router { processing, .. } => {
            if processing.is_some() {
                note_processing();
            }
            Gateway::Router {
                icmp: true,
                processing: None,
            }
        }
        Gateway::Split(split) => {
            let mut split = split.as_ref().clone();
            split.facing = facing(split.facing)?;
            if split.multiplex.is_some() {
                let key = format!("gateways.{name}.multiplex");
                return Err(StationError::new(key, NO_ADDRESS));
            }
            has_no_hosts(split.only.as_ref(), name, "only")?;
            has_no_hosts(split.except.as_ref(), name, "except")?;
            if split.processing.take().is_some() {
                note_processing();
            }
            Gateway::Split(Arc::new(split))
        }
        Gateway::Hybrid(hybrid) => {
            let mut hybrid = hybrid.as_ref().clone();
            hybrid.facing = facing(hybrid.facing)?;
            if hybrid.processing.take().is_some() {
                note_processing();
            }
            Gateway::Hybrid(Arc::new(hybrid))
        }
    })
}

/// A class of connections by the hosts of the file: which addresses these have, nobody knows here.
fn has_no_hosts(class: Option<&TrafficClass>, name: &str, key: &str) -> Result<(), StationError> {
    if class.is_some_and(|class| class.hosts.is_some()) {
        let key = format!("gateways.{name}.{key}.hosts");
        return Err(StationError::new(
            key,
            "which addresses the file's hosts have is not known here; expected \"ports\"",
        ));
    }
    Ok(())
}
