//! Opening and closing: socket, listen, accept, connect, shutdown, close.

use bentpipe_tcp::{ActiveFastOpen, BufferSizes, Config, Connection, Events, QuickAcks, State};

use super::{Outcome, Problem, Returned, Runner, Waiting, error, is_listening, value};
use crate::runner::constants::number;
use crate::runner::ends::SERVICE;
use crate::runner::host::Listener;
use crate::runner::icmp::errno;
use crate::runner::setup::low_water;
use crate::runner::sockets::{Kind, Options, Socket};
use crate::script::CallSpec;

impl Runner {
    pub(super) fn socket(&mut self, spec: &CallSpec) -> Result<Outcome, Problem> {
        let number = self.new_number(spec);
        let socket = Socket::new(Kind::Fresh, Options::default());
        self.sockets.table.insert(number, socket);
        value(number)
    }

    pub(super) fn listen(&mut self, fd: i64, backlog: i64) -> Result<Outcome, Problem> {
        self.known(fd)?;
        let config = self.configuration(fd);
        let Some(socket) = self.sockets.table.get_mut(&fd) else {
            return error("EBADF");
        };
        if socket.conversation().is_some() {
            return error("EINVAL");
        }
        let backlog = usize::try_from(backlog.clamp(0, 4096)).unwrap_or(0);
        let ready = std::collections::VecDeque::new();
        socket.kind = Kind::Listening { backlog, ready };
        // The next SYN is for this socket, whatever the previous connection does.
        self.flow.is_over = true;
        self.host.listen(Listener {
            socket: fd,
            config,
            fast_open: None,
        });
        self.set_policy(fd);
        value(0)
    }

    /// Applies a listening socket's Fast Open options.
    pub(super) fn set_policy(&mut self, fd: i64) {
        let Some(socket) = self.sockets.table.get(&fd) else {
            return;
        };
        let options = &socket.options;
        let settings = &self.setup.fast_open;
        let policy = settings.policy(options.fast_open_queue, options.fast_open_key);
        self.host
            .set_listener(fd, |listener| listener.fast_open = policy);
    }

    /// Returns the configuration of a connection of this socket.
    pub(in crate::runner) fn configuration(&self, fd: i64) -> Config {
        let Some(socket) = self.sockets.table.get(&fd) else {
            return self.setup.config.clone();
        };
        let options = &socket.options;
        let mut config = self
            .setup
            .with_segment(&self.setup.config, options.maximum_segment);
        if let Some(bytes) = options.send_buffer {
            config.send_buffer = bytes;
            config.send_sizes = (config.send_sizes).map(|_| BufferSizes::locked(bytes));
        }
        if let Some(bytes) = options.receive_buffer {
            config.receive_buffer = bytes;
            let is_linux = config.quick_acks == QuickAcks::Linux;
            let grown = config.receive_sizes.unwrap_or(BufferSizes::RECEIVE);
            config.receive_sizes = is_linux.then(|| grown.locked_at(bytes));
        }
        if let Some(bytes) = options.unsent_low_water {
            config.unsent_low_water = low_water(bytes);
        }
        if options.no_delay {
            config.nagle = false;
        }
        config.user_timeout = options.user_timeout;
        config.keep_alive = self.setup.keep_alive(options);
        if let Some(retries) = options.syn_retries {
            config.maximum_syn_retransmissions = retries;
            config.linux_quirks.handshake.linear_syn_timeouts = false;
        }
        config
    }

    pub(super) fn accept(&mut self, fd: i64, spec: &CallSpec) -> Result<Outcome, Problem> {
        self.known(fd)?;
        // As in packetdrill, a script may reuse a number. The previous socket then has no number,
        // and its connection continues.
        let number = match number(&spec.result) {
            Ok(wanted) if wanted >= 0 && self.sockets.table.contains_key(&wanted) => wanted,
            _ => self.new_number(spec),
        };
        let Some(socket) = self.sockets.table.get_mut(&fd) else {
            return error("EBADF");
        };
        let (nonblocking, options) = (socket.nonblocking, socket.options.clone());
        let Kind::Listening { ready, .. } = &mut socket.kind else {
            return error("EINVAL");
        };
        let Some(conversation) = ready.pop_front() else {
            return if nonblocking {
                error("EAGAIN")
            } else {
                Ok(Outcome::Blocks(Waiting::Accept { listener: fd }))
            };
        };
        let mut accepted = Socket::new(Kind::Stream(conversation), options);
        let known = &self.host.conversations[conversation];
        if known.history.has(Events::RESET) {
            accepted.error = Some("ECONNRESET");
        } else if known.history.has(Events::UNREACHABLE) {
            accepted.error = self.host.connection(conversation).path_error().map(errno);
        }
        self.sockets.table.insert(number, accepted);
        value(number)
    }

    pub(super) fn connect(&mut self, fd: i64) -> Result<Outcome, Problem> {
        self.known(fd)?;
        let fast = self.fast_open_option();
        let Some(socket) = self.sockets.table.get_mut(&fd) else {
            return error("EBADF");
        };
        let nonblocking = socket.nonblocking;
        let asks = socket.options.fast_open_connect && fast.is_some();
        match socket.kind {
            Kind::Fresh if socket.deferred => return error("EISCONN"),
            Kind::Fresh if asks && fast.is_some_and(|f| f.carries_data) => {
                socket.deferred = true;
                return value(0);
            }
            Kind::Fresh => {}
            Kind::Listening { .. } => return error("EISCONN"),
            Kind::Stream(_) => {
                return match self.connected(fd) {
                    Outcome::Returned(Returned::Value(_)) => error("EISCONN"),
                    Outcome::Blocks(_) if nonblocking => error("EALREADY"),
                    other => Ok(other),
                };
            }
        }
        let option = fast.filter(|_| asks).map(|fast| ActiveFastOpen {
            option: fast.option,
            ..ActiveFastOpen::default()
        });
        self.open(fd, option)?;
        if nonblocking {
            return error("EINPROGRESS");
        }
        Ok(Outcome::Blocks(Waiting::Connect { socket: fd }))
    }

    /// Sends the SYN, with data if `fast_open`. Returns how many bytes it carries.
    pub(super) fn open(
        &mut self,
        fd: i64,
        fast_open: Option<ActiveFastOpen>,
    ) -> Result<u64, Problem> {
        let config = self.configuration(fd);
        let local = self.sockets.ephemeral_port();
        let opened = self.host.connect(&config, local, SERVICE, fast_open);
        let (conversation, taken) = opened
            .map_err(|error| Problem::wrong("a connection to be opened", error.to_string()))?;
        self.flow.renew(local, SERVICE);
        if let Some(socket) = self.sockets.table.get_mut(&fd) {
            socket.kind = Kind::Stream(conversation);
            socket.deferred = false;
        }
        Ok(taken)
    }

    /// Whether it is connected.
    pub(super) fn connected(&mut self, fd: i64) -> Outcome {
        let waits = Outcome::Blocks(Waiting::Connect { socket: fd });
        let Some(conversation) = self.stream(fd) else {
            return waits;
        };
        let history = self.host.conversations[conversation].history;
        let Some(socket) = self.sockets.table.get_mut(&fd) else {
            return waits;
        };
        if let Some(name) = socket.error.take() {
            return Outcome::Returned(Returned::Error(name));
        }
        if history.has(Events::ESTABLISHED) {
            return Outcome::Returned(Returned::Value(0));
        }
        waits
    }

    pub(super) fn shutdown(&mut self, fd: i64, how: i64) -> Result<Outcome, Problem> {
        self.known(fd)?;
        let Some(conversation) = self.stream(fd) else {
            return error("ENOTCONN");
        };
        let state = self.host.connection(conversation).state();
        if state == State::Closed {
            return error("ENOTCONN");
        }
        if let Some(socket) = self.sockets.table.get_mut(&fd) {
            socket.read_shut_down |= how != 1;
            socket.write_shut_down |= how != 0;
        }
        if how != 0 {
            self.host.with(conversation, Connection::close);
        }
        self.sockets.arm(fd);
        value(0)
    }

    pub(super) fn close(&mut self, fd: i64) -> Result<Outcome, Problem> {
        if self.sockets.polls.remove(&fd).is_some() {
            return value(0);
        }
        self.known(fd)?;
        let Some(socket) = self.sockets.table.remove(&fd) else {
            return error("EBADF");
        };
        for watches in self.sockets.polls.values_mut() {
            watches.remove(&fd);
        }
        if is_listening(&socket.kind) {
            self.host.unlisten(fd);
        }
        match socket.kind {
            Kind::Fresh => {}
            Kind::Listening { ready, .. } => {
                for conversation in ready {
                    self.host.with(conversation, Connection::abort);
                }
                for index in 0..self.host.conversations.len() {
                    if self.host.conversations[index].parent == Some(fd) {
                        self.host.with(index, Connection::abort);
                    }
                }
            }
            Kind::Stream(conversation) => {
                // SO_LINGER with a timeout of zero.
                if socket.options.linger == Some(0) {
                    self.host.with(conversation, Connection::abort);
                } else {
                    self.host.with(conversation, Connection::abandon);
                }
            }
        }
        value(0)
    }
}
