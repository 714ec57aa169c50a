//! The host under test: connections and listeners, driven like any sans-IO code.

use bentpipe_tcp::{
    ActiveFastOpen, Config, Connection, Events, Opening, PassiveFastOpen, State, reset_reply,
};
use bentpipe_types::{
    Address, Ctx, Endpoint, Flags, Packet, PacketRef, Port, RandomStream, Seq, Time, World,
};

use super::fast_open::Policy;

/// The host's address, and that of the world outside.
pub(super) const LOCAL: Address = Address(1);
pub(super) const REMOTE: Address = Address(2);

/// Our first sequence number: it wraps soon, so that every script sees it wrap.
pub(super) const INITIAL_SEQUENCE: Seq = Seq::new(u32::MAX - 2_000);

/// A connection, and what has happened to it that nobody asked about.
#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) connection: Connection,
    /// Everything that ever happened.
    pub(super) history: Events,
    /// What happened since a socket last looked.
    pub(super) news: Events,
    /// The listener (by its socket's number) that it came of, until it is in its queue.
    pub(super) parent: Option<i64>,
    /// Its SYN had a Fast Open option or data: what the peer answers is worth remembering.
    pub(super) learns: Option<Asked>,
}

/// What an active open asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Asked {
    /// A cookie, or showed one.
    Cookie,
    /// Nothing, but had data.
    Nothing,
}

/// What a listening socket has set for its connections.
#[derive(Clone, Debug)]
pub(super) struct Listener {
    pub(super) socket: i64,
    pub(super) config: Config,
    pub(super) fast_open: Option<Policy>,
}

#[derive(Debug)]
pub(super) struct Host {
    pub(super) world: World,
    pub(super) conversations: Vec<Conversation>,
    pub(super) listeners: Vec<Listener>,
}

impl Host {
    pub(super) fn new(now: Time) -> Self {
        let mut world = World::new(RandomStream::new(1, "host", "none"));
        world.now = now;
        Self {
            world,
            conversations: Vec::new(),
            listeners: Vec::new(),
        }
    }

    /// Calls `act` on a connection.
    pub(super) fn with<T>(
        &mut self,
        conversation: usize,
        act: impl FnOnce(&mut Connection, &mut Ctx<'_>) -> T,
    ) -> T {
        let connection = &mut self.conversations[conversation].connection;
        act(connection, &mut self.world.cx())
    }

    /// Opens a connection. With `fast_open`: an option, data, and how much of it has room on the SYN;
    /// also returns how much was taken.
    pub(super) fn connect(
        &mut self,
        config: &Config,
        local: u16,
        remote: u16,
        fast_open: Option<ActiveFastOpen>,
    ) -> (usize, u64) {
        let end = |address, port| Endpoint { address, port };
        let (local, remote) = (end(LOCAL, local), end(REMOTE, remote));
        let mut cx = self.world.cx();
        let opening = Opening {
            config,
            local,
            remote,
            egress: Port(0),
            initial_sequence: INITIAL_SEQUENCE,
        };
        let (connection, taken) =
            Connection::connect_fast(&opening, fast_open.unwrap_or_default(), &mut cx);
        let index = self.add(connection, None);
        self.conversations[index].learns = fast_open.map(|fast| match fast.option {
            Some(_) => Asked::Cookie,
            None => Asked::Nothing,
        });
        (index, taken)
    }

    fn add(&mut self, connection: Connection, parent: Option<i64>) -> usize {
        self.conversations.push(Conversation {
            connection,
            history: Events::NONE,
            news: Events::NONE,
            parent,
            learns: None,
        });
        self.conversations.len() - 1
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.conversations
            .iter()
            .filter_map(|c| c.connection.next_deadline())
            .min()
    }

    pub(super) fn on_deadline(&mut self) {
        for index in 0..self.conversations.len() {
            let deadline = self.conversations[index].connection.next_deadline();
            if deadline.is_some_and(|at| at <= self.world.now) {
                self.with(index, Connection::on_deadline);
            }
        }
    }

    /// The living connection between these ports.
    pub(super) fn between(&self, local: u16, remote: u16) -> Option<usize> {
        self.conversations.iter().rposition(|c| {
            c.connection.local().port == local
                && c.connection.remote().port == remote
                && c.connection.state() != State::Closed
        })
    }

    /// A packet has arrived.
    pub(super) fn receive(&mut self, reference: PacketRef) {
        let packet: Packet = *self.world.packets.get(reference);
        let (local, remote) = (packet.destination, packet.source);
        if let Some(index) = self.between(local.port, remote.port) {
            self.with(index, |c, cx| c.on_packet(reference, cx));
            return;
        }
        let opens = packet.flags.has(Flags::SYN) && !packet.flags.has(Flags::ACK.with(Flags::RST));
        let mut cx = self.world.cx();
        match self.listeners.last() {
            Some(listener) if opens => {
                let option = cx.packets.syn_options(reference).fast_open;
                let policy = listener.fast_open.as_ref();
                let fast_open = policy.map_or(PassiveFastOpen::Ignore, |policy| {
                    policy.answer(packet.payload_length, option)
                });
                let opening = Opening {
                    config: &listener.config,
                    local,
                    remote,
                    egress: Port(0),
                    initial_sequence: INITIAL_SEQUENCE,
                };
                let connection = Connection::accept_fast(&opening, reference, fast_open, &mut cx);
                let parent = Some(listener.socket);
                let index = self.add(connection, parent);
                if fast_open == PassiveFastOpen::Take {
                    // It can be accepted at once.
                    let conversation = &mut self.conversations[index];
                    conversation.history |= Events::ESTABLISHED;
                    conversation.news |= Events::ESTABLISHED;
                }
            }
            _ => reset_reply(reference, Port(0), &mut cx),
        }
    }

    /// Takes in what has happened.
    pub(super) fn settle(&mut self) {
        for index in 0..self.conversations.len() {
            let conversation = &mut self.conversations[index];
            let events = conversation.connection.take_events();
            conversation.history |= events;
            conversation.news |= events;
        }
    }

    pub(super) fn take_outbox(&mut self) -> Vec<PacketRef> {
        self.world
            .outbox
            .drain(..)
            .map(|(_, packet)| packet)
            .collect()
    }
}
