use std::net::IpAddr;

use bentpipe_types::{
    Address, Ecn, Flags, IpVersion, Packet, PacketRef, PacketStore, SackBlock, Seq, Tunnel,
};
use proptest::prelude::*;

use crate::checksum::{Sum, checksum};
use crate::{
    Encoder, NodeAddresses, Parsed, insert, is_multipath, parse, parse_ip, parse_tunnelled,
};

const NODES: (Address, Address) = (Address(1), Address(2));

/// Stores the bytes as a packet between two nodes.
fn stored(packets: &mut PacketStore, bytes: &[u8]) -> PacketRef {
    insert(bytes, packets, NODES.0, |_, _| Some(NODES.1)).expect("a packet")
}

fn encoded(packets: &PacketStore, packet: PacketRef) -> Vec<u8> {
    let mut bytes = Vec::new();
    Encoder::new(NodeAddresses)
        .encode(packets, packet, &mut bytes)
        .expect("bytes");
    bytes
}

/// A received packet; every field that a network must not change is random.
#[derive(Clone, Debug)]
struct Made {
    v4: bool,
    protocol: u8,
    traffic_class: u8,
    flow_label_or_identification: u16,
    fragment: u16,
    hop_limit: u8,
    ip_options: Vec<u8>,
    carried: Vec<u8>,
}

impl Made {
    fn addresses(&self) -> (IpAddr, IpAddr) {
        if self.v4 {
            ([192, 0, 2, 1].into(), [198, 51, 100, 7].into())
        } else {
            let [mut source, mut destination] = [[0; 16]; 2];
            (source[0], source[15]) = (0x20, 1);
            (destination[0], destination[15]) = (0x20, 9);
            (source.into(), destination.into())
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let [a, b] = self.flow_label_or_identification.to_be_bytes();
        let [c, d] = self.fragment.to_be_bytes();
        match self.addresses() {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let header = 20 + self.ip_options.len();
                let [high, low] = ((header + self.carried.len()) as u16).to_be_bytes();
                bytes.extend([0x40 | (header / 4) as u8, self.traffic_class, high, low]);
                bytes.extend([a, b, c, d, self.hop_limit, self.protocol, 0, 0]);
                bytes.extend(source.octets());
                bytes.extend(destination.octets());
                bytes.extend(&self.ip_options);
                let sum = checksum(&bytes).to_be_bytes();
                bytes[10..12].copy_from_slice(&sum);
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let class = self.traffic_class;
                let [high, low] = (self.carried.len() as u16).to_be_bytes();
                bytes.extend([0x60 | class >> 4, class << 4 | a & 0x0f, b, c]);
                bytes.extend([high, low, self.protocol, self.hop_limit]);
                bytes.extend(source.octets());
                bytes.extend(destination.octets());
            }
            _ => unreachable!("one version"),
        }
        bytes.extend(&self.carried);
        bytes
    }
}

/// A TCP segment with these options and payload and a correct checksum.
fn segment(addresses: (IpAddr, IpAddr), options: &[u8], reserved: u8, payload: &[u8]) -> Vec<u8> {
    let length = 20 + options.len();
    let mut bytes = vec![0x12, 0x34, 0, 80, 1, 2, 3, 4, 5, 6, 7, 8];
    bytes.extend([((length / 4) << 4) as u8 | reserved & 0x0f, 0x10, 0x20, 0]);
    bytes.extend([0, 0, 0xbe, 0xef]);
    bytes.extend(options);
    bytes.extend(payload);
    let sum = Sum::default()
        .pseudo_header(addresses.0, addresses.1, bytes.len())
        .bytes(&bytes)
        .finish()
        .to_be_bytes();
    bytes[16..18].copy_from_slice(&sum);
    bytes
}

/// Timestamps, one SACK block, and an unknown option, in this order.
const OPTIONS: [u8; 36] = [
    1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 7, 1, 1, 5, 10, 0, 0, 0, 100, 0, 0, 0, 200, 0xfd, 4, 0xab,
    0xcd, 0x1e, 6, 1, 2, 3, 4, 1, 1,
];

fn made_segment() -> impl Strategy<Value = Made> {
    let options = prop_oneof![
        Just(Vec::new()),
        Just(OPTIONS.to_vec()),
        Just(OPTIONS[..12].to_vec()),
        Just(OPTIONS[24..].to_vec()),
    ];
    let payload = prop::collection::vec(any::<u8>(), 0..60);
    (made(), options, any::<u8>(), payload).prop_map(|(mut made, options, reserved, payload)| {
        made.protocol = 6;
        made.fragment &= 0x4000;
        made.carried = segment(made.addresses(), &options, reserved, &payload);
        made
    })
}

fn made() -> impl Strategy<Value = Made> {
    let carried = prop::collection::vec(any::<u8>(), 0..80);
    let options = (0usize..3).prop_map(|words| vec![1; 4 * words]);
    (
        any::<bool>(),
        prop_oneof![
            Just(6),
            Just(17),
            Just(1),
            Just(44),
            Just(0),
            Just(50),
            any::<u8>()
        ],
        any::<u8>(),
        any::<u16>(),
        prop_oneof![Just(0), Just(0x4000), any::<u16>()],
        1..=u8::MAX,
        options,
        carried,
    )
        .prop_map(
            |(v4, protocol, class, id, fragment, hop_limit, ip_options, carried)| Made {
                v4,
                protocol,
                traffic_class: class,
                flow_label_or_identification: id,
                fragment,
                hop_limit,
                ip_options,
                carried,
            },
        )
}

proptest! {
    #[test]
    fn unmodified_packets_are_encoded_unchanged(
        made in prop_oneof![made(), made_segment()],
        behind in prop::collection::vec(any::<u8>(), 0..9),
    ) {
        let mut packets = PacketStore::default();
        let bytes = made.bytes();
        let padded: Vec<u8> = bytes.iter().chain(&behind).copied().collect();
        let packet = stored(&mut packets, &padded);
        prop_assert_eq!(packets.get(packet).length().get(), bytes.len() as u64);
        prop_assert_eq!(packets.ip(packet), Some(made.addresses()));
        prop_assert_eq!(encoded(&packets, packet), bytes);
    }

    #[test]
    fn a_hop_only_decrements_the_hop_limit(made in prop_oneof![made(), made_segment()]) {
        let mut packets = PacketStore::default();
        let packet = stored(&mut packets, &made.bytes());
        prop_assert_eq!(packets.hop(packet), made.hop_limit > 1);
        let mut less = made.clone();
        less.hop_limit -= 1;
        prop_assert_eq!(encoded(&packets, packet), less.bytes());
    }

    #[test]
    fn an_ecn_mark_changes_two_bits(made in prop_oneof![made(), made_segment()]) {
        let mut packets = PacketStore::default();
        let packet = stored(&mut packets, &made.bytes());
        packets.get_mut(packet).set_ecn(Ecn::Congestion);
        let mut marked = made.clone();
        marked.traffic_class |= 3;
        prop_assert_eq!(encoded(&packets, packet), marked.bytes());
    }

    #[test]
    fn a_modified_segment_is_valid_and_otherwise_unchanged(
        made in made_segment(),
        change in (any::<u32>(), any::<u32>(), any::<u16>(), 0u8..0x40),
        timestamps in prop::option::of(any::<(u32, u32)>()),
        blocks in 0u32..3,
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut packets = PacketStore::default();
        let before = made.bytes();
        let packet = stored(&mut packets, &before);
        let record = packets.get_mut(packet);
        record.sequence = Seq::new(change.0);
        record.acknowledgment = Seq::new(change.1);
        record.window = change.2;
        record.flags = Flags(change.3 & !Flags::SYN.0);
        if let Some((value, echo)) = timestamps {
            record.set_timestamps(value, echo);
        }
        if let Some(cut) = cut {
            record.payload_length = cut.index(usize::from(record.payload_length) + 1) as u16;
        }
        let blocks = (0..blocks)
            .map(|n| SackBlock { start: Seq::new(n), end: Seq::new(n + 1) })
            .collect();
        packets.set_sack_blocks(packet, &blocks);
        let after = encoded(&packets, packet);
        let old = parse(&before).expect("made so");
        let new = parse(&after).expect("right checksums");
        let record = *packets.get(packet);
        prop_assert_eq!(new.tcp.sequence, record.sequence);
        prop_assert_eq!(new.tcp.acknowledgment, record.acknowledgment);
        prop_assert_eq!(new.tcp.window, record.window);
        prop_assert_eq!(new.tcp.flags, record.flags);
        prop_assert_eq!(new.tcp.options.sack_blocks, blocks);
        prop_assert_eq!(new.tcp.options.timestamps, record.timestamps());
        prop_assert_eq!(new.tcp.urgent_pointer, old.tcp.urgent_pointer);
        prop_assert_eq!(new.ip, old.ip);
        prop_assert_eq!(new.payload, &old.payload[..usize::from(record.payload_length)]);
        let (bits, mut unknown) = reserved(&before, &old);
        if unknown.len().next_multiple_of(4) + new.tcp.options.length() > 40 {
            // No room beside the known options.
            unknown.clear();
        }
        prop_assert_eq!(reserved(&after, &new), (bits, unknown));
    }

    #[test]
    fn parts_of_a_segment_are_valid_and_concatenate_to_it(
        made in made_segment(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        urgent in prop::option::of(0u16..60),
    ) {
        let mut packets = PacketStore::default();
        let mut made = made;
        if let Some(pointer) = urgent {
            made.carried[13] |= Flags::URG.0;
            made.carried[18..20].copy_from_slice(&pointer.to_be_bytes());
            made.carried[16..18].fill(0);
            let (source, destination) = made.addresses();
            let sum = Sum::default()
                .pseudo_header(source, destination, made.carried.len())
                .bytes(&made.carried)
                .finish();
            made.carried[16..18].copy_from_slice(&sum.to_be_bytes());
        }
        let before = made.bytes();
        let whole = stored(&mut packets, &before);
        let old = parse(&before).expect("made so");
        let length = packets.get(whole).payload_length;
        let mut cuts: Vec<u16> =
            cuts.iter().map(|cut| cut.index(usize::from(length) + 1) as u16).collect();
        cuts.extend([0, length]);
        cuts.sort_unstable();
        let mut text = Vec::new();
        for part in cuts.windows(2) {
            let packet = packets.duplicate(whole);
            packets.cut(packet, part[0], part[1] - part[0]);
            let after = encoded(&packets, packet);
            let new = parse(&after).expect("right checksums");
            prop_assert_eq!(new.tcp.sequence, old.tcp.sequence + u32::from(part[0]));
            prop_assert_eq!(new.tcp.options, old.tcp.options);
            prop_assert_eq!(reserved(&after, &new), reserved(&before, &old));
            prop_assert_eq!(new.ip, old.ip);
            // Urgent data end at the same sequence number, unless that is before this part.
            if let Some(ends) = urgent.and_then(|ends| ends.checked_sub(part[0]))
                && (ends > 0 || part[0] == 0)
            {
                prop_assert!(new.tcp.flags.has(Flags::URG));
                prop_assert_eq!(new.tcp.urgent_pointer, ends);
            } else {
                prop_assert!(!new.tcp.flags.has(Flags::URG));
            }
            text.extend_from_slice(new.payload);
        }
        prop_assert_eq!(text, old.payload);
        prop_assert_eq!(encoded(&packets, whole), before);
    }

    #[test]
    fn replaced_addresses_update_every_checksum(
        made in prop_oneof![made(), made_segment(), made_udp()],
        last in any::<u8>(),
    ) {
        let mut packets = PacketStore::default();
        let packet = stored(&mut packets, &made.bytes());
        let whole = packets.get(packet).is_tcp();
        let (mut source, destination) = made.addresses();
        match &mut source {
            IpAddr::V4(ip) => *ip = [10, 1, 2, last].into(),
            IpAddr::V6(ip) => *ip = { let mut octets = ip.octets(); octets[7] = last; octets.into() },
        }
        packets.set_ip(packet, (source, destination));
        let after = encoded(&packets, packet);
        let ip = parse_ip(&after).expect("a right IPv4 checksum");
        prop_assert_eq!(ip.source, source);
        prop_assert_eq!(parse(&after).is_ok(), whole);
        if made.protocol == 17 && !ip.fragment && made.carried.len() >= 8 && udp_is_right(&made) {
            let mut moved = made.clone();
            moved.carried = after[ip.carried_at..].to_vec();
            let sum = Sum::default()
                .pseudo_header_of(17, source, destination, moved.carried.len())
                .bytes(&moved.carried);
            prop_assert!(moved.carried[6..8] == [0, 0] || sum.finish() == 0);
        }
    }

    #[test]
    fn a_tunnel_header_encapsulates_any_real_packet(made in prop_oneof![made(), made_segment()]) {
        let mut packets = PacketStore::default();
        let bytes = made.bytes();
        let packet = stored(&mut packets, &bytes);
        let tunnel = Tunnel { source: Address(3), destination: Address(4) };
        packets.set_tunnel(packet, Some(tunnel));
        packets.get_mut(packet).header_length += 20;
        let after = encoded(&packets, packet);
        prop_assert_eq!(after.len() as u64, packets.get(packet).length().get());
        prop_assert_eq!(&after[20..], &bytes[..]);
        prop_assert_eq!(checksum(&after[..20]), 0);
        if packets.get(packet).is_tcp() {
            prop_assert!(parse_tunnelled(&after).is_ok());
        }
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(
        noise in prop::collection::vec(any::<u8>(), 0..120),
        made in prop_oneof![made(), made_segment()],
        at in any::<prop::sample::Index>(),
        flip in any::<u8>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = made.bytes();
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        bytes.truncate(cut.index(bytes.len() + 1));
        for bytes in [noise, bytes] {
            let mut packets = PacketStore::default();
            if let Ok(packet) = insert(&bytes, &mut packets, NODES.0, |_, _| Some(NODES.1)) {
                let length = packets.get(packet).length().get() as usize;
                prop_assert_eq!(encoded(&packets, packet), &bytes[..length]);
            } else {
                prop_assert_eq!(packets.held(), 0);
            }
        }
    }
}

/// A UDP datagram with a correct checksum or none.
fn made_udp() -> impl Strategy<Value = Made> {
    (made(), any::<bool>()).prop_map(|(mut made, summed)| {
        made.protocol = 17;
        made.fragment &= 0x4000;
        let mut carried = vec![0x12, 0x34, 0, 53, 0, 0, 0, 0];
        carried.extend(&made.carried);
        let length = carried.len();
        carried[4..6].copy_from_slice(&(length as u16).to_be_bytes());
        if summed {
            let (source, destination) = made.addresses();
            let sum = Sum::default()
                .pseudo_header_of(17, source, destination, length)
                .bytes(&carried)
                .finish();
            carried[6..8].copy_from_slice(&sum.to_be_bytes());
        }
        made.carried = carried;
        made
    })
}

fn udp_is_right(made: &Made) -> bool {
    let (source, destination) = made.addresses();
    let sum = Sum::default().pseudo_header_of(17, source, destination, made.carried.len());
    sum.bytes(&made.carried).finish() == 0
}

/// Returns the reserved bits and the unknown options.
fn reserved(bytes: &[u8], parsed: &Parsed<'_>) -> (u8, Vec<u8>) {
    let tcp = match parsed.ip.version() {
        IpVersion::V4 => usize::from(bytes[0] & 0x0f) * 4,
        IpVersion::V6 => 40,
    };
    let mut unknown = Vec::new();
    crate::options::TcpOptions::unknown(&bytes[tcp + 20..parsed.header_length], |option| {
        unknown.extend_from_slice(option);
    });
    (bytes[tcp + 12] & 0x0f, unknown)
}

#[test]
fn a_generated_datagram_is_valid() {
    let mut packets = PacketStore::default();
    for version in [IpVersion::V4, IpVersion::V6] {
        let end = |address, port| bentpipe_types::Endpoint {
            address: Address(address),
            port,
        };
        let mut record = Packet::datagram(end(1, 4000), end(2, 53), version, 17);
        record.payload_length = 11;
        let packet = packets.insert(record);
        packets.set_payload(packet, |payload| payload.copy_from_slice(b"hello world"));
        let bytes = encoded(&packets, packet);
        let ip = parse_ip(&bytes).expect("a packet");
        assert_eq!((ip.protocol, ip.ports), (17, (4000, 53)));
        assert_eq!(bytes.len() as u64, packets.get(packet).length().get());
        assert!(bytes.ends_with(b"hello world"));
        let sum = Sum::default()
            .pseudo_header_of(17, ip.source, ip.destination, 19)
            .bytes(&bytes[ip.carried_at..]);
        assert_eq!(sum.finish(), 0);
        // Stored again, as if received from a wire.
        let again = stored(&mut packets, &bytes);
        assert_eq!(
            packets.get(again).header_length,
            packets.get(packet).header_length
        );
        assert_eq!(packets.payload(again), Some(&b"hello world"[..]));
        assert_eq!(packets.get(again).destination, end(2, 53));
    }
}

#[test]
fn a_generated_segment_of_a_real_flow_has_its_addresses_and_payload() {
    let mut packets = PacketStore::default();
    let mut record = Packet::new(Default::default(), Default::default(), IpVersion::V4);
    record.payload_length = 4;
    record.flags = Flags::ACK;
    let packet = packets.insert(record);
    let ip = ([192, 0, 2, 1].into(), [198, 51, 100, 7].into());
    packets.set_ip(packet, ip);
    packets.set_payload(packet, |payload| payload.copy_from_slice(b"data"));
    let bytes = encoded(&packets, packet);
    let parsed = parse(&bytes).expect("right checksums");
    assert_eq!((parsed.ip.source(), parsed.ip.destination()), ip);
    assert_eq!(parsed.payload, b"data");
}

/// Only the two ends with the key can change a signed segment: it is forwarded, and no TCP here
/// processes it.
#[test]
fn a_segment_with_md5_or_tcp_ao_is_treated_as_a_datagram() {
    let mut md5 = vec![1, 1, 19, 18];
    md5.extend([7; 16]);
    let mut authentication = OPTIONS[..12].to_vec();
    authentication.extend([29, 16, 1, 1]);
    authentication.extend([7; 12]);
    for (options, signed) in [
        (md5, true),
        (authentication, true),
        (OPTIONS.to_vec(), false),
    ] {
        for v4 in [true, false] {
            let mut made = Made {
                v4,
                protocol: 6,
                traffic_class: 0,
                flow_label_or_identification: 0,
                fragment: 0,
                hop_limit: 64,
                ip_options: Vec::new(),
                carried: Vec::new(),
            };
            made.carried = segment(made.addresses(), &options, 0, b"text");
            let bytes = made.bytes();
            let mut packets = PacketStore::default();
            let packet = stored(&mut packets, &bytes);
            let record = packets.get(packet);
            assert_eq!(record.is_tcp(), !signed);
            // The ports are still available.
            assert_eq!(record.source.port, 0x1234);
            assert_eq!(record.destination.port, 80);
            assert_eq!(encoded(&packets, packet), bytes);
            // The unknown option is Multipath TCP's.
            assert_eq!(is_multipath(&bytes), !signed);
            for length in 0..bytes.len() {
                let _ = is_multipath(&bytes[..length]);
            }
        }
    }
}
