//! A TCP host of real packets: bytes in, bytes out, and the time is told.
//!
//! It reads no clock and owns no device; the driver does. Everything that others can make it keep is
//! bounded by [`Limits`], and what is refused is counted.

mod counters;
mod deadlines;
mod initial_sequence;
mod peers;
mod stream;

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bentpipe_tcp::{Accepted, Config, Connection, ReceiveBuffer, SendBuffer, State, reset_reply};
use bentpipe_types::{
    Ctx, Endpoint, Flags, IpVersion, PacketRef, PacketStore, Port, RandomStream, Time, World,
};
use bentpipe_wire::{Encoder, Parsed, parse};

use deadlines::Deadlines;
use peers::{LOCAL, Peers, STRAY};

pub use counters::{HostCounters, Refusal};
pub use initial_sequence::Secret;
pub use stream::{Application, Stream};

/// The only port of a host: whatever it is connected to.
const EGRESS: Port = Port(0);

/// RFC 6335 section 6: the dynamic ports.
const FIRST_EPHEMERAL: u16 = 49_152;

/// What a host may keep for others. The memory of its buffers is bounded by `connections` times the
/// send and receive buffers that its connections are configured with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Connections in any state, TIME-WAIT included.
    pub connections: usize,
    /// Of them, those in SYN-RECEIVED.
    pub half_open: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4096,
            half_open: 256,
        }
    }
}

/// Who a host is.
#[derive(Clone, Debug)]
pub struct HostSettings {
    /// Its IPv4 address.
    pub ipv4: Option<Ipv4Addr>,
    /// Its IPv6 address.
    pub ipv6: Option<Ipv6Addr>,
    /// What it keeps at most.
    pub limits: Limits,
    /// From the operating system's randomness: what makes its sequence numbers hard to guess.
    pub secret: Secret,
}

/// Why a connection was not opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectError {
    /// The host has no address of the remote one's version.
    NoAddress,
    /// The table of connections is full.
    TableFull,
    /// The local port is in use towards that remote end, or all are.
    PortInUse,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoAddress => "this host has no address of that IP version",
            Self::TableFull => "the table of connections is full",
            Self::PortInUse => "the local port is in use",
        })
    }
}

impl std::error::Error for ConnectError {}

/// Where the host's packets go, one call each.
pub type Transmit<'a> = dyn FnMut(&[u8]) + 'a;

/// A connection and all that belongs to it.
struct Slot<A> {
    tuple: Tuple,
    connection: Connection,
    send: SendBuffer,
    receive: ReceiveBuffer,
    application: A,
    half_open: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Tuple {
    remote: SocketAddr,
    local_port: u16,
}

struct Listener<A> {
    config: Config,
    make: Box<dyn FnMut(SocketAddr) -> A>,
}

/// A TCP host.
pub struct Host<A> {
    settings: HostSettings,
    encoder: Encoder<Peers>,
    slots: Vec<Option<Box<Slot<A>>>>,
    free: Vec<u16>,
    // A tree: the keys are chosen by whoever sends packets, and it cannot be flooded.
    by_tuple: BTreeMap<Tuple, u16>,
    listeners: BTreeMap<u16, Listener<A>>,
    deadlines: Deadlines,
    half_open: usize,
    next_ephemeral: u16,
    world: World,
    bytes: Vec<u8>,
    counters: HostCounters,
}

impl<A: Application> Host<A> {
    /// A host without connections.
    #[must_use]
    pub fn new(settings: HostSettings) -> Self {
        let mut settings = settings;
        settings.limits.connections = settings.limits.connections.min(peers::MOST);
        Self {
            encoder: Encoder::new(Peers::new(settings.ipv4, settings.ipv6)),
            world: World::new(RandomStream::new(settings.secret.0[0], "host", "agent")),
            settings,
            slots: Vec::new(),
            free: Vec::new(),
            by_tuple: BTreeMap::new(),
            listeners: BTreeMap::new(),
            deadlines: Deadlines::default(),
            half_open: 0,
            next_ephemeral: FIRST_EPHEMERAL,
            bytes: Vec::new(),
            counters: HostCounters::default(),
        }
    }

    /// Takes connections to `port`, each with the application that `make` makes for its remote end.
    pub fn listen(
        &mut self,
        port: u16,
        config: Config,
        make: impl FnMut(SocketAddr) -> A + 'static,
    ) {
        let make = Box::new(make);
        self.listeners.insert(port, Listener { config, make });
    }

    /// Opens a connection, from `local_port` or a free one.
    ///
    /// # Errors
    /// When there is no address, no port or no room for it.
    pub fn connect(
        &mut self,
        config: &Config,
        remote: SocketAddr,
        local_port: Option<u16>,
        application: A,
        now: Time,
        transmit: &mut Transmit<'_>,
    ) -> Result<(), ConnectError> {
        let version = version_of(remote.ip());
        let local = self.local(version).ok_or(ConnectError::NoAddress)?;
        let local_port = match local_port {
            Some(port) => Some(port).filter(|&port| self.is_free(remote, port)),
            None => self.ephemeral(remote),
        };
        let local_port = local_port.ok_or(ConnectError::PortInUse)?;
        let slot = self.vacancy().ok_or(ConnectError::TableFull)?;
        let (source, destination) = self.endpoints(slot, local_port, remote);
        let sequence = initial_sequence::initial_sequence(
            self.settings.secret,
            SocketAddr::new(local, local_port),
            remote,
            now,
        );
        let mut config = config.clone();
        config.ip_version = version;
        let mut cx = self.world.at(now);
        let connection =
            Connection::connect(&config, source, destination, EGRESS, sequence, &mut cx);
        let tuple = Tuple { remote, local_port };
        self.occupy(slot, tuple, connection, &config, application);
        self.conclude(Some(slot), now, transmit);
        Ok(())
    }

    /// A packet has arrived.
    pub fn on_packet(&mut self, packet: &[u8], now: Time, transmit: &mut Transmit<'_>) {
        self.counters.received += 1;
        match parse(packet) {
            Err(error) => self.counters.refuse(Refusal::from(&error)),
            Ok(segment) => {
                let slot = self.on_segment(&segment, now);
                self.conclude(slot, now, transmit);
            }
        }
    }

    /// [`next_deadline`](Self::next_deadline) has come.
    pub fn on_deadline(&mut self, now: Time, transmit: &mut Transmit<'_>) {
        while let Some(index) = self.deadlines.due(now) {
            let Some(slot) = self.slots[usize::from(index)].as_deref_mut() else {
                continue;
            };
            let mut cx = self.world.at(now);
            let is_due = |deadline: Option<Time>| deadline.is_some_and(|deadline| deadline <= now);
            if is_due(slot.connection.next_deadline()) {
                slot.connection.on_deadline(&mut cx);
            }
            if is_due(slot.application.next_deadline()) {
                let (application, mut stream) = slot.stream(&mut cx);
                application.on_deadline(&mut stream);
            }
            self.conclude(Some(index), now, transmit);
        }
    }

    /// When the host next wants to run without a packet.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        self.deadlines.next()
    }

    /// What it has counted.
    #[must_use]
    pub fn counters(&self) -> &HostCounters {
        &self.counters
    }

    /// Connections in any state.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.by_tuple.len()
    }

    /// Bytes of memory that connections' buffers take.
    #[must_use]
    pub fn buffer_memory(&self) -> usize {
        let slots = self.slots.iter().flatten();
        slots.map(|s| s.send.memory() + s.receive.memory()).sum()
    }

    fn local(&mut self, version: IpVersion) -> Option<IpAddr> {
        self.encoder.addressing().local(version)
    }

    /// Returns whose segment it was.
    fn on_segment(&mut self, segment: &Parsed<'_>, now: Time) -> Option<u16> {
        let (source, destination) = (segment.ip.source(), segment.ip.destination());
        if self.local(segment.ip.version()) != Some(destination) {
            self.counters.refuse(Refusal::NotForUs);
            return None;
        }
        if !is_unicast(source) || source == destination {
            self.counters.refuse(Refusal::Source);
            return None;
        }
        let tuple = Tuple {
            remote: SocketAddr::new(source, segment.tcp.source_port),
            local_port: segment.tcp.destination_port,
        };
        if let Some(&slot) = self.by_tuple.get(&tuple) {
            self.hand_over(slot, segment, now);
            return Some(slot);
        }
        let flags = segment.tcp.flags;
        let opens = flags.has(Flags::SYN) && !flags.has(Flags::ACK.with(Flags::RST));
        if opens && self.listeners.contains_key(&tuple.local_port) {
            return self.accept(tuple, segment, now);
        }
        self.refuse(segment, now);
        None
    }

    fn hand_over(&mut self, index: u16, segment: &Parsed<'_>, now: Time) {
        let packet = insert(&mut self.world.packets, segment, index);
        let Some(slot) = self.slots[usize::from(index)].as_deref_mut() else {
            debug_assert!(false, "the tuple of an empty slot");
            self.world.packets.release(packet);
            return;
        };
        // On the wire a payload doesn't say where in the stream it belongs; only its sequence number
        // does.
        let record = self.world.packets.get_mut(packet);
        record.payload_offset = slot.connection.offset_of(record.sequence);
        let mut cx = self.world.at(now);
        if let Some(accepted) = slot.connection.on_packet_accepting(packet, &mut cx)
            && !slot.store(segment.payload, accepted)
        {
            debug_assert!(false, "accepted payload that doesn't fit the window");
            self.counters.refuse(Refusal::Unstorable);
            slot.connection.abort(&mut cx);
        }
    }

    fn accept(&mut self, tuple: Tuple, segment: &Parsed<'_>, now: Time) -> Option<u16> {
        if self.half_open >= self.settings.limits.half_open {
            self.counters.refuse(Refusal::HalfOpenFull);
            return None;
        }
        if !self.has_vacancy() {
            self.counters.refuse(Refusal::TableFull);
            return None;
        }
        let listener = self.listeners.get_mut(&tuple.local_port)?;
        let mut config = listener.config.clone();
        config.ip_version = segment.ip.version();
        let application = (listener.make)(tuple.remote);
        let index = self.vacancy()?;
        let (local, remote) = self.endpoints(index, tuple.local_port, tuple.remote);
        let sequence = initial_sequence::initial_sequence(
            self.settings.secret,
            SocketAddr::new(segment.ip.destination(), tuple.local_port),
            tuple.remote,
            now,
        );
        let packet = insert(&mut self.world.packets, segment, index);
        let mut cx = self.world.at(now);
        let connection =
            Connection::accept(&config, local, remote, EGRESS, sequence, packet, &mut cx);
        self.occupy(index, tuple, connection, &config, application);
        Some(index)
    }

    /// RFC 9293 section 3.10.7.1
    fn refuse(&mut self, segment: &Parsed<'_>, now: Time) {
        self.counters.refuse(Refusal::NoConnection);
        self.encoder.addressing().set_stray(segment.ip.source());
        let packet = insert(&mut self.world.packets, segment, STRAY.0);
        reset_reply(packet, EGRESS, &mut self.world.at(now));
    }

    /// After anything: the application sees what is new, what was emitted goes out, and a
    /// connection that is over makes room for another.
    fn conclude(&mut self, touched: Option<u16>, now: Time, transmit: &mut Transmit<'_>) {
        if let Some(index) = touched {
            self.settle(index, now);
        }
        // Before the slot is somebody else's: what goes out may need its bytes.
        self.flush(transmit);
        if let Some(index) = touched {
            self.reap(index);
        }
    }

    /// Lets the application see what is new, and notes when the connection next wants to run.
    fn settle(&mut self, index: u16, now: Time) {
        let Some(slot) = self.slots[usize::from(index)].as_deref_mut() else {
            return;
        };
        let mut cx = self.world.at(now);
        // An application that writes or closes may cause news; but only so often.
        let mut rounds = 4;
        loop {
            let events = slot.connection.take_events();
            if events.is_empty() {
                break;
            }
            let (application, mut stream) = slot.stream(&mut cx);
            application.on_events(events, &mut stream);
            rounds -= 1;
            if rounds == 0 {
                self.deadlines.arm(index, now);
                break;
            }
        }
        if slot.half_open && slot.connection.state() != State::SynReceived {
            slot.half_open = false;
            self.half_open -= 1;
        }
        let deadlines = [
            slot.connection.next_deadline(),
            slot.application.next_deadline(),
        ];
        for deadline in deadlines.into_iter().flatten() {
            self.deadlines.arm(index, deadline);
        }
    }

    fn reap(&mut self, index: u16) {
        let place = &mut self.slots[usize::from(index)];
        if let Some(slot) = place.take_if(|slot| slot.connection.state() == State::Closed) {
            self.by_tuple.remove(&slot.tuple);
            self.deadlines.disarm(index);
            self.free.push(index);
        }
    }

    /// Writes what was emitted as bytes, and hands it on.
    fn flush(&mut self, transmit: &mut Transmit<'_>) {
        for index in 0..self.world.outbox.len() {
            let (_, packet) = self.world.outbox[index];
            let peer = self.world.packets.get(packet).destination.address;
            let slot = self.slots.get(usize::from(peer.0));
            let send = slot.and_then(Option::as_deref).map(|slot| &slot.send);
            let mut complete = true;
            let encoded =
                self.encoder
                    .encode_with(&self.world.packets, packet, &mut self.bytes, |p, out| {
                        complete = out.is_empty()
                            || send.is_some_and(|send| send.copy(p.payload_offset, out));
                    });
            self.world.packets.release(packet);
            if encoded.is_err() || !complete {
                debug_assert!(false, "a segment of ours: {encoded:?}, complete {complete}");
                self.counters.refuse(Refusal::Unencodable);
                continue;
            }
            self.counters.sent += 1;
            transmit(&self.bytes);
        }
        self.world.outbox.clear();
    }

    fn has_vacancy(&self) -> bool {
        !self.free.is_empty() || self.slots.len() < self.settings.limits.connections
    }

    /// A place in the table, to be occupied at once.
    fn vacancy(&mut self) -> Option<u16> {
        if !self.has_vacancy() {
            return None;
        }
        if let Some(slot) = self.free.pop() {
            return Some(slot);
        }
        let slot = u16::try_from(self.slots.len()).ok()?;
        self.slots.push(None);
        self.deadlines.add();
        Some(slot)
    }

    fn occupy(
        &mut self,
        index: u16,
        tuple: Tuple,
        connection: Connection,
        config: &Config,
        application: A,
    ) {
        let half_open = connection.state() == State::SynReceived;
        self.half_open += usize::from(half_open);
        self.counters.opened += 1;
        self.by_tuple.insert(tuple, index);
        self.slots[usize::from(index)] = Some(Box::new(Slot {
            tuple,
            connection,
            send: SendBuffer::default(),
            receive: ReceiveBuffer::new(config.most_received()),
            application,
            half_open,
        }));
    }

    fn endpoints(
        &mut self,
        slot: u16,
        local_port: u16,
        remote: SocketAddr,
    ) -> (Endpoint, Endpoint) {
        self.encoder.addressing().set(slot, remote.ip());
        let local = Endpoint {
            address: LOCAL,
            port: local_port,
        };
        let remote = Endpoint {
            address: bentpipe_types::Address(slot),
            port: remote.port(),
        };
        (local, remote)
    }

    fn is_free(&self, remote: SocketAddr, local_port: u16) -> bool {
        !self.by_tuple.contains_key(&Tuple { remote, local_port })
    }

    fn ephemeral(&mut self, remote: SocketAddr) -> Option<u16> {
        for _ in FIRST_EPHEMERAL..=u16::MAX {
            let port = self.next_ephemeral;
            self.next_ephemeral = port.checked_add(1).unwrap_or(FIRST_EPHEMERAL);
            if self.is_free(remote, port) && !self.listeners.contains_key(&port) {
                return Some(port);
            }
        }
        None
    }
}

impl<A> Slot<A> {
    fn stream<'a, 'c>(&'a mut self, cx: &'a mut Ctx<'c>) -> (&'a mut A, Stream<'a, 'c>) {
        let stream = Stream {
            connection: &mut self.connection,
            send: &mut self.send,
            receive: &mut self.receive,
            cx,
        };
        (&mut self.application, stream)
    }

    fn store(&mut self, payload: &[u8], accepted: Accepted) -> bool {
        let range = accepted.skip as usize..(accepted.skip + accepted.length) as usize;
        payload
            .get(range)
            .is_some_and(|bytes| self.receive.store(accepted.offset, bytes))
    }
}

impl<A> fmt::Debug for Host<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("settings", &self.settings)
            .field("connections", &self.by_tuple.len())
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

/// The segment as a packet from `peer` to this host.
fn insert(packets: &mut PacketStore, segment: &Parsed<'_>, peer: u16) -> PacketRef {
    let source = segment.ip.source();
    let node_of = |ip| {
        Ok::<_, std::convert::Infallible>(if ip == source {
            bentpipe_types::Address(peer)
        } else {
            LOCAL
        })
    };
    match segment.insert(packets, node_of) {
        Ok(packet) => packet,
        Err(never) => match never {},
    }
}

fn version_of(ip: IpAddr) -> IpVersion {
    match ip {
        IpAddr::V4(_) => IpVersion::V4,
        IpAddr::V6(_) => IpVersion::V6,
    }
}

/// RFC 1122 section 3.2.1.3 (and 4.2.3.10): addresses that may stand in a source field.
fn is_unicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => !(ip.is_multicast() || ip.is_broadcast() || ip.is_unspecified()),
        IpAddr::V6(ip) => !(ip.is_multicast() || ip.is_unspecified()),
    }
}

#[cfg(test)]
mod tests;
