//! What belongs to one application of a host: settings, ports, luck, and what its connections have
//! come to.

use std::sync::Arc;

use bentpipe_tcp::{Config, Connection, Statistics};
use bentpipe_types::{RandomStream, StreamCheck, Time};

use crate::Ports;

/// An application of a host, in the order they were added.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ApplicationId(pub(crate) u32);

/// How an application becomes a member of a host.
#[derive(Clone, Debug)]
pub struct Member {
    /// The TCP of its connections, unless it says otherwise for one.
    pub config: Arc<Config>,
    /// Local ports for those that it opens.
    pub ports: Ports,
    /// Where its datagrams come from; `None`: the first of those ports.
    pub datagram_port: Option<u16>,
    /// When it starts; `None` for one that waits to be spoken to.
    pub starts: Option<Time>,
    /// Its initial sequence numbers, where a host draws them.
    pub sequences: RandomStream,
    /// Its own luck.
    pub random: RandomStream,
    /// Connections that are closed stay as they were, for whoever asks about them.
    pub keeps_closed: bool,
}

impl Member {
    /// One that waits to be spoken to, and draws no luck of its own.
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

/// The books of one application.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) member: Member,
    /// Places of its connections.
    pub(crate) sockets: Vec<u32>,
    /// The latest of its connections that are over.
    pub(crate) retired: Option<Box<Connection>>,
    /// What those before it have counted.
    pub(crate) totals: Option<Box<Statistics>>,
    /// Its connections ever.
    pub(crate) opened: u64,
    /// It was made for one connection, and goes with it.
    pub(crate) transient: bool,
    /// What it writes first may go with its SYNs (Fast Open).
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

    /// A connection is over.
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
