//! A corrupted packet keeps its length and has a wrong checksum.

use std::net::IpAddr;

use bentpipe_types::{
    Address, Endpoint, Flags, IpVersion, Packet, PacketRef, PacketStore, SackBlock, Seq,
};
use bentpipe_wire::{Encoder, NodeAddresses, ParseError, checksum, parse, parse_ip};

fn ends() -> [Endpoint; 2] {
    let end = |address, port| Endpoint {
        address: Address(address),
        port,
    };
    [end(1, 49_152), end(2, 5_001)]
}

fn encoded(packets: &PacketStore, packet: PacketRef) -> Vec<u8> {
    let mut bytes = Vec::new();
    let written = Encoder::new(NodeAddresses).encode(packets, packet, &mut bytes);
    written.expect("the packet is sound");
    bytes
}

fn segment(packets: &mut PacketStore, version: IpVersion, payload: u16) -> PacketRef {
    let [source, destination] = ends();
    let mut packet = Packet::new(source, destination, version);
    packet.flags = Flags::ACK;
    packet.payload_length = payload;
    packet.header_length += 12;
    packet.set_timestamps(3, 4);
    let packet = packets.insert(packet);
    if payload == 0 {
        let blocks = (0..4).map(|i| SackBlock {
            start: Seq::new(100 * i),
            end: Seq::new(100 * i + 50),
        });
        packets.set_sack_blocks(packet, &blocks.take(3).collect());
        packets.get_mut(packet).header_length += 28;
    }
    packet
}

#[test]
fn a_segment_fails_its_checksum() {
    for version in [IpVersion::V4, IpVersion::V6] {
        for payload in [0, 1, 1448] {
            let mut packets = PacketStore::default();
            let packet = segment(&mut packets, version, payload);
            let whole = encoded(&packets, packet);
            parse(&whole).expect("it is whole");
            packets.corrupt(packet);
            let record = *packets.get(packet);
            assert!(record.is_corrupt() && !record.is_tcp());
            assert_eq!(record.protocol(), 6);
            let bytes = encoded(&packets, packet);
            assert_eq!(bytes.len(), whole.len());
            let said = parse(&bytes).expect_err("it is not");
            assert!(matches!(said, ParseError::TcpChecksum { .. }), "{said:?}");
            let ip = parse_ip(&bytes).expect("its IP header is");
            assert_eq!((ip.protocol, ip.total_length), (6, whole.len()));
            packets.release(packet);
            assert_eq!(packets.references(), 0);
        }
    }
}

#[test]
fn a_datagram_fails_its_checksum() {
    for length in 0..200 {
        let mut packets = PacketStore::default();
        let [source, destination] = ends();
        let mut packet = Packet::datagram(source, destination, IpVersion::V4, 17);
        packet.payload_length = length;
        let packet = packets.insert(packet);
        packets.corrupt(packet);
        let bytes = encoded(&packets, packet);
        let address = |at: usize| -> IpAddr {
            let four: [u8; 4] = bytes[at..at + 4].try_into().expect("four");
            four.into()
        };
        // With the pseudo-header, a correct checksum gives a sum of all ones.
        let length = (bytes.len() - 20) as u16;
        let mut pseudo = [&bytes[12..20], &[0, 17], &length.to_be_bytes()].concat();
        pseudo.extend(&bytes[20..]);
        let sum = checksum::checksum(&pseudo);
        assert_ne!(sum, 0, "{} > {}", address(12), address(16));
    }
}

#[test]
fn corruption_of_a_real_packet_flips_one_bit_and_leaves_copies_intact() {
    let mut packets = PacketStore::default();
    let made = segment(&mut packets, IpVersion::V4, 100);
    let bytes = encoded(&packets, made);
    let record = *packets.get(made);
    let packet = packets
        .insert_with_bytes(record, &bytes)
        .expect("there is room");
    let copy = packets.duplicate(packet);
    packets.corrupt(packet);
    let broken = encoded(&packets, packet);
    let differ = broken.iter().zip(&bytes).map(|(a, b)| (a ^ b).count_ones());
    assert_eq!(differ.sum::<u32>(), 1);
    assert!(parse(&broken).is_err());
    assert_eq!(encoded(&packets, copy), bytes);
}
