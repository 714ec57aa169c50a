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

    /// A datagram has come for it, to this port of its host's.
    fn on_datagram(
        &mut self,
        from: Endpoint,
        to: u16,
        datagram: Datagram,
        desk: &mut P::Desk<'_, '_>,
    ) {
        let _ = (from, to, datagram, desk);
    }

    /// [`next_deadline`](Self::next_deadline) has come.
    fn on_deadline(&mut self, desk: &mut P::Desk<'_, '_>) {
        let _ = desk;
    }

    /// When it next wants to run without news. Asked after every call. One that never wants to again
    /// has, of its own accord, nothing more to do.
    fn next_deadline(&self) -> Option<Time> {
        None
    }

    /// When it had done all that it set out to do.
    fn finished(&self) -> Option<Time> {
        None
    }

    /// The time that it measured last: an answer's, a page's, a packet's delay.
    fn latest(&self) -> Option<Span> {
        None
    }

    /// Bytes of datagrams that it was given. (Those of connections, they count.)
    fn datagram_bytes(&self) -> u64 {
        0
    }

    /// What has come of it by now.
    fn report(&self, now: Time) -> Report {
        let _ = now;
        Report::default()
    }
}
