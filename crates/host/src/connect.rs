//! Parameters and errors of opening a connection.

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
    /// Its node, or the attached node in front of it, and its port.
    pub endpoint: Endpoint,
    /// Real addresses, if any: this end's and the other's.
    pub ip: Option<(IpAddr, IpAddr)>,
}

impl From<Endpoint> for Remote {
    fn from(endpoint: Endpoint) -> Self {
        Self { endpoint, ip: None }
    }
}

/// Parameters of a connection to be opened.
#[derive(Clone, Copy, Debug)]
pub struct Connect<'a> {
    /// Destination.
    pub remote: Remote,
    /// Local port, or `None` for the application's next one.
    pub local_port: Option<u16>,
    /// TCP configuration, or `None` for the application's.
    pub config: Option<&'a Arc<Config>>,
    /// Fast Open on the SYN (RFC 7413); `bytes` is ignored.
    pub fast_open: ActiveFastOpen,
    /// Data for the SYN.
    pub data: Source<'a>,
}

impl Connect<'_> {
    /// Creates default parameters.
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

/// Reason why a connection was not opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectError {
    /// No route.
    NoRoute,
    /// The connection table is full.
    TableFull,
    /// The local port, or every port, is in use towards that destination.
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
