//! tshark as a witness of return links: packets in tunnels, and RFC 1144 headers, which it
//! decompresses itself.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::witness::tshark_is_missing;
use bentpipe_types::{
    Address, Compaction, Endpoint, Flags, IpVersion, Packet, PacketRef, PacketStore, Seq, Tunnel,
};
use bentpipe_wire::vj::{Compressor, PacketType};
use bentpipe_wire::{Encoder, NodeAddresses};

/// LINKTYPE_RAW: packets begin with their IP header.
const RAW: u32 = 101;
/// LINKTYPE_PPP_WITH_DIR: a direction byte, then PPP. tshark decompresses only with a direction.
const PPP_WITH_DIRECTION: u32 = 204;

/// A capture file of these packets in the classic format, which supports any link type.
fn capture(name: &str, link_type: u32, packets: &[Vec<u8>]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut file = File::create(&path).expect("a file");
    let mut header = Vec::new();
    header.extend_from_slice(&0xa1b2_c3d4_u32.to_le_bytes());
    header.extend_from_slice(&2_u16.to_le_bytes());
    header.extend_from_slice(&4_u16.to_le_bytes());
    for word in [0, 0, 65_535, link_type] {
        header.extend_from_slice(&u32::to_le_bytes(word));
    }
    file.write_all(&header).expect("written");
    for (i, packet) in packets.iter().enumerate() {
        let length = packet.len() as u32;
        for word in [1_700_000_000 + i as u32, 0, length, length] {
            file.write_all(&word.to_le_bytes()).expect("written");
        }
        file.write_all(packet).expect("written");
    }
    path
}

fn fields(path: &Path, fields: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    command.arg("-n").arg("-r").arg(path).args([
        "-o",
        "tcp.relative_sequence_numbers:FALSE",
        "-o",
        "tcp.check_checksum:TRUE",
        "-o",
        "ip.check_checksum:TRUE",
        "-T",
        "fields",
    ]);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output().expect("tshark runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| line.split('\t').map(String::from).collect())
        .collect()
}

fn packet(version: IpVersion, sequence: u32, acknowledgment: u32, payload: u16) -> Packet {
    let end = |address, port| Endpoint {
        address: Address(address),
        port,
    };
    let mut packet = Packet::new(end(1, 49_152), end(2, 50_000), version);
    packet.flags = Flags::ACK;
    packet.sequence = Seq::new(sequence);
    packet.acknowledgment = Seq::new(acknowledgment);
    packet.window = 8000;
    packet.payload_length = payload;
    packet
}

fn encode(packets: &PacketStore, packet: PacketRef) -> Vec<u8> {
    let mut bytes = Vec::new();
    Encoder::new(NodeAddresses)
        .encode(packets, packet, &mut bytes)
        .expect("a valid packet");
    bytes
}

#[test]
fn a_packet_in_a_tunnel_has_two_headers() {
    if tshark_is_missing() {
        return;
    }
    let mut packets = PacketStore::default();
    let mut tunnelled = |version, compaction: Option<Compaction>| {
        let packet = packets.insert(packet(version, 7, 9, 3));
        let tunnel = Tunnel {
            source: Address(10),
            destination: Address(20),
        };
        packets.set_tunnel(packet, Some(tunnel));
        packets.set_compaction(packet, compaction);
        packets.get_mut(packet).header_length += if compaction.is_some() { 23 } else { 20 };
        encode(&packets, packet)
    };
    let compaction = Compaction {
        count: 3,
        bytes: 3072,
    };
    let sent = [
        tunnelled(IpVersion::V4, None),
        tunnelled(IpVersion::V6, None),
        tunnelled(IpVersion::V4, Some(compaction)),
    ];
    let path = capture("tunnel.pcap", RAW, &sent);
    let names = [
        "ip.src",
        "ip.proto",
        "ip.len",
        "ip.checksum.status",
        "ipv6.src",
        "tcp.ack",
        "tcp.len",
        "tcp.checksum.status",
        "data.data",
    ];
    let read = fields(&path, &names);
    assert_eq!(
        read[0],
        [
            "10.0.0.11,10.0.0.2",
            "4,6",
            "63,43",
            "1,1",
            "",
            "9",
            "3",
            "1",
            "6f4d5d"
        ]
    );
    assert_eq!(
        read[1],
        [
            "10.0.0.11",
            "41",
            "83",
            "1",
            "fd00::2",
            "9",
            "3",
            "1",
            "6f4d5d"
        ]
    );
    // tshark does not know the compactor's data: three bytes, then the inner packet.
    assert_eq!(read[2][..4], ["10.0.0.11", "253", "66", "1"]);
    assert!(read[2][8].starts_with("030c0045"), "{:?}", read[2]);
}

#[test]
fn compressed_packets_are_restored_by_an_independent_decompressor() {
    if tshark_is_missing() {
        return;
    }
    let mut packets = PacketStore::default();
    let mut encoder = Encoder::new(NodeAddresses);
    let mut compressor = Compressor::new(16, true).expect("sixteen connections");
    let mut frames = Vec::new();
    let mut expected = Vec::new();
    let mut types = Vec::new();
    let (mut sequence, mut acknowledgment) = (0xffff_fff0_u32, 77_000_u32);
    // Acknowledgments, windows, one-way data, echoes, both, a repetition, a push.
    let steps = [
        (0, 0, 0, 0, 8000),
        (0, 1024, 0, 0, 8000),
        (0, 100, 0, 0, 8000),
        (0, 1024, 0, 0, 6976),
        (0, 0, 0, 0, 6976),
        (0, 65_535, 0, 0, 6976),
        (0, 65_536, 0, 0, 6976),
        (0, 0, 512, 0, 6976),
        (512, 0, 512, 0, 6976),
        (512, 0, 1, 8, 6976),
        (1, 1, 1, 8, 6976),
        (1, 1, 0, 0, 6976),
        (300, 700, 20, 0, 9000),
    ];
    for (sent, acknowledged, payload, push, window) in steps {
        sequence = sequence.wrapping_add(sent);
        acknowledgment = acknowledgment.wrapping_add(acknowledged);
        let mut packet = packet(IpVersion::V4, sequence, acknowledgment, payload);
        packet.window = window;
        packet.flags = packet.flags.with(Flags(push));
        let packet = packets.insert(packet);
        let mut bytes = Vec::new();
        encoder
            .encode(&packets, packet, &mut bytes)
            .expect("a valid packet");
        let mut compressed = Vec::new();
        let packet_type = compressor.compress(&bytes, &mut compressed);
        // RFC 1332 section 4: the PPP protocol is the frame type. The first byte means sent.
        let protocol = match packet_type {
            PacketType::Ip => 0x0021_u16,
            PacketType::UncompressedTcp => 0x002f,
            PacketType::CompressedTcp => 0x002d,
        };
        let mut frame = vec![1];
        frame.extend_from_slice(&protocol.to_be_bytes());
        frame.extend_from_slice(&compressed);
        frames.push(frame);
        types.push(packet_type);
        expected.push(vec![
            "10.0.0.2".to_owned(),
            "10.0.0.3".to_owned(),
            format!("{:#06x}", frames.len()),
            "49152".to_owned(),
            sequence.to_string(),
            acknowledgment.to_string(),
            format!("{:#06x}", 0x10 | push),
            window.to_string(),
            payload.to_string(),
            "1".to_owned(),
        ]);
    }
    let path = capture("vj.pcap", PPP_WITH_DIRECTION, &frames);
    let names = [
        "ip.src",
        "ip.dst",
        "ip.id",
        "tcp.srcport",
        "tcp.seq",
        "tcp.ack",
        "tcp.flags",
        "tcp.window_size_value",
        "tcp.len",
        "tcp.checksum.status",
    ];
    let read = fields(&path, &names);
    for (i, expected) in expected.iter().enumerate() {
        assert_eq!(&read[i], expected, "packet {i}, {:?}", types[i]);
    }
    let compressed = types
        .iter()
        .filter(|&&packet_type| packet_type == PacketType::CompressedTcp)
        .count();
    assert_eq!(compressed, 10);
}

/// tshark reassembles fragments by offset and identification and finds a correct TCP checksum: of a
/// plain packet, of one in a tunnel, and of fragments of fragments, in any order.
#[test]
fn tshark_reassembles_fragments() {
    if tshark_is_missing() {
        return;
    }
    let mut store = PacketStore::default();
    let end = |address| Endpoint {
        address: Address(address),
        port: 80,
    };
    let tunnel = Tunnel {
        source: Address(5),
        destination: Address(6),
    };
    let mut encoder = Encoder::new(NodeAddresses);
    let mut written = Vec::new();
    for (number, tunnelled) in [false, true, false].into_iter().enumerate() {
        let mut record = Packet::new(end(1), end(2), IpVersion::V4);
        record.flags = Flags::ACK;
        record.sequence = Seq::new(1000 + 1460 * number as u32);
        record.payload_length = 1460;
        record.payload_offset = 1460 * number as u64;
        let whole = store.insert(record);
        if tunnelled {
            store.set_tunnel(whole, Some(tunnel));
            store.get_mut(whole).header_length += 20;
        }
        let (mut coarse, mut pieces) = (Vec::new(), Vec::new());
        store.divide(whole, 1006, &mut coarse);
        for piece in coarse {
            store.divide(piece, 400, &mut pieces);
        }
        pieces.reverse();
        for piece in pieces {
            let mut bytes = Vec::new();
            encoder.encode(&store, piece, &mut bytes).expect("a piece");
            assert_eq!(bytes.len() as u64, store.get(piece).length().get());
            written.push(bytes);
        }
    }
    let path = capture("fragments.pcap", RAW, &written);
    let seen = fields(
        &path,
        &[
            "ip.frag_offset",
            "ip.reassembled.length",
            "ip.checksum.status",
            "tcp.len",
            "tcp.checksum.status",
        ],
    );
    // Five fragments each, the first one last: it completes the packet.
    assert_eq!(seen.len(), 15);
    for (at, line) in seen.iter().enumerate() {
        assert!(line[2].split(',').all(|status| status == "1"), "{line:?}");
        let last = at % 5 == 4;
        let tunnelled = at / 5 == 1;
        let length = if tunnelled { "1500" } else { "1480" };
        assert_eq!(line[1], if last { length } else { "" }, "{line:?}");
        assert_eq!(line[3], if last { "1460" } else { "" }, "{line:?}");
        assert_eq!(line[4], if last { "1" } else { "" }, "{line:?}");
    }
}
