//! The application at our end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bentpipe_host::{Application, ApplicationProgress, Connect, Remote, SocketContext, SocketId};
use bentpipe_tcp::{Events, Rings, State, Statistics};
use bentpipe_types::{Span, Time};

use super::data::{CHUNK, Destination, Source, Tally};

type Context<'a, 'c> = SocketContext<'a, 'c, Rings>;

/// Behaviour of an application.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Key of the data that it sends.
    pub(super) key: u64,
    /// Number of bytes that it sends.
    pub(super) bytes: u64,
    /// Whether it sends only after the peer has closed.
    pub(super) after_peer: bool,
    /// Number of bytes read before it aborts.
    pub(super) abort_after: Option<u64>,
    /// Number of bytes read before it pauses, and duration of the pause.
    pub(super) pause: Option<(u64, Span)>,
}

/// Results of one connection.
#[derive(Clone, Debug)]
pub(super) struct Report {
    pub(super) sent: Tally,
    pub(super) received: Tally,
    pub(super) peer_closed: bool,
    pub(super) reset: bool,
    pub(super) timed_out: bool,
    /// Smallest window open to the peer at the end of a pause.
    pub(super) window_after_pause: Option<u64>,
    /// Whether the peer's window was closed at some time.
    pub(super) peer_window_closed: bool,
    pub(super) statistics: Statistics,
}

/// Collected reports, one for each connection that has ended.
pub(super) type Reports = Arc<Mutex<Vec<Report>>>;

pub(super) fn lock(reports: &Reports) -> MutexGuard<'_, Vec<Report>> {
    reports.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Our end: it accepts one connection, or opens several in sequence.
#[derive(Debug)]
pub(super) struct OurApplication {
    plan: Plan,
    reports: Reports,
    /// The peer, and the number of connections left to open.
    opens: Option<(Remote, u32)>,
    conversation: Option<Conversation>,
}

/// A connection and its progress.
#[derive(Debug)]
struct Conversation {
    socket: SocketId,
    plan: Plan,
    source: Source,
    destination: Destination,
    buffer: Vec<u8>,
    events: Events,
    paused_until: Option<Time>,
    paused_before: bool,
    window_after_pause: Option<u64>,
    peer_window_closed: bool,
    reported: bool,
}

impl OurApplication {
    /// Creates an end that accepts a connection.
    pub(super) fn server(plan: Plan, reports: Reports) -> Self {
        Self {
            plan,
            reports,
            opens: None,
            conversation: None,
        }
    }

    /// Creates an end that opens `connections` to `remote`, one after the other.
    pub(super) fn client(plan: Plan, remote: Remote, connections: u32, reports: Reports) -> Self {
        Self {
            opens: Some((remote, connections)),
            ..Self::server(plan, reports)
        }
    }

    fn open_next(&mut self, api: &mut Context<'_, '_>) {
        let Some((remote, left @ 1..)) = &mut self.opens else {
            return;
        };
        *left -= 1;
        match api.connect_with(&Connect::to(*remote)) {
            Ok((socket, _)) => self.conversation = Some(Conversation::new(socket, self.plan)),
            // One report will be missing, which fails the cell.
            Err(error) => eprintln!("our end: {error}"),
        }
    }

    fn step(&mut self, api: &mut Context<'_, '_>) {
        let Some(conversation) = &mut self.conversation else {
            return;
        };
        conversation.step(api);
        if let Some(report) = conversation.report(api) {
            lock(&self.reports).push(report);
            self.open_next(api);
        }
    }
}

impl Application<Rings> for OurApplication {
    fn start(&mut self, api: &mut Context<'_, '_>) {
        self.open_next(api);
    }

    fn on_accept(&mut self, socket: SocketId, _: &mut Context<'_, '_>) {
        self.conversation = Some(Conversation::new(socket, self.plan));
    }

    fn on_events(&mut self, socket: SocketId, events: Events, api: &mut Context<'_, '_>) {
        // Events of earlier connections are ignored.
        if let Some(conversation) = &mut self.conversation
            && conversation.socket == socket
        {
            conversation.events |= events;
            self.step(api);
        }
    }

    fn on_deadline(&mut self, api: &mut Context<'_, '_>) {
        if let Some(conversation) = &mut self.conversation {
            conversation.paused_until = None;
            let connection = api.connection(conversation.socket);
            conversation.window_after_pause =
                connection.map(|connection| connection.advertised_window());
            self.step(api);
        }
    }

    fn progress(&self) -> ApplicationProgress {
        let conversation = self.conversation.as_ref();
        ApplicationProgress {
            next: conversation.and_then(|conversation| conversation.paused_until),
            ..ApplicationProgress::default()
        }
    }
}

impl Conversation {
    fn new(socket: SocketId, plan: Plan) -> Self {
        Self {
            socket,
            plan,
            source: Source::new(plan.key, plan.bytes),
            destination: Destination::default(),
            buffer: vec![0; CHUNK],
            events: Events::NONE,
            paused_until: None,
            paused_before: false,
            window_after_pause: None,
            peer_window_closed: false,
            reported: false,
        }
    }

    fn read(&mut self, api: &mut Context<'_, '_>) {
        while self.paused_until.is_none() {
            let length = api.read_bytes(self.socket, &mut self.buffer);
            if length == 0 {
                return;
            }
            self.destination.put(&self.buffer[..length]);
            let so_far = self.destination.bytes();
            if self.plan.abort_after.is_some_and(|limit| so_far >= limit) {
                api.abort(self.socket);
                return;
            }
            if let Some((after, pause)) = self.plan.pause
                && so_far >= after
                && !self.paused_before
            {
                self.paused_before = true;
                self.paused_until = Some(api.now() + pause);
            }
        }
    }

    fn write(&mut self, api: &mut Context<'_, '_>) {
        if self.plan.after_peer && !self.events.has(Events::PEER_CLOSED) {
            return;
        }
        while self.source.remaining() > 0 {
            let bytes = self.source.peek();
            let offered = bytes.len();
            let taken = api.write(self.socket, bentpipe_tcp::Source::Bytes(bytes)) as usize;
            self.source.take(taken);
            if taken < offered {
                return;
            }
        }
        api.close(self.socket);
    }

    fn step(&mut self, api: &mut Context<'_, '_>) {
        let connection = api.connection(self.socket);
        if connection.is_some_and(|connection| connection.state().is_synchronized()) {
            self.peer_window_closed |= connection.is_some_and(|c| c.peer_window() == 0);
            self.read(api);
        }
        if self.events.has(Events::ESTABLISHED) {
            self.write(api);
        }
    }

    /// Returns the report of a connection once, when it is over.
    fn report(&mut self, api: &Context<'_, '_>) -> Option<Report> {
        let connection = api.connection(self.socket)?;
        // A duplicated SYN may arrive when its connection is over and start another, which the peer
        // resets (RFC 9293 section 3.10.7.4). It is not reported.
        let happened = Events::ESTABLISHED | Events::RESET | Events::TIMED_OUT;
        let over = matches!(connection.state(), State::TimeWait | State::Closed)
            && self.events.has(happened);
        let unread = connection.readable() > 0 && connection.state() != State::Closed;
        if !over || unread || self.reported {
            return None;
        }
        self.reported = true;
        Some(Report {
            sent: self.source.tally(),
            received: self.destination.tally(),
            peer_closed: self.events.has(Events::PEER_CLOSED),
            reset: self.events.has(Events::RESET),
            timed_out: self.events.has(Events::TIMED_OUT),
            window_after_pause: self.window_after_pause,
            peer_window_closed: self.peer_window_closed,
            statistics: connection.statistics().clone(),
        })
    }
}
