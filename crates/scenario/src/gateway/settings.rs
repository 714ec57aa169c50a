//! Gateways, with every default filled in.

use std::net::IpAddr;
use std::sync::Arc;

use bentpipe_types::{Bytes, Gauge, Served, Span};

use crate::gateway::schema::{Close, GatewayKind, SetUp};
use crate::node::processing::Processing;
use crate::quantity::port::PortRange;
use crate::tcp::settings::TcpSettings;

/// A gateway: how it treats the packets that it forwards.
#[derive(Clone, PartialEq, Debug)]
pub enum Gateway {
    /// Forwards them unchanged.
    Router {
        /// Whether it sends ICMP errors about packets that it cannot forward.
        icmp: bool,
        /// Processing time, or `None` for no time.
        processing: Option<Processing>,
    },
    /// Splits each connection into one on each side.
    Split(Arc<SplitGateway>),
    /// Acknowledges on behalf of hosts.
    Hybrid(Arc<HybridGateway>),
}

impl Gateway {
    /// Returns its kind.
    #[must_use]
    pub fn kind(&self) -> GatewayKind {
        match self {
            Self::Router { .. } => GatewayKind::Router,
            Self::Split(_) => GatewayKind::Split,
            Self::Hybrid(_) => GatewayKind::Hybrid,
        }
    }

    /// Returns the quantities that probes can record.
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

/// A gateway that splits connections. [`GatewayFile`](crate::schema::GatewayFile) describes each
/// setting.
#[derive(Clone, PartialEq, Debug)]
pub struct SplitGateway {
    /// Index of the link that it serves, which ends at this gateway.
    pub facing: usize,
    /// TCP of the connections over that link.
    pub tcp: TcpSettings,
    /// TCP of the connections on the other side.
    pub host_tcp: TcpSettings,
    /// When the side that opens a connection is answered.
    pub set_up: SetUp,
    /// When the end of a stream is acknowledged.
    pub close: Close,
    /// Total buffer memory of all connections.
    pub memory: Bytes,
    /// Connections that are split, or `None` for all.
    pub only: Option<TrafficClass>,
    /// Connections that are not split, or `None` for none.
    pub except: Option<TrafficClass>,
    /// Processing time, or `None` for no time.
    pub processing: Option<Processing>,
    /// Whether connections over the link start with the congestion window of earlier ones.
    pub warm_path: bool,
    /// Idle time after which a connection is reset.
    pub idle_timeout: Span,
    /// Persistent connections that carry all others, or `None` if each has its own.
    pub multiplex: Option<Multiplex>,
    /// Crashes in order.
    pub crashes: Vec<Crash>,
}

/// A crash of a gateway.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crash {
    /// Time since the start of the run.
    pub at: Span,
    /// Time until the restart.
    pub lasts: Span,
}

/// Persistent connections between two gateways.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Multiplex {
    /// Index of the gateway at the other end of the link.
    pub peer: usize,
    /// Most persistent connections.
    pub connections: u32,
    /// Addresses and nodes, if the gateways are real machines.
    pub real: Option<RealEnds>,
}

/// The ends of two gateways between real networks, each a machine of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RealEnds {
    /// Index of the node that stands for all hosts on this side.
    pub hosts: usize,
    /// Addresses of the persistent connections.
    pub addresses: Addresses,
}

/// The addresses of a gateway's persistent connections. Each belongs to the network of its side,
/// but to no machine there. So routers send packets for it to the gateway's machine, and that
/// machine's kernel does not take them for its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Addresses {
    /// Address of this gateway.
    pub own: IpAddr,
    /// Address of the other gateway.
    pub peer: IpAddr,
}

/// A hybrid gateway. [`GatewayFile`](crate::schema::GatewayFile) describes each setting.
#[derive(Clone, PartialEq, Debug)]
pub struct HybridGateway {
    /// Index of the link to its hosts, which ends at this gateway.
    pub facing: usize,
    /// Receive window advertised to servers.
    pub receive_buffer: Bytes,
    /// Most bytes stored of one connection.
    pub store: Bytes,
    /// Most bytes stored of all connections.
    pub memory: Bytes,
    /// Most connections that it handles.
    pub connections: u32,
    /// Longest delay of an acknowledgment.
    pub ack_timeout: Span,
    /// Number of segments acknowledged at once, or `None` if only the delay decides.
    pub ack_every: Option<u32>,
    /// How far beyond a host's window it sends.
    pub anticipation: Anticipation,
    /// TCP towards the hosts, or `None` for the paper's timer.
    pub tcp: Option<TcpSettings>,
    /// Whether that TCP has a congestion window.
    pub congestion_window: bool,
    /// Fixed retransmission timeout, or `None` for an adaptive one.
    pub retransmission_timeout: Option<Span>,
    /// Time without progress after which a host is given up.
    pub give_up: Span,
    /// Idle time after which a connection is forgotten.
    pub idle_timeout: Span,
    /// Processing time, or `None` for no time.
    pub processing: Option<Processing>,
    /// Crashes in order.
    pub crashes: Vec<Crash>,
}

/// How far beyond a host's window a hybrid gateway sends.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Anticipation {
    /// Without a limit.
    Unlimited,
    /// Not beyond the window.
    Strict,
    /// This multiple of the window.
    Factor(f64),
}

/// Selects connections.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TrafficClass {
    /// Destination ports, or `None` for all.
    pub ports: Option<Vec<PortRange>>,
    /// Indices of nodes at either end, ascending, or `None` for all.
    pub hosts: Option<Vec<usize>>,
}
