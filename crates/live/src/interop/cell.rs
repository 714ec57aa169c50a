//! One cell of the matrix: what is done, over what, with which options.

use std::fmt;

use bentpipe_tcp::Config;
use bentpipe_types::{IpVersion, Span};

use crate::Impairment;

/// Which side opens the connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Ours does.
    Client,
    /// The kernel does.
    Server,
}

/// The options that the two may agree on. What is off, the side that is connected to refuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// RFC 2018
    pub sack: bool,
    /// RFC 7323 section 2
    pub window_scaling: bool,
    /// RFC 7323 section 3
    pub timestamps: bool,
}

impl Options {
    /// All on.
    pub const ALL: Self = Self {
        sack: true,
        window_scaling: true,
        timestamps: true,
    };

    /// The eight combinations, all on first.
    #[must_use]
    pub fn combinations() -> [Self; 8] {
        std::array::from_fn(|bits| Self {
            sack: bits & 1 == 0,
            window_scaling: bits & 2 == 0,
            timestamps: bits & 4 == 0,
        })
    }
}

/// What the path does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Condition {
    /// Nothing.
    Clean,
    /// Loses 1% of the packets, each way.
    Loss,
    /// Holds 2% of the packets back for 1 ms, each way.
    Reordering,
    /// Sends 2% of the packets twice, each way.
    Duplication,
    /// The three together.
    Everything,
}

impl Condition {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Clean,
        Self::Loss,
        Self::Reordering,
        Self::Duplication,
        Self::Everything,
    ];

    /// What the path does to packets.
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

/// What the two do with one another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exchange {
    /// One connection, so many bytes each way at the same time.
    Transfer {
        /// Bytes each way.
        bytes: u64,
    },
    /// So many connections, each with a small request, a half-close, and a reply.
    Short {
        /// Connections.
        connections: u32,
    },
    /// The side that opens sends and closes; only then does the other send so many bytes.
    HalfClose {
        /// Bytes of the reply.
        bytes: u64,
    },
    /// Ours aborts in the middle of the kernel's data.
    OurReset,
    /// The kernel aborts in the middle of ours.
    TheirReset,
    /// The side that opens does so to a port where nobody listens.
    Refused,
    /// Our reader stops for a time and goes on.
    OurPause,
    /// The kernel's reader does.
    TheirPause,
}

/// One cell of the matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cell {
    /// What is done.
    pub exchange: Exchange,
    /// Who opens.
    pub role: Role,
    /// Over what.
    pub version: IpVersion,
    /// The device's MTU, in bytes.
    pub mtu: u16,
    /// With what.
    pub options: Options,
    /// Through what.
    pub condition: Condition,
}

/// How long a reader stops.
pub(super) const PAUSE: Span = Span::from_millis(1500);
/// After how many bytes.
pub(super) const PAUSE_AFTER: u64 = 1 << 20;
/// Receive buffer of a reader that stops.
pub(super) const PAUSE_BUFFER: u64 = 256 << 10;

impl Cell {
    /// The settings of our TCP: the default ones, but for what the cell asks.
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

    /// The kernel's parameters.
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
