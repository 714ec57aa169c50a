//! The application interface.

use std::fmt::Debug;

use bentpipe_tcp::{Events, Limit};
use bentpipe_types::{Endpoint, PacketRef, Span, Time};

use crate::{Datagram, Report, SocketBackend, SocketId};

/// An application at one end of a flow, on a host with either clock. It is notified of events and
/// never blocks.
///
/// It accesses its sockets through a [`SocketContext`](SocketBackend::Api). An event is not
/// repeated: unread data stay readable, and the next event comes when more arrive.
pub trait Application<P: SocketBackend>: Debug + Send {
    /// Called at its start time.
    fn start(&mut self, api: &mut P::Api<'_, '_>) {
        let _ = api;
    }

    /// Called when a listener has accepted a connection for it, on the peer's SYN.
    fn on_accept(&mut self, socket: SocketId, api: &mut P::Api<'_, '_>) {
        let _ = (socket, api);
    }

    /// Called with events of one of its connections.
    fn on_events(&mut self, socket: SocketId, events: Events, api: &mut P::Api<'_, '_>);

    /// Called with a datagram for it.
    fn on_datagram(&mut self, arrival: Arrival, api: &mut P::Api<'_, '_>) {
        let _ = (arrival, api);
    }

    /// Called at the time that [`progress`](Self::progress) returned.
    fn on_deadline(&mut self, api: &mut P::Api<'_, '_>) {
        let _ = api;
    }

    /// Returns its progress. Called after every call.
    fn progress(&self) -> ApplicationProgress {
        ApplicationProgress::default()
    }

    /// Whether it writes at once on each connection that it opens, before anything arrives. Only
    /// then does Fast Open wait for its data before the SYN; an application that waits for a
    /// greeting would wait for ever.
    fn speaks_first(&self) -> bool {
        false
    }

    /// Returns the bytes of datagrams that it received. Connections count their own bytes.
    fn datagram_bytes(&self) -> u64 {
        0
    }

    /// Returns the state of its own transport protocol, if it has one over datagrams.
    fn transport(&self) -> Option<TransportState> {
        None
    }

    /// Whether it and its peer communicate by packets alone. A simulated request has no content, so
    /// most applications pass it to their peer beside the network.
    fn keeps_to_packets(&self) -> bool {
        false
    }

    /// Adds its metrics at this time to an empty report.
    fn report(&self, now: Time, report: &mut Report) {
        let _ = (now, report);
    }
}

impl<P: SocketBackend> dyn Application<P> {
    /// Returns its metrics at this time.
    #[must_use]
    pub fn metrics(&self, now: Time) -> Report {
        let mut report = Report::default();
        self.report(now, &mut report);
        report
    }
}

/// State of a transport protocol over datagrams at an instant: of its latest connection. Sizes are
/// in bytes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TransportState {
    /// Congestion window.
    pub congestion_window: u64,
    /// Slow start threshold, after the first congestion.
    pub slow_start_threshold: Option<u64>,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Smoothed round-trip time, after the first measurement.
    pub smoothed_rtt: Option<Span>,
    /// Pacing rate that the window rule sets, in bit/s.
    pub pacing_rate: Option<u64>,
    /// Limit of the sender, as [`bentpipe_tcp::Limit`].
    pub limit: Limit,
}

/// Progress of an application.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ApplicationProgress {
    /// When it next wants to run without an event. `None` means that it will do nothing more by
    /// itself.
    pub next: Option<Time>,
    /// When it had completed its task.
    pub finished: Option<Time>,
    /// The time that it measured last: of a response, a page, a packet's delay.
    pub latest: Option<Span>,
}

impl ApplicationProgress {
    /// Returns whether the time at which it wanted to run has come, and clears it.
    pub(crate) fn takes_turn(&mut self, now: Time) -> bool {
        let is_due = self.next.is_some_and(|at| at <= now);
        if is_due {
            self.next = None;
        }
        is_due
    }
}

/// A received datagram.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Sender.
    pub from: Endpoint,
    /// Local destination port.
    pub to: u16,
    /// The datagram.
    pub datagram: Datagram,
    /// Its packet, which exists during the call. The kernel's datagrams have none.
    pub packet: Option<PacketRef>,
}
