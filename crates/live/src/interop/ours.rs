//! The application at our end.

use std::cell::RefCell;
use std::rc::Rc;

use bentpipe_tcp::{Events, State, Statistics};
use bentpipe_types::{Span, Time};

use super::data::{CHUNK, Destination, Source, Tally};
use crate::{Application, Stream};

/// What an application does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Which bytes it sends.
    pub(super) key: u64,
    /// How many.
    pub(super) bytes: u64,
    /// It begins when the peer has closed.
    pub(super) after_peer: bool,
    /// It aborts when it has read so many bytes.
    pub(super) abort_after: Option<u64>,
    /// It reads nothing for so long when it has read so many bytes.
    pub(super) pause: Option<(u64, Span)>,
}

/// What came of it.
#[derive(Clone, Debug)]
pub(super) struct Report {
    pub(super) sent: Tally,
    pub(super) received: Tally,
    pub(super) peer_closed: bool,
    pub(super) reset: bool,
    pub(super) timed_out: bool,
    /// The smallest window that was open to the peer at the end of a pause.
    pub(super) window_after_pause: Option<u64>,
    /// The peer's window was closed at some time.
    pub(super) peer_window_closed: bool,
    pub(super) statistics: Statistics,
}

/// Where reports are put, one for each connection that has ended.
pub(super) type Reports = Rc<RefCell<Vec<Report>>>;

pub(super) struct Ours {
    plan: Plan,
    source: Source,
    destination: Destination,
    buffer: Vec<u8>,
    peer_closed: bool,
    events: Events,
    paused_until: Option<Time>,
    paused_before: bool,
    window_after_pause: Option<u64>,
    peer_window_closed: bool,
    reported: bool,
    reports: Reports,
}

impl Ours {
    pub(super) fn new(plan: Plan, reports: Reports) -> Self {
        Self {
            source: Source::new(plan.key, plan.bytes),
            plan,
            destination: Destination::default(),
            buffer: vec![0; CHUNK],
            peer_closed: false,
            events: Events::NONE,
            paused_until: None,
            paused_before: false,
            window_after_pause: None,
            peer_window_closed: false,
            reported: false,
            reports,
        }
    }

    fn read(&mut self, stream: &mut Stream<'_, '_>) {
        while self.paused_until.is_none() {
            let length = stream.read(&mut self.buffer);
            if length == 0 {
                return;
            }
            self.destination.put(&self.buffer[..length]);
            let so_far = self.destination.bytes();
            if self.plan.abort_after.is_some_and(|limit| so_far >= limit) {
                stream.abort();
                return;
            }
            if let Some((after, pause)) = self.plan.pause
                && so_far >= after
                && !self.paused_before
            {
                self.paused_before = true;
                self.paused_until = Some(stream.now() + pause);
            }
        }
    }

    fn write(&mut self, stream: &mut Stream<'_, '_>) {
        if self.plan.after_peer && !self.peer_closed {
            return;
        }
        while self.source.left() > 0 {
            let bytes = self.source.peek();
            let offered = bytes.len();
            let taken = stream.write(bytes);
            self.source.take(taken);
            if taken < offered {
                return;
            }
        }
        stream.close();
    }

    fn step(&mut self, stream: &mut Stream<'_, '_>) {
        if stream.connection().state().is_synchronized() {
            self.peer_window_closed |= stream.connection().peer_window() == 0;
            self.read(stream);
        }
        if self.events.has(Events::ESTABLISHED) {
            self.write(stream);
        }
        self.report(stream);
    }

    fn report(&mut self, stream: &Stream<'_, '_>) {
        let connection = stream.connection();
        // A SYN that the path has sent twice may come when its connection is over: the peer refuses
        // what becomes of it, and nobody need hear of it (RFC 9293 section 3.10.7.4 step 2).
        let happened = Events::ESTABLISHED | Events::RESET | Events::TIMED_OUT;
        let over = matches!(connection.state(), State::TimeWait | State::Closed)
            && self.events.has(happened);
        let unread = connection.readable() > 0 && connection.state() != State::Closed;
        if !over || unread || self.reported {
            return;
        }
        self.reported = true;
        self.reports.borrow_mut().push(Report {
            sent: self.source.tally(),
            received: self.destination.tally(),
            peer_closed: self.peer_closed,
            reset: self.events.has(Events::RESET),
            timed_out: self.events.has(Events::TIMED_OUT),
            window_after_pause: self.window_after_pause,
            peer_window_closed: self.peer_window_closed,
            statistics: connection.statistics().clone(),
        });
    }
}

impl Application for Ours {
    fn on_events(&mut self, events: Events, stream: &mut Stream<'_, '_>) {
        self.events |= events;
        self.peer_closed |= events.has(Events::PEER_CLOSED);
        self.step(stream);
    }

    fn on_deadline(&mut self, stream: &mut Stream<'_, '_>) {
        self.paused_until = None;
        self.window_after_pause = Some(stream.connection().advertised_window());
        self.step(stream);
    }

    fn next_deadline(&self) -> Option<Time> {
        self.paused_until
    }
}
