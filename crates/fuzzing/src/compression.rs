//! Fuzzes header compression and tunnels: compressed packets decompress to the same, and any frame
//! is handled.

use std::net::IpAddr;

use arbitrary::Arbitrary;
use bentpipe_wire::checksum::checksum;
use bentpipe_wire::vj::{Compressor, Decompressor, PacketType};
use bentpipe_wire::{parse, parse_tunnelled, set_tcp_checksum};

/// Sizes of the compressor, and what is done with it.
#[derive(Arbitrary, Debug)]
pub struct Input {
    slots: u8,
    omit_connection: bool,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    /// A packet like the last of its connection, with these bytes changed.
    Packet {
        port: u8,
        damage: Vec<(u8, u8)>,
        payload: u8,
    },
    /// Arbitrary bytes to the compressor.
    Bytes(Vec<u8>),
    /// A frame of arbitrary bytes, to a separate decompressor.
    Frame { kind: u8, bytes: Vec<u8> },
    /// That decompressor is notified of a loss.
    Loss,
    /// A packet in a tunnel.
    Tunnel {
        prefix: [u8; 3],
        protocol: u8,
        damage: Vec<(u8, u8)>,
    },
}

/// Corrects the checksums of a TCP/IPv4 packet.
fn correct_checksums(packet: &mut [u8]) {
    let header = usize::from(packet[0] & 15) * 4;
    if packet[0] >> 4 != 4 || header < 20 || packet.len() < header + 20 {
        return;
    }
    let length = packet.len() as u16;
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet[10..12].fill(0);
    let sum = checksum(&packet[..header]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    let ip = |at: usize| IpAddr::from([packet[at], packet[at + 1], packet[at + 2], packet[at + 3]]);
    let (source, destination) = (ip(12), ip(16));
    set_tcp_checksum(&mut packet[header..], source, destination);
}

fn first(port: u8) -> Vec<u8> {
    let mut packet = vec![
        0x45, 0, 0, 40, 0, 1, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ];
    packet.extend([
        0x80, port, 0x1b, 0x58, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0,
    ]);
    packet
}

fn damaged(packet: &mut [u8], damage: &[(u8, u8)]) {
    for &(at, value) in damage {
        let length = packet.len();
        packet[usize::from(at) % length] ^= value;
    }
}

/// Performs the steps of `input`.
///
/// # Panics
/// If a packet changes on its way.
pub fn run(input: &Input) {
    let slots = usize::from(input.slots) + 1;
    let mut compressor = Compressor::new(slots, input.omit_connection).expect("1 to 256");
    let mut decompressor = Decompressor::new(slots).expect("1 to 256");
    let mut lone = Decompressor::new(slots).expect("1 to 256");
    let mut last: Vec<Vec<u8>> = (0..=255).map(first).collect();
    let (mut frame, mut out) = (Vec::new(), Vec::new());
    for step in input.steps.iter().take(100) {
        match step {
            Step::Packet {
                port,
                damage,
                payload,
            } => {
                let packet = &mut last[usize::from(*port)];
                damaged(packet, damage);
                packet.truncate(60);
                packet.resize(packet.len().max(40) + usize::from(*payload), b'x');
                correct_checksums(packet);
                let kind = compressor.compress(packet, &mut frame);
                let result = decompressor.decompress(kind, &frame, &mut out);
                if parse(packet).is_ok() {
                    assert_eq!(result, Ok(()));
                    assert_eq!(&out, packet);
                }
            }
            Step::Bytes(bytes) => {
                let kind = compressor.compress(bytes, &mut frame);
                let _ = decompressor.decompress(kind, &frame, &mut out);
            }
            Step::Frame { kind, bytes } => {
                let kind = match kind % 3 {
                    0 => PacketType::Ip,
                    1 => PacketType::UncompressedTcp,
                    _ => PacketType::CompressedTcp,
                };
                if lone.decompress(kind, bytes, &mut out).is_err() {
                    assert!(out.is_empty());
                }
            }
            Step::Loss => lone.error(),
            Step::Tunnel {
                prefix,
                protocol,
                damage,
            } => {
                let mut packet = first(0)[..20].to_vec();
                packet[9] = *protocol;
                packet.extend(&prefix[..usize::from(prefix[0] % 4)]);
                let mut inner = first(1);
                damaged(&mut inner, damage);
                correct_checksums(&mut inner);
                packet.extend(inner);
                let length = packet.len() as u16;
                packet[2..4].copy_from_slice(&length.to_be_bytes());
                packet[10..12].fill(0);
                let sum = checksum(&packet[..20]);
                packet[10..12].copy_from_slice(&sum.to_be_bytes());
                if let Ok(tunnelled) = parse_tunnelled(&packet) {
                    assert!(tunnelled.inner.payload.len() <= packet.len());
                }
            }
        }
    }
}
