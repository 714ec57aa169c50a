//! `[hosts.NAME]` and `[gateways.NAME]`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::TcpFile;
use super::words::words;

/// A host: it runs the TCP at one end of each of its flows.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostFile {
    /// Makes this many alike, NAME-1 to NAME-count. A link or a flow that names NAME is then made
    /// once for each of them: LINK-1 to LINK-count, FLOW-1 to FLOW-count. Default: one host, NAME.
    #[schemars(range(min = 1, max = 60_000))]
    pub count: Option<u32>,
    /// How its TCP behaves. Default: today's Linux, as far as it is modelled.
    #[serde(default)]
    pub tcp: TcpFile,
}

words! {
    /// What a gateway does with the packets it forwards.
    GatewayKind {
        /// Forwards them as they are.
        Router = "router",
    }
}

/// A gateway: it forwards packets between its links.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GatewayFile {
    /// What it does with the packets it forwards. Default: "router".
    #[serde(default = "router")]
    pub kind: GatewayKind,
}

fn router() -> GatewayKind {
    GatewayKind::Router
}
