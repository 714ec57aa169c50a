//! `[groups.NAME]`.

use schemars::JsonSchema;
use serde::Deserialize;

/// A group of hosts for multicast.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupFile {
    /// The hosts: the name of a counted host for all of its hosts, or a single host, such as
    /// "terminal-7".
    pub members: Vec<String>,
}
