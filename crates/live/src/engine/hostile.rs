//! Runs arbitrary bytes as packets through a network between two devices, for tests and fuzzing.
//!
//! The path contains split gateways at both ends of the satellite link, a hybrid gateway
//! before them, a compactor, header compression, a tunnel, fair queueing with ECN marks, and
//! errors.

use std::net::IpAddr;

use bentpipe_scenario::{Outside, RunOptions, Scenario};
use bentpipe_types::{Span, Time};
use bentpipe_wire::checksum::{Sum, checksum};
use bentpipe_wire::{NodeAddresses, parse_ip};

use super::{Engine, Prefix};
use crate::{Device, Memory, memory_pair};

/// The network: three paths with different processing.
const SCENARIO: &str = r#"
name = "hostile"
duration = "60 s"
seed = 1
hosts = { left = {}, right = {} }
gateways.hub = { kind = "split", facing = "satellite" }
gateways.middle = { kind = "hybrid", facing = "core", tcp = {} }
gateways.terminal = { kind = "split", facing = "satellite" }
links.lan = { between = ["left", "middle"], rate = "10 Mbit/s", delay = "1 ms", forward.errors = { bit_error_rate = 1e-5 }, return.queue = { kind = "fair", limit = "20 packets" } }
links.core = { between = ["middle", "hub"], rate = "10 Mbit/s", delay = "1 ms" }
links.satellite = { between = ["hub", "terminal"], forward = { rate = "2 Mbit/s", delay = "20 ms", errors = { packet_loss_rate = 0.02 } }, return = { rate = "64 kbit/s", delay = "20 ms", acks = { kind = "compaction", low = 2, high = 8, spacing = true } } }
links.home = { between = ["terminal", "right"], rate = "1 Mbit/s", delay = "1 ms", return = { rate = "256 kbit/s", delay = "2 ms", compression = "rfc1144", queue = { limit = "30 packets" } } }
flows.f = { from = "left", to = "right", app = { kind = "bulk" } }
"#;

/// Limit of the memory for the packets' bytes.
const MEMORY_LIMIT: usize = 4 << 20;

/// The network and the devices at both ends.
struct HostileNetwork {
    engine: Engine,
    sides: [Memory; 2],
    /// Addresses of both ends, by IP version.
    addresses: [[IpAddr; 2]; 2],
    now: Time,
    /// Number of packets that came out.
    packets_out: u64,
}

/// Makes packets from `input`, sends them through the network, and checks what comes out. Returns
/// the number of packets that came out.
///
/// # Panics
/// If packets are missing from the counters, memory exceeds its limit, or an invalid packet comes
/// out.
#[must_use]
pub fn play(input: &[u8]) -> u64 {
    let mut play = HostileNetwork::new();
    let mut rest = input;
    for _ in 0..400 {
        let Some((kind, more)) = rest.split_first() else {
            break;
        };
        rest = play.step(*kind, more);
    }
    play.advance(Span::from_secs(30));
    play.check();
    play.packets_out
}

impl HostileNetwork {
    #[expect(
        clippy::expect_used,
        reason = "the scenario is right, or no test passes"
    )]
    fn new() -> Self {
        let scenario = Scenario::parse(SCENARIO, "hostile", &[]).expect("a scenario");
        let hosts = [0, 1];
        let options = RunOptions::default();
        let outside = Outside::new(&scenario, &options, &hosts, |_, _, _| None).expect("a network");
        let mut engine = Engine::new(outside.network);
        engine.network_mut().packets_mut().limit_bytes(MEMORY_LIMIT);
        let mut sides = Vec::new();
        for host in hosts {
            let (near, far) = memory_pair();
            let node = outside.nodes[host];
            let own = Prefix::of(NodeAddresses::ipv4(node.address()).into());
            let version_6 = Prefix::of(NodeAddresses::ipv6(node.address()).into());
            engine.attach(node, Box::new(near), &[own, version_6]);
            sides.push(far);
        }
        let node = |host: usize| outside.nodes[host].address();
        let addresses = [
            hosts.map(|host| NodeAddresses::ipv4(node(host)).into()),
            hosts.map(|host| NodeAddresses::ipv6(node(host)).into()),
        ];
        let [Some(right), Some(left)] = [sides.pop(), sides.pop()] else {
            unreachable!("two hosts")
        };
        Self {
            engine,
            sides: [left, right],
            addresses,
            now: Time::ZERO,
            packets_out: 0,
        }
    }

    /// Performs one step that `bytes` describe; returns the remaining bytes.
    fn step<'b>(&mut self, kind: u8, bytes: &'b [u8]) -> &'b [u8] {
        let side = usize::from(kind >> 7);
        let take = |count: usize| bytes.split_at(count.min(bytes.len()));
        let version = usize::from(kind >> 3 & 1);
        match kind & 0x07 {
            0 => {
                let (length, rest) = take(1);
                let length = usize::from(length.first().copied().unwrap_or(0));
                let (noise, rest) = rest.split_at(length.min(rest.len()));
                self.send(side, noise);
                rest
            }
            1 => {
                let (time, rest) = take(1);
                let milliseconds = u64::from(time.first().copied().unwrap_or(1));
                self.advance(Span::from_millis(milliseconds));
                rest
            }
            kind => {
                let (fields, rest) = take(12);
                let mut field = [0; 12];
                field[..fields.len()].copy_from_slice(fields);
                let mut packet = self.packet(side, version, kind, field);
                if kind == 7 {
                    // Damages the packet after its checksums were computed.
                    let at = usize::from(field[10]) % packet.len();
                    packet[at] ^= field[11];
                }
                self.send(side, &packet);
                rest
            }
        }
    }

    /// Returns a packet with mostly correct checksums.
    fn packet(&self, side: usize, version: usize, kind: u8, field: [u8; 12]) -> Vec<u8> {
        let protocol = match kind {
            3 => 17,
            4 => field[9],
            _ => 6,
        };
        let payload = usize::from(field[0] & 0x7f) * usize::from(field[0] >> 7) * 8;
        let mut carried = Vec::new();
        let ports = [
            7000 + u16::from(field[1] & 3),
            80 + u16::from(field[1] >> 6),
        ];
        let ports = if side == 0 {
            ports
        } else {
            [ports[1], ports[0]]
        };
        for port in ports {
            carried.extend(port.to_be_bytes());
        }
        if protocol == 6 {
            // The sequence numbers are close to each other, so that some segments fit together.
            carried.extend((u32::from(field[2]) * 97).to_be_bytes());
            carried.extend((u32::from(field[3]) * 97).to_be_bytes());
            let options: &[u8] = match field[4] & 7 {
                1 => &[
                    2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 7, 1, 3, 3, 7,
                ],
                2 => &[1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 7],
                3 => &[1, 1, 5, 10, 0, 0, 0, 100, 0, 0, 1, 0],
                4 => &[0xfd, 4, 1, 2],
                5 => &[8, 40, 0, 0],
                _ => &[],
            };
            let words = (20 + options.len()) / 4 + usize::from(field[4] >> 6 == 3);
            carried.extend([(words << 4) as u8, field[5], field[6], 0, 0, 0, 0, field[7]]);
            carried.extend(options);
        } else if protocol == 17 {
            carried.extend(((8 + payload) as u16).to_be_bytes());
            carried.extend([0, 0]);
        }
        carried.resize(carried.len() + payload, field[8]);
        let ends = self.addresses[version];
        let (source, destination) = (ends[side], ends[1 - side]);
        if protocol == 6 {
            let sum = Sum::default()
                .pseudo_header(source, destination, carried.len())
                .bytes(&carried)
                .finish();
            carried[16..18].copy_from_slice(&sum.to_be_bytes());
        }
        let header = if version == 1 { 0 } else { 20 };
        let length = (header + carried.len()) as u16;
        let lie = if kind == 5 {
            i16::from(field[9] as i8)
        } else {
            0
        };
        let fragment = if kind == 6 {
            u16::from_be_bytes([field[9] & 0x3f, field[10]])
        } else {
            0x4000
        };
        let length = length.wrapping_add_signed(lie).to_be_bytes();
        if let (IpAddr::V6(source), IpAddr::V6(destination)) = (source, destination) {
            let mut packet = vec![0x60 | field[11] >> 4, field[11] << 4, 0, 0];
            packet.extend(length);
            packet.extend([if kind == 6 { 44 } else { protocol }, field[7] | 0x20]);
            packet.extend(source.octets());
            packet.extend(destination.octets());
            packet.extend(carried);
            return packet;
        }
        let mut packet = vec![0x45, field[11]];
        packet.extend(length);
        packet.extend([0, field[2]]);
        packet.extend(fragment.to_be_bytes());
        packet.extend([field[7] | 0x20, protocol, 0, 0]);
        for ip in [source, destination] {
            if let IpAddr::V4(ip) = ip {
                packet.extend(ip.octets());
            }
        }
        let sum = checksum(&packet).to_be_bytes();
        packet[10..12].copy_from_slice(&sum);
        packet.extend(carried);
        packet
    }

    fn send(&mut self, side: usize, packet: &[u8]) {
        let _ = self.sides[side].send(self.now, packet);
    }

    /// Advances the time by `span`.
    #[expect(clippy::expect_used, reason = "devices in memory do not fail")]
    fn advance(&mut self, span: Span) {
        let until = self.now + span;
        for _ in 0..1_000_000 {
            let now = self.now;
            let more = self.engine.turn(&mut || now).expect("memory");
            self.drain();
            if more {
                continue;
            }
            match self.engine.next_event().filter(|next| *next <= until) {
                Some(next) => self.now = self.now.max(next),
                None => {
                    self.now = until;
                    return;
                }
            }
        }
        panic!("the network never becomes idle");
    }

    #[expect(
        clippy::expect_used,
        reason = "what is no packet is what this looks for"
    )]
    fn drain(&mut self) {
        for side in &self.sides {
            while let Some((_, packet)) = side.take() {
                self.packets_out += 1;
                let ip = parse_ip(&packet).expect("a whole IP packet");
                assert_eq!(ip.total_length, packet.len());
            }
        }
    }

    fn check(&self) {
        let network = self.engine.network();
        assert_eq!(network.violations(), []);
        let bytes = network.packets().bytes_allocated();
        assert!(bytes <= 2 * MEMORY_LIMIT, "{bytes} bytes");
    }
}
