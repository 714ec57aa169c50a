//! Bulk transfers: one or several after another, either way or both.

use bentpipe_tcp::Events;
use bentpipe_types::{Endpoint, Span, Time};

use crate::{Application, SocketId, Standing, Workplace, World};

/// Which way bytes go, from the point of view of the end that opens the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Direction {
    /// The opener sends.
    #[default]
    Upload,
    /// The opener receives.
    Download,
    /// Both at once.
    Both,
}

/// What is transferred.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BulkSettings {
    /// Bytes of a transfer, one way; `None`: until the end of the run.
    pub size: Option<u64>,
    /// Which way.
    pub direction: Direction,
    /// Transfers, one after another on the same connection.
    pub transfers: u64,
    /// From when all of a transfer is acknowledged to when the next begins.
    pub pause: Span,
}

/// One end: keeps the send buffer full until its transfers are written, if it sends, and reads whatever
/// comes. Closes behind what it sends, or when the other end has closed.
#[derive(Debug)]
pub(super) struct Bulk {
    server: Option<Endpoint>,
    settings: BulkSettings,
    sends: bool,
    /// Transfers that were begun.
    begun: u64,
    /// When the next begins, and where.
    next: Option<(Time, SocketId)>,
    /// When this end had sent and got all.
    finished: Option<Time>,
}

impl Bulk {
    /// The end that opens.
    pub(super) fn opener(server: Endpoint, settings: BulkSettings) -> Self {
        let sends = settings.direction != Direction::Download;
        Self::new(Some(server), settings, sends)
    }

    /// The end that is spoken to.
    pub(super) fn server(settings: BulkSettings) -> Self {
        let sends = settings.direction != Direction::Upload;
        Self::new(None, settings, sends)
    }

    fn new(server: Option<Endpoint>, settings: BulkSettings, sends: bool) -> Self {
        Self {
            server,
            settings,
            sends,
            begun: 0,
            next: None,
            finished: None,
        }
    }

    /// Bytes of all transfers, one way.
    fn bytes(&self) -> u64 {
        let size = self.settings.size.unwrap_or(u64::MAX);
        size.saturating_mul(self.settings.transfers)
    }

    fn transfer<D: Workplace>(&mut self, socket: SocketId, desk: &mut D) {
        self.begun += 1;
        let is_last = self.begun >= self.settings.transfers;
        if self.settings.size.is_some() {
            desk.watch_drained(socket);
        }
        desk.feed(socket, self.settings.size.unwrap_or(u64::MAX), is_last);
    }
}

impl<P: World> Application<P> for Bulk {
    fn start(&mut self, desk: &mut P::Desk<'_, '_>) {
        // Where no connection can be opened, the flow never begins, and its result says so.
        if let Some(Ok(socket)) = self.server.map(|server| desk.connect(server)) {
            desk.sink(socket);
        }
    }

    fn on_accept(&mut self, socket: SocketId, desk: &mut P::Desk<'_, '_>) {
        desk.sink(socket);
    }

    fn on_events(&mut self, socket: SocketId, events: Events, desk: &mut P::Desk<'_, '_>) {
        if events.has(Events::ESTABLISHED) && self.sends {
            self.transfer(socket, desk);
        }
        // Drained it may have been for a moment, until it was fed on.
        let drained = |desk: &P::Desk<'_, '_>| desk.is_drained(socket);
        if events.has(Events::DRAINED)
            && self.sends
            && self.begun < self.settings.transfers
            && drained(desk)
        {
            self.next = Some((desk.now() + self.settings.pause, socket));
        }
        if events.has(Events::PEER_CLOSED) && !self.sends {
            desk.close(socket);
        }
        let is_sent = !self.sends || self.begun >= self.settings.transfers && drained(desk);
        let is_got =
            self.settings.direction == Direction::Upload || desk.delivered(socket) >= self.bytes();
        if self.server.is_some() && self.finished.is_none() && is_sent && is_got {
            self.finished = Some(desk.now());
        }
        if events.has(Events::CLOSED) {
            self.next = None;
        }
    }

    fn on_deadline(&mut self, desk: &mut P::Desk<'_, '_>) {
        if let Some((at, socket)) = self.next
            && at <= desk.now()
        {
            self.next = None;
            self.transfer(socket, desk);
        }
    }

    fn keeps_to_packets(&self) -> bool {
        true
    }

    fn speaks_first(&self) -> bool {
        self.sends
    }

    fn standing(&self) -> Standing {
        Standing {
            next: self.next.map(|(at, _)| at),
            finished: self.finished,
            latest: None,
        }
    }
}
