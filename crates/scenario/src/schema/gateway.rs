//! `[gateways.NAME]`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::TcpFile;
use super::words::words;
use crate::quantity::{Length, PortRange, QueueLimit, Size};

/// A gateway: it forwards packets between its links, and may do more.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GatewayFile {
    /// What it does with the packets it forwards. Default: "router".
    #[serde(default = "router")]
    pub kind: GatewayKind,
    /// The link that it is there for: of a connection that it splits, the part over this link has
    /// `tcp`'s settings. It ends at this gateway. Required with "split".
    pub facing: Option<String>,
    /// The TCP of the parts over `facing`. What isn't said is as for a host, but for the buffers,
    /// which are twice the bandwidth-delay product of `facing` (its faster direction's rate times the
    /// delays of both), and at least 128 KiB; and Nagle's algorithm, which is off.
    pub tcp: Option<TcpFile>,
    /// The TCP of the other parts, towards the hosts. Defaults: as of `tcp`.
    pub host_tcp: Option<TcpFile>,
    /// When the side that opens a connection is answered. Default: "end-to-end".
    pub set_up: Option<SetUp>,
    /// When the end of a stream is confirmed to the side that sends it. Default: "end-to-end".
    pub close: Option<Close>,
    /// Most bytes of streams that the gateway promises to take, all connections together: half of
    /// what is left is the most that one connection gets for itself, each way. What finds too little
    /// left passes unsplit. Default: "256 MiB".
    pub memory: Option<Size>,
    /// Split only these connections; the rest passes. Default: all.
    pub only: Option<ClassFile>,
    /// Don't split these connections. Default: none.
    pub except: Option<ClassFile>,
    /// What the gateway's processor takes for each packet. Default: no time.
    pub processing: Option<ProcessingFile>,
    /// Begin each part over `facing` with the congestion window and the slow-start threshold that
    /// earlier ones have ended with (RFC 9040). Default: false.
    pub warm_path: Option<bool>,
    /// How long nothing may come of a connection before the gateway resets it. At least "1 s".
    /// Default: "124 min" (RFC 5382, requirement 5).
    pub idle_timeout: Option<Length>,
}

fn router() -> GatewayKind {
    GatewayKind::Router
}

words! {
    /// What a gateway does with the packets it forwards.
    GatewayKind {
        /// Forwards them as they are.
        Router = "router",
        /// Ends every TCP connection that it sees begin, and makes another one on each side, with the
        /// addresses and ports of the hosts: only the part over `facing` needs a satellite's settings
        /// (karir1999, RFC 3135).
        Split = "split",
    }
}

impl GatewayKind {
    /// The keys that mean something to this kind, besides `kind`.
    #[must_use]
    pub fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Router => &[],
            Self::Split => &[
                "facing",
                "tcp",
                "host_tcp",
                "set_up",
                "close",
                "memory",
                "only",
                "except",
                "processing",
                "warm_path",
                "idle_timeout",
            ],
        }
    }
}

impl GatewayFile {
    /// The keys that the file gives, besides `kind`.
    pub(crate) fn given(&self) -> impl Iterator<Item = &'static str> {
        [
            ("facing", self.facing.is_some()),
            ("tcp", self.tcp.is_some()),
            ("host_tcp", self.host_tcp.is_some()),
            ("set_up", self.set_up.is_some()),
            ("close", self.close.is_some()),
            ("memory", self.memory.is_some()),
            ("only", self.only.is_some()),
            ("except", self.except.is_some()),
            ("processing", self.processing.is_some()),
            ("warm_path", self.warm_path.is_some()),
            ("idle_timeout", self.idle_timeout.is_some()),
        ]
        .into_iter()
        .filter_map(|(key, given)| given.then_some(key))
    }
}

words! {
    /// When the side that opens a connection is answered.
    SetUp {
        /// When the other side has answered: what is refused there is refused here.
        EndToEnd = "end-to-end",
        /// At once. Who opened may send a round trip earlier; what is refused then is reset.
        Early = "early",
    }
}

words! {
    /// When the end of a stream is confirmed to the side that sends it.
    Close {
        /// When the other side has confirmed it: all is there.
        EndToEnd = "end-to-end",
        /// At once, as splitting gateways mostly do: the sender may be gone while bytes are still
        /// under way.
        Early = "early",
    }
}

/// Connections, by who takes part. Where both keys are there, both must fit.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClassFile {
    /// Ports that connections are opened to: 80, or "8000-8999". Default: all.
    pub ports: Option<Vec<PortRange>>,
    /// Hosts at either end. Default: all.
    pub hosts: Option<Vec<String>>,
}

/// What a gateway's processor takes for each packet that arrives.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProcessingFile {
    /// Time that a packet takes, one after the other. At most "1 s".
    pub time: Length,
    /// Packets that wait for it at most. Default: "1000 packets".
    pub queue: Option<QueueLimit>,
}
