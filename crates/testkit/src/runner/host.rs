//! The host under test: the host of both clocks, which keeps every connection for the script.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bentpipe_host::{
    Application, ApplicationId, Connect, ConnectError, InitialSequences, Limits,
    Listener as Taking, Member, SocketContext, SocketId, Taker,
};
use bentpipe_tcp::{
    ActiveFastOpen, Config, Connection, Events, PassiveFastOpen, Ranges, Source, State,
};
use bentpipe_types::{
    Agent, Ctx, Endpoint, IcmpError, IpVersion, Packet, PacketRef, Port, RandomStream, Routes, Seq,
    Time, World,
};

use super::ends::{INITIAL_SEQUENCE, LOCAL, REMOTE, SERVICE};
use super::fast_open::{FastOpenRequest, Policy};

/// The only outgoing port.
const EGRESS: Port = Port(0);

/// A connection and its events.
#[derive(Debug)]
pub(super) struct Conversation {
    socket: SocketId,
    application: ApplicationId,
    /// All events so far.
    pub(super) history: Events,
    /// Events since a socket last looked.
    pub(super) news: Events,
    /// Socket number of its listener, until it is in that listener's queue.
    pub(super) parent: Option<i64>,
    /// Set if its SYN had a Fast Open option or data, so that the peer's answer is stored.
    pub(super) learns: Option<FastOpenRequest>,
    /// Whether its send buffer was full when a socket last looked.
    pub(super) lacks_room: bool,
}

/// Settings of a listening socket for its connections.
#[derive(Clone, Debug)]
pub(super) struct Listener {
    pub(super) socket: i64,
    pub(super) config: Config,
    pub(super) fast_open: Option<Policy>,
}

/// The application below the script's sockets: it does nothing by itself and records events.
#[derive(Debug)]
struct EventRecorder {
    /// The listening socket that it represents.
    parent: Option<i64>,
    heard: Arc<Mutex<RecordedEvent>>,
}

/// Recorded events in order.
#[derive(Debug, Default)]
struct RecordedEvent {
    /// A SYN with accepted data arrived before its connection was established.
    takes_data: bool,
    news: Vec<News>,
}

#[derive(Debug)]
enum News {
    Accepted {
        socket: SocketId,
        parent: i64,
        takes_data: bool,
    },
    Happened(SocketId, Events),
}

impl Application<Ranges> for EventRecorder {
    fn on_accept(&mut self, socket: SocketId, _: &mut SocketContext<'_, '_, Ranges>) {
        let Some(parent) = self.parent else {
            return;
        };
        let mut heard = lock(&self.heard);
        let takes_data = std::mem::take(&mut heard.takes_data);
        heard.news.push(News::Accepted {
            socket,
            parent,
            takes_data,
        });
    }

    fn on_events(
        &mut self,
        socket: SocketId,
        events: Events,
        _: &mut SocketContext<'_, '_, Ranges>,
    ) {
        lock(&self.heard).news.push(News::Happened(socket, events));
    }
}

fn lock(heard: &Mutex<RecordedEvent>) -> MutexGuard<'_, RecordedEvent> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
pub(super) struct Host {
    pub(super) world: World,
    pub(super) conversations: Vec<Conversation>,
    listeners: Vec<Listener>,
    host: bentpipe_host::Host<Ranges>,
    heard: Arc<Mutex<RecordedEvent>>,
    by_socket: BTreeMap<SocketId, usize>,
    /// Application that owns connections opened by the script, and the one of the listening socket.
    opener: ApplicationId,
    listening: Option<ApplicationId>,
}

impl Host {
    pub(super) fn new(now: Time) -> Self {
        let mut world = World::new(RandomStream::new(1, "host", "none"));
        world.now = now;
        let sequences = InitialSequences::Fixed(INITIAL_SEQUENCE);
        let mut host = bentpipe_host::Host::new(Limits::NONE, sequences);
        host.routes(Routes::by_default(LOCAL, EGRESS));
        let heard = Arc::default();
        let opener = add(&mut host, Config::default(), None, &heard);
        Self {
            world,
            conversations: Vec::new(),
            listeners: Vec::new(),
            host,
            heard,
            by_socket: BTreeMap::new(),
            opener,
            listening: None,
        }
    }

    /// Returns the connection of a conversation, open or closed.
    pub(super) fn connection(&self, conversation: usize) -> &Connection {
        let id = self.conversations[conversation].socket;
        let socket = self.host.socket(id);
        socket.expect("closed connections are kept").connection()
    }

    /// Calls `act` on a connection.
    pub(super) fn with<T>(
        &mut self,
        conversation: usize,
        act: impl FnOnce(&mut Connection, &mut Ctx<'_>) -> T,
    ) -> T {
        let Conversation {
            socket,
            application,
            ..
        } = self.conversations[conversation];
        let mut cx = self.world.cx();
        let result = self
            .host
            .at_desk(application, &mut cx, |api| api.act(socket, act));
        result.expect("closed connections are kept")
    }

    /// Opens a connection, with TCP Fast Open if `fast_open` is given. Returns the connection's
    /// index and the number of bytes on its SYN.
    pub(super) fn connect(
        &mut self,
        config: &Config,
        local: u16,
        remote: u16,
        fast_open: Option<ActiveFastOpen>,
    ) -> Result<(usize, u64), ConnectError> {
        let remote = Endpoint {
            address: REMOTE,
            port: remote,
        };
        let fast = fast_open.unwrap_or_default();
        let connect = Connect {
            local_port: Some(local),
            config: Some(&Arc::new(config.clone())),
            fast_open: fast,
            data: Source::Filler(fast.bytes),
            ..Connect::to(remote.into())
        };
        let opener = self.opener;
        let mut cx = self.world.cx();
        let opened = self
            .host
            .at_desk(opener, &mut cx, |api| api.connect_with(&connect));
        let (socket, taken) = opened?;
        let index = self.add(socket, opener, None);
        self.conversations[index].learns = fast_open.map(|fast| match fast.option {
            Some(_) => FastOpenRequest::Cookie,
            None => FastOpenRequest::Nothing,
        });
        Ok((index, taken))
    }

    fn add(&mut self, socket: SocketId, application: ApplicationId, parent: Option<i64>) -> usize {
        self.conversations.push(Conversation {
            socket,
            application,
            history: Events::NONE,
            news: Events::NONE,
            parent,
            learns: None,
            lacks_room: false,
        });
        let index = self.conversations.len() - 1;
        self.by_socket.insert(socket, index);
        index
    }

    pub(super) fn listens(&self) -> bool {
        !self.listeners.is_empty()
    }

    /// Starts listening. The newest listener receives new connections.
    pub(super) fn listen(&mut self, listener: Listener) {
        self.listeners.retain(|one| one.socket != listener.socket);
        self.listeners.push(listener);
        self.listen_as_set();
    }

    /// Changes settings of a listening socket.
    pub(super) fn set_listener(&mut self, socket: i64, set: impl FnOnce(&mut Listener)) {
        if let Some(listener) = self.listeners.iter_mut().find(|one| one.socket == socket) {
            set(listener);
            self.listen_as_set();
        }
    }

    /// Stops listening.
    pub(super) fn unlisten(&mut self, socket: i64) {
        self.listeners.retain(|one| one.socket != socket);
        self.listen_as_set();
    }

    /// Lets the newest listener receive new connections, with an application of its own: settings
    /// belong to an application, and existing connections keep theirs.
    fn listen_as_set(&mut self) {
        let Some(listener) = self.listeners.last() else {
            self.host.unlisten(SERVICE);
            return;
        };
        let (config, parent) = (listener.config.clone(), Some(listener.socket));
        let application = add(&mut self.host, config, parent, &self.heard);
        let mut taking = Taking::new(Taker::One(application));
        if let Some(policy) = listener.fast_open.clone() {
            let heard = Arc::clone(&self.heard);
            taking.fast_open = Some(Box::new(move |payload, option| {
                let answer = policy.answer(payload, option);
                lock(&heard).takes_data = answer == PassiveFastOpen::Accept;
                answer
            }));
        }
        self.host.listen(SERVICE, taking);
        self.listening = Some(application);
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.host.next_deadline()
    }

    pub(super) fn on_deadline(&mut self) {
        self.host.on_deadline(&mut self.world.cx());
    }

    /// Returns the open connection between these ports.
    pub(super) fn between(&self, local: u16, remote: u16) -> Option<usize> {
        (0..self.conversations.len()).rev().find(|&index| {
            let connection = self.connection(index);
            connection.local().port == local
                && connection.remote().port == remote
                && connection.state() != State::Closed
        })
    }

    /// Handles an arriving packet.
    pub(super) fn receive(&mut self, packet: PacketRef) {
        self.host.on_packet(EGRESS, packet, &mut self.world.cx());
    }

    /// Handles an ICMP error about a segment of a connection.
    pub(super) fn receive_icmp(
        &mut self,
        conversation: usize,
        version: IpVersion,
        error: IcmpError,
        sequence: Seq,
    ) {
        let connection = self.connection(conversation);
        let mut segment = Packet::new(connection.local(), connection.remote(), version);
        segment.sequence = sequence;
        if let Some(next_icmp_error) = Packet::icmp_error(REMOTE, &segment, error) {
            let next_icmp_error = self.world.packets.insert(next_icmp_error);
            self.receive(next_icmp_error);
        }
    }

    /// Processes recorded events.
    pub(super) fn settle(&mut self) {
        let news = std::mem::take(&mut lock(&self.heard).news);
        for news in news {
            match news {
                News::Accepted {
                    socket,
                    parent,
                    takes_data,
                } => {
                    let application = self.listening.unwrap_or(self.opener);
                    let index = self.add(socket, application, Some(parent));
                    if takes_data {
                        // It can be accepted at once.
                        self.happened(index, Events::ESTABLISHED);
                    }
                }
                News::Happened(socket, events) => {
                    if let Some(&index) = self.by_socket.get(&socket) {
                        self.happened(index, events);
                    }
                }
            }
        }
    }

    fn happened(&mut self, index: usize, events: Events) {
        let conversation = &mut self.conversations[index];
        conversation.history |= events;
        conversation.news |= events;
    }

    pub(super) fn take_outbox(&mut self) -> Vec<PacketRef> {
        self.world
            .outbox
            .drain(..)
            .map(|(_, packet)| packet)
            .collect()
    }
}

fn add(
    host: &mut bentpipe_host::Host<Ranges>,
    config: Config,
    parent: Option<i64>,
    heard: &Arc<Mutex<RecordedEvent>>,
) -> ApplicationId {
    let member = Member {
        keeps_closed: true,
        ..Member::new(config)
    };
    let heard = Arc::clone(heard);
    host.add(member, Box::new(EventRecorder { parent, heard }))
}
