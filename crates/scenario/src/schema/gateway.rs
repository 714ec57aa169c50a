//! `[gateways.NAME]`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::TcpFile;
use crate::quantity::{Length, PortRange, QueueLimit, Size};
use bentpipe_types::words;

/// A gateway: it forwards packets between its links, and may do more.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GatewayFile {
    /// Makes this many alike, NAME-1 to NAME-count, as of hosts: a link that names NAME is then made once for each of
    /// them, where both ends are counted between the first and the first, the second and the second and so on.
    /// `facing` names such a link, too: each faces its own. Default: one gateway, NAME.
    #[schemars(range(min = 1, max = 60_000))]
    pub count: Option<i64>,
    /// What it does with the packets it forwards. Default: "router".
    #[serde(default = "router")]
    pub kind: GatewayKind,
    /// Tell by ICMP who has sent a packet that is too long for the next link (RFC 1191). false: it
    /// vanishes, as behind a filter, and the path is a black hole for it. Default: true.
    pub icmp: Option<bool>,
    /// The link that it is there for: of a connection that it splits, the part over this link has
    /// `tcp`'s settings; a hybrid gateway's hosts are behind it. It ends at this gateway; of a pair of
    /// one-way links, it is the one that this gateway sends on. Required with "split" and "hybrid".
    pub facing: Option<String>,
    /// The TCP of the parts over `facing`; of a hybrid gateway, how it sends to its hosts, if not as
    /// the paper's. What isn't said is as for a host, but for the buffers,
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
    /// left passes unsplit. Of a hybrid gateway: bytes held at once at most. Default: "256 MiB".
    pub memory: Option<Size>,
    /// Split only these connections; the rest passes. Default: all.
    pub only: Option<ClassFile>,
    /// Don't split these connections. Default: none.
    pub except: Option<ClassFile>,
    /// What the gateway's processor takes for each packet (an IP service rate), whatever its kind.
    /// Default: no time.
    pub processing: Option<ProcessingFile>,
    /// Begin each part over `facing` with the congestion window and the slow-start threshold that
    /// earlier ones have ended with (RFC 9040). Default: false.
    pub warm_path: Option<bool>,
    /// Carry all connections between this gateway and the one at the other end of `facing`, which must
    /// say the same, over so many persistent ones: 1 to 16. A connection then opens without a handshake
    /// over that link, and begins with the window that others have opened there; what is lost holds up
    /// whatever follows it on the same one. With `warm_path` they keep their window through idle times.
    /// Default: each connection has a part of its own.
    pub multiplex: Option<u32>,
    /// How long nothing may come of a connection before the gateway resets it (a hybrid gateway
    /// forgets it). At least "1 s". Default: "124 min" (RFC 5382, requirement 5).
    pub idle_timeout: Option<Length>,
    /// When the gateway dies, and begins anew with no memory of any connection: a power cut, a restart of the
    /// process. In order, and none before the end of another. Default: never.
    pub crashes: Option<Vec<CrashFile>>,
    /// The window that a hybrid gateway offers servers on behalf of its hosts. "2 kB" to "1 GB".
    /// Default: "64 kB".
    pub receive_buffer: Option<Size>,
    /// Bytes that a hybrid gateway holds of one connection at most: sent to the host and not
    /// acknowledged by it, or waiting to be sent. Default: as `receive_buffer`, so that the window
    /// shrinks as it fills.
    pub store: Option<Size>,
    /// The longest that an acknowledgment to a server waits for something that goes there, at most
    /// "500 ms". Default: "200 ms".
    pub ack_timeout: Option<Length>,
    /// Acknowledge every so many full segments at once. Default: only `ack_timeout` tells.
    pub ack_every: Option<u32>,
    /// How far beyond the window that a host advertises a hybrid gateway sends. A window of zero is
    /// obeyed in any case, and what goes again stays inside. Default: "unlimited".
    pub anticipation: Option<AnticipationName>,
    /// Instead of `anticipation`: up to so many times the window, 1 at least.
    pub window_factor: Option<f64>,
    /// The time after which a hybrid gateway sends again what a host doesn't acknowledge. "10 ms" to
    /// "60 s". Default: "200 ms"; with `tcp`, adaptive. With a congestion window it is the shortest
    /// rather than fixed: a window rule takes each expiry for a sign of congestion.
    pub retransmission_timeout: Option<Length>,
    /// Make that time follow from the round trips (RFC 6298). Default: with `tcp`.
    pub adaptive_timeout: Option<bool>,
    /// Does the `tcp` of a hybrid gateway have a congestion window? Default: true.
    pub congestion_window: Option<bool>,
    /// How long a host may make no progress before a hybrid gateway gives it up and tells the server.
    /// At least "1 s". Default: "120 s".
    pub give_up: Option<Length>,
    /// Connections that a hybrid gateway answers for at most; further ones pass. 1 to 1000000.
    /// Default: 65536.
    pub connections: Option<u32>,
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
        /// Acknowledges on behalf of the hosts behind `facing`, which receive by satellite and send by
        /// another way, offers the servers a larger window than theirs, keeps what they have not
        /// acknowledged and sends it again: Asymmetric TCP/IP (gaid1998). Without `tcp` it does so when
        /// a timer expires, as in the paper, and has no congestion window; with `tcp`, as that TCP does.
        Hybrid = "hybrid",
    }
}

words! {
    /// How far beyond a host's window a hybrid gateway sends.
    AnticipationName {
        /// As far as there is something to send: by the time it arrives, the window has moved on.
        Unlimited = "unlimited",
        /// Not at all.
        Strict = "strict",
    }
}

impl GatewayKind {
    /// The keys that mean something to this kind, besides `kind`.
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
    /// The keys that the file gives, besides `kind`.
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

/// A gateway dies.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CrashFile {
    /// When, since the start of the run.
    pub at: Length,
    /// For how long it is gone: whatever reaches it meanwhile is lost. Default: "0 s", it begins anew at once.
    pub lasts: Option<Length>,
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
