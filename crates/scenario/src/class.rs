//! Classes of traffic, as queues know them.

use std::sync::Arc;

use crate::quantity::PortRange;
use crate::schema::AppKind;

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
