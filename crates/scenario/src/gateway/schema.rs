//! `[gateways.NAME]`.

use bentpipe_types::words;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::node::processing::ProcessingFile;
use crate::quantity::port::PortRange;
use crate::quantity::size::Size;
use crate::quantity::time::Length;
use crate::tcp::schema::TcpFile;

/// A gateway: it forwards packets between its links, and may do more.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GatewayFile {
    /// Creates this many gateways, NAME-1 to NAME-count, as for hosts. A link that names NAME is
    /// then created once for each of them. If both ends of a link are counted, it joins the first
    /// with the first, the second with the second and so on. `facing` may name such a link: each
    /// gateway faces its own. Default: one gateway, NAME.
    #[schemars(range(min = 1, max = 60_000))]
    pub count: Option<i64>,
    /// Whether the gateway only routes, splits connections, or is a hybrid gateway. Default:
    /// "router".
    #[serde(default = "router")]
    pub kind: GatewayKind,
    /// Send an ICMP error to the source of a packet that is too long for the next link (RFC 1191).
    /// false: the packet is dropped silently, as behind a filter, and the path is a black hole for
    /// it. Default: true.
    pub icmp: Option<bool>,
    /// The link that the gateway serves. A split gateway uses `tcp`'s settings for the connections
    /// over this link; the hosts of a hybrid gateway are behind it. The link ends at this gateway;
    /// of a pair of one-way links, it is the one on which the gateway sends. Required with "split"
    /// and "hybrid".
    pub facing: Option<String>,
    /// TCP of the connections over `facing`; for a hybrid gateway, how it sends to its hosts if not
    /// as in the paper. Defaults are those of a host, with two exceptions: buffers are twice the
    /// bandwidth-delay product of `facing` (the rate of its faster direction times the sum of both
    /// delays), and at least 128 KiB; and Nagle's algorithm is off.
    pub tcp: Option<TcpFile>,
    /// TCP of the connections on the side of the hosts. Defaults: as for `tcp`.
    pub host_tcp: Option<TcpFile>,
    /// When the gateway answers the side that opens a connection. Default: "end-to-end".
    pub set_up: Option<SetUp>,
    /// When the gateway acknowledges the end of a stream (FIN) to its sender. Default:
    /// "end-to-end".
    pub close: Option<Close>,
    /// For a split gateway: total buffer memory of all connections. One connection gets at most
    /// half of what is left, in each direction. Connections that find too little memory pass
    /// unsplit. For a hybrid gateway: most bytes stored at once. Default: "256 MiB".
    pub memory: Option<Size>,
    /// Split only these connections; others pass unchanged. Default: all.
    pub only: Option<ClassFile>,
    /// Do not split these connections. Default: none.
    pub except: Option<ClassFile>,
    /// Time that the gateway's processor takes for each packet (an IP service rate), for any kind
    /// of gateway. Default: no time.
    pub processing: Option<ProcessingFile>,
    /// Start each connection over `facing` with the congestion window and the slow-start threshold
    /// of earlier connections (RFC 9040). Default: false.
    pub warm_path: Option<bool>,
    /// Multiplex all connections between this gateway and the one at the other end of `facing` over
    /// this many persistent connections: 1 to 16. Both gateways must have the same number. A
    /// connection then opens without a handshake over that link, and starts with the congestion
    /// window of the persistent connection. A lost packet delays everything behind it on the same
    /// persistent connection. With `warm_path` the window is kept through idle times. Default: each
    /// connection has its own.
    pub multiplex: Option<u32>,
    /// Idle time after which the gateway resets a connection (a hybrid gateway forgets it). At
    /// least "1 s". Default: "124 min" (RFC 5382, requirement 5).
    pub idle_timeout: Option<Length>,
    /// Crashes: the gateway stops, and restarts without the state of any connection, as after a
    /// power cut or a restart of the process. They must be in order and must not overlap. Default:
    /// none.
    pub crashes: Option<Vec<CrashFile>>,
    /// Receive window that a hybrid gateway advertises to servers on behalf of its hosts. "2 kB" to
    /// "1 GB". Default: "64 kB".
    pub receive_buffer: Option<Size>,
    /// Most bytes of one connection that a hybrid gateway stores: unsent, or sent to the host and
    /// not yet acknowledged. Default: as `receive_buffer`, so that the advertised window shrinks as
    /// the store fills.
    pub store: Option<Size>,
    /// Longest time that a hybrid gateway delays an acknowledgment to a server, in the hope of
    /// sending it with other data. At most "500 ms". Default: "200 ms".
    pub ack_timeout: Option<Length>,
    /// Acknowledge at once after this many full segments. Default: only `ack_timeout` decides.
    pub ack_every: Option<u32>,
    /// How far beyond a host's advertised window a hybrid gateway sends. A zero window is always
    /// obeyed, and retransmissions stay within the window. Default: "unlimited".
    pub anticipation: Option<AnticipationName>,
    /// Instead of `anticipation`: send up to this multiple of the window. At least 1.
    pub window_factor: Option<f64>,
    /// Time after which a hybrid gateway retransmits what a host has not acknowledged. "10 ms" to
    /// "60 s". Default: "200 ms"; with `tcp`, adaptive. With a congestion window it is the minimum
    /// timeout and not a fixed one, because congestion control takes each timeout for a sign of
    /// congestion.
    pub retransmission_timeout: Option<Length>,
    /// Compute the retransmission timeout from round-trip times (RFC 6298). Default: true with
    /// `tcp`, else false.
    pub adaptive_timeout: Option<bool>,
    /// Use a congestion window for the `tcp` of a hybrid gateway. Default: true.
    pub congestion_window: Option<bool>,
    /// Time without progress after which a hybrid gateway gives up a host and informs the server.
    /// At least "1 s". Default: "120 s".
    pub give_up: Option<Length>,
    /// Most connections that a hybrid gateway handles; further ones pass unchanged. 1 to 1000000.
    /// Default: 65536.
    pub connections: Option<u32>,
}

fn router() -> GatewayKind {
    GatewayKind::Router
}

words! {
    /// How a gateway treats the packets it forwards.
    GatewayKind {
        /// Forwards packets unchanged.
        Router = "router",
        /// Splits each TCP connection whose SYN it sees into one connection on each side, with the
        /// addresses and ports of the hosts. Only the connection over `facing` needs settings for a
        /// satellite (karir1999, RFC 3135).
        Split = "split",
        /// Acknowledges on behalf of the hosts behind `facing`, which receive by satellite and send
        /// by another path, advertises a larger window than theirs to the servers, stores what they
        /// have not acknowledged and retransmits it: Asymmetric TCP/IP (gaid1998). Without `tcp` it
        /// retransmits when a timer expires, as in the paper, and has no congestion window; with
        /// `tcp`, it behaves as that TCP does.
        Hybrid = "hybrid",
    }
}

words! {
    /// How far beyond a host's window a hybrid gateway sends.
    AnticipationName {
        /// Without a limit: by the time the data arrive, the window has advanced.
        Unlimited = "unlimited",
        /// Not beyond the window.
        Strict = "strict",
    }
}

impl GatewayKind {
    /// Returns the keys that apply to this kind, except `kind`.
    #[must_use]
    pub fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Router => &["icmp", "processing"],
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
                "multiplex",
                "idle_timeout",
                "crashes",
            ],
            Self::Hybrid => &[
                "facing",
                "tcp",
                "memory",
                "idle_timeout",
                "receive_buffer",
                "store",
                "ack_timeout",
                "ack_every",
                "anticipation",
                "window_factor",
                "retransmission_timeout",
                "adaptive_timeout",
                "congestion_window",
                "give_up",
                "connections",
                "processing",
                "crashes",
            ],
        }
    }
}

impl GatewayFile {
    /// Returns the keys that the file gives, except `kind`.
    pub(crate) fn given(&self) -> impl Iterator<Item = &'static str> {
        [
            ("icmp", self.icmp.is_some()),
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
            ("multiplex", self.multiplex.is_some()),
            ("idle_timeout", self.idle_timeout.is_some()),
            ("crashes", self.crashes.is_some()),
            ("receive_buffer", self.receive_buffer.is_some()),
            ("store", self.store.is_some()),
            ("ack_timeout", self.ack_timeout.is_some()),
            ("ack_every", self.ack_every.is_some()),
            ("anticipation", self.anticipation.is_some()),
            ("window_factor", self.window_factor.is_some()),
            (
                "retransmission_timeout",
                self.retransmission_timeout.is_some(),
            ),
            ("adaptive_timeout", self.adaptive_timeout.is_some()),
            ("congestion_window", self.congestion_window.is_some()),
            ("give_up", self.give_up.is_some()),
            ("connections", self.connections.is_some()),
        ]
        .into_iter()
        .filter_map(|(key, given)| given.then_some(key))
    }
}

words! {
    /// When a gateway answers the side that opens a connection.
    SetUp {
        /// After the other side has answered, so that a refusal there is a refusal here.
        EndToEnd = "end-to-end",
        /// At once. The client may send a round trip earlier; if the server refuses, the connection
        /// is reset.
        Early = "early",
    }
}

words! {
    /// When a gateway acknowledges the end of a stream (FIN) to its sender.
    Close {
        /// After the other side has acknowledged it, that is, received everything.
        EndToEnd = "end-to-end",
        /// At once, as most splitting gateways do: the sender may close while bytes are still in
        /// transit.
        Early = "early",
    }
}

/// Selects connections. If both keys are given, a connection must match both.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClassFile {
    /// Destination ports of connections: 80, or "8000-8999". Default: all.
    pub ports: Option<Vec<PortRange>>,
    /// Hosts at either end. Default: all.
    pub hosts: Option<Vec<String>>,
}

/// A crash of a gateway.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CrashFile {
    /// Time since the start of the run.
    pub at: Length,
    /// Downtime: packets that arrive meanwhile are lost. Default: "0 s", the gateway restarts at
    /// once.
    pub lasts: Option<Length>,
}
