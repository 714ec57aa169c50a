//! Listeners.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bentpipe_tcp::{Config, PassiveFastOpen};
use bentpipe_types::{Address, FastOpen};

use crate::{Application, ApplicationId, ConnectionKeys, Remote};

/// Fast Open policy of a listener, given a SYN's payload length and option.
pub type FastOpenPolicy = dyn FnMut(u16, Option<FastOpen>) -> PassiveFastOpen + Send;

/// Creates an application for each connection.
type Make<P> = dyn FnMut(Remote) -> Box<dyn Application<P>> + Send;

/// The application that accepts a connection.
pub enum Taker<P: ConnectionKeys> {
    /// One for all connections.
    One(ApplicationId),
    /// A new one for each connection and its remote end, with this TCP configuration.
    Each(Arc<Config>, Box<Make<P>>),
    /// By the remote end's address and the first port of a range: last port of the range, and
    /// application. Other remote ends are refused.
    Expected(BTreeMap<(Address, u16), (u16, ApplicationId)>),
}

impl<P: ConnectionKeys> Taker<P> {
    /// Returns the application for a connection from `remote`, if it exists already.
    pub(crate) fn known(&self, remote: Remote) -> Option<ApplicationId> {
        match self {
            Self::One(application) => Some(*application),
            Self::Each(..) => None,
            Self::Expected(ranges) => {
                let end = (remote.endpoint.address, remote.endpoint.port);
                let (first, (last, application)) = ranges.range(..=end).next_back()?;
                (first.0 == end.0 && end.1 <= *last).then_some(*application)
            }
        }
    }
}

/// A listening port.
pub struct Listener<P: ConnectionKeys> {
    /// The accepting application.
    pub taker: Taker<P>,
    /// Fast Open policy, if enabled.
    pub fast_open: Option<Box<FastOpenPolicy>>,
}

impl<P: ConnectionKeys> Listener<P> {
    /// Creates a listener without Fast Open.
    #[must_use]
    pub fn new(taker: Taker<P>) -> Self {
        Self {
            taker,
            fast_open: None,
        }
    }
}

impl<P: ConnectionKeys> fmt::Debug for Listener<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let taker = match &self.taker {
            Taker::One(_) => "one",
            Taker::Each(..) => "each",
            Taker::Expected(_) => "expected",
        };
        f.debug_struct("Listener")
            .field("taker", &taker)
            .field("fast_open", &self.fast_open.is_some())
            .finish()
    }
}
