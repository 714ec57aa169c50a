use bentpipe_types::{Address, Endpoint, Flags, IpVersion, Packet, PacketStore, Seq};
use proptest::prelude::*;

use super::*;
use crate::{Encoder, NodeAddresses, TcpOptions, parse};

/// Encodes packets of a few connections, each with its own IP identification.
struct Source {
    encoders: Vec<Encoder<NodeAddresses>>,
    packets: PacketStore,
}

#[derive(Clone, Debug, Default)]
struct Segment {
    connection: u8,
    sequence: u32,
    acknowledgment: u32,
    window: u16,
    flags: Flags,
    payload: u16,
    timestamps: Option<(u32, u32)>,
}

impl Source {
    fn new() -> Self {
        Self {
            encoders: vec![Encoder::new(NodeAddresses); 256],
            packets: PacketStore::default(),
        }
    }

    fn bytes(&mut self, segment: &Segment) -> Vec<u8> {
        let end = |address, port| Endpoint {
            address: Address(address),
            port,
        };
        let port = 5000 + u16::from(segment.connection);
        let mut packet = Packet::new(end(1, port), end(2, 80), IpVersion::V4);
        packet.sequence = Seq::new(segment.sequence);
        packet.acknowledgment = Seq::new(segment.acknowledgment);
        packet.window = segment.window;
        packet.flags = segment.flags.with(Flags::ACK);
        packet.payload_length = segment.payload;
        packet.payload_offset = u64::from(segment.sequence);
        let options = TcpOptions {
            timestamps: segment.timestamps,
            ..TcpOptions::default()
        };
        packet.header_length += options.length() as u8;
        if let Some((value, echo)) = segment.timestamps {
            packet.set_timestamps(value, echo);
        }
        let reference = self.packets.insert(packet);
        let mut bytes = Vec::new();
        self.encoders[usize::from(segment.connection)]
            .encode(&self.packets, reference, &mut bytes)
            .expect("a valid packet");
        self.packets.release(reference);
        bytes
    }
}

fn ack(acknowledgment: u32) -> Segment {
    Segment {
        acknowledgment,
        window: 8000,
        ..Segment::default()
    }
}

fn frames(segments: &[Segment]) -> Vec<(PacketType, Vec<u8>)> {
    let mut source = Source::new();
    let mut compressor = Compressor::new(16, true).unwrap();
    let mut decompressor = Decompressor::new(16).unwrap();
    segments
        .iter()
        .map(|segment| {
            let bytes = source.bytes(segment);
            let mut frame = Vec::new();
            let packet_type = compressor.compress(&bytes, &mut frame);
            let mut again = Vec::new();
            decompressor
                .decompress(packet_type, &frame, &mut again)
                .expect("nothing was lost");
            assert_eq!(again, bytes);
            (packet_type, frame)
        })
        .collect()
}

fn sizes(segments: &[Segment]) -> Vec<usize> {
    frames(segments)
        .iter()
        .map(|(_, frame)| frame.len())
        .collect()
}

#[test]
fn an_acknowledgment_is_six_bytes_and_five_where_it_advances_by_little() {
    // Mask, checksum and the advance: zero and two bytes for 1024.
    let acks: Vec<Segment> = (0..4).map(|i| ack(1024 * i)).collect();
    assert_eq!(sizes(&acks), [40, 6, 6, 6]);
    let acks: Vec<Segment> = (0..4).map(|i| ack(100 * i)).collect();
    assert_eq!(sizes(&acks), [40, 4, 4, 4]);
    assert_eq!(frames(&acks)[0].0, PacketType::UncompressedTcp);
    // With a window that shrinks by 1024: three more bytes.
    let acks: Vec<Segment> = (0..3)
        .map(|i| Segment {
            window: 8000 - 1024 * i as u16,
            ..ack(1024 * i)
        })
        .collect();
    assert_eq!(sizes(&acks), [40, 9, 9]);
}

#[test]
fn the_special_cases_are_three_bytes_of_header() {
    let data = |i: u32| Segment {
        sequence: 512 * i,
        payload: 512,
        ..ack(7)
    };
    assert_eq!(sizes(&[data(0), data(1), data(2)]), [552, 515, 515]);
    let echo = |i: u32| Segment {
        sequence: i,
        acknowledgment: i,
        payload: 1,
        window: 100,
        ..Segment::default()
    };
    let frames = frames(&[echo(0), echo(1), echo(2)]);
    assert_eq!(frames[2].1.len(), 4);
    assert_eq!(frames[2].1[0], format::SPECIAL_ECHO);
}

#[test]
fn repeated_or_decreasing_segments_are_sent_uncompressed() {
    let types = |segments: &[Segment]| -> Vec<PacketType> {
        frames(segments).iter().map(|&(t, _)| t).collect()
    };
    let (u, c) = (PacketType::UncompressedTcp, PacketType::CompressedTcp);
    assert_eq!(types(&[ack(1), ack(2), ack(2), ack(3)]), [u, c, u, c]);
    assert_eq!(types(&[ack(2000), ack(1000)]), [u, u]);
    assert_eq!(types(&[ack(0), ack(65_535), ack(131_071)]), [u, c, u]);
    // Data after an acknowledgment with the same numbers: only the length changes.
    let data = Segment {
        payload: 9,
        ..ack(2)
    };
    assert_eq!(types(&[ack(2), data.clone(), data]), [u, c, u]);
    // SYN, FIN and RST.
    let fin = Segment {
        flags: Flags::FIN,
        ..ack(2)
    };
    assert_eq!(types(&[ack(1), fin]), [u, PacketType::Ip]);
    // ECE is set and cleared.
    let ece = |n| Segment {
        flags: Flags::ECE,
        ..ack(n)
    };
    assert_eq!(types(&[ack(1), ece(2), ece(3), ack(4)]), [u, u, c, u]);
}

#[test]
fn timestamps_that_change_are_never_compressed() {
    let stamped = |n, value| Segment {
        timestamps: Some((value, 5)),
        ..ack(n)
    };
    let types: Vec<PacketType> = frames(&[stamped(1, 1), stamped(2, 2), stamped(3, 2)])
        .iter()
        .map(|&(t, _)| t)
        .collect();
    let (u, c) = (PacketType::UncompressedTcp, PacketType::CompressedTcp);
    assert_eq!(types, [u, u, c]);
}

#[test]
fn the_least_recently_used_connection_is_replaced() {
    let on = |connection, number| Segment {
        connection,
        ..ack(number)
    };
    let mut source = Source::new();
    let mut compressor = Compressor::new(2, true).unwrap();
    let mut types = Vec::new();
    for segment in [on(0, 1), on(1, 1), on(0, 2), on(2, 1), on(0, 3), on(1, 2)] {
        let mut frame = Vec::new();
        types.push(compressor.compress(&source.bytes(&segment), &mut frame));
    }
    let (u, c) = (PacketType::UncompressedTcp, PacketType::CompressedTcp);
    assert_eq!(types, [u, u, c, u, c, u]);
    assert!(Compressor::new(0, true).is_err() && Compressor::new(257, true).is_err());
    assert!(Decompressor::new(0).is_err() && Decompressor::new(257).is_err());
}

#[test]
fn frames_after_a_loss_fail_the_checksum_until_an_uncompressed_one() {
    let mut source = Source::new();
    let mut compressor = Compressor::new(16, true).unwrap();
    let mut decompressor = Decompressor::new(16).unwrap();
    let mut results = Vec::new();
    // 3 is lost; 5 is retransmitted, and therefore uncompressed.
    for (i, number) in [1, 2, 3, 4, 5, 5, 6].into_iter().enumerate() {
        let bytes = source.bytes(&ack(1000 * number));
        let mut frame = Vec::new();
        let packet_type = compressor.compress(&bytes, &mut frame);
        if i == 2 {
            continue;
        }
        let mut again = Vec::new();
        decompressor
            .decompress(packet_type, &frame, &mut again)
            .unwrap();
        results.push((parse(&again).is_ok(), again == bytes));
    }
    let (right, wrong) = ((true, true), (false, false));
    assert_eq!(results, [right, right, wrong, wrong, right, right]);
}

#[test]
fn frames_after_a_reported_loss_are_tossed_until_one_with_a_connection_number() {
    let mut source = Source::new();
    let mut compressor = Compressor::new(16, true).unwrap();
    let mut decompressor = Decompressor::new(16).unwrap();
    let mut run = |segment: Segment, lost: bool| {
        let bytes = source.bytes(&segment);
        let mut frame = Vec::new();
        let packet_type = compressor.compress(&bytes, &mut frame);
        if lost {
            decompressor.error();
            return None;
        }
        let mut again = Vec::new();
        Some(
            decompressor
                .decompress(packet_type, &frame, &mut again)
                .map(|()| again == bytes),
        )
    };
    let other = |number| Segment {
        connection: 1,
        ..ack(number)
    };
    assert_eq!(run(ack(1), false), Some(Ok(true)));
    assert_eq!(run(other(1), false), Some(Ok(true)));
    assert_eq!(run(other(2), true), None);
    assert_eq!(run(other(3), false), Some(Err(DecompressError::Tossed)));
    // The other connection is not affected by the loss.
    assert_eq!(run(ack(2), false), Some(Ok(true)));
    assert_eq!(run(ack(3), false), Some(Ok(true)));
    // This connection is, and its checksum shows it.
    assert_eq!(run(other(4), false), Some(Ok(false)));
}

#[test]
fn invalid_frames_are_errors() {
    let mut decompressor = Decompressor::new(4).unwrap();
    let mut packet = Vec::new();
    let mut run = |packet_type, frame: &[u8]| {
        let result = decompressor.decompress(packet_type, frame, &mut packet);
        assert!(packet.is_empty());
        result.unwrap_err()
    };
    let compressed = PacketType::CompressedTcp;
    assert_eq!(run(compressed, &[]), DecompressError::Truncated);
    assert_eq!(run(compressed, &[0x40]), DecompressError::Truncated);
    let unknown = DecompressError::UnknownConnection {
        connection: Some(9),
    };
    assert_eq!(run(compressed, &[0x40, 9, 0, 0]), unknown);
    assert_eq!(run(compressed, &[4, 0, 0, 1]), DecompressError::Tossed);
    assert_eq!(
        run(PacketType::UncompressedTcp, &[0x45; 40]),
        DecompressError::Malformed
    );
}

fn segments() -> impl Strategy<Value = Vec<Segment>> {
    let one = (
        0u8..4,
        prop_oneof![Just(0u32), Just(1), Just(536), Just(1460), any::<u32>()],
        prop_oneof![Just(0u32), Just(1024), 0u32..3000, any::<u32>()],
        prop_oneof![4 => Just(0u16), 1 => any::<u16>()],
        prop_oneof![
            8 => Just(Flags::NONE),
            1 => Just(Flags::PSH),
            1 => Just(Flags::ECE),
            1 => Just(Flags::FIN),
            1 => Just(Flags::SYN),
            1 => Just(Flags::URG)
        ],
        prop_oneof![3 => Just(0u16), 1 => Just(1), 2 => Just(536), 1 => 0u16..1461],
        prop_oneof![4 => Just(None), 1 => (0u32..3, 0u32..3).prop_map(Some)],
    );
    prop::collection::vec(one, 1..60).prop_map(|steps| {
        let mut states = vec![Segment::default(); 4];
        steps
            .into_iter()
            .map(
                |(connection, sent, acknowledged, window, flags, payload, timestamps)| {
                    let state = &mut states[usize::from(connection)];
                    state.connection = connection;
                    state.sequence = state.sequence.wrapping_add(sent);
                    state.acknowledgment = state.acknowledgment.wrapping_add(acknowledged);
                    state.window = state.window.wrapping_add(window);
                    state.flags = flags;
                    state.payload = payload;
                    state.timestamps = timestamps;
                    state.clone()
                },
            )
            .collect()
    })
}

/// Returns the sum that verifies a TCP checksum, pseudo-header included.
fn sum(packet: &[u8]) -> u16 {
    let address = |at: usize| {
        std::net::Ipv4Addr::from_bits(u32::from_be_bytes(packet[at..at + 4].try_into().unwrap()))
    };
    crate::checksum::Sum::default()
        .pseudo_header(address(12).into(), address(16).into(), packet.len() - 20)
        .bytes(&packet[20..])
        .finish()
}

proptest! {
    #[test]
    fn decompressed_packets_equal_the_originals_without_loss(segments in segments(), slots in 1usize..5, omit: bool) {
        let mut source = Source::new();
        let mut compressor = Compressor::new(slots, omit).unwrap();
        let mut decompressor = Decompressor::new(slots).unwrap();
        let (mut frame, mut again) = (Vec::new(), Vec::new());
        for segment in &segments {
            let bytes = source.bytes(segment);
            let packet_type = compressor.compress(&bytes, &mut frame);
            prop_assert!(frame.len() <= bytes.len());
            prop_assert_eq!(decompressor.decompress(packet_type, &frame, &mut again), Ok(()));
            prop_assert_eq!(&again, &bytes);
        }
    }

    #[test]
    fn wrong_headers_are_detected_unless_their_checksum_matches(
        segments in segments(),
        fates in prop::collection::vec(0u8..10, 60),
        reported: bool,
        bits in prop::collection::vec(any::<prop::sample::Index>(), 60),
    ) {
        let mut source = Source::new();
        let mut compressor = Compressor::new(4, true).unwrap();
        let mut decompressor = Decompressor::new(4).unwrap();
        let (mut frame, mut again) = (Vec::new(), Vec::new());
        for (i, segment) in segments.iter().enumerate() {
            let bytes = source.bytes(segment);
            let mut packet_type = compressor.compress(&bytes, &mut frame);
            match fates[i] {
                0 | 1 => {
                    if reported {
                        decompressor.error();
                    }
                    continue;
                }
                2 => {
                    let bit = bits[i].index(frame.len() * 8);
                    frame[bit / 8] ^= 1 << (bit % 8);
                    packet_type = if i % 3 == 0 { PacketType::CompressedTcp } else { packet_type };
                }
                _ => (),
            }
            if decompressor.decompress(packet_type, &frame, &mut again).is_ok()
                && fates[i] != 2 // a flipped payload bit is none of the headers' affairs
                && again != bytes
            {
                // The checksum is the sender's, never recomputed after decoding. A receiver detects
                // errors except those that cancel out in the sum, as always with TCP.
                prop_assert_eq!(&again[36..38], &bytes[36..38]);
                prop_assert_eq!(parse(&again).is_ok(), sum(&again) == 0);
            }
        }
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(
        frames in prop::collection::vec((0u8..3, prop::collection::vec(any::<u8>(), 0..140)), 0..20),
        slots in 1usize..6,
        start in segments(),
    ) {
        let mut source = Source::new();
        let mut compressor = Compressor::new(slots, true).unwrap();
        let mut decompressor = Decompressor::new(slots).unwrap();
        let mut out = Vec::new();
        for segment in start.iter().take(4) {
            let packet_type = compressor.compress(&source.bytes(segment), &mut out);
            let _ = decompressor.decompress(packet_type, &out.clone(), &mut out);
        }
        for (packet_type, frame) in &frames {
            compressor.compress(frame, &mut out);
            let packet_type = [
                PacketType::Ip,
                PacketType::UncompressedTcp,
                PacketType::CompressedTcp,
            ][usize::from(*packet_type)];
            let _ = decompressor.decompress(packet_type, frame, &mut out);
        }
    }
}
