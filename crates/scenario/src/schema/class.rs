//! `[classes.NAME]`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::AppKind;
use crate::quantity::PortRange;

/// Packets that queues with classes treat alike. Where several keys are given, all must fit.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrafficClassFile {
    /// Flows, by their names; that of a table with several stands for all of them. Default: all.
    pub flows: Option<Vec<String>>,
    /// What applications send and are sent, one of a mix, too. Default: all.
    pub applications: Option<Vec<AppKind>>,
    /// Hosts at either end. Default: all.
    pub hosts: Option<Vec<String>>,
    /// Ports at either end: 443, or "8000-8999". Default: all.
    pub ports: Option<Vec<PortRange>>,
}
