//! One cell of the matrix: exchange, roles, options and path.

use std::fmt;

use bentpipe_tcp::Config;
use bentpipe_types::{IpVersion, Span};

use crate::Impairment;

/// The role of our side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Our side opens the connections.
    Client,
    /// The kernel opens the connections.
    Server,
}

/// TCP options. The side that accepts the connection rejects those that are off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Selective acknowledgments (RFC 2018).
    pub sack: bool,
    /// Window scaling (RFC 7323 section 2).
    pub window_scaling: bool,
    /// Timestamps (RFC 7323 section 3).
    pub timestamps: bool,
}

impl Options {
    /// All options on.
    pub const ALL: Self = Self {
        sack: true,
        window_scaling: true,
        timestamps: true,
    };

    /// Returns the eight combinations, beginning with all options on.
    #[must_use]
    pub fn combinations() -> [Self; 8] {
        std::array::from_fn(|bits| Self {
            sack: bits & 1 == 0,
            window_scaling: bits & 2 == 0,
            timestamps: bits & 4 == 0,
        })
    }
}

/// Impairments of the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Condition {
    /// No impairments.
    Clean,
    /// 1% loss in each direction.
    Loss,
    /// 2% of the packets delayed by 1 ms, in each direction.
    Reordering,
    /// 2% of the packets duplicated, in each direction.
    Duplication,
    /// Loss, reordering and duplication.
    Everything,
}

impl Condition {
    /// All conditions.
    pub const ALL: [Self; 5] = [
        Self::Clean,
        Self::Loss,
        Self::Reordering,
        Self::Duplication,
        Self::Everything,
    ];

    /// Returns the impairments of the path.
    #[must_use]
    pub fn impairment(self) -> Impairment {
        let loses = matches!(self, Self::Loss | Self::Everything);
        let reorders = matches!(self, Self::Reordering | Self::Everything);
        let doubles = matches!(self, Self::Duplication | Self::Everything);
        let chance = |happens, probability| if happens { probability } else { 0.0 };
        Impairment {
            loss: chance(loses, 0.01),
            reordering: chance(reorders, 0.02),
            duplication: chance(doubles, 0.02),
            held_back: Span::from_millis(1),
        }
    }
}

/// The exchange between the two sides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exchange {
    /// One connection with data in both directions at the same time.
    Transfer {
        /// Bytes in each direction.
        bytes: u64,
    },
    /// Connections with a small request, a half-close, and a reply.
    Short {
        /// Number of connections.
        connections: u32,
    },
    /// The opener sends and closes; the other side sends only after that.
    HalfClose {
        /// Bytes of the reply.
        bytes: u64,
    },
    /// Our side aborts while it receives.
    OurReset,
    /// The kernel aborts while it receives.
    TheirReset,
    /// The opener connects to a port without a listener.
    Refused,
    /// Our reader pauses and continues.
    OurPause,
    /// The kernel's reader pauses and continues.
    TheirPause,
}

/// One cell of the matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cell {
    /// The exchange.
    pub exchange: Exchange,
    /// Which side opens.
    pub role: Role,
    /// IP version.
    pub version: IpVersion,
    /// MTU of the device, in bytes.
    pub mtu: u16,
    /// TCP options.
    pub options: Options,
    /// Impairments of the path.
    pub condition: Condition,
}

/// Duration of a reader's pause.
pub(super) const PAUSE: Span = Span::from_millis(1500);
/// Bytes read before the pause.
pub(super) const PAUSE_AFTER: u64 = 1 << 20;
/// Receive buffer of a reader that pauses.
pub(super) const PAUSE_BUFFER: u64 = 256 << 10;

impl Cell {
    /// Returns the settings of our TCP: the defaults, with the cell's options.
    pub(super) fn config(&self) -> Config {
        let (ours, off_here) = (Config::default(), self.role == Role::Server);
        let on = |option: bool| option || !off_here;
        let timestamps = on(self.options.timestamps);
        let headers =
            u16::from(self.version.header_length()) + 20 + if timestamps { 12 } else { 0 };
        Config {
            mss: self.mtu - headers,
            sack: on(self.options.sack),
            window_scaling: on(self.options.window_scaling),
            timestamps,
            ip_version: self.version,
            receive_buffer: if self.exchange == Exchange::OurPause {
                PAUSE_BUFFER
            } else {
                ours.receive_buffer
            },
            ..ours
        }
    }

    /// Returns the kernel's parameters.
    pub(super) fn parameters(&self) -> [(&'static str, &'static str); 3] {
        let off_there = self.role == Role::Client;
        let value = |option: bool| if option || !off_there { "1" } else { "0" };
        [
            ("net.ipv4.tcp_sack", value(self.options.sack)),
            (
                "net.ipv4.tcp_window_scaling",
                value(self.options.window_scaling),
            ),
            ("net.ipv4.tcp_timestamps", value(self.options.timestamps)),
        ]
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let role = match self.role {
            Role::Client => "client",
            Role::Server => "server",
        };
        let version = match self.version {
            IpVersion::V4 => "IPv4",
            IpVersion::V6 => "IPv6",
        };
        write!(
            f,
            "{} {role} {version} mtu={} {} {}",
            self.exchange, self.mtu, self.options, self.condition
        )
    }
}

impl fmt::Display for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transfer { bytes } => write!(f, "transfer({} MB)", bytes / 1_000_000),
            Self::Short { connections } => write!(f, "short({connections})"),
            Self::HalfClose { .. } => f.write_str("half-close"),
            Self::OurReset => f.write_str("our-reset"),
            Self::TheirReset => f.write_str("their-reset"),
            Self::Refused => f.write_str("refused"),
            Self::OurPause => f.write_str("our-pause"),
            Self::TheirPause => f.write_str("their-pause"),
        }
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (self.sack, "sack"),
            (self.window_scaling, "ws"),
            (self.timestamps, "ts"),
        ];
        let on: Vec<_> = names.iter().filter(|(on, _)| *on).map(|n| n.1).collect();
        if on.is_empty() {
            return f.write_str("none");
        }
        f.write_str(&on.join("+"))
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Clean => "clean",
            Self::Loss => "loss",
            Self::Reordering => "reordering",
            Self::Duplication => "duplication",
            Self::Everything => "everything",
        })
    }
}
