//! Round trips: any packet survives encoding and parsing; any bytes are an error or a packet that
//! survives.

use std::convert::Infallible;
use std::net::IpAddr;

use bentpipe_types::{
    Address, Ecn, Endpoint, FastOpen, Flags, IpVersion, Packet, PacketRef, PacketStore, SackBlock,
    SackBlocks, Seq, SynOptions,
};
use bentpipe_wire::{
    Addressing, EncodeError, Encoder, IpHeader, MAXIMUM_OPTIONS_LENGTH, NodeAddresses, ParseError,
    Parsed, TcpOptions, checksum, parse, parse_ignoring_checksums, payload, tcp_options_length,
};
use proptest::prelude::*;

/// A packet and its options, outside a store.
#[derive(Clone, Debug)]
struct Segment {
    packet: Packet,
    options: TcpOptions,
}

impl Segment {
    fn insert(&self, packets: &mut PacketStore) -> PacketRef {
        let mut packet = self.packet;
        packet.header_length =
            packet.ip_version().header_length() + 20 + self.options.length() as u8;
        if let Some((value, echo)) = self.options.timestamps {
            packet.set_timestamps(value, echo);
        }
        let reference = packets.insert(packet);
        packets.set_syn_options(reference, self.options.syn);
        packets.set_sack_blocks(reference, &self.options.sack_blocks);
        reference
    }
}

fn endpoint() -> impl Strategy<Value = Endpoint> {
    (any::<u16>(), any::<u16>()).prop_map(|(address, port)| Endpoint {
        address: Address(address),
        port,
    })
}

prop_compose! {
    fn options(syn: bool)(
        maximum_segment_size in any::<Option<u16>>(),
        window_scale in any::<Option<u8>>(),
        sack_permitted in any::<bool>(),
        fast_open in any::<Option<(Vec<u8>, bool)>>(),
        timestamps in any::<Option<(u32, u32)>>(),
        sack_blocks in prop::collection::vec(any::<(u32, u32)>(), 0..=4),
    ) -> TcpOptions {
        let block = |(start, end)| SackBlock { start: Seq::new(start), end: Seq::new(end) };
        let syn = if syn {
            let fast_open = fast_open.and_then(|(cookie, experimental)| {
                FastOpen::new(&cookie, experimental)
            });
            SynOptions { maximum_segment_size, window_scale, sack_permitted, fast_open }
        } else {
            SynOptions::default()
        };
        let sack_blocks: SackBlocks = sack_blocks.into_iter().map(block).collect();
        TcpOptions { syn, timestamps, sack_blocks }
    }
}

/// Returns the options with as many SACK blocks as fit.
fn fitting(options: TcpOptions) -> TcpOptions {
    let blocks = options.sack_blocks.as_slice();
    let with = |count| TcpOptions {
        sack_blocks: blocks[..count].iter().copied().collect(),
        ..options
    };
    (0..=blocks.len())
        .rev()
        .map(with)
        .find(|options| options.length() <= MAXIMUM_OPTIONS_LENGTH)
        .expect("all other options fit")
}

prop_compose! {
    fn segment()(flags in any::<u8>().prop_map(Flags))(
        flags in Just(flags),
        options in options(flags.has(Flags::SYN)).prop_map(fitting),
        ends in (endpoint(), endpoint()),
        version in prop_oneof![Just(IpVersion::V4), Just(IpVersion::V6)],
        numbers in any::<(u32, u32, u16)>(),
        payload_length in prop_oneof![Just(0), Just(1), 0u16..3000],
        payload_offset in any::<u64>().prop_map(|n| n >> 1),
        ecn in 0usize..4,
    ) -> Segment {
        let mut packet = Packet::new(ends.0, ends.1, version);
        packet.flags = flags;
        packet.sequence = Seq::new(numbers.0);
        packet.acknowledgment = Seq::new(numbers.1);
        packet.window = numbers.2;
        packet.payload_length = payload_length;
        packet.payload_offset = payload_offset;
        packet.set_ecn([Ecn::NotCapable, Ecn::Capable1, Ecn::Capable0, Ecn::Congestion][ecn]);
        Segment { packet, options }
    }
}

fn encoded(segment: &Segment) -> Vec<u8> {
    let mut packets = PacketStore::default();
    let reference = segment.insert(&mut packets);
    let mut bytes = Vec::new();
    Encoder::new(NodeAddresses)
        .encode(&packets, reference, &mut bytes)
        .expect("a valid packet has bytes");
    bytes
}

/// Returns the parts of a packet that a record preserves.
fn kept<'a>(parsed: &Parsed<'a>) -> impl PartialEq + std::fmt::Debug + use<'a> {
    let tcp = parsed.tcp;
    (
        (parsed.ip.source(), parsed.ip.destination(), parsed.ip.ecn()),
        (tcp.source_port, tcp.destination_port, tcp.flags, tcp.window),
        (tcp.sequence, tcp.acknowledgment, tcp.options),
        parsed.payload,
    )
}

/// Addresses by node number.
#[derive(Default)]
struct AddressTable(Vec<IpAddr>);

impl Addressing for AddressTable {
    fn ip_address(&self, address: Address, _: IpVersion) -> Option<IpAddr> {
        self.0.get(usize::from(address.0)).copied()
    }
}

/// Stores a parsed packet, encodes it with its payload, and parses the result.
fn assert_survives(parsed: &Parsed<'_>) -> Result<(), TestCaseError> {
    let mut packets = PacketStore::default();
    let mut table = AddressTable::default();
    let reference = parsed.insert(&mut packets, |ip| {
        table.0.push(ip);
        Ok::<_, Infallible>(Address(table.0.len() as u16 - 1))
    });
    let reference = reference.expect("nodes for both addresses");
    let mut bytes = Vec::new();
    Encoder::new(table)
        .encode_with(&packets, reference, &mut bytes, |_, out| {
            out.copy_from_slice(parsed.payload);
        })
        .expect("what was parsed has bytes");
    let again = parse(&bytes).map_err(|e| TestCaseError::fail(format!("{e}: {bytes:02x?}")))?;
    prop_assert_eq!(kept(parsed), kept(&again));
    prop_assert_eq!(packets.get(reference).length().get(), bytes.len() as u64);
    Ok(())
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None, // a failure prints the packet
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn packets_are_equal_after_encoding_and_parsing(segment in segment()) {
        let bytes = encoded(&segment);
        let parsed = parse(&bytes).unwrap();
        prop_assert_eq!(parsed.header_length, bytes.len() - parsed.payload.len());
        prop_assert_eq!(parsed.tcp.options, segment.options);
        prop_assert_eq!(parsed.tcp.urgent_pointer, 0);
        let offset = segment.packet.payload_offset;
        prop_assert_eq!(payload::first_difference(offset, parsed.payload), None);

        let mut packets = PacketStore::default();
        let node = |ip: IpAddr| NodeAddresses::node(ip).ok_or(ip);
        let sent = segment.insert(&mut packets);
        let received = parsed.insert(&mut packets, node).unwrap();
        packets.get_mut(received).payload_offset = offset;
        prop_assert_eq!(TcpOptions::of(&packets, received), segment.options);
        prop_assert_eq!(packets.get(sent).length(), packets.get(received).length());
        // The records differ only in where their options are stored.
        let plain = |reference: PacketRef| {
            let packet = packets.get(reference);
            let mut plain = Packet::new(packet.source, packet.destination, packet.ip_version());
            plain.sequence = packet.sequence;
            plain.acknowledgment = packet.acknowledgment;
            plain.window = packet.window;
            plain.payload_length = packet.payload_length;
            plain.header_length = packet.header_length;
            plain.flags = packet.flags;
            plain.payload_offset = packet.payload_offset;
            plain.set_ecn(packet.ecn());
            plain
        };
        prop_assert_eq!(plain(sent), plain(received));
        assert_survives(&parsed)?;
    }

    #[test]
    fn truncated_packets_are_reported_as_truncated(segment in segment(), at in any::<prop::sample::Index>()) {
        let bytes = encoded(&segment);
        let cut = parse(&bytes[..at.index(bytes.len())]);
        prop_assert!(matches!(cut, Err(ParseError::Truncated { .. })), "{:?}", cut);
    }

    #[test]
    fn bytes_after_a_packet_are_ignored(segment in segment(), more in any::<[u8; 7]>()) {
        let bytes = encoded(&segment);
        let longer = [&bytes[..], &more].concat();
        prop_assert_eq!(parse(&longer), parse(&bytes));
    }

    #[test]
    fn a_single_bit_error_is_detected(segment in segment(), bit in any::<prop::sample::Index>()) {
        let mut bytes = encoded(&segment);
        let bit = bit.index(8 * bytes.len());
        bytes[bit / 8] ^= 0x80 >> (bit % 8);
        // No checksum covers these fields of an IPv6 header: traffic class, flow label, hop limit.
        let unguarded = segment.packet.ip_version() == IpVersion::V6
            && (4..32).contains(&bit) | (56..64).contains(&bit);
        prop_assert_eq!(parse(&bytes).is_err(), !unguarded, "{:?}", parse(&bytes));
    }

    #[test]
    fn an_edited_field_needs_no_full_sum(segment in segment(), acknowledgment in any::<u32>()) {
        let mut bytes = encoded(&segment);
        let parsed = parse(&bytes).unwrap();
        let old = parsed.tcp.acknowledgment.get();
        let tcp = usize::from(parsed.ip.version().header_length());
        let sum = u16::from_be_bytes([bytes[tcp + 16], bytes[tcp + 17]]);
        let sum = checksum::update_u32(sum, old, acknowledgment);
        bytes[tcp + 8..tcp + 12].copy_from_slice(&acknowledgment.to_be_bytes());
        bytes[tcp + 16..tcp + 18].copy_from_slice(&sum.to_be_bytes());
        prop_assert_eq!(parse(&bytes).unwrap().tcp.acknowledgment.get(), acknowledgment);
        // The incremental checksum equals the full one.
        let mut edited = segment.clone();
        edited.packet.acknowledgment = Seq::new(acknowledgment);
        prop_assert_eq!(bytes, encoded(&edited));
    }
}

proptest! {
    #![proptest_config(cases(20_000))]

    #[test]
    fn any_bytes_are_an_error_or_a_packet(
        // Most random bytes fail at the first field. These go further: option kinds and lengths, a
        // plausible start, and then the fields that make it TCP.
        mut bytes in prop::collection::vec(
            prop_oneof![3 => 0u8..6, 1 => Just(8), 1 => Just(10), 1 => any::<u8>()],
            0..200,
        ),
        first in prop_oneof![Just(0x45u8), Just(0x46), Just(0x4f), Just(0x60), any::<u8>()],
        as_tcp in any::<bool>(),
        data_offset in any::<u8>(),
    ) {
        let length = bytes.len() as u16;
        if let Some(byte) = bytes.first_mut() {
            *byte = first;
        }
        if as_tcp && bytes.len() >= 54 {
            if first >> 4 == 4 {
                bytes[2..4].copy_from_slice(&length.to_be_bytes());
                bytes[6] &= 0x40;
                bytes[7] = 0;
                bytes[9] = 6;
            } else {
                bytes[4..6].copy_from_slice(&(length - 40).to_be_bytes());
                bytes[6] = 6;
            }
            // Correct for the usual IP header lengths, three times in four.
            let tcp = if first >> 4 == 4 { 4 * usize::from(first & 0x0f) } else { 40 };
            if data_offset & 3 != 0 && tcp + 12 < bytes.len() {
                bytes[tcp + 12] = 0x50 + (data_offset & 0xf0) % 0xb0;
            }
        }
        let _ = parse(&bytes);
        if let Ok(parsed) = parse_ignoring_checksums(&bytes) {
            assert_survives(&parsed)?;
        }
    }

    #[test]
    fn a_mutated_packet_is_an_error_or_a_packet(
        segment in segment(),
        mutations in prop::collection::vec(
            // The headers are within the first 100 bytes.
            (any::<prop::sample::Index>(), prop_oneof![Just(0), Just(0xff), any::<u8>()]),
            1..6,
        ),
        cut in any::<Option<prop::sample::Index>>(),
    ) {
        let mut bytes = encoded(&segment);
        for (at, value) in mutations {
            let at = at.index(bytes.len().min(100));
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let checked = parse(&bytes);
        let unchecked = parse_ignoring_checksums(&bytes);
        match checked {
            Ok(parsed) => prop_assert_eq!(Ok(parsed), unchecked),
            Err(error) if !error.is_checksum() => prop_assert_eq!(Err(error), unchecked),
            Err(_) => (), // a checksum, in front of whatever else is wrong
        }
        if let Ok(parsed) = unchecked {
            assert_survives(&parsed)?;
        }
    }
}

fn plain(version: IpVersion) -> Segment {
    Segment {
        packet: Packet::new(Endpoint::default(), Endpoint::default(), version),
        options: TcpOptions::default(),
    }
}

fn reseal_ipv4(bytes: &mut [u8]) {
    bytes[10..12].fill(0);
    let header = usize::from(bytes[0] & 0x0f) * 4;
    let sum = checksum::checksum(&bytes[..header]);
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
}

#[test]
fn parse_errors_name_the_field_and_its_position() {
    let four = encoded(&plain(IpVersion::V4));
    let six = encoded(&plain(IpVersion::V6));
    let edited = |bytes: &[u8], edits: &[(usize, u8)]| {
        let mut bytes = bytes.to_vec();
        for &(at, value) in edits {
            bytes[at] = value;
        }
        if bytes[0] >> 4 == 4 && bytes[0] & 0x0f == 5 {
            reseal_ipv4(&mut bytes);
        }
        bytes
    };
    let message = |bytes: &[u8]| parse(bytes).unwrap_err().to_string();
    for (bytes, expected) in [
        (vec![], "IP: 1 bytes needed, 0 bytes there"),
        (four[..19].to_vec(), "IP: 20 bytes needed, 19 bytes there"),
        (four[..39].to_vec(), "IP: 40 bytes needed, 39 bytes there"),
        (six[..59].to_vec(), "IP: 60 bytes needed, 59 bytes there"),
        (
            edited(&four, &[(0, 0x55)]),
            "byte 0: IP version 5, not 4 or 6",
        ),
        (
            edited(&four, &[(0, 0x44)]),
            "byte 0: IPv4 header length 16, less than 20",
        ),
        (
            edited(&four, &[(3, 19)]),
            "byte 2: IPv4 total length 19, less than the header's 20",
        ),
        (
            edited(&four, &[(3, 39)]),
            "TCP: 20 bytes needed, 19 bytes there",
        ),
        (
            edited(&four, &[(6, 0x20)]),
            "byte 6: fragment at offset 0, more follow",
        ),
        (
            edited(&four, &[(7, 185)]),
            "byte 6: fragment at offset 1480, the last",
        ),
        // A fragment header: next header, reserved byte, offset.
        (
            edited(&six, &[(6, 44), (42, 5), (43, 0xa8)]),
            "byte 42: fragment at offset 1448, the last",
        ),
        (
            edited(&six, &[(6, 44), (42, 0), (43, 1)]),
            "byte 42: fragment at offset 0, more follow",
        ),
        (
            edited(&six, &[(6, 44)])[..47].to_vec(),
            "IP: 48 bytes needed, 47 bytes there",
        ),
        (edited(&four, &[(9, 17)]), "byte 9: protocol 17, not TCP"),
        (edited(&six, &[(6, 0)]), "byte 6: protocol 0, not TCP"),
    ] {
        assert_eq!(message(&bytes), expected);
    }
    let mut wrong = four.clone();
    wrong[8] = 63;
    assert!(message(&wrong).starts_with("byte 10: IPv4 checksum 0x"));
    assert!(parse(&wrong).unwrap_err().is_checksum());
    assert!(parse_ignoring_checksums(&wrong).is_ok());
    let mut wrong = six.clone();
    let Err(ParseError::TcpChecksum {
        at,
        found,
        expected,
    }) = ({
        wrong[56] ^= 0x80;
        parse(&wrong)
    })
    else {
        panic!("a wrong checksum");
    };
    assert_eq!((at, found), (56, expected ^ 0x8000));
    assert!(parse_ignoring_checksums(&wrong).is_ok());
    for (words, length) in [(4, 16), (6, 24), (15, 60)] {
        let mut wrong = four.clone();
        wrong[32] = words << 4;
        let at = 32;
        let error = ParseError::DataOffset {
            at,
            length,
            segment: 20,
        };
        assert_eq!(parse_ignoring_checksums(&wrong), Err(error));
    }
}

#[test]
fn ipv4_options_are_skipped() {
    let mut bytes = encoded(&plain(IpVersion::V4));
    bytes.splice(20..20, [1, 1, 1, 0]);
    bytes[0] = 0x46;
    bytes[3] += 4;
    reseal_ipv4(&mut bytes);
    let parsed = parse(&bytes).unwrap();
    assert_eq!(parsed.header_length, 44);
    assert!(parsed.payload.is_empty());
}

#[test]
fn the_ip_header_equals_that_of_linux() {
    let mut packets = PacketStore::default();
    let mut encoder = Encoder::new(NodeAddresses);
    let mut bytes = Vec::new();
    for identification in 1..=3 {
        let packet = plain(IpVersion::V4).insert(&mut packets);
        encoder.encode(&packets, packet, &mut bytes).unwrap();
        let IpHeader::V4(header) = parse(&bytes).unwrap().ip else {
            panic!("version 4");
        };
        assert_eq!(header.identification, identification);
        assert!(header.dont_fragment);
        assert_eq!(header.time_to_live, 64);
        assert_eq!(header.dscp, 0);
    }
}

#[test]
fn an_encoding_buffer_is_reused() {
    let mut packets = PacketStore::default();
    let mut segment = plain(IpVersion::V6);
    segment.packet.payload_length = 1440;
    let packet = segment.insert(&mut packets);
    let mut encoder = Encoder::new(NodeAddresses);
    let mut bytes = Vec::with_capacity(1500);
    let (start, capacity) = (bytes.as_ptr(), bytes.capacity());
    for _ in 0..100 {
        encoder.encode(&packets, packet, &mut bytes).unwrap();
        assert_eq!(bytes.len(), 1500);
        assert_eq!((bytes.as_ptr(), bytes.capacity()), (start, capacity));
    }
}

#[test]
fn a_corrupt_fragment_has_one_flipped_bit_after_its_header() {
    let mut packets = PacketStore::default();
    let mut segment = plain(IpVersion::V4);
    segment.packet.payload_length = 1440;
    let packet = segment.insert(&mut packets);
    let mut pieces = Vec::new();
    packets.divide(packet, 1000, &mut pieces);
    let mut encoder = Encoder::new(NodeAddresses);
    let (mut sound, mut wrong) = (Vec::new(), Vec::new());
    encoder.encode(&packets, pieces[0], &mut sound).unwrap();
    packets.corrupt(pieces[0]);
    encoder.encode(&packets, pieces[0], &mut wrong).unwrap();
    assert_eq!(sound.len(), 996);
    wrong[995] ^= 1;
    assert_eq!(sound, wrong);
}

/// An IPv4 total length includes the header, an IPv6 payload length does not.
#[test]
fn the_longest_datagrams_are_encoded_and_longer_ones_refused() {
    const UDP: u8 = 17;
    let ends = [1, 2].map(|port| Endpoint {
        address: Address(port),
        port,
    });
    for (version, longest) in [(IpVersion::V4, 65_507), (IpVersion::V6, 65_527)] {
        let mut packets = PacketStore::default();
        let mut packet = Packet::datagram(ends[0], ends[1], version, UDP);
        packet.payload_length = longest;
        let reference = packets.insert(packet);
        let mut bytes = Vec::new();
        let mut encoder = Encoder::new(NodeAddresses);
        assert_eq!(encoder.encode(&packets, reference, &mut bytes), Ok(()));
        let header = usize::from(version.header_length());
        assert_eq!(bytes.len(), header + 8 + usize::from(longest));
        packets.get_mut(reference).payload_length += 1;
        let length = bytes.len() + 1;
        let refused = Err(EncodeError::TooLong { length });
        assert_eq!(encoder.encode(&packets, reference, &mut bytes), refused);
    }
}

#[test]
fn an_inconsistent_packet_cannot_be_encoded() {
    let mut packets = PacketStore::default();
    let mut bytes = vec![1];
    let mut encode = |packets: &PacketStore, packet| {
        Encoder::new(NodeAddresses).encode(packets, packet, &mut bytes)
    };

    let packet = plain(IpVersion::V4).insert(&mut packets);
    packets.get_mut(packet).set_timestamps(1, 2); // and not counted
    let error = EncodeError::HeaderLength {
        recorded: 40,
        encoded: 52,
    };
    assert_eq!(encode(&packets, packet), Err(error));

    let packet = plain(IpVersion::V4).insert(&mut packets);
    packets.get_mut(packet).payload_length = u16::MAX;
    assert_eq!(
        encode(&packets, packet),
        Err(EncodeError::TooLong { length: 65575 })
    );
    packets.get_mut(packet).payload_length = u16::MAX - 40;
    assert_eq!(encode(&packets, packet), Ok(()));

    let block = SackBlock::default();
    let packet = plain(IpVersion::V4).insert(&mut packets);
    packets.set_sack_blocks(packet, &[block; 4].into_iter().collect());
    packets.get_mut(packet).set_timestamps(1, 2);
    packets.get_mut(packet).header_length = 84;
    let length = tcp_options_length(SynOptions::default(), true, 4);
    assert_eq!(
        encode(&packets, packet),
        Err(EncodeError::OptionsTooLong { length })
    );

    let packet = plain(IpVersion::V4).insert(&mut packets);
    let mut bytes = vec![1];
    assert_eq!(
        Encoder::new(AddressTable::default()).encode(&packets, packet, &mut bytes),
        Err(EncodeError::NoIpAddress {
            address: Address(0),
            version: IpVersion::V4
        })
    );
    assert!(bytes.is_empty());
}
