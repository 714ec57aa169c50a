//! Classes of traffic, as queues know them.

use std::sync::Arc;

use crate::quantity::PortRange;
use crate::schema::AppKind;
use crate::schema::hints::list;

/// The name of what belongs to no class.
pub(crate) const OTHERS: &str = "others";

/// Packets that a queue treats alike. Where several are given, all must fit.
#[derive(Clone, PartialEq, Debug)]
pub struct PacketClass {
    /// Its name.
    pub name: Arc<str>,
    /// Flows by index, ascending; none: all.
    pub flows: Option<Vec<usize>>,
    /// Kinds of application; none: all.
    pub applications: Option<Vec<AppKind>>,
    /// Nodes at either end, by index, ascending; none: all.
    pub hosts: Option<Vec<usize>>,
    /// Ports at either end; none: all.
    pub ports: Option<Vec<PortRange>>,
}

/// The class of this name, by its index; `None` in the place of one for what belongs to no class.
pub(crate) fn find(name: &str, classes: &[PacketClass]) -> Result<Option<usize>, String> {
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
