//! The server end of an FTP session.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bentpipe_tcp::Events;
use bentpipe_types::Endpoint;

use super::{ACTIVE_DATA, AGAIN, COMPLETE, CONTROL, GREETING};
use crate::{Application, ApplicationProgress, SocketApi, SocketBackend, SocketId};

/// A client's command, which the server processes once its bytes have arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::applications) struct Command {
    /// Bytes of the command.
    pub(super) bytes: u64,
    /// Its meaning.
    pub(super) what: What,
}

/// Meaning of a command. The first number is the length of the reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum What {
    /// Only a reply.
    Say(u64),
    /// The client's port for the next data connection.
    Port(u64, u16),
    /// Send a file of this many bytes.
    Retrieve(u64, u64),
    /// Receive a file.
    Store(u64),
}

/// Commands that were issued and not read yet.
#[derive(Clone, Debug, Default)]
pub(in crate::applications) struct Commands(Arc<Mutex<VecDeque<Command>>>);

impl Commands {
    /// Adds a command that is about to be written.
    pub(super) fn place(&self, command: Command) {
        if let Ok(mut commands) = self.0.lock() {
            commands.push_back(command);
        }
    }

    fn clear(&self) {
        if let Ok(mut commands) = self.0.lock() {
            commands.clear();
        }
    }

    fn take(&self) -> Option<Command> {
        self.0.lock().ok()?.pop_front()
    }
}

/// A requested transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Transfer {
    /// To the client; bytes.
    Send(u64),
    /// From the client.
    Take,
}

/// The server.
#[derive(Debug)]
pub(in crate::applications) struct FtpServer {
    commands: Commands,
    control: Option<SocketId>,
    /// The command being read, and its missing bytes.
    reading: Option<(Command, u64)>,
    data: Option<SocketId>,
    /// Whether the data connection is established.
    data_stands: bool,
    /// The client's endpoint for a data connection to be opened.
    client: Option<Endpoint>,
    /// Reply and transfer that wait for the data connection.
    waiting: Option<(u64, Transfer)>,
    /// The current transfer.
    under_way: Option<Transfer>,
    progress: ApplicationProgress,
}

impl FtpServer {
    pub(in crate::applications) fn new(commands: Commands) -> Self {
        Self {
            commands,
            control: None,
            reading: None,
            data: None,
            data_stands: false,
            client: None,
            waiting: None,
            under_way: None,
            progress: ApplicationProgress::default(),
        }
    }

    fn say<D: SocketApi>(&self, bytes: u64, api: &mut D) {
        if let Some(control) = self.control {
            api.feed(control, bytes, false);
        }
    }

    fn obey<D: SocketApi>(&mut self, what: What, api: &mut D) {
        match what {
            What::Say(reply) => self.say(reply, api),
            What::Port(reply, port) => {
                let remote = self.control.and_then(|control| api.remote(control));
                self.client = remote.map(|remote| Endpoint { port, ..remote });
                self.say(reply, api);
            }
            What::Retrieve(reply, size) => {
                self.waiting = Some((reply, Transfer::Send(size)));
                self.open(api);
            }
            What::Store(reply) => {
                self.waiting = Some((reply, Transfer::Take));
                self.open(api);
            }
        }
    }

    /// Opens the data connection, if that is the server's task.
    fn open<D: SocketApi>(&mut self, api: &mut D) {
        let Some(client) = self.client else {
            self.begin(api);
            return;
        };
        match api.connect_from(ACTIVE_DATA, client) {
            Ok(socket) => {
                api.sink(socket);
                self.data = Some(socket);
                self.data_stands = false;
            }
            Err(_) => self.progress.next = Some(api.now() + AGAIN),
        }
    }

    /// Begins the waiting transfer, once its connection is established.
    fn begin<D: SocketApi>(&mut self, api: &mut D) {
        let Some(data) = self.data.filter(|_| self.data_stands) else {
            return;
        };
        let Some((reply, transfer)) = self.waiting.take() else {
            return;
        };
        self.under_way = Some(transfer);
        self.say(reply, api);
        if let Transfer::Send(size) = transfer {
            api.watch_drained(data);
            api.feed(data, size, true);
        }
    }

    fn on_control<D: SocketApi>(&mut self, events: Events, api: &mut D) {
        let Some(control) = self.control else {
            return;
        };
        if events.has(Events::ESTABLISHED) {
            self.say(GREETING, api);
        }
        let mut read = api.read(control, u64::MAX);
        while read > 0 {
            let next = self.reading.or_else(|| {
                let command = self.commands.take()?;
                Some((command, command.bytes))
            });
            let Some((command, missing)) = next else {
                debug_assert!(false, "bytes that are no command");
                break;
            };
            let part = read.min(missing);
            read -= part;
            self.reading = (missing > part).then_some((command, missing - part));
            if self.reading.is_none() {
                self.obey(command.what, api);
            }
        }
        if events.has(Events::PEER_CLOSED) {
            api.close(control);
        }
        if events.has(Events::CLOSED) {
            // A session's data connection ends with the session.
            if let Some(data) = self.data.take() {
                api.abort(data);
            }
            self.control = None;
            self.progress.next = None;
        }
    }

    fn on_data<D: SocketApi>(&mut self, socket: SocketId, events: Events, api: &mut D) {
        if self.data != Some(socket) {
            if events.has(Events::PEER_CLOSED) {
                api.close(socket);
            }
            return;
        }
        if events.has(Events::ESTABLISHED) {
            self.data_stands = true;
            self.begin(api);
        }
        // 226 is sent once everything is acknowledged, as vsftpd does with linger, or has arrived
        // here.
        let is_all_there = api.is_drained(socket);
        let is_done = match self.under_way {
            Some(Transfer::Send(_)) => events.has(Events::DRAINED) && is_all_there,
            Some(Transfer::Take) => events.has(Events::PEER_CLOSED),
            None => false,
        };
        if events.has(Events::PEER_CLOSED) {
            api.close(socket);
        }
        if is_done {
            self.under_way = None;
            self.data = None;
            self.say(COMPLETE, api);
        } else if events.has(Events::CLOSED) {
            // The rest will not arrive: the session is over, and the connection's failure states
            // the reason.
            self.data = None;
            if let Some(control) = self.control {
                api.close(control);
            }
        }
    }
}

impl<P: SocketBackend> Application<P> for FtpServer {
    fn on_accept(&mut self, socket: SocketId, api: &mut P::Api<'_, '_>) {
        let port = api.local(socket).map(|end| end.port);
        if port == Some(CONTROL) {
            api.no_delay(socket);
            self.control = Some(socket);
            // An aborted session may have left some.
            self.commands.clear();
            self.reading = None;
            self.client = None;
        } else {
            api.sink(socket);
            self.data = Some(socket);
            self.data_stands = false;
        }
    }

    fn on_events(&mut self, socket: SocketId, events: Events, api: &mut P::Api<'_, '_>) {
        if self.control == Some(socket) {
            self.on_control(events, api);
        } else {
            self.on_data(socket, events, api);
        }
    }

    fn on_deadline(&mut self, api: &mut P::Api<'_, '_>) {
        if self.progress.takes_turn(api.now()) {
            self.open(api);
        }
    }

    fn progress(&self) -> ApplicationProgress {
        self.progress
    }
}
