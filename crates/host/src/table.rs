//! A host's connections and their applications.

use std::net::IpAddr;

use bentpipe_tcp::{
    ActiveFastOpen, Connection, Events, Opening, PassiveFastOpen, PathLimit, Socket, State,
};
use bentpipe_types::{Address, Ctx, Endpoint, FastOpen, IpVersion, Routes, Time, fetch};

use crate::account::Account;
use crate::connect::{Connect, ConnectError, Remote};
use crate::cookies::Cookies;
use crate::deadlines::Deadlines;
use crate::fetch_step::Step;
use crate::inline_first::InlineFirst;
use crate::paths::Paths;
use crate::waking::Waking;
use crate::{ApplicationId, ConnectionKeys, InitialSequences, SocketId, Table};

/// Returns the real address of a node.
pub type AddressOf = fn(Address) -> IpAddr;

/// A connection in its place.
#[derive(Debug)]
pub(crate) struct Slot<P: ConnectionKeys> {
    pub(crate) socket: Socket<P>,
    key: P::Key,
    pub(crate) owner: ApplicationId,
    pub(crate) half_open: bool,
    /// Whether its application is being woken.
    pub(crate) calls: bool,
    /// Fast Open state, while its first data may be sent with its SYN.
    early: Option<Box<Early<P::Key>>>,
    /// Time of its earliest deadline entry, or `Time::NEVER` if there may be none.
    pub(crate) armed: Time,
}

/// A connection opened with Fast Open. Its application is notified that it is established before
/// its SYN is sent, so that its first write travels with it: Linux's TCP_FASTOPEN_CONNECT.
#[derive(Clone, Copy, Debug)]
struct Early<K> {
    /// Key of the server.
    there: K,
    launched: bool,
}

impl<P: ConnectionKeys> Slot<P> {
    /// Whether it was opened with Fast Open and is not known to be established.
    #[inline]
    pub(crate) fn is_early(&self) -> bool {
        self.early.is_some()
    }

    /// Whether its application must be notified before its SYN is sent.
    #[inline]
    pub(crate) fn waits_for_text(&self) -> bool {
        self.early.as_deref().is_some_and(|early| !early.launched)
    }
}

#[derive(Debug)]
struct Place<P: ConnectionKeys> {
    generation: u32,
    slot: Option<Box<Slot<P>>>,
}

impl<P: ConnectionKeys> Default for Place<P> {
    fn default() -> Self {
        Self {
            generation: 0,
            slot: None,
        }
    }
}

/// Owner of a deadline number: connections are even, applications odd.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Timer {
    Socket(u32),
    Application(ApplicationId),
}

impl Timer {
    #[inline]
    pub(crate) fn number(self) -> u32 {
        match self {
            Self::Socket(place) => place << 1,
            Self::Application(application) => application.0 << 1 | 1,
        }
    }

    pub(crate) fn of(number: u32) -> Self {
        if number & 1 == 0 {
            Self::Socket(number >> 1)
        } else {
            Self::Application(ApplicationId(number >> 1))
        }
    }
}

/// A host without its applications. Fields that each packet needs come first.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Sockets<P: ConnectionKeys> {
    places: InlineFirst<Place<P>>,
    /// Key and place of the last packet, which mostly are the next one's too.
    last: Option<(P::Key, u32)>,
    /// Wake-up model, where idle time matters.
    pub(crate) waking: Option<Box<Waking>>,
    pub(crate) deadlines: Deadlines,
    pub(crate) routes: Routes,
    pub(crate) sequences: InitialSequences,
    /// Real addresses of nodes, if they have any.
    pub(crate) addresses: Option<AddressOf>,
    free: Vec<u32>,
    by_key: P::Table,
    pub(crate) accounts: Vec<Account>,
    /// Places in which an application has acted, to be checked.
    pub(crate) touched: Vec<u32>,
    pub(crate) most: usize,
    pub(crate) open: usize,
    pub(crate) half_open: usize,
    pub(crate) opened: u64,
    /// Path MTUs.
    pub(crate) paths: Paths<P::Key>,
    /// Fast Open cookies.
    cookies: Cookies<P::Key>,
}

impl<P: ConnectionKeys> Sockets<P> {
    pub(crate) fn new() -> Self {
        Self {
            routes: Routes::default(),
            sequences: InitialSequences::PerApplication,
            addresses: None,
            places: InlineFirst::default(),
            free: Vec::new(),
            by_key: P::Table::default(),
            last: None,
            waking: None,
            accounts: Vec::new(),
            deadlines: Deadlines::default(),
            touched: Vec::new(),
            most: usize::MAX,
            open: 0,
            half_open: 0,
            opened: 0,
            paths: Paths::default(),
            cookies: Cookies::default(),
        }
    }

    #[inline]
    pub(crate) fn at(&self, place: u32) -> Option<&Slot<P>> {
        self.places.get(place)?.slot.as_deref()
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, place: u32) -> Option<&mut Slot<P>> {
        slot_in(&mut self.places, place)
    }

    /// Returns the connection, if the identifier is still valid.
    #[inline]
    pub(crate) fn named(&self, id: SocketId) -> Option<&Slot<P>> {
        let place = self.places.get(id.place)?;
        (place.generation == id.generation)
            .then_some(place.slot.as_deref())
            .flatten()
    }

    #[inline]
    pub(crate) fn named_mut(&mut self, id: SocketId) -> Option<&mut Slot<P>> {
        let place = self.places.get_mut(id.place)?;
        (place.generation == id.generation)
            .then_some(place.slot.as_deref_mut())
            .flatten()
    }

    /// Returns two different connections.
    pub(crate) fn named_pair(
        &mut self,
        first: SocketId,
        second: SocketId,
    ) -> Option<[&mut Slot<P>; 2]> {
        let [one, other] = self.places.pair_mut(first.place, second.place)?;
        let current = one.generation == first.generation && other.generation == second.generation;
        match (one.slot.as_deref_mut(), other.slot.as_deref_mut()) {
            (Some(one), Some(other)) if current => Some([one, other]),
            _ => None,
        }
    }

    pub(crate) fn id_of(&self, place: u32) -> SocketId {
        let generation = self.places.get(place).map_or(0, |place| place.generation);
        SocketId { place, generation }
    }

    /// Iterates over all connections in their places.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Slot<P>> {
        self.places.iter().filter_map(|place| place.slot.as_deref())
    }

    /// Whether the application of a connection is notified later, since it sleeps until the
    /// connection is established or data arrive.
    #[inline]
    pub(crate) fn wakes_first(&mut self, place: u32, now: Time) -> bool {
        self.waking.is_some() && self.wakes_application(place, now)
    }

    #[inline(never)]
    fn wakes_application(&mut self, place: u32, now: Time) -> bool {
        let id = self.id_of(place);
        let Some(slot) = self.at_mut(place) else {
            return false;
        };
        let awaited = Events::ESTABLISHED | Events::READABLE;
        if slot.calls || slot.is_early() || !slot.socket.has_event(awaited) {
            return slot.calls;
        }
        slot.calls = true;
        if let Some(waking) = &mut self.waking {
            let at = waking.call(id, now);
            self.deadlines.look_at(at);
        }
        true
    }

    /// Returns the place of the next connection whose application has woken up.
    pub(crate) fn awake(&mut self, now: Time) -> Option<u32> {
        while let Some(id) = self.waking.as_mut()?.answered(now) {
            if let Some(slot) = self.named_mut(id) {
                slot.calls = false;
                return Some(id.place);
            }
        }
        None
    }

    /// Returns the place of the connection with this key.
    #[inline]
    pub(crate) fn find(&mut self, key: P::Key) -> Option<u32> {
        if let Some((last, place)) = self.last
            && last == key
        {
            return Some(place);
        }
        self.look_up(key)
    }

    /// [`find`](Self::find) for another connection than the last one.
    #[inline(never)]
    fn look_up(&mut self, key: P::Key) -> Option<u32> {
        let place = self.by_key.get(&key)?;
        self.last = Some((key, place));
        Some(place)
    }

    /// Returns the place of a connection for prefetching.
    #[inline]
    pub(crate) fn place_of(&self, key: P::Key) -> Option<u32> {
        self.by_key.get(&key)
    }

    /// Returns the number of places ever used.
    #[inline]
    pub(crate) fn places(&self) -> u32 {
        self.places.count()
    }

    /// See [`Host::fetch`](crate::Host::fetch).
    #[inline(always)]
    pub(crate) fn fetch(&self, place: u32, step: Step) {
        let Some(place) = self.places.get(place) else {
            return;
        };
        if step == Step::Place {
            return fetch(place, 1);
        }
        let Some(slot) = place.slot.as_deref() else {
            return;
        };
        let connection = slot.socket.connection();
        match step {
            Step::Place => (),
            Step::Timers => {
                connection.prefetch_timers();
                fetch(&slot.armed, 1);
            }
            Step::Connection => {
                connection.prefetch();
                fetch(&slot.armed, 1);
                self.deadlines.fetch();
            }
            Step::More => connection.prefetch_more(),
            Step::Senders => connection.prefetch_senders(),
            Step::Last => connection.prefetch_last(),
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.open >= self.most
    }

    /// Adds a connection.
    pub(crate) fn add(&mut self, socket: Socket<P>, key: P::Key, owner: ApplicationId) -> SocketId {
        let half_open = socket.state() == State::SynReceived;
        let slot = Box::new(Slot {
            socket,
            key,
            owner,
            half_open,
            calls: false,
            early: None,
            armed: Time::NEVER,
        });
        let place = self.free.pop().unwrap_or_else(|| {
            let place = self.places.push();
            self.deadlines.reserve(Timer::Socket(place).number());
            place
        });
        if let Some(entry) = self.places.get_mut(place) {
            entry.slot = Some(slot);
        }
        self.by_key.insert(key, place);
        self.open += 1;
        self.opened += 1;
        self.half_open += usize::from(half_open);
        let account = &mut self.accounts[owner.0 as usize];
        account.sockets.push(place);
        account.opened += 1;
        self.touched.push(place);
        self.id_of(place)
    }

    /// Removes a closed connection: its place is reused, unless its application keeps closed ones.
    pub(crate) fn remove(&mut self, place: u32) {
        let Some(slot) = self.at(place) else {
            return;
        };
        let (key, owner, half_open) = (slot.key, slot.owner, slot.half_open);
        if self.by_key.get(&key) == Some(place) {
            self.by_key.remove(&key);
            self.open -= 1;
            self.half_open -= usize::from(half_open);
        }
        self.last = None;
        self.deadlines.disarm(Timer::Socket(place).number());
        let account = &mut self.accounts[owner.0 as usize];
        if account.member.keeps_closed {
            return;
        }
        account.sockets.retain(|at| *at != place);
        if let Some(entry) = self.places.get_mut(place) {
            entry.generation = entry.generation.wrapping_add(1);
            if let Some(slot) = entry.slot.take() {
                account.retire(slot.socket.into_connection());
            }
        }
        self.free.push(place);
    }

    /// Updates the count of half-open connections after a handshake.
    pub(crate) fn note_handshake(&mut self, place: u32) {
        if let Some(slot) = self.at_mut(place)
            && slot.half_open
            && slot.socket.state() != State::SynReceived
        {
            slot.half_open = false;
            self.half_open -= 1;
        }
    }

    /// Arms the connection's next deadline.
    #[inline]
    pub(crate) fn arm(&mut self, place: u32) {
        if let Some(slot) = self.at_mut(place)
            && let Some(at) = slot.socket.next_deadline()
        {
            slot.armed = slot.armed.min(at);
            self.deadlines.arm(Timer::Socket(place).number(), at);
        }
    }

    pub(crate) fn arm_at(&mut self, timer: Timer, at: Time) {
        self.deadlines.arm(timer.number(), at);
    }

    /// Opens a connection for an application. Returns it, and how many bytes its SYN carries.
    pub(crate) fn connect(
        &mut self,
        owner: ApplicationId,
        connect: &Connect<'_>,
        cx: &mut Ctx<'_>,
    ) -> Result<(SocketId, u64), ConnectError> {
        if self.is_full() {
            return Err(ConnectError::TableFull);
        }
        let Remote { endpoint, ip } = connect.remote;
        let here = self.routes.here();
        let ip = ip.or_else(|| self.addresses.map(|of| (of(here), of(endpoint.address))));
        let egress = self
            .routes
            .port_towards(endpoint.address)
            .ok_or(ConnectError::NoRoute)?;
        let account = &mut self.accounts[owner.0 as usize];
        let speaks_first = account.speaks_first;
        let by_key = &self.by_key;
        let is_free = |port| by_key.get(&P::key_of(port, endpoint, ip)).is_none();
        let port = match connect.local_port {
            Some(port) => Some(port).filter(|port| is_free(*port)),
            None => account.member.ports.take(is_free),
        };
        let local = Endpoint {
            address: self.routes.here(),
            port: port.ok_or(ConnectError::PortInUse)?,
        };
        let member = &mut account.member;
        let ends = [local, endpoint];
        let initial_sequence = self.sequences.next(&mut member.sequences, ends, ip, cx.now);
        let opening = Opening {
            config: connect.config.unwrap_or(&member.config),
            local,
            remote: endpoint,
            egress,
            initial_sequence,
        };
        let version = opening.config.ip_version;
        let there = P::destination(endpoint.address, ip);
        let limit = self.paths.to(there, version, cx.now);
        let fast_open = as_narrow_as(limit, connect.fast_open, version);
        let is_plain = fast_open == ActiveFastOpen::default() && connect.data.length() == 0;
        let waits = opening.config.fast_open && is_plain && speaks_first;
        let (mut socket, taken) = if waits {
            (Socket::prepare(&opening, ip), 0)
        } else {
            Socket::connect_fast(&opening, ip, fast_open, connect.data, cx)
        };
        if let Some(limit) = limit {
            socket.limit_path(limit);
        }
        let key = P::key_of(local.port, endpoint, ip);
        let id = self.add(socket, key, owner);
        if waits && let Some(slot) = self.at_mut(id.place) {
            let launched = false;
            slot.early = Some(Box::new(Early { there, launched }));
        }
        Ok((id, taken))
    }

    /// Returns the events to report to the application of a connection with Fast Open, which was
    /// notified of being established when it was opened.
    pub(crate) fn news_of_early(&mut self, place: u32, events: Events, now: Time) -> Events {
        let Some(slot) = slot_in(&mut self.places, place) else {
            return events;
        };
        let Some(early) = slot.early.as_deref().copied() else {
            return events;
        };
        if !early.launched {
            return events | Events::ESTABLISHED;
        }
        if !events.has(Events::ESTABLISHED) {
            return events;
        }
        slot.early = None;
        let connection = slot.socket.connection();
        self.cookies.learn(early.there, connection, now);
        events.without(Events::ESTABLISHED)
    }

    /// Sends the SYN after the application's first write.
    pub(crate) fn launch(&mut self, place: u32, cx: &mut Ctx<'_>) {
        let Some(slot) = slot_in(&mut self.places, place) else {
            return;
        };
        let Some(early) = slot.early.as_deref_mut() else {
            return;
        };
        if std::mem::replace(&mut early.launched, true) {
            return;
        }
        if slot.socket.state() != State::SynSent {
            return;
        }
        let version = slot.socket.connection().ip_version();
        let limit = self.paths.to(early.there, version, cx.now);
        let opening = self.cookies.opening(early.there, version);
        slot.socket
            .launch(as_narrow_as(limit, opening, version), cx);
    }

    /// Decides about a SYN's Fast Open option and data (RFC 7413 section 4.2.2).
    pub(crate) fn fast_open(
        &self,
        owner: ApplicationId,
        client: Remote,
        option: Option<FastOpen>,
    ) -> PassiveFastOpen {
        if !self.accounts[owner.0 as usize].member.config.fast_open {
            return PassiveFastOpen::Ignore;
        }
        let here = self.routes.here();
        let ip = client.ip.map(|(_, theirs)| theirs);
        let good = self.sequences.cookie(here, client.endpoint.address, ip);
        match (option, good) {
            (Some(option), Some(good)) if option.cookie() == good.cookie() => {
                PassiveFastOpen::Accept
            }
            (Some(_), Some(good)) => PassiveFastOpen::Offer(good),
            _ => PassiveFastOpen::Ignore,
        }
    }

    /// Applies a path MTU that a connection has learned to other and future connections to the
    /// host.
    pub(crate) fn limit_path(
        &mut self,
        remote: Remote,
        version: IpVersion,
        limit: PathLimit,
        now: Time,
    ) {
        let there = P::destination(remote.endpoint.address, remote.ip);
        let limit = self.paths.learn(there, version, limit, now);
        for place in self.by_key.towards(&there) {
            if let Some(slot) = self.at_mut(place)
                && slot.socket.connection().ip_version() == version
            {
                slot.socket.limit_path(limit);
            }
        }
    }

    /// Returns the connection that represents an application: its latest open one, or the last
    /// closed one.
    pub(crate) fn of(&self, application: ApplicationId) -> Option<&Connection> {
        let account = self.accounts.get(application.0 as usize)?;
        let open = account.sockets.last().and_then(|place| self.at(*place));
        open.map(|slot| slot.socket.connection())
            .or(account.retired.as_deref())
    }
}

/// Returns the connection in this place, while the rest of the table stays borrowable.
fn slot_in<P: ConnectionKeys>(
    places: &mut InlineFirst<Place<P>>,
    place: u32,
) -> Option<&mut Slot<P>> {
    places.get_mut(place)?.slot.as_deref_mut()
}

/// Limits the data on a SYN to the known path MTU.
fn as_narrow_as(
    limit: Option<PathLimit>,
    mut opening: ActiveFastOpen,
    version: IpVersion,
) -> ActiveFastOpen {
    if let Some(limit) = limit {
        opening.room = opening.room.min(limit.room_on_syn(version));
    }
    opening
}
