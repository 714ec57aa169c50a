//! Fuzzes a host that receives real packets: raw bytes, and its own packets reflected, damaged or
//! truncated, with corrected checksums.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use arbitrary::Arbitrary;
use bentpipe_host::{
    Application, Limits, Listener, Member, Remote, Secret, SocketContext, SocketId, Taker,
};
use bentpipe_live::LiveHost;
use bentpipe_tcp::{Config, Events, Rings, Source};
use bentpipe_types::{Address, Agent, Endpoint, Port, RandomStream, Routes, Span, World};
use bentpipe_wire::checksum::checksum;
use bentpipe_wire::{Encoder, NodeAddresses, set_tcp_checksum};

/// Events at the host.
#[derive(Arbitrary, Debug)]
pub struct Input {
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    /// Arbitrary bytes arrive.
    Bytes(Vec<u8>),
    /// A packet sent by the host returns with its ends swapped.
    Reflect {
        which: u8,
        damage: Vec<(u16, u8)>,
        cut: Option<u16>,
    },
    /// A segment from a peer with these header bytes and payload.
    Segment {
        from: u8,
        port: u8,
        header: [u8; 16],
        options: Vec<u8>,
        payload: Vec<u8>,
    },
    /// Time passes.
    Wait(u16),
    /// The host opens a connection.
    Connect(u8),
}

const LOCAL_V4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const LOCAL_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
const BUFFER: u64 = 20_000;
const LOCAL_NODE: Address = Address(1);
const REMOTE_NODE: Address = Address(2);

/// Echoes what it reads, and closes when its peer does.
#[derive(Debug)]
struct Echo;

impl Application<Rings> for Echo {
    fn on_events(
        &mut self,
        socket: SocketId,
        events: Events,
        desk: &mut SocketContext<'_, '_, Rings>,
    ) {
        let mut buffer = [0; 1000];
        for _ in 0..100 {
            let length = desk.read_bytes(socket, &mut buffer);
            if length == 0 {
                break;
            }
            desk.write(socket, Source::Bytes(&buffer[..length]));
        }
        if events.has(Events::PEER_CLOSED) {
            desk.close(socket);
        }
    }
}

/// The host, its environment, and its sent packets, latest first.
struct HostUnderTest {
    host: LiveHost,
    world: World,
    encoder: Encoder<NodeAddresses>,
    sent: Vec<Vec<u8>>,
}

impl HostUnderTest {
    /// Delivers a packet to the host.
    fn deliver(&mut self, bytes: &[u8]) {
        let to = |_, _| Some(LOCAL_NODE);
        if let Ok(packet) = bentpipe_wire::insert(bytes, &mut self.world.packets, REMOTE_NODE, to) {
            self.host.on_packet(Port(0), packet, &mut self.world.cx());
        }
        self.send();
    }

    /// Encodes the packets that the host has emitted.
    fn send(&mut self) {
        for (_, packet) in std::mem::take(&mut self.world.outbox) {
            let mut bytes = Vec::new();
            let encoded = self.encoder.encode(&self.world.packets, packet, &mut bytes);
            encoded.expect("what a host sends can be sent");
            self.world.packets.release(packet);
            self.sent.truncate(63);
            self.sent.insert(0, bytes);
        }
    }
}

fn swap(packet: &mut [u8]) {
    let (at, length) = match packet.first().map(|byte| byte >> 4) {
        Some(4) => (12, 4),
        Some(6) => (8, 16),
        _ => return,
    };
    if packet.len() < at + 2 * length + 4 {
        return;
    }
    let (first, second) = packet[at..at + 2 * length].split_at_mut(length);
    first.swap_with_slice(second);
    let ports = if at == 12 { 20 } else { 40 };
    if packet.len() >= ports + 12 {
        packet.swap(ports, ports + 2);
        packet.swap(ports + 1, ports + 3);
        for byte in 4..8 {
            packet.swap(ports + byte, ports + byte + 4);
        }
    }
}

/// Corrects checksums and lengths, so that the parser accepts the packet.
fn correct_checksums(packet: &mut [u8]) {
    let length = packet.len();
    let ip = |bytes: &[u8]| -> IpAddr {
        match <[u8; 4]>::try_from(bytes) {
            Ok(four) => four.into(),
            Err(_) => <[u8; 16]>::try_from(bytes).map_or(LOCAL_V6.into(), IpAddr::from),
        }
    };
    let (header, source, destination) = match packet.first().map(|byte| byte >> 4) {
        Some(4) if length >= 40 => {
            let header = usize::from(packet[0] & 15) * 4;
            if header < 20 || length < header + 20 {
                return;
            }
            packet[2..4].copy_from_slice(&(length as u16).to_be_bytes());
            packet[10..12].fill(0);
            let sum = checksum(&packet[..header]);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
            (header, ip(&packet[12..16]), ip(&packet[16..20]))
        }
        Some(6) if length >= 60 => {
            packet[4..6].copy_from_slice(&((length - 40) as u16).to_be_bytes());
            (40, ip(&packet[8..24]), ip(&packet[24..40]))
        }
        _ => return,
    };
    set_tcp_checksum(&mut packet[header..], source, destination);
}

fn segment(from: u8, port: u8, header: [u8; 16], options: &[u8], payload: &[u8]) -> Vec<u8> {
    let options = &options[..options.len().min(40) / 4 * 4];
    let mut packet = if from & 1 == 0 {
        let mut ip = vec![
            0x45,
            0,
            0,
            0,
            0,
            0,
            0x40,
            0,
            64,
            6,
            0,
            0,
            10,
            0,
            0,
            from | 2,
        ];
        ip.extend(LOCAL_V4.octets());
        ip
    } else {
        let mut ip = vec![0x60, 0, 0, 0, 0, 0, 6, 64];
        ip.extend(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, (from | 2).into()).octets());
        ip.extend(LOCAL_V6.octets());
        ip
    };
    packet.extend([0x80, port]);
    packet.extend(7000_u16.to_be_bytes());
    packet.extend(&header[..8]);
    packet.push((5 + options.len() as u8 / 4) << 4);
    packet.push(header[8]);
    packet.extend(&header[9..11]);
    packet.extend([0; 4]);
    packet.extend(options);
    packet.extend(&payload[..payload.len().min(1400)]);
    packet
}

/// Performs the steps of `input`, at most 200.
///
/// # Panics
/// If the host exceeds a limit, keeps a packet, or emits one that cannot be encoded.
pub fn run(input: &Input) {
    let limits = Limits {
        connections: 8,
        half_open: 4,
    };
    let mut host = LiveHost::with_secret(limits, Secret([1, 2]));
    host.routes(Routes::by_default(LOCAL_NODE, Port(0)));
    let config = Config {
        send_buffer: BUFFER,
        receive_buffer: BUFFER,
        ..Config::default()
    };
    let taker = Taker::Each(config.clone().into(), Box::new(|_| Box::new(Echo)));
    host.host_mut().listen(7000, Listener::new(taker));
    let opener = host.host_mut().add(Member::new(config), Box::new(Echo));
    let mut play = HostUnderTest {
        host,
        world: World::new(RandomStream::new(1, "host", "fuzz")),
        encoder: Encoder::new(NodeAddresses),
        sent: Vec::new(),
    };
    for step in input.steps.iter().take(200) {
        match step {
            Step::Bytes(bytes) => play.deliver(bytes),
            Step::Reflect { which, damage, cut } => {
                let count = play.sent.len().max(1);
                let Some(mut packet) = play.sent.get(usize::from(*which) % count).cloned() else {
                    continue;
                };
                swap(&mut packet);
                let length = packet.len();
                for &(at, value) in damage {
                    packet[usize::from(at) % length] ^= value;
                }
                packet.truncate(cut.map_or(length, |cut| usize::from(cut).max(1)));
                correct_checksums(&mut packet);
                play.deliver(&packet);
            }
            Step::Segment {
                from,
                port,
                header,
                options,
                payload,
            } => {
                let mut packet = segment(*from, *port, *header, options, payload);
                correct_checksums(&mut packet);
                play.deliver(&packet);
            }
            Step::Wait(ms) => {
                let end = play.world.now + Span::from_millis((*ms).into());
                let mut turns = 0;
                while let Some(at) = play.host.next_deadline().filter(|at| *at <= end) {
                    play.world.now = play.world.now.max(at);
                    play.host.on_deadline(&mut play.world.cx());
                    play.send();
                    turns += 1;
                    assert!(turns < 100_000, "it never comes to rest");
                }
                play.world.now = end;
            }
            Step::Connect(port) => {
                let to = Remote {
                    endpoint: Endpoint {
                        address: REMOTE_NODE,
                        port: (*port).into(),
                    },
                    ip: Some((LOCAL_V4.into(), Ipv4Addr::new(10, 0, 0, 2).into())),
                };
                let mut cx = play.world.cx();
                let host = play.host.host_mut();
                let _ = host.at_desk(opener, &mut cx, |desk| desk.connect(to));
                play.send();
            }
        }
        let host = play.host.host();
        assert!(host.connections() <= limits.connections);
        // Send and receive buffer, rounded up to powers of two, and as much again.
        assert!(host.memory() as u64 <= host.connections() as u64 * 4 * 32_768);
        assert_eq!(play.world.packets.held(), 0, "a packet was kept");
    }
}
