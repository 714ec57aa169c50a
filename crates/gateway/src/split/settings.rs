//! What a split gateway can be told.

use std::net::IpAddr;

use bentpipe_tcp::Config;
use bentpipe_types::{Address, IpVersion, Port, Processing, Span};

use super::legs::Kind;
use crate::Class;

/// After ten seconds nearly all connections that say something have said more; and to pack and unpack one
/// takes some microseconds.
pub const REST_AFTER: Span = Span::from_secs(10);

/// The settings of a gateway that splits connections.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The port towards the link that the gateway is there for.
    pub facing: Port,
    /// The TCP of the parts of connections that go out there.
    pub facing_tcp: Config,
    /// The TCP of the other parts.
    pub host_tcp: Config,
    /// When the side that opens a connection is answered.
    pub set_up: Answer,
    /// When the end of a stream is confirmed to the side that sends it.
    pub close: Answer,
    /// Most bytes of streams that are promised room at once, all connections together.
    pub memory: u64,
    /// Split only these; `None`: all.
    pub only: Option<Class>,
    /// Don't split these; `None`: there are none.
    pub except: Option<Class>,
    /// What a packet takes; `None`: no time.
    pub processing: Option<Processing>,
    /// Parts that go out at `facing` begin with the window and the threshold that earlier ones have
    /// ended with; a persistent connection keeps its window while nothing goes over it.
    pub warm_path: bool,
    /// After so long without a packet, a connection is reset.
    pub idle_timeout: Span,
    /// After so long without a packet, twice that at most, what is kept of a connection is packed; see
    /// [`REST_AFTER`].
    pub rest_after: Span,
    /// Carry what goes out at `facing` over persistent connections to another gateway; `None`: each
    /// connection has a part of its own.
    pub multiplex: Option<Multiplexing>,
}

/// Persistent connections to another gateway, which has as many to this one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Multiplexing {
    /// The other gateway.
    pub peer: Address,
    /// How many there are at most.
    pub connections: usize,
    /// Between real networks.
    pub real: Option<RealSide>,
}

/// What two gateways between real networks cannot tell by their nodes, which each of them numbers for itself: a host is known
/// by its real address there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RealSide {
    /// The node that stands for all hosts on this side.
    pub hosts: Address,
    /// The addresses of this gateway and of the other, of one version of IP.
    pub own: IpAddr,
    /// See `own`.
    pub peer: IpAddr,
}

impl RealSide {
    pub(super) const fn version(&self) -> IpVersion {
        match self.own {
            IpAddr::V4(_) => IpVersion::V4,
            IpAddr::V6(_) => IpVersion::V6,
        }
    }
}

impl Settings {
    /// The TCP of a new leg of this kind that offers `first` at first.
    pub(super) fn leg(&self, kind: Kind, first: u64) -> Config {
        let mut config = match kind {
            Kind::Facing => self.facing_tcp.clone(),
            Kind::Host | Kind::Carried => self.host_tcp.clone(),
        };
        config.first_window = Some(first);
        // The gateway's memory says how far a window may grow, not a rule of the connection's own.
        config.receive_buffer = config.most_received();
        config.receive_sizes = None;
        // One unit of the window scale must not be more than half of what is offered at first, or the
        // window that can be said is none (RFC 7323 section 2.3).
        let widest_shift = (first / 2).max(1).ilog2().min(14);
        config.window_shift = config.window_shift.min(widest_shift as u8);
        config.receive_buffer = config.receive_buffer.min(65_535 << widest_shift);
        if kind == Kind::Carried {
            // What was offered to the other gateway must find room.
            config.send_buffer = self.most_to_host();
            config.send_sizes = None;
        }
        config
    }

    /// The most that is offered to another gateway for a host.
    pub(super) fn most_to_host(&self) -> u64 {
        let tcp = &self.host_tcp;
        let buffer = tcp.send_sizes.map_or(tcp.send_buffer, |sizes| sizes.most);
        buffer.max(super::budget::FIRST)
    }
}

/// When one side is told what has become of what it asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// When the other side has answered.
    EndToEnd,
    /// At once.
    Early,
}
