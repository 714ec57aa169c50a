//! How a connection is opened: to whom, with what, and why it was not.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use bentpipe_tcp::{ActiveFastOpen, Config, Source};
use bentpipe_types::Endpoint;

/// No bytes.
const NOTHING: Source<'static> = Source::Filler(0);

/// The other end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Remote {
    /// Its node, or the one behind which it is, and its port.
    pub endpoint: Endpoint,
    /// Real addresses, where there are any: this end's, and the other's.
    pub ip: Option<(IpAddr, IpAddr)>,
}

impl From<Endpoint> for Remote {
    fn from(endpoint: Endpoint) -> Self {
        Self { endpoint, ip: None }
    }
}

/// How a connection is to be opened.
#[derive(Clone, Copy, Debug)]
pub struct Connect<'a> {
    /// Where to.
    pub remote: Remote,
    /// From this port; `None`: the application's next.
    pub local_port: Option<u16>,
    /// With this TCP; `None`: the application's.
    pub config: Option<&'a Arc<Config>>,
    /// What goes with the SYN (RFC 7413): `bytes` is of no account.
    pub fast_open: ActiveFastOpen,
    /// Data for it.
    pub data: Source<'a>,
}

impl Connect<'_> {
    /// The usual way.
    #[must_use]
    pub fn to(remote: Remote) -> Self {
        Self {
            remote,
            local_port: None,
            config: None,
            fast_open: ActiveFastOpen::default(),
            data: NOTHING,
        }
    }
}

/// Why a connection was not opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectError {
    /// No way leads there.
    NoRoute,
    /// The table of connections is full.
    TableFull,
    /// The local port is in use towards that remote end, or all are.
    PortInUse,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoRoute => "no way leads there",
            Self::TableFull => "the table of connections is full",
            Self::PortInUse => "the local port is in use",
        })
    }
}

impl std::error::Error for ConnectError {}
