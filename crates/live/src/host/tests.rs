//! Two hosts with a path between them and a clock that is told; and whoever sends them nonsense.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use bentpipe_tcp::Events;
use bentpipe_types::Span;
use bentpipe_wire::payload;
use proptest::prelude::*;

use super::*;
use crate::{Impairment, Path};

const SERVER: &str = "10.0.0.1:7000";

/// Sends so many bytes, reads what comes, closes when it has sent all.
struct Peer {
    left: u64,
    sent: u64,
    received: Rc<RefCell<Vec<u8>>>,
}

impl Application for Peer {
    fn on_events(&mut self, _: Events, stream: &mut Stream<'_, '_>) {
        let mut buffer = [0; 3000];
        loop {
            let length = stream.read(&mut buffer);
            if length == 0 {
                break;
            }
            self.received.borrow_mut().extend(&buffer[..length]);
        }
        while self.left > 0 && stream.connection().state().is_synchronized() {
            let length = self.left.min(2500) as usize;
            payload::fill(self.sent, &mut buffer[..length]);
            let taken = stream.write(&buffer[..length]);
            self.sent += taken as u64;
            self.left -= taken as u64;
            if taken < length {
                return;
            }
        }
        if self.left == 0 {
            stream.close();
        }
    }
}

fn host(last: u8, limits: Limits) -> Host<Peer> {
    Host::new(HostSettings {
        ipv4: Some(Ipv4Addr::new(10, 0, 0, last)),
        ipv6: None,
        limits,
        secret: Secret([1, 2]),
    })
}

fn peer(bytes: u64) -> (Peer, Rc<RefCell<Vec<u8>>>) {
    let received = Rc::default();
    let peer = Peer {
        left: bytes,
        sent: 0,
        received: Rc::clone(&received),
    };
    (peer, received)
}

/// A client, a server, and the paths between them.
struct Pair {
    now: Time,
    hosts: [Host<Peer>; 2],
    paths: [Path; 2],
    /// The last packets that were sent.
    heard: VecDeque<Vec<u8>>,
}

impl Pair {
    /// Lets time pass until nothing is under way, nothing is due, or `end` has come.
    fn run(&mut self, end: Time) {
        while self.now < end {
            let next = [
                self.hosts[0].next_deadline(),
                self.hosts[1].next_deadline(),
                self.paths[0].next_arrival(),
                self.paths[1].next_arrival(),
            ];
            let Some(next) = next.into_iter().flatten().min() else {
                return;
            };
            self.now = self.now.max(next).min(end);
            let now = self.now;
            for to in 0..2 {
                let [first, second] = &mut self.paths;
                let (incoming, outgoing) = if to == 1 {
                    (first, second)
                } else {
                    (second, first)
                };
                let host = &mut self.hosts[to];
                // Delays are never zero here, so that nothing is delivered at once.
                let heard = &mut self.heard;
                let mut transmit = |packet: &[u8]| {
                    heard.truncate(99);
                    heard.push_front(packet.to_vec());
                    outgoing.offer(now, packet, |_| unreachable!("the path has a delay"));
                };
                incoming.arrive(now, |packet| host.on_packet(packet, now, &mut transmit));
                host.on_deadline(now, &mut transmit);
            }
        }
    }
}

fn pair(impairment: Impairment, bytes: [u64; 2]) -> (Pair, [Rc<RefCell<Vec<u8>>>; 2]) {
    let path = |name| Path::new(impairment, RandomStream::new(3, name, "test"));
    let mut pair = Pair {
        now: Time::ZERO,
        hosts: [host(2, Limits::default()), host(1, Limits::default())],
        paths: [path("there"), path("back")],
        heard: VecDeque::new(),
    };
    let (client, at_client) = peer(bytes[0]);
    let (_, at_server) = peer(0);
    let config = Config {
        send_buffer: 100_000,
        receive_buffer: 50_000,
        ..Config::default()
    };
    let received = Rc::clone(&at_server);
    pair.hosts[1].listen(7000, config.clone(), move |_| Peer {
        left: bytes[1],
        sent: 0,
        received: Rc::clone(&received),
    });
    let [there, _] = &mut pair.paths;
    let server = SERVER.parse().unwrap();
    pair.hosts[0]
        .connect(&config, server, None, client, Time::ZERO, &mut |packet| {
            there.offer(Time::ZERO, packet, |_| ());
        })
        .unwrap();
    (pair, [at_client, at_server])
}

fn stream(bytes: u64) -> Vec<u8> {
    let mut whole = vec![0; bytes as usize];
    payload::fill(0, &mut whole);
    whole
}

#[test]
fn bytes_arrive_as_they_were_sent_whatever_the_path_does() {
    for loss in [0.0, 0.05] {
        let impairment = Impairment {
            loss,
            duplication: loss,
            reordering: loss,
            held_back: Span::from_millis(7),
            delay: Span::from_millis(5),
        };
        let (mut pair, [at_client, at_server]) = pair(impairment, [1_000_000, 700_000]);
        pair.run(Time::from_nanos(300_000_000_000));
        assert!(*at_server.borrow() == stream(1_000_000), "loss {loss}");
        assert!(*at_client.borrow() == stream(700_000), "loss {loss}");
        for host in &pair.hosts {
            assert_eq!(host.connections(), 0, "all places are free again");
            assert_eq!((host.half_open, host.world.packets.held()), (0, 0));
            assert_eq!(host.buffer_memory(), 0);
            assert_eq!(host.counters().refused(Refusal::Unencodable), 0);
            assert_eq!(host.counters().refused(Refusal::Unstorable), 0);
        }
    }
}

/// A SYN from one of many addresses, as bytes.
fn syn(number: u16, destination: &str) -> Vec<u8> {
    let mut sender: Host<Peer> = Host::new(HostSettings {
        ipv4: Some(Ipv4Addr::new(10, 1, (number >> 8) as u8, number as u8)),
        ipv6: None,
        limits: Limits::default(),
        secret: Secret([3, 4]),
    });
    let mut bytes = Vec::new();
    let (application, _) = peer(0);
    let to = destination.parse().unwrap();
    sender
        .connect(
            &Config::default(),
            to,
            None,
            application,
            Time::ZERO,
            &mut |packet| bytes = packet.to_vec(),
        )
        .unwrap();
    bytes
}

#[test]
fn tables_are_bounded_and_refusals_counted() {
    let limits = Limits {
        connections: 5,
        half_open: 3,
    };
    let mut server = host(1, limits);
    server.listen(7000, Config::default(), |_| peer(0).0);
    let mut replies = 0;
    for number in 0..1000 {
        server.on_packet(&syn(number, SERVER), Time::ZERO, &mut |_| replies += 1);
    }
    assert_eq!((replies, server.connections(), server.half_open), (3, 3, 3));
    assert_eq!(server.counters().refused(Refusal::HalfOpenFull), 997);
    // Its own connections fill the rest.
    let mut opened = 0;
    for _ in 0..10 {
        let to = "10.2.0.1:80".parse().unwrap();
        let (application, _) = peer(0);
        let result = server.connect(
            &Config::default(),
            to,
            None,
            application,
            Time::ZERO,
            &mut |_| (),
        );
        opened += usize::from(result.is_ok());
        assert!(matches!(result, Ok(()) | Err(ConnectError::TableFull)));
    }
    assert_eq!(opened, 2);
    // SYN+ACKs that nobody acknowledges are given up, and make room.
    let mut now = Time::ZERO;
    while let Some(next) = server.next_deadline() {
        now = next;
        server.on_deadline(now, &mut |_| ());
    }
    assert!(now < Time::from_nanos(600_000_000_000), "{now:?}");
    assert_eq!((server.connections(), server.half_open), (0, 0));
}

#[test]
fn what_is_not_for_a_host_is_refused() {
    let mut server = host(1, Limits::default());
    let mut replies = Vec::new();
    let mut hear = |server: &mut Host<Peer>, packet: &[u8]| {
        server.on_packet(packet, Time::ZERO, &mut |reply| {
            replies.push(reply.to_vec())
        });
    };
    hear(&mut server, &syn(1, "10.0.0.9:7000"));
    assert_eq!(server.counters().refused(Refusal::NotForUs), 1);
    hear(&mut server, &syn(1, SERVER));
    assert_eq!(server.counters().refused(Refusal::NoConnection), 1);
    let mut broken = syn(1, SERVER);
    broken[25] ^= 1;
    hear(&mut server, &broken);
    assert_eq!(server.counters().refused(Refusal::Checksum), 1);
    hear(&mut server, &broken[..30]);
    assert_eq!(server.counters().refused(Refusal::Malformed), 1);
    // Only the SYN to a port where nobody listens was answered: RST, and an acknowledgment.
    assert_eq!(replies.len(), 1);
    let reply = parse(&replies[0]).unwrap();
    assert_eq!(reply.tcp.flags, Flags::RST.with(Flags::ACK));
    assert_eq!(server.world.packets.held(), 0);
}

proptest! {
    /// A connection under way is sent packets of its own with bits flipped, checksums put right or
    /// not: nothing panics, and nothing grows without bound.
    #[test]
    fn no_packet_does_harm(
        damage in prop::collection::vec((0usize..4000, 0usize..60, any::<u8>(), any::<bool>()), 1..200),
    ) {
        let impairment = Impairment { delay: Span::from_millis(1), ..Impairment::default() };
        let (mut pair, _) = pair(impairment, [200_000, 200_000]);
        let mut now = Time::ZERO;
        for (which, at, value, right) in damage {
            now += Span::from_millis(1);
            pair.run(now);
            pair.now = now;
            let mut replies = Vec::new();
            if let Some(packet) = pair.heard.get(which / 2 % pair.heard.len().max(1)) {
                let mut packet = packet.clone();
                let at = at % packet.len();
                packet[at] ^= value;
                if right {
                    make_right(&mut packet);
                }
                pair.hosts[which % 2].on_packet(&packet, now, &mut |p| replies.push(p.to_vec()));
            }
            let [first, second] = &mut pair.paths;
            let out = if which % 2 == 0 { first } else { second };
            for packet in replies {
                out.offer(now, &packet, |_| ());
            }
            for host in &pair.hosts {
                prop_assert!(host.buffer_memory() <= (192 << 10) * host.connections());
            }
        }
    }
}

/// Puts the checksums right, where the packet still has them.
fn make_right(packet: &mut [u8]) {
    use bentpipe_wire::checksum::{Sum, checksum};
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
    let segment = &mut packet[header..];
    segment[16..18].fill(0);
    let sum = Sum::default()
        .pseudo_header(source, destination, segment.len())
        .bytes(segment)
        .finish();
    segment[16..18].copy_from_slice(&sum.to_be_bytes());
}
