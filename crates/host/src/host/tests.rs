//! Two hosts with a hostile network between them, with simulated and real addresses.

use std::sync::{Arc, Mutex};

use bentpipe_tcp::{Config, Events, Ranges, Rings, Source};
use bentpipe_types::{
    Address, Agent, Endpoint, Flags, Holdings, IcmpError, IpVersion, Packet, PacketRef, Port,
    RandomStream, Routes, Seq, Span, Time, World, filler,
};
use proptest::prelude::*;

use super::*;
use crate::{Secret, SocketId};

/// Hosts 1 and 2, and packets in transit between them.
struct Net<P: ConnectionKeys> {
    world: World,
    hosts: [Host<P>; 2],
    wire: Vec<(Time, usize, PacketRef)>,
    luck: RandomStream,
    loss: f64,
}

fn address(host: usize) -> Address {
    Address(host as u16 + 1)
}

impl<P: ConnectionKeys> Net<P> {
    fn new(seed: u64, loss: f64, limits: Limits) -> Self {
        let host = |index| {
            let secret = Secret([seed, index as u64]);
            let mut host = Host::new(limits, InitialSequences::Secret(secret));
            host.routes(Routes::by_default(address(index), Port(0)));
            host
        };
        Self {
            world: World::new(RandomStream::new(seed, "net", "agents")),
            hosts: [host(0), host(1)],
            wire: Vec::new(),
            luck: RandomStream::new(seed, "net", "luck"),
            loss,
        }
    }

    /// Host 2 echoes data sent to port 7.
    fn listen_with_echo(&mut self, config: &Arc<Config>) {
        let make = |_| {
            let echo = Echo {
                owed: Vec::new(),
                done: false,
            };
            Box::new(echo) as Box<dyn Application<P>>
        };
        let taker = Taker::Each(Arc::clone(config), Box::new(make));
        self.hosts[1].listen(7, Listener::new(taker));
    }

    fn carry(&mut self, from: usize) {
        for (_, packet) in std::mem::take(&mut self.world.outbox) {
            if self.luck.happens(self.loss) {
                self.world.packets.release(packet);
                continue;
            }
            if self.luck.happens(self.loss / 2.0) {
                let copy = self.world.packets.duplicate(packet);
                let at = self.world.now + Span::from_millis(self.luck.bits() % 90);
                self.wire.push((at, 1 - from, copy));
            }
            let at = self.world.now + Span::from_millis(20 + self.luck.bits() % 9);
            self.wire.push((at, 1 - from, packet));
        }
    }

    /// Delivers a packet to a host.
    fn arrive(&mut self, host: usize, packet: PacketRef) {
        self.hosts[host].on_packet(Port(0), packet, &mut self.world.cx());
        self.carry(host);
    }

    fn step(&mut self) -> bool {
        let packet = (0..self.wire.len()).min_by_key(|i| self.wire[*i].0);
        let timer = (0..2)
            .filter_map(|i| Some((self.hosts[i].next_deadline()?, i)))
            .min();
        match (packet, timer) {
            (Some(first), timer) if timer.is_none_or(|(at, _)| self.wire[first].0 <= at) => {
                let (at, to, packet) = self.wire.swap_remove(first);
                self.world.now = self.world.now.max(at);
                self.arrive(to, packet);
            }
            (_, Some((at, host))) => {
                self.world.now = at.max(self.world.now);
                self.hosts[host].on_deadline(&mut self.world.cx());
                self.carry(host);
            }
            (_, None) => return false,
        }
        true
    }

    fn run(&mut self) {
        for _ in 0..300_000 {
            if !self.step() {
                return;
            }
        }
        panic!("it never ends");
    }
}

fn config() -> Config {
    Config {
        mss: 500,
        send_buffer: 9_000,
        receive_buffer: 6_000,
        time_wait: Span::from_secs(2),
        ..Config::default()
    }
}

/// Returns everything that arrives.
#[derive(Debug)]
struct Echo {
    owed: Vec<u8>,
    done: bool,
}

impl<P: ConnectionKeys> Application<P> for Echo {
    fn on_events(&mut self, socket: SocketId, events: Events, api: &mut SocketContext<'_, '_, P>) {
        let mut buffer = [0; 1_000];
        self.done |= events.has(Events::PEER_CLOSED);
        loop {
            let sent = api.write(socket, Source::Bytes(&self.owed)) as usize;
            self.owed.drain(..sent);
            if !self.owed.is_empty() {
                return;
            }
            let read = api.read_bytes(socket, &mut buffer);
            self.owed.extend_from_slice(&buffer[..read]);
            if read == 0 {
                break;
            }
        }
        if self.done {
            api.close(socket);
        }
    }
}

/// Data to send, data received, and how the connection ended.
#[derive(Debug, Default)]
struct Spoken {
    received: Vec<u8>,
    closed: u32,
}

/// Sends data and keeps what arrives.
#[derive(Debug)]
struct Talker {
    to: Endpoint,
    text: Vec<u8>,
    sent: usize,
    spoken: Arc<Mutex<Spoken>>,
}

impl<P: ConnectionKeys> Application<P> for Talker {
    fn speaks_first(&self) -> bool {
        true
    }

    fn start(&mut self, api: &mut SocketContext<'_, '_, P>) {
        api.connect(self.to).expect("a free port");
    }

    fn on_events(&mut self, socket: SocketId, events: Events, api: &mut SocketContext<'_, '_, P>) {
        self.sent += api.write(socket, Source::Bytes(&self.text[self.sent..])) as usize;
        if self.sent == self.text.len() {
            api.close(socket);
        }
        let mut spoken = self.spoken.lock().expect("not poisoned");
        let mut buffer = [0; 700];
        loop {
            let read = api.read_bytes(socket, &mut buffer);
            if read == 0 {
                break;
            }
            spoken.received.extend_from_slice(&buffer[..read]);
        }
        spoken.closed += u32::from(events.has(Events::CLOSED));
    }
}

fn echoes<P: ConnectionKeys>(seed: u64, loss: f64, lengths: &[usize]) {
    echoes_with::<P>(seed, loss, lengths, &config().into(), 1, false);
}

/// Runs echoes between hosts that model wake-up order.
fn sleepy_echoes<P: ConnectionKeys>(seed: u64, loss: f64, lengths: &[usize]) {
    echoes_with::<P>(seed, loss, lengths, &config().into(), 1, true);
}

/// Runs echoes with Fast Open, far enough apart that later ones have a cookie. Returns how many
/// sent data on their SYN.
fn early_echoes<P: ConnectionKeys>(seed: u64, loss: f64, lengths: &[usize]) -> usize {
    let config = Config {
        fast_open: true,
        ..config()
    };
    echoes_with::<P>(seed, loss, lengths, &config.into(), 300, false)
}

fn echoes_with<P: ConnectionKeys>(
    seed: u64,
    loss: f64,
    lengths: &[usize],
    config: &Arc<Config>,
    apart_ms: u64,
    sleepy: bool,
) -> usize {
    let mut net = Net::<P>::new(seed, loss, Limits::default());
    if sleepy {
        net.hosts.iter_mut().for_each(Host::sleep_when_idle);
    }
    net.listen_with_echo(config);
    let mut talkers = Vec::new();
    for (index, length) in lengths.iter().enumerate() {
        let spoken = Arc::new(Mutex::new(Spoken::default()));
        let text: Vec<u8> = (0..*length).map(|i| (i * i / 3 + index) as u8).collect();
        let mut member = Member::new(Arc::clone(config));
        member.starts = Some(Time::ZERO + Span::from_millis(apart_ms * index as u64));
        let talker = Talker {
            to: Endpoint {
                address: address(1),
                port: 7,
            },
            text: text.clone(),
            sent: 0,
            spoken: Arc::clone(&spoken),
        };
        let id = net.hosts[0].add(member, Box::new(talker));
        talkers.push((id, text, spoken));
    }
    net.run();
    let connections = talkers
        .iter()
        .filter_map(|(id, ..)| net.hosts[0].connection(*id));
    let early = connections
        .filter(|connection| connection.fast_open_succeeded())
        .count();
    for (id, mut text, spoken) in talkers {
        if !P::KEEPS_BYTES {
            filler::fill(0, &mut text);
        }
        let spoken = spoken.lock().expect("not poisoned");
        assert!(
            spoken.received == text,
            "seed {seed}: {}",
            spoken.received.len()
        );
        assert_eq!(spoken.closed, 1, "told once that it is over");
        assert_eq!(net.hosts[0].delivered(id), text.len() as u64);
        let statistics = net.hosts[0].statistics(id).expect("it has begun");
        assert_eq!(statistics.bytes_acknowledged, text.len() as u64);
        assert!(net.hosts[0].is_over(id));
    }
    // Everything created for a connection was removed with it.
    for host in &net.hosts {
        assert_eq!((host.connections(), host.memory()), (0, 0));
        assert_eq!(host.holdings(), Holdings::default());
        let check = host.stream_check();
        assert_eq!(check.mismatches, 0);
        assert!(host.is_quiet());
    }
    assert!(net.hosts[1].applications.iter().all(Option::is_none));
    assert_eq!(net.world.packets.held(), 0);
    early
}

/// Of seven connections, the first requests a cookie, and one has no data: its SYN is never sent.
#[test]
fn fast_open_data_is_echoed() {
    let lengths = [20_000, 0, 1, 499, 500, 501, 20_000];
    assert_eq!(early_echoes::<Rings>(1, 0.0, &lengths), 5);
    assert_eq!(early_echoes::<Ranges>(1, 0.0, &lengths), 5);
}

#[test]
fn echoed_bytes_equal_sent_bytes() {
    echoes::<Rings>(1, 0.0, &[20_000, 0, 1, 499, 500, 501]);
    echoes::<Ranges>(1, 0.0, &[20_000, 0, 1, 499, 500, 501]);
    sleepy_echoes::<Ranges>(1, 0.0, &[20_000, 0, 1, 499, 500, 501]);
}

#[test]
fn a_sleeping_application_writes_after_the_handshake_was_sent() {
    let mut net = Net::<Ranges>::new(1, 0.0, Limits::default());
    net.hosts.iter_mut().for_each(Host::sleep_when_idle);
    let config = Arc::new(config());
    net.listen_with_echo(&config);
    let mut member = Member::new(config);
    member.starts = Some(Time::ZERO);
    let talker = Talker {
        to: Endpoint {
            address: address(1),
            port: 7,
        },
        text: vec![1; 400],
        sent: 0,
        spoken: Arc::default(),
    };
    net.hosts[0].add(member, Box::new(talker));
    let (mut established, mut text_left, mut text_came, mut answered) = (None, None, None, None);
    let mut on_the_wire = 0;
    while net.step() {
        for (at, to, packet) in net.wire.iter().skip(on_the_wire) {
            let packet = net.world.packets.get(*packet);
            match (*to, packet.payload_length) {
                (1, 0) if !packet.flags.has(Flags::SYN) => {
                    established.get_or_insert(net.world.now);
                }
                (1, 1..) => {
                    text_left.get_or_insert(net.world.now);
                    text_came.get_or_insert(*at);
                }
                (0, 1..) => {
                    answered.get_or_insert(net.world.now);
                }
                _ => {}
            }
        }
        on_the_wire = net.wire.len();
    }
    let since = |to: Option<Time>, from: Option<Time>| to.unwrap().since(from.unwrap());
    assert_eq!(since(text_left, established), Span::from_micros(100));
    // Includes the wake-up time.
    let answer = since(answered, text_came);
    let awake = Span::from_micros(100)..Span::from_micros(101);
    assert!(awake.contains(&answer), "{answer:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn echoes_are_exact_under_random_losses(
        seed in any::<u64>(),
        loss in 0.0_f64..0.15,
        lengths in prop::collection::vec(0_usize..20_000, 1..6),
    ) {
        echoes::<Rings>(seed, loss, &lengths);
        echoes::<Ranges>(seed, loss, &lengths);
        sleepy_echoes::<Rings>(seed, loss, &lengths);
        sleepy_echoes::<Ranges>(seed, loss, &lengths);
        early_echoes::<Rings>(seed, loss, &lengths);
        early_echoes::<Ranges>(seed, loss, &lengths);
    }
}

/// Opens and aborts many connections at once: more events than one call processes.
#[derive(Debug)]
struct Fickle {
    sockets: Vec<SocketId>,
    told: Arc<Mutex<usize>>,
}

impl<P: ConnectionKeys> Application<P> for Fickle {
    fn start(&mut self, api: &mut SocketContext<'_, '_, P>) {
        for port in 0..100 {
            let nobody = Endpoint {
                address: address(1),
                port,
            };
            self.sockets.push(api.connect(nobody).expect("room"));
        }
        for socket in &self.sockets {
            api.abort(*socket);
        }
    }

    fn on_events(
        &mut self,
        socket: SocketId,
        events: Events,
        _desk: &mut SocketContext<'_, '_, P>,
    ) {
        assert!(events.has(Events::CLOSED) && self.sockets.contains(&socket));
        *self.told.lock().expect("not poisoned") += 1;
    }
}

#[test]
fn application_events_are_never_lost() {
    let mut net = Net::<Ranges>::new(1, 0.0, Limits::NONE);
    let told = Arc::new(Mutex::new(0));
    let mut member = Member::new(config());
    member.starts = Some(Time::ZERO);
    let fickle = Fickle {
        sockets: Vec::new(),
        told: Arc::clone(&told),
    };
    net.hosts[0].add(member, Box::new(fickle));
    net.run();
    assert_eq!(*told.lock().expect("not poisoned"), 100);
    assert_eq!(net.hosts[0].connections(), 0);
    assert!(net.world.now < Time::ZERO + Span::from_secs(1));
}

#[test]
fn connections_from_unexpected_ports_are_reset() {
    let mut net = Net::<Ranges>::new(1, 0.0, Limits::NONE);
    let sink = net.hosts[1].add(Member::new(config()), Box::new(crate::applications::Sink));
    let ports = crate::Ports::range(50_000, 50_003);
    net.hosts[1].expect(80, address(0), ports, sink);
    for port in [49_999, 50_000, 50_003, 50_004] {
        let source = Endpoint {
            address: address(0),
            port,
        };
        let destination = Endpoint {
            address: address(1),
            port: 80,
        };
        let mut syn = Packet::new(source, destination, IpVersion::V4);
        syn.flags = Flags::SYN;
        syn.window = 1_000;
        let syn = net.world.packets.insert(syn);
        net.hosts[1].on_packet(Port(0), syn, &mut net.world.cx());
        let (_, reply) = net.world.outbox.pop().expect("an answer");
        let refused = net.world.packets.get(reply).flags.has(Flags::RST);
        assert_eq!(refused, !(50_000..=50_003).contains(&port), "{port}");
        net.world.packets.release(reply);
    }
    assert_eq!(net.hosts[1].connections_of(sink).count(), 2);
    assert_eq!(net.hosts[1].counted().no_connection, 2);
}

#[test]
fn a_syn_flood_is_limited_to_its_share_of_the_table() {
    let limits = Limits {
        connections: 64,
        half_open: 16,
    };
    let mut net = Net::<Rings>::new(1, 0.0, limits);
    let make = |_| Box::new(crate::applications::Sink) as Box<dyn Application<Rings>>;
    let taker = Taker::Each(config().into(), Box::new(make));
    net.hosts[1].listen(80, Listener::new(taker));
    let mut answered = 0;
    for number in 0..100_000_u32 {
        let source = Endpoint {
            address: Address((number % 60_000) as u16),
            port: (number / 7) as u16,
        };
        let destination = Endpoint {
            address: address(1),
            port: 80,
        };
        let mut syn = Packet::new(source, destination, IpVersion::V4);
        syn.flags = Flags::SYN;
        syn.sequence = Seq::new(number);
        let syn = net.world.packets.insert(syn);
        net.hosts[1].on_packet(Port(0), syn, &mut net.world.cx());
        for (_, reply) in std::mem::take(&mut net.world.outbox) {
            answered += 1;
            net.world.packets.release(reply);
        }
    }
    assert_eq!(answered, 16);
    assert_eq!(net.hosts[1].counted().half_open_full, 100_000 - 16);
    assert!(net.hosts[1].applications.len() <= 16);
    assert_eq!(net.world.packets.held(), 0);
}

/// Opens connections to these ends, and writes some data to each.
#[derive(Debug)]
struct Caller {
    to: Vec<Endpoint>,
    text: u64,
}

impl<P: ConnectionKeys> Application<P> for Caller {
    fn start(&mut self, api: &mut SocketContext<'_, '_, P>) {
        for to in &self.to {
            let socket = api.connect(*to).expect("room");
            api.write(socket, Source::Filler(self.text));
        }
    }

    fn on_events(&mut self, _: SocketId, _: Events, _: &mut SocketContext<'_, '_, P>) {}
}

/// A host that opens connections to others, which complete the handshake and acknowledge no data.
struct Caught<P: ConnectionKeys> {
    world: World,
    host: Host<P>,
    application: ApplicationId,
}

impl<P: ConnectionKeys> Caught<P> {
    /// Opens connections to these hosts.
    fn new(to: &[u16]) -> Self {
        let mut caught = Self {
            world: World::new(RandomStream::new(1, "net", "agents")),
            host: Host::new(Limits::default(), InitialSequences::PerApplication),
            application: ApplicationId(0),
        };
        (caught.host).routes(Routes::by_default(address(0), Port(0)));
        caught.connect(to);
        caught
    }

    /// Opens further connections.
    fn connect(&mut self, to: &[u16]) {
        let mut member = Member::new(Config {
            mss: 1_000,
            send_buffer: 20_000,
            timestamps: false,
            ..config()
        });
        member.starts = Some(self.world.now);
        let to = to.iter().map(|host| Endpoint {
            address: Address(*host),
            port: 80,
        });
        let caller = Caller {
            to: to.collect(),
            text: 3_000,
        };
        member.ports = crate::Ports::range(
            40_000 + 100 * self.host.applications.len() as u16,
            40_099 + 100 * self.host.applications.len() as u16,
        );
        self.application = self.host.add(member, Box::new(caller));
        self.host.on_deadline(&mut self.world.cx());
        for (_, packet) in std::mem::take(&mut self.world.outbox) {
            let syn = *self.world.packets.get(packet);
            let mut reply = Packet::new(syn.destination, syn.source, syn.ip_version());
            reply.flags = Flags::SYN.with(Flags::ACK);
            reply.acknowledgment = syn.sequence + 1;
            reply.window = 50_000;
            let options = bentpipe_types::SynOptions {
                maximum_segment_size: Some(1_000),
                ..bentpipe_types::SynOptions::default()
            };
            self.world.packets.release(packet);
            let reply = self.world.packets.insert(reply);
            self.world.packets.set_syn_options(reply, options);
            self.host.on_packet(Port(0), reply, &mut self.world.cx());
        }
    }

    /// Returns the segments with data sent since the last call.
    fn sent(&mut self) -> Vec<Packet> {
        let outbox = std::mem::take(&mut self.world.outbox).into_iter();
        let packets = &mut self.world.packets;
        let sent = outbox.map(|(_, reference)| {
            let packet = *packets.get(reference);
            packets.release(reference);
            packet
        });
        sent.filter(|packet| packet.payload_length > 0).collect()
    }

    /// Delivers an ICMP error about a segment, quoting a sequence number `off` bytes away.
    fn too_big(&mut self, segment: &Packet, mtu: u32, off: u32) {
        let (port, to) = (segment.source.port, segment.destination);
        let error = IcmpError::TooBig { mtu };
        let sequence = segment.sequence + off;
        let cx = &mut self.world.cx();
        self.host.on_icmp(port, to.into(), error, sequence, cx);
    }

    /// Returns the segment lengths of the connections to a host.
    fn segments(&self, to: u16) -> Vec<u32> {
        let all = self.host.sockets.all();
        let there = all.filter(|slot| slot.socket.connection().remote().address.0 == to);
        (there.map(|slot| slot.socket.connection().segment_size())).collect()
    }
}

fn check_path_mtu_applies_to_all_connections_to_a_host<P: ConnectionKeys>() {
    let mut caught = Caught::<P>::new(&[5, 5, 6]);
    let first = caught.sent();
    assert_eq!(caught.segments(5), [1_000, 1_000]);
    // An attacker off the path does not know the outstanding sequence numbers
    // (RFC 5927 section 4.1).
    caught.too_big(&first[0], 700, 100_000);
    caught.connect(&[5]);
    assert_eq!(caught.segments(5), [1_000; 3]);
    caught.sent();
    caught.too_big(&first[0], 700, 0);
    assert_eq!(caught.segments(5), [660; 3]);
    assert_eq!(caught.segments(6), [1_000]);
    // The connection with the error retransmits; the others wait for errors about their own
    // segments.
    let again = caught.sent();
    assert!(!again.is_empty());
    let ports = |packet: &Packet| (packet.source, packet.destination);
    for packet in &again {
        assert_eq!(ports(packet), ports(&first[0]));
        assert!(packet.payload_length <= 660);
    }
    // New connections use the value for ten minutes.
    caught.connect(&[5, 6]);
    assert_eq!(caught.segments(5), [660; 4]);
    assert_eq!(caught.segments(6), [1_000; 2]);
    assert!(
        (caught.sent().iter())
            .all(|packet| packet.payload_length <= 660 || packet.destination.address.0 == 6)
    );
    caught.world.now += Span::from_secs(600);
    caught.connect(&[5]);
    assert_eq!(caught.segments(5).last(), Some(&1_000));
    // After that it is learned again.
    let last = caught.sent();
    let last = last
        .iter()
        .rfind(|packet| packet.destination.address.0 == 5);
    caught.too_big(last.expect("text"), 600, 0);
    assert!(caught.segments(5).iter().all(|segment| *segment == 560));
    // Values below the minimum apply to the connection itself, not to others (`paths.rs`).
    caught.too_big(last.expect("text"), 100, 0);
    let segments = caught.segments(5);
    assert_eq!(segments.last(), Some(&60));
    assert!(segments.iter().rev().skip(1).all(|segment| *segment == 512));
}

#[test]
fn rfc8201_path_mtu_reported_to_one_connection_applies_to_all_to_that_host() {
    check_path_mtu_applies_to_all_connections_to_a_host::<Ranges>();
    check_path_mtu_applies_to_all_connections_to_a_host::<Rings>();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Under any errors about any segments: a connection's segments are never shorter than the
    /// least value reported about the path to that host by a router that had seen a segment, and
    /// all connections continue.
    #[test]
    fn off_path_icmp_errors_do_not_reduce_the_path_mtu(
        said in prop::collection::vec(
            (0_usize..100, 0_u32..1_200, prop::bool::ANY, 0_u64..200, 0_u16..4), 1..60,
        ),
    ) {
        let mut caught = Caught::<Rings>::new(&[5, 6, 5, 7]);
        let mut seen = caught.sent();
        let mut least = [1_000_u32; 4];
        for (which, mtu, is_true, wait, opens) in said {
            let segment = seen[which % seen.len()];
            let there = usize::from(segment.destination.address.0 - 5).min(3);
            if is_true {
                caught.too_big(&segment, mtu, 0);
                // A router that states no MTU only indicates that it is smaller.
                let most = if mtu == 0 { 68 } else { mtu };
                least[there] = least[there].min(most.saturating_sub(40).max(28));
            } else {
                caught.too_big(&segment, mtu, 1 << 24);
            }
            caught.world.now += Span::from_secs(wait);
            caught.host.on_deadline(&mut caught.world.cx());
            if opens > 0 && caught.host.connections() < 40 {
                caught.connect(&[4 + opens]);
            }
            seen.extend(caught.sent());
            for host in 0..3 {
                for segment in caught.segments(host as u16 + 5) {
                    prop_assert!(segment >= least[host], "{segment}, {host}: {least:?}");
                    prop_assert!(segment <= 1_000);
                }
            }
        }
    }
}

/// Reads from one connection and acts on another each time.
#[derive(Debug)]
struct Meddler {
    to: Endpoint,
    sockets: Vec<SocketId>,
}

impl<P: ConnectionKeys> Application<P> for Meddler {
    fn start(&mut self, api: &mut SocketContext<'_, '_, P>) {
        for _ in 0..2 {
            self.sockets
                .push(api.connect(self.to).expect("a free port"));
        }
    }

    fn on_events(&mut self, socket: SocketId, events: Events, api: &mut SocketContext<'_, '_, P>) {
        let other = self.sockets[usize::from(socket == self.sockets[0])];
        let mut buffer = [0; 700];
        if events.has(Events::ESTABLISHED) {
            api.write(socket, Source::Filler(100));
        } else if api.read_bytes(socket, &mut buffer) > 0 {
            api.write(other, Source::Filler(1));
        }
    }
}

/// An application's action on another connection does not cancel a deadline of the connection with
/// the event: here, the delayed acknowledgment of the data that it has read.
#[test]
fn actions_on_other_connections_keep_the_deadlines_of_the_acting_connection() {
    let mut net = Net::<Rings>::new(3, 0.0, Limits::default());
    let make = |_| {
        let echo = Echo {
            owed: Vec::new(),
            done: false,
        };
        Box::new(echo) as Box<dyn Application<Rings>>
    };
    let taker = Taker::Each(config().into(), Box::new(make));
    net.hosts[1].listen(7, Listener::new(taker));
    let to = Endpoint {
        address: address(1),
        port: 7,
    };
    let mut member = Member::new(config());
    member.starts = Some(Time::ZERO);
    let sockets = Vec::new();
    let id = net.hosts[0].add(member, Box::new(Meddler { to, sockets }));
    while net.world.now < Time::ZERO + Span::from_secs(5) && net.step() {
        for connection in net.hosts[0].connections_of(id) {
            if let Some(deadline) = connection.next_deadline() {
                let looked_at = net.hosts[0].next_deadline();
                assert!(looked_at.is_some_and(|at| at <= deadline), "{deadline:?}");
            }
        }
    }
    assert!(net.hosts[0].delivered(id) > 200);
}
