//! The sockets of one player thread and their applications.

mod asked;
mod listeners;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use bentpipe_host::{ConnectError, Member, Ports, SocketId};
use bentpipe_tcp::{Events, Failure};
use bentpipe_types::{Address, Endpoint, Time};
use nix::errno::Errno;
use nix::sys::epoll::EpollFlags;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::TcpFastOpenConnect;
use socket2::{Domain, SockRef, Socket, Type};

use super::account::Account;
use super::datagrams::Datagrams;
use super::sockets::{CHUNK, Filled, Slot};
use super::{BETWEEN_QUESTIONS, Played};
use crate::emulate::host::Host;
use crate::netlink::Netlink;
use crate::poller::Poller;
use listeners::Listening;

/// Kind and index of a socket, as the poller's number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tag {
    Connection(u32),
    Listener(u32),
    Datagrams(u32),
}

impl Tag {
    pub(super) fn of(number: u64) -> Self {
        let index = number as u32;
        match number >> 32 {
            0 => Self::Connection(index),
            1 => Self::Listener(index),
            _ => Self::Datagrams(index),
        }
    }

    pub(super) fn number(self) -> u64 {
        let (kind, index) = match self {
            Self::Connection(index) => (0, index),
            Self::Listener(index) => (1, index),
            Self::Datagrams(index) => (2, index),
        };
        kind << 32 | u64::from(index)
    }
}

struct Place {
    generation: u32,
    slot: Option<Box<Slot>>,
}

/// The sockets of a player, and the state of its applications.
pub(crate) struct Table<'h> {
    pub(super) hosts: &'h [Host],
    pub(super) nodes: &'h BTreeMap<IpAddr, Address>,
    pub(super) poller: Poller,
    pub(super) now: Time,
    /// The host in whose namespace this thread is.
    inside: Option<usize>,
    pub(super) accounts: Vec<Account>,
    places: Vec<Place>,
    free: Vec<u32>,
    open: usize,
    listeners: Vec<Option<Listening>>,
    /// Listeners by host and port.
    listening: BTreeMap<(usize, u16), usize>,
    pub(super) datagrams: Datagrams,
    /// Connections with events.
    touched: Vec<u32>,
    /// Connections with bytes to write whose kernel buffer is not known to be full.
    going_on: Vec<u32>,
    /// Connections to query for acknowledged data, and the time of the next query.
    asked: BTreeSet<u32>,
    pub(super) asks_at: Option<Time>,
    /// Sockets for queries, by host.
    netlinks: BTreeMap<usize, Netlink>,
    filled: Filled,
    buffer: Vec<u8>,
}

impl std::fmt::Debug for Table<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table")
            .field("open", &self.open)
            .finish_non_exhaustive()
    }
}

impl<'h> Table<'h> {
    pub(super) fn new(hosts: &'h [Host], nodes: &'h BTreeMap<IpAddr, Address>) -> io::Result<Self> {
        Ok(Self {
            hosts,
            nodes,
            poller: Poller::new()?,
            now: Time::ZERO,
            inside: None,
            accounts: Vec::new(),
            places: Vec::new(),
            free: Vec::new(),
            open: 0,
            listeners: Vec::new(),
            listening: BTreeMap::new(),
            datagrams: Datagrams::default(),
            touched: Vec::new(),
            going_on: Vec::new(),
            asked: BTreeSet::new(),
            asks_at: None,
            netlinks: BTreeMap::new(),
            filled: Filled::new(),
            buffer: vec![0; CHUNK],
        })
    }

    /// Notes that another thread takes over, which has not entered a namespace.
    pub(super) fn moved(&mut self) {
        self.inside = None;
    }

    /// Moves the calling thread into a host's namespace.
    pub(super) fn enter(&mut self, host: usize) -> io::Result<()> {
        if self.inside != Some(host) {
            self.hosts[host].space.join()?;
            self.inside = Some(host);
        }
        Ok(())
    }

    /// Adds an application in `host` that listens on these ports, or to a channel. If its host has
    /// Fast Open and it sends first, its first write travels in the SYN.
    #[expect(clippy::too_many_arguments, reason = "an end of a flow, part by part")]
    pub(super) fn add(
        &mut self,
        host: usize,
        control: String,
        no_delay: bool,
        member: Member,
        listens: &[u16],
        peers: (Address, Ports),
        channel: Option<Address>,
        speaks_first: bool,
    ) -> io::Result<()> {
        let me = self.accounts.len();
        let fast_open = speaks_first && member.config.fast_open;
        self.accounts.push(Account::new(
            host, control, no_delay, fast_open, member, peers,
        ));
        for port in listens {
            if let Some(channel) = channel {
                self.hear(host, channel, *port, (peers, me))?;
                continue;
            }
            self.listen(me, *port, false)?;
            self.open_datagrams(host, *port, Some((peers, me)))?;
        }
        Ok(())
    }

    pub(super) fn account(&self, me: usize) -> &Account {
        &self.accounts[me]
    }

    pub(super) fn account_mut(&mut self, me: usize) -> &mut Account {
        &mut self.accounts[me]
    }

    /// Returns the start time of an application that has not started.
    pub(super) fn start_of(&self, me: usize) -> Option<Time> {
        self.accounts[me].member.starts
    }

    pub(super) fn starts(&self, me: usize) -> bool {
        self.start_of(me).is_some()
    }

    /// Takes the start time of an application if it has come; returns true then.
    pub(super) fn takes_start(&mut self, me: usize, now: Time) -> bool {
        let starts = &mut self.accounts[me].member.starts;
        starts.take_if(|at| *at <= now).is_some()
    }

    /// Whether there are connections.
    pub(super) fn is_busy(&self) -> bool {
        self.open > 0
    }

    pub(super) fn named(&self, id: SocketId) -> Option<&Slot> {
        let slot = self.places.get(id.parts().0 as usize)?.slot.as_deref()?;
        (slot.id == id).then_some(slot)
    }

    fn named_mut(&mut self, id: SocketId) -> Option<&mut Slot> {
        let place = self.places.get_mut(id.parts().0 as usize)?;
        let slot = place.slot.as_deref_mut()?;
        (slot.id == id).then_some(slot)
    }

    /// Calls `act` with a connection; returns the default if it no longer exists.
    pub(super) fn with<R: Default>(&mut self, id: SocketId, act: impl FnOnce(&mut Slot) -> R) -> R {
        self.named_mut(id).map_or_else(R::default, act)
    }

    /// Opens a connection.
    pub(super) fn connect(
        &mut self,
        me: usize,
        port: Option<u16>,
        remote: Endpoint,
    ) -> Result<SocketId, ConnectError> {
        let host = self.accounts[me].host;
        let ip = self.ip_of(remote.address).ok_or(ConnectError::NoRoute)?;
        self.enter(host).map_err(|_| ConnectError::NoRoute)?;
        let (first, last) = self.accounts[me].member.ports.bounds();
        let attempts = port.map_or(u32::from(last - first) + 1, |_| 1);
        for _ in 0..attempts {
            let free = |_| true;
            let local = port.or_else(|| self.accounts[me].member.ports.take(free));
            let local = local.ok_or(ConnectError::PortInUse)?;
            let account = &self.accounts[me];
            let from = SocketAddr::new(self.hosts[host].address, local);
            let to = SocketAddr::new(ip, remote.port);
            match begin(from, to, account) {
                Ok(stream) => {
                    let local = Endpoint {
                        address: self.nodes[&from.ip()],
                        port: local,
                    };
                    let id = self.insert(me, stream, local, remote);
                    if let Some(slot) = self.named_mut(id) {
                        slot.opening = true;
                    }
                    self.poll(id);
                    return Ok(id);
                }
                // The port's previous connection is open or in TIME-WAIT: try the next port.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable
                    ) => {}
                Err(_) => return Err(ConnectError::NoRoute),
            }
        }
        Err(ConnectError::PortInUse)
    }

    pub(super) fn ip_of(&self, node: Address) -> Option<IpAddr> {
        let mut nodes = self.nodes.iter();
        // One node is enough to determine the IP version.
        let is_v6 = nodes.next()?.0.is_ipv6();
        Some(crate::emulate::ip(is_v6, node))
    }

    fn insert(
        &mut self,
        owner: usize,
        stream: TcpStream,
        local: Endpoint,
        remote: Endpoint,
    ) -> SocketId {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place {
                generation: 0,
                slot: None,
            });
            (self.places.len() - 1) as u32
        });
        let generation = self.places[place as usize].generation;
        let id = SocketId::new(place, generation);
        let slot = Slot::new(id, owner, stream, local, remote);
        self.places[place as usize].slot = Some(Box::new(slot));
        self.open += 1;
        let account = &mut self.accounts[owner];
        account.sockets.push(id);
        account.played.statistics.get_or_insert_default();
        id
    }

    /// Updates the events that a connection is polled for.
    fn poll(&mut self, id: SocketId) {
        let place = id.parts().0;
        let Some(slot) = self.places[place as usize].slot.as_deref_mut() else {
            return;
        };
        let wanted = if slot.gone {
            (false, false)
        } else {
            slot.interest()
        };
        if wanted == slot.polled {
            return;
        }
        let flags = |(read, write): (bool, bool)| {
            let mut flags = EpollFlags::empty();
            flags.set(EpollFlags::EPOLLIN, read);
            flags.set(EpollFlags::EPOLLOUT, write);
            flags
        };
        let tag = Tag::Connection(place).number();
        let _ = match (slot.polled, wanted) {
            ((false, false), _) => self.poller.add(&slot.stream, flags(wanted), tag),
            (_, (false, false)) => self.poller.remove(&slot.stream),
            _ => self.poller.modify(&slot.stream, flags(wanted), tag),
        };
        slot.polled = wanted;
    }

    /// Adds bytes to write, and the close after them if requested.
    pub(super) fn feed(&mut self, id: SocketId, bytes: u64, closes: bool) {
        if let Some(slot) = self.named_mut(id) {
            slot.to_write = slot.to_write.saturating_add(bytes);
            slot.closes |= closes;
            self.flush(id);
        }
    }

    fn flush(&mut self, id: SocketId) {
        let place = id.parts().0;
        let Some(slot) = self.places[place as usize].slot.as_deref_mut() else {
            return;
        };
        if slot.flush(&mut self.filled) {
            let statistics = self.accounts[slot.owner].played.statistics.as_mut();
            if let Some(statistics) = statistics {
                statistics.first_data_at.get_or_insert(self.now);
            }
        }
        if slot.goes_on {
            self.going_on.push(place);
        }
        if slot.is_asked() {
            self.asked.insert(place);
            self.asks_at.get_or_insert(self.now + BETWEEN_QUESTIONS);
        }
        self.looked_at(place);
    }

    /// Whether a connection has bytes to write and its kernel buffer is not known to be full.
    pub(super) fn has_more(&self) -> bool {
        !self.going_on.is_empty()
    }

    /// Continues the writes of these connections, after others had their turn.
    pub(super) fn write_on(&mut self) {
        for place in std::mem::take(&mut self.going_on) {
            let slot = self.places[place as usize].slot.as_deref();
            if let Some(id) = slot.filter(|slot| slot.goes_on).map(|slot| slot.id) {
                self.flush(id);
            }
        }
    }

    /// Lists a connection if it has events, and updates its polling.
    fn looked_at(&mut self, place: u32) {
        let Some(slot) = self.places[place as usize].slot.as_deref_mut() else {
            return;
        };
        let id = slot.id;
        if !slot.events.is_empty() && !slot.listed {
            slot.listed = true;
            self.touched.push(place);
        }
        self.poll(id);
    }

    /// Aborts a connection.
    pub(super) fn abort(&mut self, id: SocketId) {
        if let Some(slot) = self.named_mut(id)
            && !slot.gone
        {
            let _ = SockRef::from(&slot.stream).set_linger(Some(Duration::ZERO));
            slot.gone = true;
            slot.events |= Events::CLOSED;
            self.looked_at(id.parts().0);
        }
    }

    /// Handles a connection that is readable, writable, or has failed.
    pub(super) fn on_ready(&mut self, place: u32, what: EpollFlags) {
        let known = self.places.get_mut(place as usize);
        let Some(slot) = known.and_then(|place| place.slot.as_deref_mut()) else {
            return;
        };
        let (id, owner) = (slot.id, slot.owner);
        if slot.opening {
            slot.opened();
            let failed = slot.gone;
            self.note_failure(id);
            if !failed {
                // Bytes that were added while it was opening.
                self.flush(id);
            }
            self.looked_at(place);
            return;
        }
        let fails = EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP;
        if what.intersects(EpollFlags::EPOLLIN | fails) {
            let (bytes, mismatch) = slot.pull(&mut self.buffer);
            let account = &mut self.accounts[owner];
            if bytes > 0 {
                account.note(self.now, bytes);
            }
            if mismatch.is_some() {
                account.played.mismatch = account.played.mismatch.or(mismatch);
                let statistics = account.played.statistics.get_or_insert_default();
                statistics.payload_mismatches += 1;
            }
        }
        if what.intersects(EpollFlags::EPOLLOUT | fails) {
            self.flush(id);
        }
        self.note_failure(id);
        self.looked_at(place);
    }

    fn note_failure(&mut self, id: SocketId) {
        let now = self.now;
        let failed = self
            .named(id)
            .and_then(|slot| Some((slot.owner, slot.failure?)));
        if let Some((owner, why)) = failed {
            let statistics = &mut self.accounts[owner].played.statistics;
            let failure = &mut statistics.get_or_insert_default().failure;
            failure.get_or_insert(Failure { why, at: now });
        }
    }

    /// Returns the next connection with events: its application, its identifier, and the events.
    pub(super) fn news(&mut self) -> Option<(usize, SocketId, Events)> {
        while let Some(place) = self.touched.pop() {
            if let Some(slot) = self.places[place as usize].slot.as_deref_mut() {
                slot.listed = false;
                let events = std::mem::replace(&mut slot.events, Events::NONE);
                if !events.is_empty() {
                    return Some((slot.owner, slot.id, events));
                }
            }
        }
        None
    }

    /// Completes the delivery of events to an application; removes a connection that is over.
    pub(super) fn told(&mut self, id: SocketId, events: Events) {
        if events.has(Events::CLOSED) {
            self.retire(id);
        }
    }

    fn retire(&mut self, id: SocketId) {
        let place = id.parts().0 as usize;
        self.count(id);
        let Some(slot) = self.places[place].slot.take() else {
            return;
        };
        if slot.polled != (false, false) {
            let _ = self.poller.remove(&slot.stream);
        }
        self.places[place].generation += 1;
        self.free.push(place as u32);
        self.asked.remove(&(place as u32));
        self.open -= 1;
        let sockets = &mut self.accounts[slot.owner].sockets;
        sockets.retain(|known| *known != id);
    }

    /// Resets the remaining connections and returns the results of all applications.
    pub(super) fn finish(&mut self) -> Vec<Played> {
        for place in 0..self.places.len() {
            let slot = self.places[place].slot.as_deref();
            let Some(id) = slot.map(|slot| slot.id) else {
                continue;
            };
            if let Some(slot) = self.named_mut(id) {
                let _ = SockRef::from(&slot.stream).set_linger(Some(Duration::ZERO));
                if slot.opening && slot.failure.is_none() {
                    // No answer came until the end of the run.
                    slot.failure = Some(bentpipe_tcp::FailureKind::TimedOut);
                }
            }
            self.note_failure(id);
            self.retire(id);
        }
        let accounts = self.accounts.drain(..);
        accounts.map(|account| account.played).collect()
    }
}

/// Starts to open a connection. Must be called in the host's namespace.
fn begin(from: SocketAddr, to: SocketAddr, account: &Account) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(from), Type::STREAM, None)?;
    // Set on the socket, not as the namespace's default: Linux allows that only for congestion
    // controls that the initial namespace allows for everybody. The error is ignored, since an end
    // that only receives may have a congestion control that the kernel lacks.
    let _ = socket.set_tcp_congestion(account.control.as_bytes());
    if account.no_delay {
        socket.set_tcp_nodelay(true)?;
    }
    if account.fast_open {
        // With a cookie, the kernel reports the connection as established at once and sends the SYN
        // with the first write.
        setsockopt(&socket, TcpFastOpenConnect, &true)?;
    }
    // The port's previous connection may be in TIME-WAIT.
    socket.set_reuse_address(true)?;
    socket.bind(&from.into())?;
    socket.set_nonblocking(true)?;
    match socket.connect(&to.into()) {
        Err(error) if error.raw_os_error() != Some(Errno::EINPROGRESS as i32) => Err(error),
        _ => Ok(socket.into()),
    }
}
