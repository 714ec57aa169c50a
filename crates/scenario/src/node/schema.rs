//! `[hosts.NAME]`.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::node::processing::ProcessingFile;
use crate::tcp::schema::TcpFile;

/// A host: it runs the TCP at one end of each of its flows.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostFile {
    /// Creates this many hosts, NAME-1 to NAME-count. A link or a flow that names NAME is then
    /// created once for each of them: LINK-1 to LINK-count, FLOW-1 to FLOW-count. Default: one
    /// host, NAME.
    #[schemars(range(min = 1, max = 60_000))]
    pub count: Option<i64>,
    /// TCP settings. Default: current Linux, as far as it is modelled.
    #[serde(default)]
    pub tcp: TcpFile,
    /// Time that the host's processor takes for each packet that arrives or leaves (an IP service
    /// rate), one packet at a time. If its queue is full, a packet that the host sends is lost as
    /// on a link. Default: no time.
    pub processing: Option<ProcessingFile>,
}
