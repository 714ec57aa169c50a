//! An endpoint: quinn's, its connections, and their streams as sockets.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bentpipe_host::report::QuicReport;
use bentpipe_host::{ConnectError, SocketId, TransportState};
use bentpipe_tcp::{Events, Failure, FailureKind};
use bentpipe_types::{Address, Ecn, Endpoint, RandomStream, StreamCheck, Time};
use bytes::{Bytes, BytesMut};
use quinn_proto::{
    ClientConfig, ConnectionError, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint,
    EndpointConfig, Event, Incoming, NoneTokenStore, ReadError, ServerConfig, StreamEvent,
    StreamId, Transmit, VarInt, WriteError,
};

use crate::clock::{FixedTimeOfDay, instant};
use crate::connection::Link;
use crate::content;
use crate::probe_timeouts;
use crate::random::{Identifiers, PlainKey};
use crate::session::{PlainClient, PlainServer};
use crate::settings::QuicSettings;
use crate::window_rule::Monitor;

/// Datagrams to be sent at once from one port to one destination.
#[derive(Debug)]
pub struct Outgoing<'a> {
    /// Source port.
    pub local_port: u16,
    /// Destination.
    pub remote: Endpoint,
    /// ECN field.
    pub ecn: Ecn,
    /// Payload of one datagram.
    pub payload: &'a [u8],
}

/// Maximum number of connections at a server. Further ones are refused, so that packets with forged
/// addresses cannot exhaust the memory.
pub const MOST_CONNECTIONS: usize = 1_024;

/// Length of the name at the beginning of each stream: the port that stands for the stream, in
/// place of a request's frame header in HTTP/3 (RFC 9114 section 7.1).
const NAME_LENGTH: usize = 2;

/// A stream as a socket.
#[derive(Debug)]
struct Stream {
    link: usize,
    /// `None` while the limit of streams or the handshake delays it.
    id: Option<StreamId>,
    local: Endpoint,
    remote: Endpoint,
    /// Bytes of its name that are to be written or read.
    name: VecDeque<u8>,
    name_missing: usize,
    /// Bytes to be written, and whether the stream ends after them.
    feed: u64,
    closes: bool,
    finished: bool,
    written: u64,
    delivered: u64,
    sinks: bool,
    /// Each direction has ended, and its end was acknowledged or read.
    sent: bool,
    received: bool,
    drained: bool,
    events: Events,
    /// Whether the application was notified of it.
    announced: bool,
}

#[derive(Debug, Default)]
struct Place {
    generation: u32,
    stream: Option<Stream>,
}

/// An endpoint and its connections. It receives datagrams and the time, and emits datagrams.
pub struct Engine {
    endpoint: quinn_proto::Endpoint,
    settings: QuicSettings,
    identifiers: Identifiers,
    random: RandomStream,
    client: Arc<PlainClient>,
    links: BTreeMap<usize, Link>,
    places: Vec<Place>,
    free: Vec<u32>,
    by_stream: BTreeMap<(usize, u64), u32>,
    /// Streams that wait for the handshake or the limit of streams, in order.
    waiting: VecDeque<u32>,
    /// Sockets with events for the application.
    news: VecDeque<u32>,
    /// Connections with something to process or to send.
    active: BTreeSet<usize>,
    /// Names of streams opened here so far.
    named: u16,
    /// Datagrams of the endpoint itself.
    responses: Vec<(u16, Transmit, Vec<u8>)>,
    buffer: Vec<u8>,
    /// Figures of connections that are gone.
    before: QuicReport,
    check: StreamCheck,
    delivered: u64,
    /// Time of the current call.
    now: Time,
    last_delivery: Option<Time>,
    failure: Option<Failure>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("connections", &self.links.len())
            .finish_non_exhaustive()
    }
}

/// An address of a node for quinn, which needs IP addresses.
fn socket_address(end: Endpoint) -> SocketAddr {
    let [high, low] = end.address.0.to_be_bytes();
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, high, low)), end.port)
}

/// Returns the end that [`socket_address`] stands for.
fn endpoint(address: SocketAddr) -> Endpoint {
    let node = match address.ip() {
        IpAddr::V4(ip) => {
            let [_, _, high, low] = ip.octets();
            u16::from_be_bytes([high, low])
        }
        IpAddr::V6(_) => 0,
    };
    Endpoint {
        address: Address(node),
        port: address.port(),
    }
}

impl Engine {
    /// Creates an endpoint. Everything random comes from `random`; a `server` accepts connections.
    #[must_use]
    pub fn new(settings: QuicSettings, mut random: RandomStream, server: bool) -> Self {
        let seed = random.bits();
        let identifiers = Identifiers::new(RandomStream::new(seed, "quic", "identifiers"));
        let mut config = EndpointConfig::new(Arc::new(PlainKey(random.bits())));
        let mut rng_seed = [0; 32];
        for word in rng_seed.chunks_exact_mut(8) {
            word.copy_from_slice(&random.bits().to_le_bytes());
        }
        let generator = identifiers.clone();
        config
            .rng_seed(Some(rng_seed))
            .cid_generator(move || Box::new(generator.clone()));
        let client = PlainClient::new(settings.handshake, settings.early_data);
        let mut engine = Self {
            endpoint: quinn_proto::Endpoint::new(Arc::new(config), None, true, None),
            settings,
            identifiers,
            random,
            client: Arc::new(client),
            links: BTreeMap::new(),
            places: Vec::new(),
            free: Vec::new(),
            by_stream: BTreeMap::new(),
            waiting: VecDeque::new(),
            news: VecDeque::new(),
            active: BTreeSet::new(),
            named: 0,
            responses: Vec::new(),
            buffer: Vec::new(),
            before: QuicReport::default(),
            check: StreamCheck::default(),
            delivered: 0,
            now: Time::ZERO,
            last_delivery: None,
            failure: None,
        };
        if server {
            let monitor = Monitor::default();
            let config = Arc::new(engine.server_config(&monitor));
            engine.endpoint.set_server_config(Some(config));
        }
        engine
    }

    fn server_config(&mut self, monitor: &Monitor) -> ServerConfig {
        let crypto = PlainServer::new(self.settings.handshake);
        let key = PlainKey(self.random.bits());
        let mut config = ServerConfig::new(Arc::new(crypto), Arc::new(key));
        let transport = self.settings.transport(monitor, self.random.bits());
        config
            .transport_config(Arc::new(transport))
            .time_source(Arc::new(FixedTimeOfDay));
        config
    }

    /// Returns the open connection to an end, or opens one from this port.
    fn link_to(
        &mut self,
        local_port: u16,
        remote: Endpoint,
        now: Time,
    ) -> Result<usize, ConnectError> {
        let usable = |link: &Link| link.remote == remote && link.opened_here && link.is_open();
        let open = self.links.iter().find(|(_, link)| usable(link));
        if let Some((handle, _)) = open {
            return Ok(*handle);
        }
        let monitor = Monitor::default();
        let transport = self.settings.transport(&monitor, self.random.bits());
        let mut config = ClientConfig::new(Arc::clone(&self.client) as _);
        let identifiers = self.identifiers.clone();
        config
            .transport_config(Arc::new(transport))
            .token_store(Arc::new(NoneTokenStore))
            .initial_dst_cid_provider(Arc::new(move || identifiers.initial()));
        let address = socket_address(remote);
        let opened = (self.endpoint).connect(instant(now), config, address, SERVER_NAME);
        let (handle, connection) = opened.map_err(|_| ConnectError::TableFull)?;
        let mut link = Link::new(connection, monitor, local_port, remote, true, now);
        link.early = link.connection.has_0rtt();
        self.links.insert(handle.0, link);
        self.active.insert(handle.0);
        Ok(handle.0)
    }

    /// Opens a stream to an end, on the connection to it or on a new one.
    ///
    /// # Errors
    ///
    /// No connection can be opened.
    pub fn open(
        &mut self,
        local: Endpoint,
        remote: Endpoint,
        now: Time,
    ) -> Result<SocketId, ConnectError> {
        let link = self.link_to(local.port, remote, now)?;
        let name = local.port.wrapping_add(self.named);
        self.named = self.named.wrapping_add(1);
        let place = self.add(Stream {
            link,
            id: None,
            local: Endpoint {
                port: name,
                ..local
            },
            remote,
            name: VecDeque::from(name.to_be_bytes()),
            name_missing: 0,
            feed: 0,
            closes: false,
            finished: false,
            written: 0,
            delivered: 0,
            sinks: false,
            sent: false,
            received: false,
            drained: true,
            events: Events::NONE,
            announced: true,
        });
        self.waiting.push_back(place);
        self.open_waiting();
        Ok(self.id_of(place))
    }

    fn add(&mut self, stream: Stream) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place::default());
            (self.places.len() - 1) as u32
        });
        if let Some(link) = self.links.get_mut(&stream.link) {
            link.streams += 1;
        }
        self.places[place as usize].stream = Some(stream);
        place
    }

    fn id_of(&self, place: u32) -> SocketId {
        SocketId::new(place, self.places[place as usize].generation)
    }

    fn stream(&self, socket: SocketId) -> Option<&Stream> {
        let (place, generation) = socket.parts();
        let place = self.places.get(place as usize)?;
        (place.generation == generation)
            .then_some(place.stream.as_ref())
            .flatten()
    }

    fn stream_mut(&mut self, socket: SocketId) -> Option<&mut Stream> {
        let (place, generation) = socket.parts();
        let place = self.places.get_mut(place as usize)?;
        (place.generation == generation)
            .then_some(place.stream.as_mut())
            .flatten()
    }

    fn at_mut(&mut self, place: u32) -> Option<&mut Stream> {
        self.places.get_mut(place as usize)?.stream.as_mut()
    }

    /// Raises events of a socket.
    fn raise(&mut self, place: u32, events: Events) {
        if let Some(stream) = self.at_mut(place) {
            let is_new = stream.events.is_empty();
            stream.events |= events;
            if is_new {
                self.news.push_back(place);
            }
        }
    }

    /// Opens waiting streams whose connection admits them.
    fn open_waiting(&mut self) {
        let mut rest = VecDeque::new();
        while let Some(place) = self.waiting.pop_front() {
            let Some(stream) = self.at_mut(place) else {
                continue;
            };
            let handle = stream.link;
            let opened = self
                .links
                .get_mut(&handle)
                .filter(|link| link.is_ready() && link.is_open())
                .and_then(|link| link.connection.streams().open(Dir::Bi));
            match opened {
                Some(id) => {
                    self.by_stream.insert((handle, u64::from(id)), place);
                    if let Some(stream) = self.at_mut(place) {
                        stream.id = Some(id);
                    }
                    self.raise(place, Events::ESTABLISHED);
                    self.write(place);
                }
                None => rest.push_back(place),
            }
        }
        self.waiting = rest;
    }

    /// Writes the name and the fed bytes of a stream as flow control admits them.
    fn write(&mut self, place: u32) {
        let Some(stream) = self.places[place as usize].stream.as_mut() else {
            return;
        };
        let (Some(id), false) = (stream.id, stream.finished) else {
            return;
        };
        let Some(link) = self.links.get_mut(&stream.link) else {
            return;
        };
        self.active.insert(stream.link);
        let mut quic = link.connection.send_stream(id);
        let mut stopped = false;
        while !stream.name.is_empty() || stream.feed > 0 {
            let result = if stream.name.is_empty() {
                let mut pieces = [content::piece(stream.written, stream.feed)];
                quic.write_chunks(&mut pieces).map(|written| written.bytes)
            } else {
                quic.write(stream.name.make_contiguous())
            };
            match result {
                Ok(0) | Err(WriteError::Blocked) => break,
                Ok(bytes) if stream.name.is_empty() => {
                    stream.written += bytes as u64;
                    stream.feed -= bytes as u64;
                }
                Ok(bytes) => drop(stream.name.drain(..bytes)),
                Err(WriteError::Stopped(_) | WriteError::ClosedStream) => {
                    stopped = true;
                    break;
                }
            }
            link.monitor.expect_data();
            stream.drained = false;
        }
        if stopped {
            stream.sent = true;
            stream.feed = 0;
        } else if stream.closes && stream.feed == 0 && stream.name.is_empty() {
            stream.finished = true;
            link.monitor.expect_data();
            if quic.finish().is_err() {
                stream.sent = true;
            }
        }
        self.end_if_over(place);
    }

    /// Adds bytes to be written.
    pub fn feed(&mut self, socket: SocketId, bytes: u64, closes: bool) {
        let Some(stream) = self.stream_mut(socket) else {
            return;
        };
        if stream.closes {
            return;
        }
        stream.feed = stream.feed.saturating_add(bytes);
        stream.closes = closes;
        stream.drained &= bytes == 0;
        self.write(socket.parts().0);
    }

    /// Reads and discards up to `maximum` bytes.
    pub(crate) fn read(&mut self, socket: SocketId, maximum: u64) -> u64 {
        if self.stream(socket).is_none() {
            return 0;
        }
        self.read_at(socket.parts().0, maximum)
    }

    fn read_at(&mut self, place: u32, maximum: u64) -> u64 {
        let Some(stream) = self.places[place as usize].stream.as_mut() else {
            return 0;
        };
        let (Some(id), false) = (stream.id, stream.received) else {
            return 0;
        };
        let Some(link) = self.links.get_mut(&stream.link) else {
            return 0;
        };
        let mut quic = link.connection.recv_stream(id);
        let Ok(mut chunks) = quic.read(true) else {
            return 0;
        };
        let mut read = 0;
        let mut events = Events::NONE;
        while read < maximum || stream.name_missing > 0 {
            let most = if stream.name_missing > 0 {
                stream.name_missing
            } else {
                usize::try_from(maximum - read).unwrap_or(usize::MAX)
            };
            match chunks.next(most) {
                Ok(Some(chunk)) if stream.name_missing > 0 => {
                    stream.name.extend(&chunk.bytes);
                    stream.name_missing -= chunk.bytes.len();
                }
                Ok(Some(chunk)) => {
                    self.check.ranges += 1;
                    let right = content::matches(stream.delivered, &chunk.bytes);
                    self.check.mismatches += u64::from(!right);
                    let length = chunk.bytes.len() as u64;
                    read += length;
                    stream.delivered += length;
                    self.delivered += length;
                    self.last_delivery = Some(self.now);
                }
                Ok(None) => {
                    stream.received = true;
                    events |= Events::PEER_CLOSED;
                    break;
                }
                Err(ReadError::Blocked) => break,
                Err(ReadError::Reset(_)) => {
                    stream.received = true;
                    events |= Events::RESET;
                    break;
                }
            }
        }
        if chunks.finalize().should_transmit() || read > 0 {
            self.active.insert(stream.link);
        }
        if stream.name_missing == 0 && stream.name.len() == NAME_LENGTH && !stream.announced {
            let name: Vec<u8> = stream.name.drain(..).collect();
            stream.remote.port = u16::from_be_bytes([name[0], name[1]]);
            events |= Events::ESTABLISHED | Events::READABLE;
        }
        if !events.is_empty() {
            self.raise(place, events);
            self.end_if_over(place);
        }
        read
    }

    /// Enables immediate discarding of everything that arrives.
    pub fn sink(&mut self, socket: SocketId) {
        if let Some(stream) = self.stream_mut(socket) {
            stream.sinks = true;
            self.read_at(socket.parts().0, u64::MAX);
        }
    }

    /// Resets a stream.
    pub(crate) fn abort(&mut self, socket: SocketId) {
        let place = socket.parts().0;
        let Some(stream) = self.stream_mut(socket) else {
            return;
        };
        stream.sent = true;
        stream.received = true;
        let (id, handle) = (stream.id, stream.link);
        if let (Some(id), Some(link)) = (id, self.links.get_mut(&handle)) {
            // Either direction may have ended already.
            let _ = link.connection.send_stream(id).reset(VarInt::from_u32(0));
            let _ = link.connection.recv_stream(id).stop(VarInt::from_u32(0));
            self.active.insert(handle);
        }
        self.end_if_over(place);
    }

    /// Raises CLOSED if both directions have ended.
    fn end_if_over(&mut self, place: u32) {
        if (self.at_mut(place)).is_some_and(|stream| stream.sent && stream.received) {
            self.raise(place, Events::CLOSED);
        }
    }

    /// Returns this end of a socket.
    pub(crate) fn local(&self, socket: SocketId) -> Option<Endpoint> {
        Some(self.stream(socket)?.local)
    }

    /// Returns the other end of a socket.
    pub(crate) fn remote(&self, socket: SocketId) -> Option<Endpoint> {
        Some(self.stream(socket)?.remote)
    }

    /// Whether everything written was acknowledged.
    pub(crate) fn is_drained(&self, socket: SocketId) -> bool {
        (self.stream(socket)).is_some_and(|stream| stream.drained && stream.feed == 0)
    }

    /// Returns the bytes that were read.
    pub(crate) fn delivered(&self, socket: SocketId) -> u64 {
        self.stream(socket).map_or(0, |stream| stream.delivered)
    }

    /// Returns the number of connections, including those that are closing.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.links.len()
    }

    /// Returns the bytes read on all streams.
    #[must_use]
    pub fn bytes_delivered(&self) -> u64 {
        self.delivered
    }

    /// Returns the comparison of the bytes that arrived with those that were sent.
    #[must_use]
    pub fn stream_check(&self) -> StreamCheck {
        self.check
    }

    /// Iterates over the open sockets in the order of their places.
    pub fn sockets(&self) -> impl Iterator<Item = SocketId> {
        (0..self.places.len() as u32)
            .filter(|place| self.places[*place as usize].stream.is_some())
            .map(|place| self.id_of(place))
    }

    /// Handles a received datagram.
    pub fn receive(
        &mut self,
        from: Endpoint,
        local_port: u16,
        ecn: Ecn,
        payload: &[u8],
        now: Time,
    ) {
        self.now = now;
        let ecn = match ecn {
            Ecn::NotCapable => None,
            Ecn::Capable0 => Some(EcnCodepoint::Ect0),
            Ecn::Capable1 => Some(EcnCodepoint::Ect1),
            Ecn::Congestion => Some(EcnCodepoint::Ce),
        };
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        let data = BytesMut::from(payload);
        let address = socket_address(from);
        let event = (self.endpoint).handle(instant(now), address, None, ecn, data, &mut buffer);
        match event {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(link) = self.links.get_mut(&handle.0) {
                    link.heard = now;
                    link.connection.handle_event(event);
                    self.active.insert(handle.0);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.accept(incoming, from, local_port, &mut buffer, now);
            }
            Some(DatagramEvent::Response(transmit)) => {
                self.respond(local_port, transmit, &buffer);
            }
            None => (),
        }
        self.buffer = buffer;
    }

    fn accept(
        &mut self,
        incoming: Incoming,
        from: Endpoint,
        local_port: u16,
        buffer: &mut Vec<u8>,
        now: Time,
    ) {
        if self.links.len() >= MOST_CONNECTIONS {
            let refusal = self.endpoint.refuse(incoming, buffer);
            self.respond(local_port, refusal, buffer);
            return;
        }
        let monitor = Monitor::default();
        let config = Arc::new(self.server_config(&monitor));
        match (self.endpoint).accept(incoming, instant(now), buffer, Some(config)) {
            Ok((handle, connection)) => {
                let link = Link::new(connection, monitor, local_port, from, false, now);
                self.links.insert(handle.0, link);
                self.active.insert(handle.0);
            }
            Err(error) => {
                if let Some(transmit) = error.response {
                    self.respond(local_port, transmit, buffer);
                }
            }
        }
    }

    fn respond(&mut self, local_port: u16, transmit: Transmit, buffer: &[u8]) {
        let bytes = buffer[..transmit.size].to_vec();
        self.responses.push((local_port, transmit, bytes));
    }

    /// Handles expired timers.
    pub fn expire(&mut self, now: Time) {
        self.now = now;
        let at = instant(now);
        for (handle, link) in &mut self.links {
            while link
                .connection
                .poll_timeout()
                .is_some_and(|next| next <= at)
            {
                let connection = &mut link.connection;
                link.probe_timeouts += probe_timeouts::count(|| connection.handle_timeout(at));
                self.active.insert(*handle);
            }
        }
    }

    /// Processes what the connections report. Returns whether a socket has events.
    pub fn process(&mut self, now: Time) -> bool {
        self.now = now;
        let active: Vec<usize> = self.active.iter().copied().collect();
        for handle in active {
            self.process_link(handle, now);
        }
        self.open_waiting();
        !self.news.is_empty()
    }

    fn process_link(&mut self, handle: usize, now: Time) {
        while let Some(link) = self.links.get_mut(&handle) {
            let connection = &mut link.connection;
            while let Some(event) = connection.poll_endpoint_events() {
                let event = self.endpoint.handle_event(ConnectionHandle(handle), event);
                if let Some(event) = event {
                    connection.handle_event(event);
                }
            }
            match connection.poll() {
                Some(event) => self.on_event(handle, event, now),
                None => break,
            }
        }
        let Some(link) = self.links.get_mut(&handle) else {
            return;
        };
        if link.monitor.acknowledged_all() && link.monitor.app_limited() {
            let places = self.by_stream.range((handle, 0)..=(handle, u64::MAX));
            let places: Vec<u32> = places.map(|(_, place)| *place).collect();
            for place in places {
                self.drain(place);
            }
        }
        if let Some(link) = self.links.get(&handle)
            && link.connection.is_drained()
        {
            link.add_to(&mut self.before, now);
            self.links.remove(&handle);
            self.active.remove(&handle);
        }
    }

    /// Everything that a stream wrote is acknowledged.
    fn drain(&mut self, place: u32) {
        if let Some(stream) = self.at_mut(place)
            && stream.feed == 0
            && !std::mem::replace(&mut stream.drained, true)
        {
            self.raise(place, Events::DRAINED);
        }
    }

    fn place_of(&self, handle: usize, id: StreamId) -> Option<u32> {
        self.by_stream.get(&(handle, u64::from(id))).copied()
    }

    fn on_event(&mut self, handle: usize, event: Event, now: Time) {
        match event {
            Event::Connected => {
                if let Some(link) = self.links.get_mut(&handle) {
                    link.established = Some(now);
                }
                self.open_waiting();
            }
            Event::ConnectionLost { reason } => self.lose(handle, reason),
            Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                while let Some(link) = self.links.get_mut(&handle)
                    && let Some(id) = link.connection.streams().accept(Dir::Bi)
                {
                    self.accept_stream(handle, id);
                }
            }
            Event::Stream(StreamEvent::Readable { id }) => {
                if let Some(place) = self.place_of(handle, id) {
                    self.on_readable(place, now);
                }
            }
            Event::Stream(StreamEvent::Writable { id }) => {
                if let Some(place) = self.place_of(handle, id) {
                    self.write(place);
                }
            }
            Event::Stream(StreamEvent::Finished { id } | StreamEvent::Stopped { id, .. }) => {
                if let Some(place) = self.place_of(handle, id)
                    && let Some(stream) = self.at_mut(place)
                {
                    stream.sent = true;
                    stream.feed = 0;
                    stream.drained = true;
                    self.raise(place, Events::DRAINED);
                    self.end_if_over(place);
                }
            }
            Event::Stream(StreamEvent::Available { .. }) => self.open_waiting(),
            Event::Stream(StreamEvent::Opened { dir: Dir::Uni })
            | Event::HandshakeDataReady
            | Event::DatagramReceived
            | Event::DatagramsUnblocked => (),
        }
    }

    fn accept_stream(&mut self, handle: usize, id: StreamId) {
        let Some(link) = self.links.get(&handle) else {
            return;
        };
        let local = Endpoint {
            address: Address::default(),
            port: link.local_port,
        };
        let stream = Stream {
            link: handle,
            id: Some(id),
            local,
            remote: link.remote,
            name: VecDeque::new(),
            name_missing: NAME_LENGTH,
            feed: 0,
            closes: false,
            finished: false,
            written: 0,
            delivered: 0,
            sinks: false,
            sent: false,
            received: false,
            drained: true,
            events: Events::NONE,
            announced: false,
        };
        let place = self.add(stream);
        self.by_stream.insert((handle, u64::from(id)), place);
        self.read_at(place, 0);
    }

    fn on_readable(&mut self, place: u32, now: Time) {
        let Some(stream) = self.at_mut(place) else {
            return;
        };
        let (handle, sinks) = (stream.link, stream.sinks);
        let is_named = stream.name_missing == 0;
        if let Some(link) = self.links.get_mut(&handle) {
            link.first_byte.get_or_insert(now);
        }
        if sinks {
            self.read_at(place, u64::MAX);
        } else if is_named {
            self.raise(place, Events::READABLE);
        } else {
            self.read_at(place, 0);
        }
    }

    /// A connection is over: so are its streams.
    fn lose(&mut self, handle: usize, reason: ConnectionError) {
        let events = match &reason {
            ConnectionError::TimedOut => Events::CLOSED | Events::TIMED_OUT,
            ConnectionError::LocallyClosed | ConnectionError::ApplicationClosed(_) => {
                Events::CLOSED
            }
            _ => Events::CLOSED | Events::RESET,
        };
        let why = match &reason {
            ConnectionError::TimedOut => Some(FailureKind::TimedOut),
            ConnectionError::LocallyClosed | ConnectionError::ApplicationClosed(_) => None,
            _ => Some(FailureKind::Reset),
        };
        if let Some(why) = why {
            self.failure.get_or_insert(Failure { at: self.now, why });
        }
        if let Some(link) = self.links.get_mut(&handle) {
            link.lost = Some(reason);
        }
        for place in 0..self.places.len() as u32 {
            if let Some(stream) = self.at_mut(place)
                && stream.link == handle
            {
                stream.sent = true;
                stream.received = true;
                stream.feed = 0;
                self.raise(place, events);
            }
        }
    }

    /// Returns the next socket with events, and whether the application has not seen it before.
    /// After CLOSED the socket is gone.
    pub fn next_event(&mut self) -> Option<(SocketId, Events, bool)> {
        let place = self.news.pop_front()?;
        let id = self.id_of(place);
        let stream = self.at_mut(place)?;
        let events = std::mem::replace(&mut stream.events, Events::NONE);
        let is_new = !std::mem::replace(&mut stream.announced, true);
        Some((id, events, is_new))
    }

    /// Removes a socket whose application was notified of its end.
    pub fn remove(&mut self, socket: SocketId) {
        let (index, _) = socket.parts();
        if self.stream(socket).is_none() {
            return;
        }
        let place = &mut self.places[index as usize];
        place.generation = place.generation.wrapping_add(1);
        if let Some(stream) = place.stream.take() {
            if let Some(id) = stream.id {
                self.by_stream.remove(&(stream.link, u64::from(id)));
            }
            if let Some(link) = self.links.get_mut(&stream.link) {
                link.streams -= 1;
            }
        }
        self.news.retain(|each| *each != index);
        self.waiting.retain(|each| *each != index);
        self.free.push(index);
    }

    /// Closes all connections.
    pub fn close(&mut self, now: Time) {
        for (handle, link) in &mut self.links {
            if link.is_open() {
                link.connection
                    .close(instant(now), VarInt::from_u32(0), Bytes::new());
                link.lost = Some(ConnectionError::LocallyClosed);
                self.active.insert(*handle);
            }
        }
    }

    /// Passes all datagrams that may be sent now to `send`.
    pub fn transmit(&mut self, now: Time, mut send: impl FnMut(Outgoing<'_>)) {
        for (local_port, transmit, bytes) in self.responses.drain(..) {
            emit(local_port, &transmit, &bytes, &mut send);
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let burst = self.settings.burst;
        for handle in std::mem::take(&mut self.active) {
            let Some(link) = self.links.get_mut(&handle) else {
                continue;
            };
            loop {
                buffer.clear();
                let transmit = link
                    .connection
                    .poll_transmit(instant(now), burst, &mut buffer);
                let Some(transmit) = transmit else {
                    break;
                };
                emit(link.local_port, &transmit, &buffer, &mut send);
            }
            let wants_more =
                (self.by_stream.range((handle, 0)..=(handle, u64::MAX))).any(|(_, place)| {
                    let stream = self.places[*place as usize].stream.as_ref();
                    stream.is_some_and(|stream| stream.feed > 0)
                });
            link.note_limit(wants_more, now);
            let keeps_alive = self.settings.keep_alive.is_some();
            link.update_deadline(self.settings.idle(), keeps_alive);
        }
        self.buffer = buffer;
    }

    /// Whether sockets have events for the application.
    pub(crate) fn has_news(&self) -> bool {
        !self.news.is_empty()
    }

    /// Returns the time of the next timer.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        self.links.values().filter_map(|link| link.deadline).min()
    }

    /// Returns the state of the latest connection.
    #[must_use]
    pub fn state(&self) -> Option<TransportState> {
        self.links.values().next_back().map(Link::state)
    }

    /// Returns the figures of all connections until now.
    #[must_use]
    pub fn report(&self, now: Time) -> QuicReport {
        let mut report = self.before.clone();
        report.mismatches = self.check.mismatches;
        report.last_delivery = self.last_delivery;
        report.failed = self.failure;
        for link in self.links.values() {
            link.add_to(&mut report, now);
        }
        report
    }
}

/// Server name in handshakes. Its length is that of a usual name.
const SERVER_NAME: &str = "localhost";

/// Passes the datagrams of a transmission on, one by one.
fn emit(local_port: u16, transmit: &Transmit, bytes: &[u8], send: &mut impl FnMut(Outgoing<'_>)) {
    let ecn = match transmit.ecn {
        None => Ecn::NotCapable,
        Some(EcnCodepoint::Ect0) => Ecn::Capable0,
        Some(EcnCodepoint::Ect1) => Ecn::Capable1,
        Some(EcnCodepoint::Ce) => Ecn::Congestion,
    };
    let bytes = &bytes[..transmit.size];
    for payload in bytes.chunks(transmit.segment_size.unwrap_or(transmit.size).max(1)) {
        send(Outgoing {
            local_port,
            remote: endpoint(transmit.destination),
            ecn,
            payload,
        });
    }
}
