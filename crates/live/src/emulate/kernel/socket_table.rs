//! The sockets of one runner thread and their applications.

mod datagrams;
mod listeners;
mod tcp_info_queries;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use bentpipe_host::{ConnectError, Member, Ports, SocketId};
use bentpipe_tcp::{Events, Failure};
use bentpipe_types::{Address, Endpoint, Time};
use nix::errno::Errno;
use nix::sys::epoll::EpollFlags;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::TcpFastOpenConnect;
use socket2::{Domain, SockRef, Socket, Type};

use super::application_state::{ApplicationResult, ApplicationState};
use super::kernel_connection::{CHUNK, KernelConnection, StreamBytes};
use super::tag::Tag;
use crate::emulate::host::Host;
use crate::netlink::Netlink;
use crate::poller::Poller;
use datagrams::Datagrams;
use listeners::Listener;
use tcp_info_queries::QUERY_INTERVAL;

struct Place {
    generation: u32,
    connection: Option<Box<KernelConnection>>,
}

/// The sockets of a runner, and the state of its applications.
pub(crate) struct SocketTable<'h> {
    pub(super) hosts: &'h [Host],
    pub(super) nodes: &'h BTreeMap<IpAddr, Address>,
    pub(super) poller: Poller,
    pub(super) now: Time,
    /// The host in whose namespace this thread is.
    current_namespace: Option<usize>,
    pub(super) applications: Vec<ApplicationState>,
    places: Vec<Place>,
    free: Vec<u32>,
    open: usize,
    listeners: Vec<Option<Listener>>,
    /// Listeners by host and port.
    listening: BTreeMap<(usize, u16), usize>,
    pub(super) datagrams: Datagrams,
    /// Connections with events.
    with_events: Vec<u32>,
    /// Connections with bytes to write whose kernel buffer is not known to be full.
    unfinished_writes: Vec<u32>,
    /// Connections to query for acknowledged data, and the time of the next query.
    queried: BTreeSet<u32>,
    pub(super) next_query_at: Option<Time>,
    /// Sockets for queries, by host.
    netlinks: BTreeMap<usize, Netlink>,
    stream_bytes: StreamBytes,
    buffer: Vec<u8>,
}

impl std::fmt::Debug for SocketTable<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table")
            .field("open", &self.open)
            .finish_non_exhaustive()
    }
}

impl<'h> SocketTable<'h> {
    pub(super) fn new(hosts: &'h [Host], nodes: &'h BTreeMap<IpAddr, Address>) -> io::Result<Self> {
        Ok(Self {
            hosts,
            nodes,
            poller: Poller::new()?,
            now: Time::ZERO,
            current_namespace: None,
            applications: Vec::new(),
            places: Vec::new(),
            free: Vec::new(),
            open: 0,
            listeners: Vec::new(),
            listening: BTreeMap::new(),
            datagrams: Datagrams::default(),
            with_events: Vec::new(),
            unfinished_writes: Vec::new(),
            queried: BTreeSet::new(),
            next_query_at: None,
            netlinks: BTreeMap::new(),
            stream_bytes: StreamBytes::new(),
            buffer: vec![0; CHUNK],
        })
    }

    /// Notes that another thread takes over, which has not entered a namespace.
    pub(super) fn forget_namespace(&mut self) {
        self.current_namespace = None;
    }

    /// Moves the calling thread into a host's namespace.
    pub(super) fn enter(&mut self, host: usize) -> io::Result<()> {
        if self.current_namespace != Some(host) {
            self.hosts[host].namespace.join()?;
            self.current_namespace = Some(host);
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
        listen_ports: &[u16],
        peers: (Address, Ports),
        channel: Option<Address>,
        speaks_first: bool,
        delivered: Arc<AtomicU64>,
    ) -> io::Result<()> {
        let me = self.applications.len();
        let fast_open = speaks_first && member.config.fast_open;
        self.applications.push(ApplicationState::new(
            host, control, no_delay, fast_open, member, peers, delivered,
        ));
        for port in listen_ports {
            if let Some(channel) = channel {
                self.join_channel(host, channel, *port, (peers, me))?;
                continue;
            }
            self.listen(me, *port, false)?;
            self.open_datagrams(host, *port, Some((peers, me)))?;
        }
        Ok(())
    }

    pub(super) fn application(&self, me: usize) -> &ApplicationState {
        &self.applications[me]
    }

    pub(super) fn application_mut(&mut self, me: usize) -> &mut ApplicationState {
        &mut self.applications[me]
    }

    /// Returns the start time of an application that has not started.
    pub(super) fn start_time(&self, me: usize) -> Option<Time> {
        self.applications[me].member.starts
    }

    pub(super) fn has_not_started(&self, me: usize) -> bool {
        self.start_time(me).is_some()
    }

    /// Takes the start time of an application if it has come; returns true then.
    pub(super) fn take_start(&mut self, me: usize, now: Time) -> bool {
        let starts = &mut self.applications[me].member.starts;
        starts.take_if(|at| *at <= now).is_some()
    }

    /// Whether there are connections.
    pub(super) fn is_busy(&self) -> bool {
        self.open > 0
    }

    pub(super) fn connection(&self, id: SocketId) -> Option<&KernelConnection> {
        let connection = self
            .places
            .get(id.parts().0 as usize)?
            .connection
            .as_deref()?;
        (connection.id == id).then_some(connection)
    }

    fn connection_mut(&mut self, id: SocketId) -> Option<&mut KernelConnection> {
        let place = self.places.get_mut(id.parts().0 as usize)?;
        let connection = place.connection.as_deref_mut()?;
        (connection.id == id).then_some(connection)
    }

    /// Calls `act` with a connection; returns the default if it no longer exists.
    pub(super) fn with<R: Default>(
        &mut self,
        id: SocketId,
        act: impl FnOnce(&mut KernelConnection) -> R,
    ) -> R {
        self.connection_mut(id).map_or_else(R::default, act)
    }

    /// Opens a connection.
    pub(super) fn connect(
        &mut self,
        me: usize,
        port: Option<u16>,
        remote: Endpoint,
    ) -> Result<SocketId, ConnectError> {
        let host = self.applications[me].host;
        let ip = self.ip_of(remote.address).ok_or(ConnectError::NoRoute)?;
        self.enter(host).map_err(|_| ConnectError::NoRoute)?;
        let (first, last) = self.applications[me].member.ports.bounds();
        let attempts = port.map_or(u32::from(last - first) + 1, |_| 1);
        for _ in 0..attempts {
            let free = |_| true;
            let local = port.or_else(|| self.applications[me].member.ports.take(free));
            let local = local.ok_or(ConnectError::PortInUse)?;
            let application = &self.applications[me];
            let from = SocketAddr::new(self.hosts[host].address, local);
            let to = SocketAddr::new(ip, remote.port);
            match open_socket(from, to, application) {
                Ok(stream) => {
                    let local = Endpoint {
                        address: self.nodes[&from.ip()],
                        port: local,
                    };
                    let id = self.insert(me, stream, local, remote);
                    if let Some(connection) = self.connection_mut(id) {
                        connection.opening = true;
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
                connection: None,
            });
            (self.places.len() - 1) as u32
        });
        let generation = self.places[place as usize].generation;
        let id = SocketId::new(place, generation);
        let connection = KernelConnection::new(id, owner, stream, local, remote);
        self.places[place as usize].connection = Some(Box::new(connection));
        self.open += 1;
        let application = &mut self.applications[owner];
        application.sockets.push(id);
        application.result.statistics.get_or_insert_default();
        id
    }

    /// Updates the events that a connection is polled for.
    fn poll(&mut self, id: SocketId) {
        let place = id.parts().0;
        let Some(connection) = self.places[place as usize].connection.as_deref_mut() else {
            return;
        };
        let wanted = if connection.gone {
            (false, false)
        } else {
            connection.interest()
        };
        if wanted == connection.polled {
            return;
        }
        let flags = |(read, write): (bool, bool)| {
            let mut flags = EpollFlags::empty();
            flags.set(EpollFlags::EPOLLIN, read);
            flags.set(EpollFlags::EPOLLOUT, write);
            flags
        };
        let tag = Tag::Connection(place).number();
        let _ = match (connection.polled, wanted) {
            ((false, false), _) => self.poller.add(&connection.stream, flags(wanted), tag),
            (_, (false, false)) => self.poller.remove(&connection.stream),
            _ => self.poller.modify(&connection.stream, flags(wanted), tag),
        };
        connection.polled = wanted;
    }

    /// Adds bytes to write, and the close after them if requested.
    pub(super) fn feed(&mut self, id: SocketId, bytes: u64, close_requested: bool) {
        if let Some(connection) = self.connection_mut(id) {
            connection.to_write = connection.to_write.saturating_add(bytes);
            connection.close_requested |= close_requested;
            self.flush(id);
        }
    }

    fn flush(&mut self, id: SocketId) {
        let place = id.parts().0;
        let Some(connection) = self.places[place as usize].connection.as_deref_mut() else {
            return;
        };
        if connection.flush(&mut self.stream_bytes) {
            let statistics = self.applications[connection.owner]
                .result
                .statistics
                .as_mut();
            if let Some(statistics) = statistics {
                statistics.first_data_at.get_or_insert(self.now);
            }
        }
        if connection.has_more_to_write {
            self.unfinished_writes.push(place);
        }
        if connection.awaits_acknowledgment() {
            self.queried.insert(place);
            self.next_query_at.get_or_insert(self.now + QUERY_INTERVAL);
        }
        self.update(place);
    }

    /// Whether a connection has bytes to write and its kernel buffer is not known to be full.
    pub(super) fn has_unfinished_writes(&self) -> bool {
        !self.unfinished_writes.is_empty()
    }

    /// Continues the writes of these connections, after others had their turn.
    pub(super) fn continue_writes(&mut self) {
        for place in std::mem::take(&mut self.unfinished_writes) {
            let connection = self.places[place as usize].connection.as_deref();
            if let Some(id) = connection
                .filter(|connection| connection.has_more_to_write)
                .map(|connection| connection.id)
            {
                self.flush(id);
            }
        }
    }

    /// Lists a connection if it has events, and updates its polling.
    fn update(&mut self, place: u32) {
        let Some(connection) = self.places[place as usize].connection.as_deref_mut() else {
            return;
        };
        let id = connection.id;
        if !connection.events.is_empty() && !connection.in_event_list {
            connection.in_event_list = true;
            self.with_events.push(place);
        }
        self.poll(id);
    }

    /// Aborts a connection.
    pub(super) fn abort(&mut self, id: SocketId) {
        if let Some(connection) = self.connection_mut(id)
            && !connection.gone
        {
            let _ = SockRef::from(&connection.stream).set_linger(Some(Duration::ZERO));
            connection.gone = true;
            connection.events |= Events::CLOSED;
            self.update(id.parts().0);
        }
    }

    /// Handles a connection that is readable, writable, or has failed.
    pub(super) fn on_ready(&mut self, place: u32, what: EpollFlags) {
        let known = self.places.get_mut(place as usize);
        let Some(connection) = known.and_then(|place| place.connection.as_deref_mut()) else {
            return;
        };
        let (id, owner) = (connection.id, connection.owner);
        if connection.opening {
            connection.on_opened();
            let failed = connection.gone;
            self.note_failure(id);
            if !failed {
                // Bytes that were added while it was opening.
                self.flush(id);
            }
            self.update(place);
            return;
        }
        let fails = EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP;
        if what.intersects(EpollFlags::EPOLLIN | fails) {
            let (bytes, mismatch) = connection.receive(&mut self.buffer);
            let application = &mut self.applications[owner];
            if bytes > 0 {
                application.add_delivered(self.now, bytes);
            }
            if mismatch.is_some() {
                application.result.mismatch = application.result.mismatch.or(mismatch);
                let statistics = application.result.statistics.get_or_insert_default();
                statistics.payload_mismatches += 1;
            }
        }
        if what.intersects(EpollFlags::EPOLLOUT | fails) {
            self.flush(id);
        }
        self.note_failure(id);
        self.update(place);
    }

    fn note_failure(&mut self, id: SocketId) {
        let now = self.now;
        let failed = self
            .connection(id)
            .and_then(|connection| Some((connection.owner, connection.failure?)));
        if let Some((owner, why)) = failed {
            let statistics = &mut self.applications[owner].result.statistics;
            let failure = &mut statistics.get_or_insert_default().failure;
            failure.get_or_insert(Failure { why, at: now });
        }
    }

    /// Returns the next connection with events: its application, its identifier, and the events.
    pub(super) fn next_events(&mut self) -> Option<(usize, SocketId, Events)> {
        while let Some(place) = self.with_events.pop() {
            if let Some(connection) = self.places[place as usize].connection.as_deref_mut() {
                connection.in_event_list = false;
                let events = std::mem::replace(&mut connection.events, Events::NONE);
                if !events.is_empty() {
                    return Some((connection.owner, connection.id, events));
                }
            }
        }
        None
    }

    /// Completes the delivery of events to an application; removes a connection that is over.
    pub(super) fn events_delivered(&mut self, id: SocketId, events: Events) {
        if events.has(Events::CLOSED) {
            self.retire(id);
        }
    }

    fn retire(&mut self, id: SocketId) {
        let place = id.parts().0 as usize;
        self.add_counters(id);
        let Some(connection) = self.places[place].connection.take() else {
            return;
        };
        if connection.polled != (false, false) {
            let _ = self.poller.remove(&connection.stream);
        }
        self.places[place].generation += 1;
        self.free.push(place as u32);
        self.queried.remove(&(place as u32));
        self.open -= 1;
        let sockets = &mut self.applications[connection.owner].sockets;
        sockets.retain(|known| *known != id);
    }

    /// Resets the remaining connections and returns the results of all applications.
    pub(super) fn finish(&mut self) -> Vec<ApplicationResult> {
        for place in 0..self.places.len() {
            let connection = self.places[place].connection.as_deref();
            let Some(id) = connection.map(|connection| connection.id) else {
                continue;
            };
            if let Some(connection) = self.connection_mut(id) {
                let _ = SockRef::from(&connection.stream).set_linger(Some(Duration::ZERO));
                if connection.opening && connection.failure.is_none() {
                    // No answer came until the end of the run.
                    connection.failure = Some(bentpipe_tcp::FailureKind::TimedOut);
                }
            }
            self.note_failure(id);
            self.retire(id);
        }
        let applications = self.applications.drain(..);
        applications.map(|application| application.result).collect()
    }
}

/// Starts to open a connection. Must be called in the host's namespace.
fn open_socket(
    from: SocketAddr,
    to: SocketAddr,
    application: &ApplicationState,
) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(from), Type::STREAM, None)?;
    // Set on the socket, not as the namespace's default: Linux allows that only for congestion
    // controls that the initial namespace allows for everybody. The error is ignored, since an end
    // that only receives may have a congestion control that the kernel lacks.
    let _ = socket.set_tcp_congestion(application.control.as_bytes());
    if application.no_delay {
        socket.set_tcp_nodelay(true)?;
    }
    if application.fast_open {
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
