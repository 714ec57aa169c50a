//! The host under test: the one of both clocks, with every connection kept for the script to look at.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bentpipe_host::{
    Application, ApplicationId, Connect, ConnectError, Desk, InitialSequences, Limits,
    Listener as Taking, Member, SocketId, Taker,
};
use bentpipe_tcp::{
    ActiveFastOpen, Config, Connection, Events, PassiveFastOpen, Ranges, Source, State,
};
use bentpipe_types::{
    Agent, Ctx, Endpoint, IcmpError, IpVersion, Packet, PacketRef, Port, RandomStream, Routes, Seq,
    Time, World,
};

use super::ends::{INITIAL_SEQUENCE, LOCAL, REMOTE, SERVICE};
use super::fast_open::{Asked, Policy};

/// The only way out.
const EGRESS: Port = Port(0);

/// A connection, and what has happened to it that nobody asked about.
#[derive(Debug)]
pub(super) struct Conversation {
    socket: SocketId,
    application: ApplicationId,
    /// Everything that ever happened.
    pub(super) history: Events,
    /// What happened since a socket last looked.
    pub(super) news: Events,
    /// The listener (by its socket's number) that it came of, until it is in its queue.
    pub(super) parent: Option<i64>,
    /// Its SYN had a Fast Open option or data: what the peer answers is worth remembering.
    pub(super) learns: Option<Asked>,
    /// Its send buffer had no room when a socket last looked.
    pub(super) lacks_room: bool,
}

/// What a listening socket has set for its connections.
#[derive(Clone, Debug)]
pub(super) struct Listener {
    pub(super) socket: i64,
    pub(super) config: Config,
    pub(super) fast_open: Option<Policy>,
}

/// The application below the script's sockets: it does nothing of its own accord, and tells what it
/// hears.
#[derive(Debug)]
struct Ear {
    /// The listening socket that it stands for.
    parent: Option<i64>,
    heard: Arc<Mutex<Heard>>,
}

/// What was heard and not taken in, in order.
#[derive(Debug, Default)]
struct Heard {
    /// A SYN came whose data was taken, before its connection was there.
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

impl Application<Ranges> for Ear {
    fn on_accept(&mut self, socket: SocketId, _: &mut Desk<'_, '_, Ranges>) {
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

    fn on_events(&mut self, socket: SocketId, events: Events, _: &mut Desk<'_, '_, Ranges>) {
        lock(&self.heard).news.push(News::Happened(socket, events));
    }
}

fn lock(heard: &Mutex<Heard>) -> MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
pub(super) struct Host {
    pub(super) world: World,
    pub(super) conversations: Vec<Conversation>,
    listeners: Vec<Listener>,
    host: bentpipe_host::Host<Ranges>,
    heard: Arc<Mutex<Heard>>,
    by_socket: BTreeMap<SocketId, usize>,
    /// Whose the connections are that the script opens; and those that come to the listening socket.
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

    /// The connection of a conversation, dead or alive.
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
            .at_desk(application, &mut cx, |desk| desk.act(socket, act));
        result.expect("closed connections are kept")
    }

    /// Opens a connection. With `fast_open`: an option, data, and how much of it has room on the SYN;
    /// also returns how much was taken.
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
            .at_desk(opener, &mut cx, |desk| desk.connect_with(&connect));
        let (socket, taken) = opened?;
        let index = self.add(socket, opener, None);
        self.conversations[index].learns = fast_open.map(|fast| match fast.option {
            Some(_) => Asked::Cookie,
            None => Asked::Nothing,
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

    /// A socket listens from now on, and takes what comes before those that did already.
    pub(super) fn listen(&mut self, listener: Listener) {
        self.listeners.retain(|one| one.socket != listener.socket);
        self.listeners.push(listener);
        self.listen_as_set();
    }

    /// Something about a listening socket was set.
    pub(super) fn set_listener(&mut self, socket: i64, set: impl FnOnce(&mut Listener)) {
        if let Some(listener) = self.listeners.iter_mut().find(|one| one.socket == socket) {
            set(listener);
            self.listen_as_set();
        }
    }

    /// A socket listens no more.
    pub(super) fn unlisten(&mut self, socket: i64) {
        self.listeners.retain(|one| one.socket != socket);
        self.listen_as_set();
    }

    /// The last of the listening sockets takes what comes, with an application of its own: settings are
    /// an application's, and connections keep those that they came with.
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
                lock(&heard).takes_data = answer == PassiveFastOpen::Take;
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

    /// The living connection between these ports.
    pub(super) fn between(&self, local: u16, remote: u16) -> Option<usize> {
        (0..self.conversations.len()).rev().find(|&index| {
            let connection = self.connection(index);
            connection.local().port == local
                && connection.remote().port == remote
                && connection.state() != State::Closed
        })
    }

    /// A packet has arrived.
    pub(super) fn receive(&mut self, packet: PacketRef) {
        self.host.on_packet(EGRESS, packet, &mut self.world.cx());
    }

    /// An ICMP error has arrived about a segment of a connection.
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
        if let Some(complaint) = Packet::icmp_error(REMOTE, &segment, error) {
            let complaint = self.world.packets.insert(complaint);
            self.receive(complaint);
        }
    }

    /// Takes in what has happened.
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
    heard: &Arc<Mutex<Heard>>,
) -> ApplicationId {
    let member = Member {
        keeps_closed: true,
        ..Member::new(config)
    };
    let heard = Arc::clone(heard);
    host.add(member, Box::new(Ear { parent, heard }))
}
