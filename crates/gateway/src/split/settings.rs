//! Settings of a split gateway.

use std::net::IpAddr;

use bentpipe_tcp::Config;
use bentpipe_types::{Address, IpVersion, Port, Processing, Span};

use super::host_secret::HostSecret;
use super::rate_limits::RateLimit;
use crate::ConnectionClass;

/// Default time without packets after which a connection is suspended. After ten seconds nearly all
/// connections that are going to send have sent, and to suspend and restore one takes only some
/// microseconds.
pub const SUSPEND_AFTER: Span = Span::from_secs(10);

/// Settings of a gateway that splits connections.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Port towards the facing link.
    pub facing: Port,
    /// TCP settings of the legs over the facing link.
    pub facing_tcp: Config,
    /// TCP settings of the other legs.
    pub host_tcp: Config,
    /// When the SYN of the opening host is answered.
    pub set_up: Confirmation,
    /// When the FIN of a host is acknowledged.
    pub close: Confirmation,
    /// Limit of bytes promised to all connections together.
    pub memory: u64,
    /// Class of connections to split; `None` for all.
    pub only: Option<ConnectionClass>,
    /// Class of connections not to split; `None` for none.
    pub except: Option<ConnectionClass>,
    /// Most open connections of one source that are split; `None` for no fixed limit. Those of
    /// trunks do not count.
    pub source_connections: Option<u32>,
    /// Rate limits. The first one that matches a packet applies.
    pub rate_limits: Vec<RateLimit>,
    /// Processing time per packet; `None` for no time.
    pub processing: Option<Processing>,
    /// Whether legs over the facing link start with the congestion window and slow-start threshold
    /// of earlier ones. A trunk then keeps its congestion window while it is idle.
    pub warm_path: bool,
    /// Time without packets after which a connection is reset.
    pub idle_timeout: Span,
    /// Time without packets after which a connection's state is packed; at most twice this time.
    /// See [`SUSPEND_AFTER`].
    pub suspend_after: Span,
    /// Trunks to another gateway, for the connections over the facing link; `None` to split each of
    /// them by itself.
    pub multiplex: Option<Multiplexing>,
    /// Secret for the timestamps and sequence numbers of legs between real hosts; `None` in a
    /// simulation, where timestamps are the time.
    pub secret: Option<HostSecret>,
}

/// Trunks to another gateway, which has the same settings for this one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Multiplexing {
    /// The other gateway.
    pub peer: Address,
    /// Number of trunks, at most.
    pub connections: usize,
    /// Addresses in real networks, if hosts have any.
    pub real: Option<RealAddresses>,
}

/// Addresses of two gateways between real networks. Each gateway numbers its nodes by itself, so
/// hosts are identified by their real addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RealAddresses {
    /// Node that stands for all hosts on this side.
    pub hosts: Address,
    /// Address of this gateway, of the same IP version as `peer`.
    pub own: IpAddr,
    /// Address of the other gateway.
    pub peer: IpAddr,
}

impl RealAddresses {
    pub(super) const fn version(&self) -> IpVersion {
        match self.own {
            IpAddr::V4(_) => IpVersion::V4,
            IpAddr::V6(_) => IpVersion::V6,
        }
    }
}

impl Settings {
    /// Returns the TCP settings of a new leg of this type, with the initial receive window `first`.
    pub(super) fn leg(&self, kind: LegType, first: u64) -> Config {
        let mut config = match kind {
            LegType::Facing => self.facing_tcp.clone(),
            LegType::Host | LegType::MultiplexedConnection => self.host_tcp.clone(),
        };
        config.first_window = Some(first);
        // The memory budget limits the growth of the window, not autotuning.
        config.receive_buffer = config.maximum_received();
        config.receive_sizes = None;
        // RFC 7323 section 2.3: the unit of the scaled window is at most half of the initial
        // window. Otherwise a window could not be advertised.
        let widest_shift = (first / 2).max(1).ilog2().min(14);
        config.window_shift = config.window_shift.min(widest_shift as u8);
        config.window_scale = (config.window_scale).map(|scale| scale.min(widest_shift as u8));
        let widest_shift = config.window_scale.map_or(widest_shift, u32::from);
        config.receive_buffer = config.receive_buffer.min(65_535 << widest_shift);
        if kind == LegType::MultiplexedConnection {
            // The send buffer must have space for all the credit granted to the other gateway.
            config.send_buffer = self.most_to_host();
            config.send_sizes = None;
        }
        config
    }

    /// Largest credit granted to another gateway for one host.
    pub(super) fn most_to_host(&self) -> u64 {
        let tcp = &self.host_tcp;
        let buffer = tcp.send_sizes.map_or(tcp.send_buffer, |sizes| sizes.most);
        buffer.max(super::memory_budget::MAX_INITIAL_WINDOW)
    }
}

/// When a host's SYN or FIN is confirmed to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Confirmation {
    /// When the other host has confirmed it (end to end).
    EndToEnd,
    /// At once.
    Early,
}

/// Type of a leg.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LegType {
    /// Over the facing link.
    Facing,
    /// To a host.
    Host,
    /// To a host whose connection is multiplexed.
    MultiplexedConnection,
}
