//! Tests of hosts on an ideal path with a test clock, and of hosts that receive invalid packets.

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use bentpipe_host::{Application, Listener, Member, SocketContext, SocketId, Taker};
use bentpipe_link::{DropTail, Limit, Settings};
use bentpipe_sim::{LinkSettings, NetworkBuilder};
use bentpipe_tcp::{Config, Events, Source};
use bentpipe_types::{Address, BitRate, Flags, IpVersion, RandomStream, Span, World};
use bentpipe_wire::{Encoder, parse, payload};
use proptest::prelude::*;

use super::*;
use crate::engine::Prefix;
use crate::{Device, Engine, ImpairedPath, Impairment, Memory, memory_pair};

const PORT: u16 = 7000;

fn address(last: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, last).into()
}

type Received = Arc<Mutex<Vec<u8>>>;

/// Sends a number of bytes, reads everything, and closes when all is sent.
#[derive(Debug)]
struct Peer {
    opens: Option<Remote>,
    left: u64,
    sent: u64,
    received: Received,
}

impl Application<Rings> for Peer {
    fn start(&mut self, api: &mut SocketContext<'_, '_, Rings>) {
        api.connect(self.opens.expect("somebody to talk to"))
            .expect("there is room");
    }

    fn on_events(&mut self, socket: SocketId, _: Events, api: &mut SocketContext<'_, '_, Rings>) {
        let mut buffer = [0; 3000];
        loop {
            let length = api.read_bytes(socket, &mut buffer);
            if length == 0 {
                break;
            }
            self.received.lock().unwrap().extend(&buffer[..length]);
        }
        let state = api.connection(socket).map(|connection| connection.state());
        while self.left > 0 && state.is_some_and(|state| state.is_synchronized()) {
            let length = self.left.min(2500) as usize;
            payload::fill(self.sent, &mut buffer[..length]);
            let taken = api.write(socket, Source::Bytes(&buffer[..length]));
            self.sent += taken;
            self.left -= taken;
            if taken < length as u64 {
                return;
            }
        }
        if self.left == 0 {
            api.close(socket);
        }
    }
}

fn peer(bytes: u64, received: &Received) -> Peer {
    Peer {
        opens: None,
        left: bytes,
        sent: 0,
        received: Arc::clone(received),
    }
}

fn config() -> Config {
    Config {
        send_buffer: 100_000,
        receive_buffer: 50_000,
        ..Config::default()
    }
}

fn link_settings() -> Option<Settings> {
    Some(Settings::new(
        BitRate::new(1_000_000_000)?,
        Span::ZERO,
        DropTail {
            limit: Limit::Packets(10_000),
        },
    ))
}

/// Returns the node that stands for all peers: the network's first.
fn remote_node() -> Endpoint {
    let node = NetworkBuilder::new(1).attached("world");
    Endpoint {
        address: node.address(),
        port: PORT,
    }
}

/// Creates a network of one host, with an impaired path to a device that stands for all peers.
fn single_host(last: u8, host: LiveHost, impairment: Impairment) -> (Engine, Memory) {
    let mut builder = NetworkBuilder::new(1);
    let remote_node = builder.attached("world");
    let path = builder.custom("path", Box::new(ImpairedPath::new(impairment, last.into())));
    let ours = builder.custom("ours", Box::new(host));
    for (name, one, other) in [("outside", remote_node, path), ("inside", path, ours)] {
        let name = name.to_owned();
        let (forward, backward) = (link_settings(), link_settings());
        builder.link(
            one,
            other,
            LinkSettings {
                name,
                forward,
                backward,
            },
        );
    }
    let mut engine = Engine::new(builder.build().expect("a network"));
    let (near, far) = memory_pair();
    let everybody = [Prefix::EVERYTHING_V4, Prefix::EVERYTHING_V6];
    engine.attach(remote_node, Box::new(near), &everybody);
    engine.add_prefix(ours, Prefix::of(address(last)));
    (engine, far)
}

fn host(limits: Limits) -> LiveHost {
    LiveHost::with_secret(limits, Secret([1, 2]))
}

fn counter(engine: &mut Engine, name: &str) -> u64 {
    let agents = engine.network_mut().outcome().agents;
    let ours = agents.iter().find(|agent| agent.name == "ours");
    let mut counters = ours.into_iter().flat_map(|agent| &agent.counters);
    counters
        .find(|(counter, _)| counter == name)
        .map_or(0, |(_, count)| *count)
}

/// A client and a server with 5 ms of delay between them.
struct Pair {
    now: Time,
    engines: [Engine; 2],
    fars: [Memory; 2],
    /// The last packets that were sent.
    last_packets: VecDeque<Vec<u8>>,
}

impl Pair {
    fn new(impairment: Impairment, bytes: [u64; 2]) -> (Self, [Received; 2]) {
        let received: [Received; 2] = Default::default();
        let mut client = host(Limits::default());
        let opener = Peer {
            opens: Some(Remote {
                endpoint: remote_node(),
                ip: Some((address(2), address(1))),
            }),
            ..peer(bytes[0], &received[0])
        };
        let member = Member {
            starts: Some(Time::ZERO),
            ..Member::new(config())
        };
        client.host_mut().add(member, Box::new(opener));
        let mut server = host(Limits::default());
        let at_server = Arc::clone(&received[1]);
        let make = Box::new(move |_| Box::new(peer(bytes[1], &at_server)) as _);
        let taker = Taker::Each(config().into(), make);
        server.host_mut().listen(PORT, Listener::new(taker));
        let (client, at_client) = single_host(2, client, impairment);
        let (server, at_server) = single_host(1, server, impairment);
        let pair = Self {
            now: Time::ZERO,
            engines: [client, server],
            fars: [at_client, at_server],
            last_packets: VecDeque::new(),
        };
        (pair, received)
    }

    /// Advances the time until nothing is in transit or due, or until `end`.
    fn run(&mut self, end: Time) {
        loop {
            let now = self.now;
            for side in 0..2 {
                while self.engines[side].turn(&mut || now).expect("memory") {}
                while let Some((at, packet)) = self.fars[side].take() {
                    let at = at + Span::from_millis(5);
                    self.last_packets.truncate(99);
                    self.last_packets.push_front(packet.clone());
                    self.fars[1 - side].send(at, &packet).expect("memory");
                }
            }
            let next = self.engines.iter().filter_map(Engine::next_event).min();
            match next {
                Some(next) if next <= end => self.now = now.max(next),
                _ => return,
            }
        }
    }
}

fn stream(bytes: u64) -> Vec<u8> {
    let mut whole = vec![0; bytes as usize];
    payload::fill(0, &mut whole);
    whole
}

#[test]
fn bytes_arrive_intact_over_impaired_paths() {
    for loss in [0.0, 0.03] {
        let impairment = Impairment {
            loss,
            duplication: loss,
            reordering: loss,
            held_back: Span::from_millis(7),
        };
        let (mut pair, [at_client, at_server]) = Pair::new(impairment, [1_000_000, 700_000]);
        pair.run(Time::from_nanos(300_000_000_000));
        assert!(*at_server.lock().unwrap() == stream(1_000_000), "{loss}");
        assert!(*at_client.lock().unwrap() == stream(700_000), "{loss}");
        for engine in &mut pair.engines {
            assert_eq!(engine.network().packets_held(), 0);
            assert_eq!(engine.refusals().unencodable, 0);
            for name in ["martian", "malformed", "half_open_full", "table_full"] {
                assert_eq!(counter(engine, name), 0, "{name}");
            }
            let agents = engine.network_mut().outcome().agents;
            let ours = agents.iter().find(|agent| agent.name == "ours");
            assert_eq!(ours.expect("it is there").holdings.bytes, 0);
        }
    }
}

/// Returns the bytes of a segment.
fn segment(source: SocketAddr, destination: SocketAddr, flags: Flags) -> Vec<u8> {
    let mut world = World::new(RandomStream::new(1, "segment", "test"));
    let end = |port| Endpoint {
        address: Address(0),
        port,
    };
    let ends = (end(source.port()), end(destination.port()));
    let mut record = Packet::new(ends.0, ends.1, IpVersion::V4);
    record.flags = flags;
    record.window = 1000;
    let packet = world.packets.insert(record);
    world
        .packets
        .set_ip(packet, (source.ip(), destination.ip()));
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(NodeAddresses);
    let encoded = encoder.encode(&world.packets, packet, &mut bytes);
    encoded.expect("a segment");
    bytes
}

fn syn(number: u16, to: u16) -> Vec<u8> {
    let from = Ipv4Addr::new(10, 1, (number >> 8) as u8, number as u8);
    let to = SocketAddr::new(address(1), to);
    segment((from, 40_000).into(), to, Flags::SYN)
}

/// Delivers a packet to an engine's host. Returns its replies within the next 100 us.
fn replies_to(
    engine: &mut Engine,
    far: &mut Memory,
    now: &mut Time,
    packet: &[u8],
) -> Vec<Vec<u8>> {
    far.send(*now, packet).expect("memory");
    let end = *now + Span::from_micros(100);
    loop {
        let at = *now;
        while engine.turn(&mut || at).expect("memory") {}
        match engine.next_event() {
            Some(next) if next <= end => *now = at.max(next),
            _ => break,
        }
    }
    *now = end;
    std::iter::from_fn(|| far.take())
        .map(|(_, packet)| packet)
        .collect()
}

fn server(limits: Limits) -> (Engine, Memory) {
    let mut host = host(limits);
    let make = Box::new(|_| Box::new(peer(0, &Received::default())) as _);
    let taker = Taker::Each(config().into(), make);
    host.host_mut().listen(PORT, Listener::new(taker));
    single_host(1, host, Impairment::default())
}

#[test]
fn tables_are_bounded_and_refusals_counted() {
    let limits = Limits {
        connections: 5,
        half_open: 3,
    };
    let (mut engine, mut far) = server(limits);
    let mut replies = 0;
    let mut now = Time::ZERO;
    for number in 0..1000 {
        replies += replies_to(&mut engine, &mut far, &mut now, &syn(number, PORT)).len();
    }
    assert_eq!(replies, 3);
    assert_eq!(counter(&mut engine, "half_open_full"), 997);
    // Connections whose SYN+ACK is not acknowledged time out, which frees their places.
    while let Some(next) = engine.next_event() {
        now = now.max(next);
        while engine.turn(&mut || now).expect("memory") {}
    }
    assert!(now < Time::from_nanos(600_000_000_000), "{now:?}");
    while far.take().is_some() {}
    assert_eq!(
        replies_to(&mut engine, &mut far, &mut now, &syn(5, PORT)).len(),
        1
    );
}

#[test]
fn packets_not_for_the_host_are_refused() {
    let (mut engine, mut far) = server(Limits::default());
    let mut now = Time::ZERO;
    let mut replies_to = |packet: &[u8]| replies_to(&mut engine, &mut far, &mut now, packet);
    let ours = SocketAddr::new(address(1), PORT);
    // Source addresses that are not unicast, and the host's own.
    for source in [
        "255.255.255.255:9",
        "224.0.0.1:9",
        "0.0.0.0:9",
        "10.0.0.1:7000",
    ] {
        let packet = segment(source.parse().unwrap(), ours, Flags::SYN);
        assert_eq!(replies_to(&packet).len(), 0, "{source}");
    }
    let mut broken = syn(1, PORT);
    broken[25] ^= 1;
    assert_eq!(replies_to(&broken).len(), 0);
    assert_eq!(replies_to(&broken[..30]).len(), 0);
    // To a port without a listener: a RST that acknowledges the SYN.
    let replies = replies_to(&syn(1, PORT + 1));
    let reply = parse(&replies[0]).expect("a segment");
    assert_eq!(reply.tcp.flags, Flags::RST.with(Flags::ACK));
    assert_eq!(counter(&mut engine, "martian"), 4);
    assert_eq!(counter(&mut engine, "malformed"), 1);
    assert_eq!(counter(&mut engine, "no_connection"), 1);
    assert_eq!(engine.refusals().total(), 1);
    assert_eq!(engine.network().packets_held(), 0);
}

/// Returns an ICMP packet between these addresses.
fn icmp(from: IpAddr, to: IpAddr, message: &[u8]) -> Vec<u8> {
    let mut world = World::new(RandomStream::new(1, "icmp", "test"));
    let ends = [Endpoint::default(); 2];
    let mut record = Packet::datagram(ends[0], ends[1], IpVersion::V4, ICMP);
    record.payload_length = message.len() as u16;
    let packet = world.packets.insert(record);
    world.packets.set_ip(packet, (from, to));
    let mut message = message.to_vec();
    let sum = bentpipe_wire::checksum::checksum(&message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    world
        .packets
        .set_payload(packet, |out| out.copy_from_slice(&message));
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(NodeAddresses);
    let encoded = encoder.encode(&world.packets, packet, &mut bytes);
    encoded.expect("a message");
    bytes
}

#[test]
fn echo_requests_are_answered() {
    let (mut engine, mut far) = server(Limits::default());
    let request = icmp(
        address(9),
        address(1),
        b"\x08\0\0\0\x12\x34\0\x01hello there",
    );
    let mut now = Time::ZERO;
    let replies = replies_to(&mut engine, &mut far, &mut now, &request);
    let mut expected = icmp(address(1), address(9), b"\0\0\0\0\x12\x34\0\x01hello there");
    // The encoder sets the identification field.
    expected[4..6].copy_from_slice(&replies[0][4..6]);
    expected[10..12].copy_from_slice(&replies[0][10..12]);
    assert_eq!(replies, [expected]);
    assert_eq!(bentpipe_wire::checksum::checksum(&replies[0][..20]), 0);
}

#[test]
fn icmp_errors_reach_their_connection() {
    for right in [true, false] {
        let (mut pair, _) = Pair::new(Impairment::default(), [0, 0]);
        let [engine, _] = &mut pair.engines;
        let [far, _] = &mut pair.fars;
        let mut now = Time::ZERO;
        // An empty packet, so that only time passes.
        let syns = replies_to(engine, far, &mut now, b"");
        assert_eq!(syns.len(), 1);
        let mut message = b"\x03\x03\0\0\0\0\0\0".to_vec();
        message.extend(&syns[0][..28]);
        // An off-path attacker does not know the sequence number (RFC 5927 section 4.1).
        message[8 + 24] ^= u8::from(!right);
        let error = icmp(address(77), address(2), &message);
        replies_to(engine, far, &mut now, &error);
        assert_eq!(counter(engine, "icmp_errors"), 1);
        // Port unreachable during the opening: refused (RFC 1122 section 4.2.3.9), without a retry.
        now += Span::from_secs(5);
        let again = replies_to(engine, far, &mut now, b"");
        assert_eq!(again.is_empty(), right);
    }
}

proptest! {
    /// A connection receives its own packets with bits flipped and checksums corrected or not.
    /// Nothing panics, and memory stays bounded.
    #[test]
    fn damaged_packets_do_no_harm(
        damage in prop::collection::vec((0usize..4000, 0usize..60, any::<u8>(), any::<bool>()), 1..200),
    ) {
        let (mut pair, _) = Pair::new(Impairment::default(), [200_000, 200_000]);
        let mut now = Time::ZERO;
        for (which, at, value, right) in damage {
            now += Span::from_millis(1);
            pair.run(now);
            pair.now = now;
            if let Some(packet) = pair.last_packets.get(which / 2 % pair.last_packets.len().max(1)) {
                let mut packet = packet.clone();
                let at = at % packet.len();
                packet[at] ^= value;
                if right {
                    correct_checksums(&mut packet);
                }
                pair.fars[which % 2].send(now, &packet).expect("memory");
            }
            for engine in &mut pair.engines {
                let agents = engine.network_mut().outcome().agents;
                let ours = agents.iter().find(|agent| agent.name == "ours");
                // Send and receive buffer of the connection and of one that a damaged SYN opens.
                prop_assert!(ours.expect("it is there").holdings.bytes <= 2 * 150_000);
                prop_assert_eq!(engine.refusals().unencodable, 0);
            }
        }
    }
}

/// Corrects the checksums where the packet still has them.
fn correct_checksums(packet: &mut [u8]) {
    use bentpipe_wire::checksum::checksum;
    use bentpipe_wire::set_tcp_checksum;
    if packet.len() < 40 || packet[0] >> 4 != 4 {
        return;
    }
    let header = usize::from(packet[0] & 15) * 4;
    if header < 20 || packet.len() < header + 20 {
        return;
    }
    packet[10..12].fill(0);
    let sum = checksum(&packet[..header]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    let ip = |at: usize| IpAddr::from(<[u8; 4]>::try_from(&packet[at..at + 4]).unwrap());
    let (source, destination) = (ip(12), ip(16));
    set_tcp_checksum(&mut packet[header..], source, destination);
}
