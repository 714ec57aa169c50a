//! Who takes the connections to a port.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bentpipe_tcp::{Config, PassiveFastOpen};
use bentpipe_types::{Address, FastOpen};

use crate::{Application, ApplicationId, Realm, Remote};

/// What a listener does about Fast Open, from a SYN's payload length and option.
pub type FastOpenPolicy = dyn FnMut(u16, Option<FastOpen>) -> PassiveFastOpen + Send;

/// Makes an application for each connection.
type Make<P> = dyn FnMut(Remote) -> Box<dyn Application<P>> + Send;

/// Which application takes a connection.
pub enum Taker<P: Realm> {
    /// One for all.
    One(ApplicationId),
    /// A new one for each, and with its TCP, made for its remote end.
    Each(Arc<Config>, Box<Make<P>>),
    /// Whose the remote end is: by its address and the first of a range of its ports, the last of the
    /// range and the application. Others are refused.
    Expected(BTreeMap<(Address, u16), (u16, ApplicationId)>),
}

impl<P: Realm> Taker<P> {
    /// The application for a connection from `remote`, if there is one already.
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

/// A port on which connections are taken.
pub struct Listener<P: Realm> {
    /// Who takes them.
    pub taker: Taker<P>,
    /// Fast Open, if at all.
    pub fast_open: Option<Box<FastOpenPolicy>>,
}

impl<P: Realm> Listener<P> {
    /// Without Fast Open.
    #[must_use]
    pub fn new(taker: Taker<P>) -> Self {
        Self {
            taker,
            fast_open: None,
        }
    }
}

impl<P: Realm> fmt::Debug for Listener<P> {
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
