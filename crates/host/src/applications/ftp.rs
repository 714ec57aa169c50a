//! FTP (RFC 959): a control connection with commands and replies, and a data connection per file.

mod protocol;
mod server;

use bentpipe_tcp::Events;
use bentpipe_types::{Endpoint, Span, Time};

use super::Direction;
use crate::report::Transfers;
use crate::{
    Application, ApplicationProgress, Distribution, Report, SocketApi, SocketBackend, SocketId,
};
use protocol::{AGAIN, COMPLETE, GREETING, OPENING, PASS, PASV, PORT, QUIT, TRANSFER, TYPE, USER};
use server::{Command, What};

pub(super) use protocol::{ACTIVE_DATA, CONTROL, PASSIVE_DATA};
pub(super) use server::{Commands, FtpServer};

/// The end that opens data connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FtpMode {
    /// The client (PASV), as in browsers and most clients.
    Passive,
    /// The server (PORT), from port 20.
    Active,
}

/// Settings of FTP.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FtpSettings {
    /// The end that opens data connections.
    pub mode: FtpMode,
    /// Direction of files, seen from the client: download (RETR) or upload (STOR).
    pub direction: Direction,
    /// Bytes of a file.
    pub size: Distribution,
    /// Seconds from the end of one file to the next.
    pub pause: Distribution,
    /// Number of files, or `None` until the end of the run.
    pub count: Option<u64>,
}

/// The event for which the client waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Greeting,
    User,
    Pass,
    Type,
    /// The reply to PASV or PORT.
    Prepared,
    /// The data connection being established.
    Connecting,
    /// 150, and with it the data.
    Opening,
    /// The data, and 226.
    Data,
    /// The time of the next file.
    Pause,
    Quit,
}

/// The client.
#[derive(Debug)]
pub(super) struct Ftp {
    server: Endpoint,
    settings: FtpSettings,
    commands: Commands,
    control: Option<SocketId>,
    data: Option<SocketId>,
    /// Local port of the control connection, and available ports.
    own: u16,
    ports: (u16, u16),
    /// Port on which a data connection of an active server is expected.
    offered: u16,
    stage: Stage,
    /// Missing bytes of the reply.
    missing: u64,
    /// The file: time of its first command, and its bytes.
    file: (Time, u64),
    /// Whether the data connection has ended.
    data_is_over: bool,
    progress: ApplicationProgress,
    files: Transfers,
}

impl Ftp {
    pub(super) fn new(server: Endpoint, settings: FtpSettings, commands: Commands) -> Self {
        Self {
            server,
            settings,
            commands,
            control: None,
            data: None,
            own: 0,
            ports: (0, 0),
            offered: 0,
            stage: Stage::Greeting,
            missing: GREETING,
            file: (Time::ZERO, 0),
            data_is_over: false,
            progress: ApplicationProgress::default(),
            files: Transfers::default(),
        }
    }

    fn command<D: SocketApi>(
        &mut self,
        stage: Stage,
        (bytes, reply): (u64, u64),
        what: What,
        api: &mut D,
    ) {
        let Some(control) = self.control else {
            return;
        };
        self.stage = stage;
        self.missing = reply;
        self.commands.place(Command { bytes, what });
        api.feed(control, bytes, false);
    }

    /// Starts a file with its first command.
    fn prepare<D: SocketApi>(&mut self, api: &mut D) {
        self.file = (api.now(), self.settings.size.bytes(api.random()));
        self.files.begun += 1;
        self.data = None;
        self.data_is_over = false;
        match self.settings.mode {
            FtpMode::Passive => self.command(Stage::Prepared, PASV, What::Say(PASV.1), api),
            FtpMode::Active => {
                // A new port each time, since the previous connection may be in TIME-WAIT.
                self.offered = self.port_after(self.offered);
                if self.offered == self.own {
                    self.offered = self.port_after(self.offered);
                }
                api.listen(self.offered);
                let what = What::Port(PORT.1, self.offered);
                self.command(Stage::Prepared, PORT, what, api);
            }
        }
    }

    fn port_after(&self, port: u16) -> u16 {
        let (first, last) = self.ports;
        if port >= last { first } else { port + 1 }
    }

    /// Opens the data connection to a passive server.
    fn open<D: SocketApi>(&mut self, api: &mut D) {
        self.stage = Stage::Connecting;
        let remote = Endpoint {
            port: PASSIVE_DATA,
            ..self.server
        };
        match api.connect(remote) {
            Ok(socket) => {
                api.sink(socket);
                self.data = Some(socket);
            }
            Err(_) => self.progress.next = Some(api.now() + AGAIN),
        }
    }

    fn transfer<D: SocketApi>(&mut self, api: &mut D) {
        let size = self.file.1;
        let what = match self.settings.direction {
            Direction::Upload => What::Store(OPENING),
            Direction::Download | Direction::Both => What::Retrieve(OPENING, size),
        };
        self.command(Stage::Opening, (TRANSFER, OPENING), what, api);
    }

    /// Handles a complete reply.
    fn replied<D: SocketApi>(&mut self, api: &mut D) {
        match self.stage {
            Stage::Greeting => self.command(Stage::User, USER, What::Say(USER.1), api),
            Stage::User => self.command(Stage::Pass, PASS, What::Say(PASS.1), api),
            Stage::Pass => self.command(Stage::Type, TYPE, What::Say(TYPE.1), api),
            Stage::Type => self.prepare(api),
            Stage::Prepared if self.settings.mode == FtpMode::Passive => self.open(api),
            Stage::Prepared => self.transfer(api),
            Stage::Opening => {
                self.stage = Stage::Data;
                self.missing = COMPLETE;
                if let (Direction::Upload, Some(data)) = (self.settings.direction, self.data) {
                    api.feed(data, self.file.1, true);
                }
            }
            Stage::Data => self.complete(api),
            Stage::Quit => {
                self.progress.finished = Some(api.now());
                if let Some(control) = self.control {
                    api.close(control);
                }
            }
            Stage::Connecting | Stage::Pause => debug_assert!(false, "a reply to no command"),
        }
    }

    /// Completes the file once the server has confirmed it and everything has arrived.
    fn complete<D: SocketApi>(&mut self, api: &mut D) {
        let is_down = self.settings.direction != Direction::Upload;
        if self.stage != Stage::Data || self.missing > 0 || is_down && !self.data_is_over {
            return;
        }
        let time = api.now().since(self.file.0);
        self.progress.latest = Some(time);
        self.files.times.push(time);
        self.files.bytes += self.file.1;
        if self.settings.count == Some(self.files.begun) {
            self.command(Stage::Quit, QUIT, What::Say(QUIT.1), api);
            return;
        }
        self.stage = Stage::Pause;
        let pause = self.settings.pause.span(api.random());
        self.progress.next = Some(api.now() + pause.max(Span::from_nanos(1)));
    }

    fn on_control<D: SocketApi>(&mut self, events: Events, api: &mut D) {
        let Some(control) = self.control else {
            return;
        };
        let mut read = api.read(control, u64::MAX);
        while read > 0 && self.missing > 0 {
            // 226 may follow 150 directly.
            let part = read.min(self.missing);
            read -= part;
            self.missing -= part;
            if self.missing == 0 {
                self.replied(api);
            }
        }
        debug_assert_eq!(read, 0, "a reply to no command");
        if events.has(Events::PEER_CLOSED) {
            api.close(control);
        }
        if events.has(Events::CLOSED) {
            self.control = None;
            self.progress.next = None;
            if let Some(data) = self.data {
                api.close(data);
            }
        }
    }

    fn on_data<D: SocketApi>(&mut self, socket: SocketId, events: Events, api: &mut D) {
        let is_current = self.data == Some(socket);
        if events.has(Events::ESTABLISHED) && is_current && self.stage == Stage::Connecting {
            self.transfer(api);
        }
        if events.has(Events::PEER_CLOSED) {
            if is_current {
                self.data_is_over = true;
                let came = api.delivered(socket);
                debug_assert!(
                    self.settings.direction == Direction::Upload || came == self.file.1,
                    "a file is as long as it is"
                );
            }
            api.close(socket);
            if is_current {
                self.complete(api);
            }
        }
        if events.has(Events::CLOSED) && is_current {
            self.data = None;
            let is_down = self.settings.direction != Direction::Upload;
            let is_lost = matches!(self.stage, Stage::Connecting | Stage::Opening | Stage::Data)
                && is_down
                && !self.data_is_over;
            // The rest will not be sent: the session is over, and the connection's failure states
            // the reason.
            if is_lost && let Some(control) = self.control {
                api.close(control);
            }
        }
    }
}

impl<P: SocketBackend> Application<P> for Ftp {
    fn start(&mut self, api: &mut P::Api<'_, '_>) {
        self.control = api.connect(self.server).ok();
        if let Some(control) = self.control {
            api.no_delay(control);
            self.own = api.local(control).map_or(0, |end| end.port);
            self.ports = api.ports();
            self.offered = self.own;
        }
    }

    fn on_accept(&mut self, socket: SocketId, api: &mut P::Api<'_, '_>) {
        let port = api.local(socket).map(|end| end.port);
        if self.data.is_none() && port == Some(self.offered) {
            self.data = Some(socket);
            api.sink(socket);
        } else {
            api.abort(socket);
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
            match self.stage {
                Stage::Connecting => self.open(api),
                _ => self.prepare(api),
            }
        }
    }

    fn progress(&self) -> ApplicationProgress {
        self.progress
    }

    fn report(&self, _: Time, report: &mut Report) {
        report.finished = self.progress.finished;
        report.files = Some(self.files.clone());
    }
}
