//! Sockets: numbers for connections, with the options that an application has set.

use std::collections::{BTreeMap, VecDeque};

use bentpipe_tcp::{Connection, Events, State};
use bentpipe_types::Span;

use super::constants::{POLLERR, POLLHUP, POLLIN, POLLOUT, POLLRDHUP};
use super::host::Host;
use super::icmp::errno;

/// Kind of a socket.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// Neither connected nor listening.
    Fresh,
    /// Connections that wait to be accepted.
    Listening {
        backlog: usize,
        ready: VecDeque<usize>,
    },
    Stream(usize),
}

#[derive(Clone, Debug)]
pub(super) struct Socket {
    pub(super) kind: Kind,
    pub(super) nonblocking: bool,
    pub(super) options: Options,
    /// SHUT_RD.
    pub(super) read_shut_down: bool,
    /// SHUT_WR.
    pub(super) write_shut_down: bool,
    /// Whether connect() has returned and the first write will connect.
    pub(super) deferred: bool,
    /// Error to be reported by the next call or by SO_ERROR.
    pub(super) error: Option<&'static str>,
}

/// Options set with setsockopt.
#[derive(Clone, Debug, Default)]
pub(super) struct Options {
    /// Values for getsockopt.
    pub(super) known: BTreeMap<String, i64>,
    pub(super) maximum_segment: Option<u16>,
    pub(super) send_buffer: Option<u64>,
    pub(super) receive_buffer: Option<u64>,
    pub(super) no_delay: bool,
    pub(super) user_timeout: Option<Span>,
    /// SO_KEEPALIVE, TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT.
    pub(super) keep_alive_enabled: bool,
    pub(super) keep_idle: Option<Span>,
    pub(super) keep_interval: Option<Span>,
    pub(super) keep_probes: Option<u32>,
    pub(super) syn_retries: Option<u32>,
    /// Linger time in seconds, if enabled.
    pub(super) linger: Option<i64>,
    pub(super) unsent_low_water: Option<u64>,
    /// TCP_FASTOPEN, TCP_FASTOPEN_KEY and TCP_FASTOPEN_CONNECT.
    pub(super) fast_open_queue: Option<i64>,
    pub(super) fast_open_key: Option<[u8; 16]>,
    pub(super) fast_open_connect: bool,
    /// Whether reads report how much is left.
    pub(super) reports_unread: bool,
}

/// An epoll registration.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    pub(super) events: i64,
    pub(super) data: i64,
    pub(super) edge: bool,
    pub(super) once: bool,
    pub(super) disabled: bool,
    /// For edge-triggered registrations: an event happened since the last report.
    pub(super) armed: bool,
}

#[derive(Debug, Default)]
pub(super) struct Sockets {
    pub(super) table: BTreeMap<i64, Socket>,
    pub(super) polls: BTreeMap<i64, BTreeMap<i64, Watch>>,
    next_port: u16,
}

impl Socket {
    pub(super) fn new(kind: Kind, options: Options) -> Self {
        Self {
            kind,
            nonblocking: false,
            options,
            read_shut_down: false,
            write_shut_down: false,
            deferred: false,
            error: None,
        }
    }

    /// Returns the connection, if there is one.
    pub(super) fn conversation(&self) -> Option<usize> {
        match self.kind {
            Kind::Stream(conversation) => Some(conversation),
            _ => None,
        }
    }
}

impl Sockets {
    /// Returns a port for an outgoing connection.
    pub(super) fn ephemeral_port(&mut self) -> u16 {
        self.next_port += 1;
        40_000 + self.next_port % 10_000
    }

    /// Processes the events of connections.
    pub(super) fn settle(&mut self, host: &mut Host) {
        for index in 0..host.conversations.len() {
            let lacks_room = host.connection(index).lacks_room() == Some(true);
            let conversation = &mut host.conversations[index];
            let news = std::mem::replace(&mut conversation.news, Events::NONE);
            let had_none = std::mem::replace(&mut conversation.lacks_room, lacks_room);
            if had_none
                && !lacks_room
                && let Some((number, _)) = self.owner(index)
            {
                self.arm(number);
            }
            if news.is_empty() {
                continue;
            }
            let parent = conversation.parent;
            if news.has(Events::ESTABLISHED)
                && let Some(parent) = parent
            {
                self.establish(host, index, parent);
            }
            self.notice(host, index, news);
        }
    }

    fn establish(&mut self, host: &mut Host, index: usize, parent: i64) {
        host.conversations[index].parent = None;
        let kind = self.table.get_mut(&parent).map(|socket| &mut socket.kind);
        match kind {
            Some(Kind::Listening { backlog, ready }) if ready.len() <= *backlog => {
                ready.push_back(index);
                self.arm(parent);
            }
            // The queue is full or the listener is gone.
            _ => host.with(index, Connection::abort),
        }
    }

    fn notice(&mut self, host: &Host, index: usize, news: Events) {
        let history = host.conversations[index].history;
        let Some((number, socket)) = self.owner(index) else {
            return;
        };
        if news.has(Events::RESET) {
            socket.error = Some(if !history.has(Events::ESTABLISHED) {
                "ECONNREFUSED"
            } else if history.has(Events::PEER_CLOSED) {
                "EPIPE"
            } else {
                "ECONNRESET"
            });
        } else if news.has(Events::TIMED_OUT | Events::UNREACHABLE) {
            // An ICMP error is more specific than a timeout.
            let said = host.connection(index).path_error();
            socket.error = Some(said.map_or("ETIMEDOUT", errno));
        }
        let shown = Events::READABLE | Events::PEER_CLOSED | Events::CLOSED | Events::ESTABLISHED;
        if news.has(shown) {
            self.arm(number);
        }
    }

    /// Returns the socket of a connection and its number.
    fn owner(&mut self, index: usize) -> Option<(i64, &mut Socket)> {
        self.table.iter_mut().find_map(|(number, socket)| {
            (socket.conversation() == Some(index)).then_some((*number, socket))
        })
    }

    /// Arms edge-triggered registrations after an event.
    pub(super) fn arm(&mut self, number: i64) {
        for watches in self.polls.values_mut() {
            if let Some(watch) = watches.get_mut(&number) {
                watch.armed = true;
            }
        }
    }

    /// Returns the poll events of a socket.
    pub(super) fn poll(&self, host: &mut Host, number: i64) -> i64 {
        if let Some(index) = self.table.get(&number).and_then(Socket::conversation) {
            host.with(index, |connection, _| connection.poll_room());
        }
        self.readiness(host, number)
    }

    fn readiness(&self, host: &Host, number: i64) -> i64 {
        let Some(socket) = self.table.get(&number) else {
            return 0x20; // POLLNVAL
        };
        let mut ready = 0;
        match &socket.kind {
            Kind::Fresh if socket.deferred => ready |= POLLOUT,
            Kind::Fresh => ready |= POLLOUT | POLLHUP,
            Kind::Listening { ready: queue, .. } => {
                ready |= if queue.is_empty() { 0 } else { POLLIN };
            }
            Kind::Stream(index) => {
                let conversation = &host.conversations[*index];
                let connection = host.connection(*index);
                let over = connection.state() == State::Closed;
                let finished =
                    conversation.history.has(Events::PEER_CLOSED) || socket.read_shut_down || over;
                if connection.readable() > 0 || finished {
                    ready |= POLLIN;
                }
                if finished {
                    ready |= POLLRDHUP;
                }
                if over || finished && socket.write_shut_down {
                    ready |= POLLHUP;
                }
                let connected = conversation.history.has(Events::ESTABLISHED) || over;
                if connected && (socket.write_shut_down || over || writable(socket, connection)) {
                    ready |= POLLOUT;
                }
            }
        }
        if socket.error.is_some() {
            ready |= POLLERR | POLLIN | POLLOUT;
        }
        ready
    }
}

/// Whether the socket is writable. Without memory accounting, Linux's rule (sk_stream_is_writeable)
/// applies to bytes: a third of the buffer is free and few bytes are unsent.
fn writable(socket: &Socket, connection: &Connection) -> bool {
    if let Some(lacks_room) = connection.lacks_room() {
        return !lacks_room;
    }
    let held = connection.written_offset() - connection.acknowledged_offset();
    let unsent = connection.written_offset() - connection.sent_offset();
    let low_water = socket.options.unsent_low_water.unwrap_or(u64::MAX);
    connection.writable() >= held / 2 && connection.writable() > 0 && unsent < low_water
}
