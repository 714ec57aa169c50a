//! tshark as a witness: captures of hand-made exchanges are decoded by independent code.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::witness::tshark_is_missing;
use bentpipe_types::{
    Address, Ecn, Endpoint, Flags, IcmpError, IpVersion, Packet, PacketRef, PacketStore, SackBlock,
    Seq, Span, SynOptions, Time,
};
use bentpipe_wire::{Encoder, NodeAddresses, TcpOptions, payload, pcapng};

const ACK: Flags = Flags::ACK;
const EPOCH_NS: u64 = 1_700_000_000_123_456_789;
const STEP: Span = Span::from_nanos(280_000_001);

/// The compared fields, by tshark name.
const FIELDS: [&str; 30] = [
    "frame.time_epoch",
    "frame.interface_name",
    "frame.len",
    "ip.src",
    "ip.dst",
    "ip.id",
    "ip.ttl",
    "ip.flags.df",
    "ip.dsfield.ecn",
    "ip.checksum.status",
    "ipv6.src",
    "ipv6.dst",
    "ipv6.hlim",
    "ipv6.tclass.ecn",
    "tcp.srcport",
    "tcp.dstport",
    "tcp.seq",
    "tcp.ack",
    "tcp.hdr_len",
    "tcp.len",
    "tcp.flags",
    "tcp.window_size_value",
    "tcp.checksum.status",
    "tcp.options.mss_val",
    "tcp.options.wscale.shift",
    "tcp.options.timestamp.tsval",
    "tcp.options.timestamp.tsecr",
    "tcp.options.sack_le",
    "tcp.options.sack_re",
    "tcp.payload",
];

/// Two endpoints with scripted packets, and the capture of them.
struct Exchange {
    version: IpVersion,
    packets: PacketStore,
    sent: Vec<(usize, PacketRef)>,
}

/// One segment of an [`Exchange`].
#[derive(Clone, Copy, Default)]
struct Segment {
    /// Sender: 0 is the client, 1 the server.
    from: usize,
    flags: Flags,
    sequence: u32,
    acknowledgment: u32,
    payload: (u64, u16),
    options: TcpOptions,
    ecn: Ecn,
}

const INITIAL: [u32; 2] = [0xffff_fff0, 77_000]; // the client's wraps

impl Exchange {
    fn new(version: IpVersion) -> Self {
        Self {
            version,
            packets: PacketStore::default(),
            sent: Vec::new(),
        }
    }

    fn send(&mut self, segment: Segment) {
        let client = Endpoint {
            address: Address(1),
            port: 49_152,
        };
        let server = Endpoint {
            address: Address(300),
            port: 50_000,
        };
        let (source, destination) = if segment.from == 0 {
            (client, server)
        } else {
            (server, client)
        };
        let mut packet = Packet::new(source, destination, self.version);
        packet.flags = segment.flags;
        packet.sequence = Seq::new(INITIAL[segment.from].wrapping_add(segment.sequence));
        if segment.flags.has(ACK) {
            let acknowledgment = INITIAL[1 - segment.from].wrapping_add(segment.acknowledgment);
            packet.acknowledgment = Seq::new(acknowledgment);
        }
        packet.window = 65_000;
        (packet.payload_offset, packet.payload_length) = segment.payload;
        packet.header_length += segment.options.length() as u8;
        packet.set_ecn(segment.ecn);
        if let Some((value, echo)) = segment.options.timestamps {
            packet.set_timestamps(value, echo);
        }
        let reference = self.packets.insert(packet);
        self.packets.set_syn_options(reference, segment.options.syn);
        self.packets
            .set_sack_blocks(reference, &segment.options.sack_blocks);
        self.sent.push((segment.from, reference));
    }

    /// Opens the connection with three segments.
    fn handshake(&mut self, syn: SynOptions, timestamps: bool) {
        let options = |value, echo| TcpOptions {
            timestamps: timestamps.then_some((value, echo)),
            ..TcpOptions::default()
        };
        let with_syn = |options| TcpOptions { syn, ..options };
        self.send(Segment {
            flags: Flags::SYN.with(Flags::ECE).with(Flags::CWR),
            options: with_syn(options(100, 0)),
            ..Segment::default()
        });
        self.send(Segment {
            from: 1,
            flags: Flags::SYN.with(ACK).with(Flags::ECE),
            acknowledgment: 1,
            options: with_syn(options(900, 100)),
            ..Segment::default()
        });
        self.send(Segment {
            flags: ACK,
            sequence: 1,
            acknowledgment: 1,
            options: options(101, 900),
            ..Segment::default()
        });
    }

    /// Writes the capture to a file, client packets on one interface and server packets on another.
    /// `spoil` may change the bytes first.
    fn capture(&self, name: &str, mut spoil: impl FnMut(usize, &mut Vec<u8>)) -> PathBuf {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let file = BufWriter::new(File::create(&path).expect("a file"));
        let mut writer = pcapng::Writer::with_epoch(file, EPOCH_NS).expect("a section");
        let interfaces = ["satellite.return", "satellite.forward"]
            .map(|name| writer.add_interface(name, None).expect("an interface"));
        let mut encoder = Encoder::new(NodeAddresses);
        let mut bytes = Vec::new();
        for (i, &(from, packet)) in self.sent.iter().enumerate() {
            encoder
                .encode(&self.packets, packet, &mut bytes)
                .expect("a valid packet");
            spoil(i, &mut bytes);
            let time = Time::ZERO + STEP * i as u64;
            writer
                .write(interfaces[from], time, &bytes)
                .expect("a packet");
        }
        writer.finish().expect("flushed");
        path
    }

    /// Returns the expected fields of each packet, in the order of [`FIELDS`].
    fn expected(&self) -> Vec<Vec<String>> {
        let mut identification = 0;
        let mut line = |i: usize, from: usize, reference: PacketRef| {
            let packet = self.packets.get(reference);
            let options = TcpOptions::of(&self.packets, reference);
            let four = self.version == IpVersion::V4;
            identification += 1;
            let of_version = |is: bool, value: String| if is { value } else { String::new() };
            let number = |n: Option<u32>| n.map_or(String::new(), |n| n.to_string());
            let [source, destination] = [packet.source, packet.destination].map(|end| {
                (
                    NodeAddresses::ipv4(end.address),
                    NodeAddresses::ipv6(end.address),
                )
            });
            let blocks = options.sack_blocks;
            let edges = |edge: fn(&SackBlock) -> Seq| {
                let edges: Vec<String> = blocks
                    .as_slice()
                    .iter()
                    .map(|block| edge(block).get().to_string())
                    .collect();
                edges.join(",")
            };
            let mut bytes = vec![0; packet.payload_length.into()];
            payload::fill(packet.payload_offset, &mut bytes);
            let time = EPOCH_NS + i as u64 * STEP.as_nanos();
            vec![
                format!("{}.{:09}", time / 1_000_000_000, time % 1_000_000_000),
                ["satellite.return", "satellite.forward"][from].into(),
                packet.length().get().to_string(),
                of_version(four, source.0.to_string()),
                of_version(four, destination.0.to_string()),
                of_version(four, format!("{identification:#06x}")),
                of_version(four, "64".into()),
                of_version(four, "1".into()),
                of_version(four, (packet.ecn() as u8).to_string()),
                of_version(four, "1".into()), // good
                of_version(!four, source.1.to_string()),
                of_version(!four, destination.1.to_string()),
                of_version(!four, "64".into()),
                of_version(!four, (packet.ecn() as u8).to_string()),
                packet.source.port.to_string(),
                packet.destination.port.to_string(),
                packet.sequence.get().to_string(),
                packet.acknowledgment.get().to_string(),
                (20 + options.length()).to_string(),
                packet.payload_length.to_string(),
                format!("{:#06x}", packet.flags.0),
                packet.window.to_string(),
                "1".into(), // good
                number(options.syn.maximum_segment_size.map(u32::from)),
                number(options.syn.window_scale.map(u32::from)),
                number(options.timestamps.map(|(value, _)| value)),
                number(options.timestamps.map(|(_, echo)| echo)),
                edges(|block| block.start),
                edges(|block| block.end),
                bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            ]
        };
        self.sent
            .iter()
            .enumerate()
            .map(|(i, &(from, packet))| line(i, from, packet))
            .collect()
    }

    fn assert_read_as_sent(&self, path: &Path) {
        let read = fields(path, "", &FIELDS);
        let expected = self.expected();
        assert_eq!(read.len(), expected.len());
        for (i, (read, expected)) in read.iter().zip(&expected).enumerate() {
            for (field, (read, expected)) in FIELDS.iter().zip(read.iter().zip(expected)) {
                assert_eq!(read, expected, "{field} of packet {i}");
            }
        }
        // SACK-permitted has no value and therefore no column.
        let permitted = |reference: &(usize, PacketRef)| {
            let (_, packet) = *reference;
            self.packets.syn_options(packet).sack_permitted
        };
        let count = self.sent.iter().filter(|sent| permitted(sent)).count();
        assert_eq!(matching(path, "tcp.options.sack_perm"), count);
        assert_eq!(matching(path, WRONG), 0);
    }
}

/// Display filter for packets that tshark considers invalid.
const WRONG: &str = "_ws.malformed || _ws.expert.severity == error || tcp.checksum.status != Good \
                     || ip.checksum.status != Good || tcp.option.len.invalid || _ws.short";

fn run(path: &Path, arguments: &[&str]) -> String {
    let output = Command::new("tshark")
        .arg("-n")
        .arg("-r")
        .arg(path)
        .args(["-o", "tcp.check_checksum:TRUE"])
        .args(["-o", "ip.check_checksum:TRUE"])
        .args(["-o", "tcp.relative_sequence_numbers:FALSE"])
        .args(["-o", "tcp.analyze_sequence_numbers:TRUE"])
        .args(arguments)
        .output()
        .expect("tshark runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("tshark writes UTF-8")
}

/// Returns the number of packets that match a display filter.
fn matching(path: &Path, filter: &str) -> usize {
    run(path, &["-Y", filter]).lines().count()
}

fn fields(path: &Path, filter: &str, fields: &[&str]) -> Vec<Vec<String>> {
    let mut arguments = vec!["-T", "fields"];
    if !filter.is_empty() {
        arguments.extend(["-Y", filter]);
    }
    for field in fields {
        arguments.extend(["-e", field]);
    }
    run(path, &arguments)
        .lines()
        .map(|line| {
            // Flags are "1" up to version 4.0, "True" from 4.2 on.
            let flag = |field| if field == "True" { "1" } else { field };
            line.split('\t').map(flag).map(String::from).collect()
        })
        .collect()
}

const SYN_OPTIONS: SynOptions = SynOptions {
    maximum_segment_size: Some(1448),
    window_scale: Some(7),
    sack_permitted: true,
    fast_open: None,
};

fn timestamps(value: u32, echo: u32) -> TcpOptions {
    TcpOptions {
        timestamps: Some((value, echo)),
        ..TcpOptions::default()
    }
}

/// A request, ten segments in response, each acknowledged, and the FINs of both sides.
fn loss_free(version: IpVersion) -> Exchange {
    let mut exchange = Exchange::new(version);
    exchange.handshake(SYN_OPTIONS, true);
    exchange.send(Segment {
        flags: ACK.with(Flags::PSH),
        sequence: 1,
        acknowledgment: 1,
        payload: (0, 101), // odd
        options: timestamps(102, 900),
        ecn: Ecn::Capable0,
        ..Segment::default()
    });
    for i in 0..10 {
        exchange.send(Segment {
            from: 1,
            flags: ACK,
            sequence: 1 + 1448 * i,
            acknowledgment: 102,
            payload: (1448 * u64::from(i), 1448),
            options: timestamps(901 + i, 102 + i),
            ecn: if i == 5 {
                Ecn::Congestion
            } else {
                Ecn::Capable1
            },
        });
        exchange.send(Segment {
            flags: if i == 5 { ACK.with(Flags::ECE) } else { ACK },
            sequence: 102,
            acknowledgment: 1 + 1448 * (i + 1),
            options: timestamps(103 + i, 901 + i),
            ..Segment::default()
        });
    }
    let end = 1 + 14_480;
    for (from, flags, sequence, acknowledgment) in [
        (1, ACK.with(Flags::FIN), end, 102),
        (0, ACK.with(Flags::FIN), 102, end + 1),
        (1, ACK, end + 1, 103),
    ] {
        exchange.send(Segment {
            from,
            flags,
            sequence,
            acknowledgment,
            options: timestamps(950, 950),
            ..Segment::default()
        });
    }
    exchange
}

/// Ten segments of which every second one is lost before the capture, SACKed, and retransmitted.
fn lossy(version: IpVersion, with_timestamps: bool) -> Exchange {
    let options = |value, echo| TcpOptions {
        timestamps: with_timestamps.then_some((value, echo)),
        ..TcpOptions::default()
    };
    let most = if with_timestamps { 3 } else { 4 };
    let mut exchange = Exchange::new(version);
    exchange.handshake(SYN_OPTIONS, with_timestamps);
    let data = |i: u32| Segment {
        from: 1,
        flags: ACK,
        sequence: 1 + 1000 * i,
        acknowledgment: 1,
        payload: (1000 * u64::from(i), 1000),
        options: options(901 + i, 101),
        ..Segment::default()
    };
    let block = |i: u32| SackBlock {
        start: Seq::new(INITIAL[1] + 1 + 1000 * i),
        end: Seq::new(INITIAL[1] + 1 + 1000 * (i + 1)),
    };
    for i in (1..10).step_by(2) {
        exchange.send(data(i));
        let sack_blocks = (1..=i).rev().step_by(2).take(most).map(block).collect();
        exchange.send(Segment {
            flags: ACK,
            sequence: 1,
            acknowledgment: 1,
            options: TcpOptions {
                sack_blocks,
                ..options(102 + i, 900)
            },
            ..Segment::default()
        });
    }
    for i in (0..10).step_by(2) {
        exchange.send(data(i));
    }
    exchange.send(Segment {
        flags: ACK.with(Flags::RST),
        sequence: 1,
        acknowledgment: 10_001,
        ..Segment::default()
    });
    exchange
}

#[test]
fn tshark_reports_no_anomalies_in_a_loss_free_exchange() {
    if tshark_is_missing() {
        return;
    }
    for (version, name) in [
        (IpVersion::V4, "free4.pcapng"),
        (IpVersion::V6, "free6.pcapng"),
    ] {
        let exchange = loss_free(version);
        let path = exchange.capture(name, |_, _| ());
        exchange.assert_read_as_sent(&path);
        // Retransmissions, segments out of order or not captured, duplicate ACKs, full windows.
        let remarks = fields(
            &path,
            "tcp.analysis.flags",
            &["frame.number", "_ws.expert.message"],
        );
        assert_eq!(remarks, Vec::<Vec<String>>::new());
        assert_eq!(matching(&path, "_ws.expert.severity == warning"), 0);
    }
}

#[test]
fn sack_blocks_are_read_as_sent() {
    if tshark_is_missing() {
        return;
    }
    for (version, with_timestamps, name) in [
        (IpVersion::V4, true, "lossy4t.pcapng"),
        (IpVersion::V4, false, "lossy4.pcapng"),
        (IpVersion::V6, true, "lossy6t.pcapng"),
        (IpVersion::V6, false, "lossy6.pcapng"),
    ] {
        let exchange = lossy(version, with_timestamps);
        let path = exchange.capture(name, |_, _| ());
        exchange.assert_read_as_sent(&path);
        // Control: tshark reports a loss.
        assert!(matching(&path, "tcp.analysis.lost_segment") > 0);
        let most = if with_timestamps { 3 } else { 4 };
        assert!(matching(&path, &format!("tcp.options.sack.count == {most}")) > 0);
    }
}

#[test]
fn every_combination_of_options_is_well_formed() {
    if tshark_is_missing() {
        return;
    }
    for (version, name) in [
        (IpVersion::V4, "all4.pcapng"),
        (IpVersion::V6, "all6.pcapng"),
    ] {
        let mut exchange = Exchange::new(version);
        for choice in 0..16u8 {
            for count in 0..=4u32 {
                let block = |i: u32| SackBlock {
                    start: Seq::new(INITIAL[1] + 1000 * i),
                    end: Seq::new(INITIAL[1] + 1000 * i + 500),
                };
                let options = TcpOptions {
                    syn: SynOptions {
                        maximum_segment_size: (choice & 1 != 0).then_some(1448),
                        window_scale: (choice & 2 != 0).then_some(14),
                        sack_permitted: choice & 4 != 0,
                        fast_open: None,
                    },
                    timestamps: (choice & 8 != 0).then_some((u32::MAX, 1)),
                    sack_blocks: (0..count).map(block).collect(),
                };
                if options.length() > 40 {
                    continue;
                }
                exchange.send(Segment {
                    flags: Flags::SYN.with(ACK),
                    options,
                    ..Segment::default()
                });
            }
        }
        let path = exchange.capture(name, |_, _| ());
        exchange.assert_read_as_sent(&path);
    }
}

#[test]
fn tshark_detects_injected_errors() {
    if tshark_is_missing() {
        return;
    }
    let exchange = loss_free(IpVersion::V4);
    let path = exchange.capture("wrong.pcapng", |i, bytes| match i {
        2 => bytes[8] ^= 1,       // TTL: the IP header's checksum
        4 => bytes[100] ^= 1,     // payload: TCP's
        6 => bytes[41] = 11,      // the length of the timestamps after two NOPs
        8 => bytes.truncate(300), // cut short
        _ => (),
    });
    let wrong = fields(&path, WRONG, &["frame.number"]);
    assert_eq!(wrong, [["3"], ["5"], ["7"], ["9"]]);
    // Like a capture that lacks the packets of the other end.
    let mut exchange = loss_free(IpVersion::V6);
    let (early, late) = (4, 8);
    exchange.sent.swap(early, late);
    let path = exchange.capture("swapped.pcapng", |_, _| ());
    assert!(matching(&path, "tcp.analysis.flags") > 0);
}

#[test]
fn a_truncated_capture_keeps_original_lengths() {
    if tshark_is_missing() {
        return;
    }
    let exchange = loss_free(IpVersion::V4);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cut.pcapng");
    let mut writer = pcapng::Writer::new(File::create(&path).unwrap()).unwrap();
    let cut = writer.add_interface("modem", Some(96)).unwrap();
    let mut encoder = Encoder::new(NodeAddresses);
    let mut bytes = Vec::new();
    for &(_, packet) in &exchange.sent {
        encoder
            .encode(&exchange.packets, packet, &mut bytes)
            .unwrap();
        writer.write(cut, Time::LAST, &bytes).unwrap();
    }
    writer.finish().unwrap();
    let read = fields(
        &path,
        "",
        &["frame.cap_len", "frame.len", "tcp.len", "frame.time_epoch"],
    );
    for (read, &(_, packet)) in read.iter().zip(&exchange.sent) {
        let packet = exchange.packets.get(packet);
        let length = packet.length().get();
        assert_eq!(read[0], length.min(96).to_string());
        assert_eq!(read[1], length.to_string());
        assert_eq!(read[2], packet.payload_length.to_string());
        assert_eq!(read[3], "281474.976710655");
    }
    assert_eq!(read.len(), exchange.sent.len());
    assert_eq!(matching(&path, "tcp.analysis.flags"), 0);
}

#[test]
fn tshark_dissects_payload_as_no_application_protocol() {
    if tshark_is_missing() {
        return;
    }
    let mut exchange = Exchange::new(IpVersion::V4);
    let mut sequence = 0;
    for i in 0..6_000 {
        let length = [13, 1448, 536][i % 3];
        exchange.send(Segment {
            from: 1,
            flags: ACK,
            sequence,
            payload: (sequence.into(), length),
            ..Segment::default()
        });
        sequence += u32::from(length);
    }
    let path = exchange.capture("payload.pcapng", |_, _| ());
    assert_eq!(matching(&path, "frame.protocols != \"raw:ip:tcp:data\""), 0);
    assert_eq!(matching(&path, "data"), 6_000);
}

#[test]
fn an_icmp_error_quotes_its_segment() {
    if tshark_is_missing() {
        return;
    }
    for (version, kind, mtu) in [
        (IpVersion::V4, ["icmp.type", "icmp.code", "icmp.mtu"], 1000),
        (
            IpVersion::V6,
            ["icmpv6.type", "icmpv6.code", "icmpv6.mtu"],
            1300,
        ),
    ] {
        let mut exchange = Exchange::new(version);
        exchange.send(Segment {
            from: 1,
            flags: ACK,
            sequence: 5_000,
            payload: (0, 1448),
            ..Segment::default()
        });
        let (_, segment) = exchange.sent[0];
        let segment = *exchange.packets.get(segment);
        for error in [
            IcmpError::TooBig { mtu },
            IcmpError::PortUnreachable,
            IcmpError::TimeExceeded,
        ] {
            let packet = Packet::icmp_error(Address(7), &segment, error).expect("about TCP");
            let packet = exchange.packets.insert(packet);
            exchange.sent.push((0, packet));
        }
        let name = format!("icmp-{version:?}.pcapng");
        let path = exchange.capture(&name, |_, _| ());
        let read = fields(
            &path,
            &format!("{} >= 0", kind[0]),
            &[
                kind[0],
                kind[1],
                kind[2],
                "tcp.srcport",
                "tcp.dstport",
                "tcp.seq",
            ],
        );
        let quoted = [
            segment.source.port.to_string(),
            segment.destination.port.to_string(),
            segment.sequence.get().to_string(),
        ];
        let types = match version {
            IpVersion::V4 => [("3", "4"), ("3", "3"), ("11", "0")],
            IpVersion::V6 => [("2", "0"), ("1", "4"), ("3", "0")],
        };
        assert_eq!(read.len(), 3);
        for (i, (line, (kind, code))) in read.iter().zip(types).enumerate() {
            assert_eq!((line[0].as_str(), line[1].as_str()), (kind, code));
            assert_eq!(line[2] == mtu.to_string(), i == 0, "{line:?}");
            // tshark reads only the ports of the eight bytes of TCP inside ICMPv6.
            let told = if version == IpVersion::V4 { 3 } else { 2 };
            assert_eq!(line[3..3 + told], quoted[..told], "{line:?}");
        }
        let status = format!(
            "{}.checksum.status != Good",
            kind[0].split('.').next().unwrap_or("")
        );
        assert_eq!(matching(&path, &status), 0);
        assert_eq!(
            matching(&path, "_ws.malformed || ip.checksum.status == Bad"),
            0
        );
    }
}
