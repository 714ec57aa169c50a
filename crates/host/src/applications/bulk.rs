//! Bulk transfers: one or several in sequence, in either direction or both.

use bentpipe_tcp::Events;
use bentpipe_types::{Endpoint, Span, Time};

use crate::{Application, ApplicationProgress, SocketApi, SocketBackend, SocketId};

/// Direction of the data, seen from the end that opens the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Direction {
    /// The opener sends.
    #[default]
    Upload,
    /// The opener receives.
    Download,
    /// Both ends send at once.
    Both,
}

/// Settings of bulk transfers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BulkSettings {
    /// Bytes of a transfer in one direction, or `None` until the end of the run.
    pub size: Option<u64>,
    /// Direction.
    pub direction: Direction,
    /// Number of transfers, in sequence on one connection.
    pub transfers: u64,
    /// Time from the acknowledgment of a transfer to the start of the next.
    pub pause: Span,
}

/// One end. If it sends, it keeps the send buffer full until its transfers are written; it reads
/// everything that arrives. Closes after its data, or when the other end has closed.
#[derive(Debug)]
pub(super) struct Bulk {
    server: Option<Endpoint>,
    settings: BulkSettings,
    sends: bool,
    /// Number of transfers begun.
    begun: u64,
    /// Start time and socket of the next transfer.
    next: Option<(Time, SocketId)>,
    /// When this end had sent and received everything.
    finished: Option<Time>,
}

impl Bulk {
    /// Creates the opening end.
    pub(super) fn opener(server: Endpoint, settings: BulkSettings) -> Self {
        let sends = settings.direction != Direction::Download;
        Self::new(Some(server), settings, sends)
    }

    /// Creates the accepting end.
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

    /// Returns the bytes of all transfers in one direction.
    fn bytes(&self) -> u64 {
        let size = self.settings.size.unwrap_or(u64::MAX);
        size.saturating_mul(self.settings.transfers)
    }

    fn transfer<D: SocketApi>(&mut self, socket: SocketId, api: &mut D) {
        self.begun += 1;
        let is_last = self.begun >= self.settings.transfers;
        if self.settings.size.is_some() {
            api.watch_drained(socket);
        }
        api.feed(socket, self.settings.size.unwrap_or(u64::MAX), is_last);
    }
}

impl<P: SocketBackend> Application<P> for Bulk {
    fn start(&mut self, api: &mut P::Api<'_, '_>) {
        // If no connection can be opened the flow never begins, as its result shows.
        if let Some(Ok(socket)) = self.server.map(|server| api.connect(server)) {
            api.sink(socket);
        }
    }

    fn on_accept(&mut self, socket: SocketId, api: &mut P::Api<'_, '_>) {
        api.sink(socket);
    }

    fn on_events(&mut self, socket: SocketId, events: Events, api: &mut P::Api<'_, '_>) {
        if events.has(Events::ESTABLISHED) && self.sends {
            self.transfer(socket, api);
        }
        // The connection may have been drained for a moment before more was written.
        let drained = |api: &P::Api<'_, '_>| api.is_drained(socket);
        if events.has(Events::DRAINED)
            && self.sends
            && self.begun < self.settings.transfers
            && drained(api)
        {
            self.next = Some((api.now() + self.settings.pause, socket));
        }
        if events.has(Events::PEER_CLOSED) && !self.sends {
            api.close(socket);
        }
        let is_sent = !self.sends || self.begun >= self.settings.transfers && drained(api);
        let is_got =
            self.settings.direction == Direction::Upload || api.delivered(socket) >= self.bytes();
        if self.server.is_some() && self.finished.is_none() && is_sent && is_got {
            self.finished = Some(api.now());
        }
        if events.has(Events::CLOSED) {
            self.next = None;
        }
    }

    fn on_deadline(&mut self, api: &mut P::Api<'_, '_>) {
        if let Some((at, socket)) = self.next
            && at <= api.now()
        {
            self.next = None;
            self.transfer(socket, api);
        }
    }

    fn keeps_to_packets(&self) -> bool {
        true
    }

    fn speaks_first(&self) -> bool {
        self.sends
    }

    fn progress(&self) -> ApplicationProgress {
        ApplicationProgress {
            next: self.next.map(|(at, _)| at),
            finished: self.finished,
            latest: None,
        }
    }
}
