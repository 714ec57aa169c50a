//! What stands between links, with every default filled in.

use std::net::IpAddr;
use std::sync::Arc;

use bentpipe_types::{Bytes, Gauge, Served, Span};

use crate::quantity::PortRange;
use crate::schema::{Close, GatewayKind, SetUp};
use crate::tcp_settings::TcpSettings;

/// What a gateway does with the packets it forwards.
#[derive(Clone, PartialEq, Debug)]
pub enum Gateway {
    /// Nothing.
    Router {
        /// It says by ICMP what it can't send on.
        icmp: bool,
        /// What a packet takes; none: no time.
        processing: Option<Processing>,
    },
    /// It ends connections, and makes one on each side.
    Split(Arc<SplitGateway>),
    /// It acknowledges on behalf of hosts.
    Hybrid(Arc<HybridGateway>),
}

impl Gateway {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> GatewayKind {
        match self {
            Self::Router { .. } => GatewayKind::Router,
            Self::Split(_) => GatewayKind::Split,
            Self::Hybrid(_) => GatewayKind::Hybrid,
        }
    }

    /// What probes may look at in it.
    #[must_use]
    pub fn gauges(&self) -> &'static [Gauge] {
        match self {
            Self::Router {
                processing: None, ..
            } => &[],
            Self::Router { .. } => Served::GAUGES,
            Self::Split(_) => bentpipe_gateway::split::GAUGES,
            Self::Hybrid(_) => bentpipe_gateway::hybrid::GAUGES,
        }
    }
}

/// A gateway that splits connections. [`GatewayFile`](crate::schema::GatewayFile) says what each
/// setting does.
#[derive(Clone, PartialEq, Debug)]
pub struct SplitGateway {
    /// The link it is there for, by index; it ends at this gateway.
    pub facing: usize,
    /// The TCP of the parts over that link.
    pub tcp: TcpSettings,
    /// The TCP of the other parts.
    pub host_tcp: TcpSettings,
    /// When the side that opens is answered.
    pub set_up: SetUp,
    /// When the end of a stream is confirmed.
    pub close: Close,
    /// Most bytes of streams promised at once.
    pub memory: Bytes,
    /// What is split; none: everything.
    pub only: Option<TrafficClass>,
    /// What isn't; none: nothing.
    pub except: Option<TrafficClass>,
    /// What a packet takes; none: no time.
    pub processing: Option<Processing>,
    /// Parts over the link begin as earlier ones have ended.
    pub warm_path: bool,
    /// After so long without a packet, a connection is reset.
    pub idle_timeout: Span,
    /// Persistent connections, which carry all others; none: each has a part of its own.
    pub multiplex: Option<Multiplex>,
    /// When it dies, in order.
    pub crashes: Vec<Crash>,
}

/// A gateway dies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crash {
    /// Then; as far into the run,
    pub at: Span,
    /// and begins anew so much later.
    pub lasts: Span,
}

/// Persistent connections between two gateways.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Multiplex {
    /// The gateway at the other end of the link, by index.
    pub peer: usize,
    /// How many there are at most.
    pub connections: u32,
    /// Between real networks.
    pub real: Option<RealEnds>,
}

/// Two gateways between real networks, each a machine of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RealEnds {
    /// The node that stands for all hosts on this side, by index.
    pub hosts: usize,
    /// Between which the connections are.
    pub addresses: Addresses,
}

/// The addresses between which a gateway's persistent connections to another one are: of each side's network, and nobody's
/// there, so that routers send to the gateway's machine what is for it, and the machine's kernel does not take it for its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Addresses {
    /// This gateway's.
    pub own: IpAddr,
    /// The other's.
    pub peer: IpAddr,
}

/// A hybrid gateway. [`GatewayFile`](crate::schema::GatewayFile) says what each setting does.
#[derive(Clone, PartialEq, Debug)]
pub struct HybridGateway {
    /// The link that its hosts are behind, by index; it ends at this gateway.
    pub facing: usize,
    /// The window offered to servers.
    pub receive_buffer: Bytes,
    /// Most bytes held of one connection.
    pub store: Bytes,
    /// Most bytes held of all.
    pub memory: Bytes,
    /// Connections answered for at most.
    pub connections: u32,
    /// How long an acknowledgment waits at most.
    pub ack_timeout: Span,
    /// Segments acknowledged at once; none: only time tells.
    pub ack_every: Option<u32>,
    /// How far beyond a host's window is sent.
    pub anticipation: Anticipation,
    /// The TCP towards the hosts; none: the paper's timer.
    pub tcp: Option<TcpSettings>,
    /// That TCP has a congestion window.
    pub congestion_window: bool,
    /// The fixed timeout; none: adaptive.
    pub retransmission_timeout: Option<Span>,
    /// How long a host may make no progress.
    pub give_up: Span,
    /// After so long without a packet, a connection is forgotten.
    pub idle_timeout: Span,
    /// What a packet takes; none: no time.
    pub processing: Option<Processing>,
    /// When it dies, in order.
    pub crashes: Vec<Crash>,
}

/// How far beyond a host's window a hybrid gateway sends.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Anticipation {
    /// As far as there is something to send.
    Unlimited,
    /// Not at all.
    Strict,
    /// So many times the window.
    Factor(f64),
}

/// Connections, by who takes part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TrafficClass {
    /// Ports that connections are opened to; none: all.
    pub ports: Option<Vec<PortRange>>,
    /// Nodes at either end, by index, ascending; none: all.
    pub hosts: Option<Vec<usize>>,
}

/// What a gateway's processor takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Processing {
    /// Time per packet; above zero.
    pub time: Span,
    /// Packets that wait at most.
    pub queue_packets: u32,
}
