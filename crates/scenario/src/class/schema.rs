//! `[classes.NAME]`.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::application::schema::AppKind;
use crate::quantity::port::PortRange;

/// A class of packets that queues with classes treat alike. If several keys are given, a packet
/// must match all of them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrafficClassFile {
    /// Names of flows; the name of a table with a `count` stands for all of its flows. Default:
    /// all.
    pub flows: Option<Vec<String>>,
    /// Applications that send or receive the packets, alone or in a mix. Default: all.
    pub applications: Option<Vec<AppKind>>,
    /// Hosts at either end. Default: all.
    pub hosts: Option<Vec<String>>,
    /// Ports at either end: 443, or "8000-8999". Default: all.
    pub ports: Option<Vec<PortRange>>,
}
