//! What an application is.

use std::fmt::Debug;

use bentpipe_tcp::Events;
use bentpipe_types::{Endpoint, Span, Time};

use crate::{Datagram, Report, SocketId, World};

/// An application at one end of a flow, on a host of either clock. It is told what is new, and never
/// waits.
///
/// What it does to its sockets it does at its desk. What is not read or written now, no event announces
/// again: data stays readable, and an event comes when more arrives.
pub trait Application<P: World>: Debug + Send {
    /// Its time to start has come.
    fn start(&mut self, desk: &mut P::Desk<'_, '_>) {
        let _ = desk;
    }

    /// A listener has taken a connection for it: the peer's SYN has come.
    fn on_accept(&mut self, socket: SocketId, desk: &mut P::Desk<'_, '_>) {
        let _ = (socket, desk);
    }

    /// One of its connections has news.
    fn on_events(&mut self, socket: SocketId, events: Events, desk: &mut P::Desk<'_, '_>);

    /// A datagram has come for it.
    fn on_datagram(&mut self, arrival: Arrival, desk: &mut P::Desk<'_, '_>) {
        let _ = (arrival, desk);
    }

    /// The time that [`standing`](Self::standing) named has come.
    fn on_deadline(&mut self, desk: &mut P::Desk<'_, '_>) {
        let _ = desk;
    }

    /// How far it is. Asked after every call.
    fn standing(&self) -> Standing {
        Standing::default()
    }

    /// Does it write on each connection that it opens, at once, before anything has come? Only then does Fast Open wait for
    /// that with the SYN; who waits to be greeted would wait for ever.
    fn speaks_first(&self) -> bool {
        false
    }

    /// Bytes of datagrams that it was given. (Those of connections, they count.)
    fn datagram_bytes(&self) -> u64 {
        0
    }

    /// Do it and its peer know of each other by packets alone? A simulated request has no content, so that most
    /// others tell their peer what they ask for beside the network.
    fn keeps_to_packets(&self) -> bool {
        false
    }

    /// Puts what has come of it by now into a report, which has nothing in it yet.
    fn report(&self, now: Time, report: &mut Report) {
        let _ = (now, report);
    }
}

impl<P: World> dyn Application<P> {
    /// What it tells of itself by now.
    #[must_use]
    pub fn told(&self, now: Time) -> Report {
        let mut report = Report::default();
        self.report(now, &mut report);
        report
    }
}

/// How far an application is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Standing {
    /// When it next wants to run without news. One that never wants to again has, of its own accord,
    /// nothing more to do.
    pub next: Option<Time>,
    /// When it had done all that it set out to do.
    pub finished: Option<Time>,
    /// The time that it measured last: an answer's, a page's, a packet's delay.
    pub latest: Option<Span>,
}

impl Standing {
    /// Has the time come at which it wanted to run? Then that is no longer to come.
    pub(crate) fn takes_turn(&mut self, now: Time) -> bool {
        let is_due = self.next.is_some_and(|at| at <= now);
        if is_due {
            self.next = None;
        }
        is_due
    }
}

/// A datagram that has come.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Who sent it.
    pub from: Endpoint,
    /// The port of the host's that it was sent to.
    pub to: u16,
    /// What it is.
    pub datagram: Datagram,
}
