//! Traffic classes for queues.

use std::sync::Arc;

use crate::application::schema::AppKind;
use crate::hints::list;
use crate::quantity::port::PortRange;

/// Name of the class for packets of no other class.
pub(crate) const OTHERS: &str = "others";

/// A class of packets that a queue treats alike. A packet must match all criteria that are given.
#[derive(Clone, PartialEq, Debug)]
pub struct PacketClass {
    /// Name of the class.
    pub name: Arc<str>,
    /// Indices of flows, ascending, or `None` for all.
    pub flows: Option<Vec<usize>>,
    /// Kinds of application, or `None` for all.
    pub applications: Option<Vec<AppKind>>,
    /// Indices of nodes at either end, ascending, or `None` for all.
    pub hosts: Option<Vec<usize>>,
    /// Ports at either end, or `None` for all.
    pub ports: Option<Vec<PortRange>>,
}

/// Returns the index of the class with this name, or `None` for the class of all other packets.
pub(crate) fn find_class(name: &str, classes: &[PacketClass]) -> Result<Option<usize>, String> {
    if name == OTHERS {
        return Ok(None);
    }
    if let Some(index) = classes.iter().position(|class| &*class.name == name) {
        return Ok(Some(index));
    }
    let names: Vec<&str> = classes.iter().map(|class| &*class.name).collect();
    Err(if names.is_empty() {
        format!("no class is named \"{name}\"; expected a table such as [classes.{name}]")
    } else {
        format!(
            "no class is named \"{name}\"; known: {}, and \"{OTHERS}\" for the rest",
            list(&names)
        )
    })
}
