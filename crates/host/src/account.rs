//! State of one application of a host: settings, ports, random streams, and the totals of its
//! connections.

use std::sync::Arc;

use bentpipe_tcp::{Config, Connection, Statistics};
use bentpipe_types::{RandomStream, StreamCheck, Time};

use crate::Ports;

/// Identifies an application of a host, in the order in which they were added.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ApplicationId(pub(crate) u32);

/// Registration of an application at a host.
#[derive(Clone, Debug)]
pub struct Member {
    /// TCP configuration of its connections, unless one is given explicitly.
    pub config: Arc<Config>,
    /// Local ports for connections that it opens.
    pub ports: Ports,
    /// Source port of its datagrams, or `None` for the first of those ports.
    pub datagram_port: Option<u16>,
    /// Start time, or `None` for a server.
    pub starts: Option<Time>,
    /// Random stream of its initial sequence numbers, if the host draws them.
    pub sequences: RandomStream,
    /// Its own random stream.
    pub random: RandomStream,
    /// Whether closed connections are kept for inspection.
    pub keeps_closed: bool,
}

impl Member {
    /// Creates the registration of a server without randomness of its own.
    #[must_use]
    pub fn new(config: impl Into<Arc<Config>>) -> Self {
        Self {
            config: config.into(),
            ports: Ports::default(),
            datagram_port: None,
            starts: None,
            sequences: RandomStream::new(0, "host", "initial sequence numbers"),
            random: RandomStream::new(0, "host", "application"),
            keeps_closed: false,
        }
    }
}

/// State of one application.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) member: Member,
    /// Places of its connections.
    pub(crate) sockets: Vec<u32>,
    /// The latest of its closed connections.
    pub(crate) retired: Option<Box<Connection>>,
    /// Totals of its earlier closed connections.
    pub(crate) totals: Option<Box<Statistics>>,
    /// Number of connections ever.
    pub(crate) opened: u64,
    /// Whether it was created for one connection, and is removed with it.
    pub(crate) transient: bool,
    /// Whether its first data may be sent with SYNs (Fast Open).
    pub(crate) speaks_first: bool,
}

impl Account {
    pub(crate) fn new(member: Member, transient: bool, speaks_first: bool) -> Self {
        Self {
            member,
            sockets: Vec::new(),
            retired: None,
            totals: None,
            opened: 0,
            transient,
            speaks_first,
        }
    }

    /// Adds a closed connection.
    pub(crate) fn retire(&mut self, connection: Connection) {
        if let Some(before) = self.retired.replace(Box::new(connection)) {
            (self.totals.get_or_insert_default()).add(before.statistics());
        }
    }

    pub(crate) fn check_of(statistics: &Statistics) -> StreamCheck {
        StreamCheck {
            ranges: statistics.ranges_checked,
            mismatches: statistics.payload_mismatches,
        }
    }
}
