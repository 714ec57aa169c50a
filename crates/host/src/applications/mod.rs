//! What runs on top of connections, one file each, and which two ends a flow has.

mod bulk;
mod sink;

pub use bulk::Bulk;
pub use sink::Sink;

use bentpipe_types::Endpoint;

use crate::{Application, Realm};

/// What a flow is: the applications at its two ends.
#[derive(Clone, PartialEq, Debug)]
pub enum Traffic {
    /// A bulk transfer.
    Bulk {
        /// Bytes; `None`: until the end of the run.
        size: Option<u64>,
    },
}

/// One of the two ends of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The one that opens.
    Opener,
    /// The one that is spoken to.
    Server,
}

/// The two ends of a flow.
pub struct Ends<P: Realm> {
    /// The one that opens.
    pub opener: Box<dyn Application<P>>,
    /// The one that is spoken to.
    pub server: Box<dyn Application<P>>,
}

/// The port on which receivers listen (commplex-link, the one that iperf made known).
const COMMPLEX_LINK: u16 = 5001;

impl Traffic {
    /// Sends `size` bytes and closes; without a size, sends until the end of the run.
    #[must_use]
    pub fn bulk(size: Option<u64>) -> Self {
        Self::Bulk { size }
    }

    /// The port that the server end listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        match self {
            Self::Bulk { .. } => COMMPLEX_LINK,
        }
    }

    /// Which end sends most: the one whose congestion window a probe of the flow shows.
    #[must_use]
    pub fn sender(&self) -> Side {
        match self {
            Self::Bulk { .. } => Side::Opener,
        }
    }

    /// The local ports that the opener may need.
    #[must_use]
    pub fn ports_needed(&self) -> u16 {
        match self {
            Self::Bulk { .. } => 1,
        }
    }

    /// The applications at both ends, the server's at `server`.
    #[must_use]
    pub fn ends<P: Realm>(&self, server: Endpoint) -> Ends<P> {
        match *self {
            Self::Bulk { size } => Ends {
                opener: Box::new(Bulk::new(server, size)),
                server: Box::new(Sink),
            },
        }
    }

    /// The bytes that a whole transfer delivers; `None` if it has no end.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        match self {
            Self::Bulk { size } => *size,
        }
    }
}
