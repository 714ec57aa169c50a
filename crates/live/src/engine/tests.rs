//! Tests of networks between in-memory devices, with a test clock.

use std::net::IpAddr;

use bentpipe_link::{DropTail, Limit, Settings};
use bentpipe_sim::{LinkSettings, NetworkBuilder};
use bentpipe_types::{
    Address, BitRate, Endpoint, IpVersion, Packet, PacketStore, RandomStream, Span, Time,
};
use bentpipe_wire::{Encoder, NodeAddresses};

use super::{Engine, Prefix};
use crate::device::{Batch, Device, Memory, Sent, memory_pair};

fn direction(rate: u64, delay: Span) -> Settings {
    Settings::new(
        BitRate::new(rate).expect("not zero"),
        delay,
        DropTail {
            limit: Limit::Packets(100),
        },
    )
}

/// Creates left -- router -- right with 8 Mbit/s and 10 ms per link. All addresses except those of
/// the right side belong to the left.
fn network() -> (Engine, Memory, Memory) {
    let mut builder = NetworkBuilder::new(1);
    let left = builder.attached("left");
    let router = builder.router("router");
    let right = builder.attached("right");
    for (name, one, other) in [("first", left, router), ("second", router, right)] {
        let direction = || Some(direction(8_000_000, Span::from_millis(10)));
        builder.link(
            one,
            other,
            LinkSettings {
                name: name.to_owned(),
                forward: direction(),
                backward: direction(),
            },
        );
    }
    let mut engine = Engine::new(builder.build().expect("a network"));
    let (near_left, far_left) = memory_pair();
    let (near_right, far_right) = memory_pair();
    let everything = [Prefix::EVERYTHING_V4, Prefix::EVERYTHING_V6];
    engine.attach(left, Box::new(near_left), &everything);
    let right_ones = ["198.51.100.0/24", "2001:db8::/32"].map(|text| text.parse().expect("it is"));
    engine.attach(right, Box::new(near_right), &right_ones);
    (engine, far_left, far_right)
}

/// Runs the network on time until nothing is pending.
fn run(engine: &mut Engine) {
    let mut now = Time::ZERO;
    for _ in 0..1_000_000 {
        if !engine.turn(&mut || now).expect("memory does not fail") {
            match engine.next_event() {
                Some(next) => now = now.max(next),
                None => return,
            }
        }
    }
    panic!("the run never ends");
}

fn datagram(to: IpAddr, port: u16, length: u16) -> Vec<u8> {
    let mut packets = PacketStore::default();
    let end = Endpoint {
        address: Address(1),
        port,
    };
    let version = if to.is_ipv4() {
        IpVersion::V4
    } else {
        IpVersion::V6
    };
    let mut record = Packet::datagram(end, end, version, 17);
    record.payload_length = length;
    let packet = packets.insert(record);
    let from = if to.is_ipv4() {
        [192, 0, 2, 1].into()
    } else {
        IpAddr::from([0x20; 16])
    };
    packets.set_ip(packet, (from, to));
    let mut bytes = Vec::new();
    Encoder::new(NodeAddresses)
        .encode(&packets, packet, &mut bytes)
        .expect("a datagram");
    bytes
}

fn send(device: &mut Memory, at: u64, bytes: &[u8]) {
    let sent = device.send(Time::from_nanos(at), bytes);
    assert_eq!(sent.expect("memory"), Sent::Taken);
}

#[test]
fn packets_cross_on_time_with_the_hop_limit_decremented() {
    let (mut engine, mut left, right) = network();
    // 972 + 28 bytes at 8 Mbit/s: 1 ms.
    let bytes = datagram([198, 51, 100, 9].into(), 7, 972);
    send(&mut left, 1000, &bytes);
    run(&mut engine);
    let (at, arrived) = right.take().expect("it arrives");
    assert_eq!(at, Time::from_nanos(22_001_000));
    let mut expected = bytes.clone();
    expected[8] -= 1;
    let sum = bentpipe_wire::checksum::update_u16(
        u16::from_be_bytes([bytes[10], bytes[11]]),
        u16::from_be_bytes([bytes[8], bytes[9]]),
        u16::from_be_bytes([expected[8], expected[9]]),
    );
    expected[10..12].copy_from_slice(&sum.to_be_bytes());
    assert_eq!(arrived, expected);
    assert_eq!(engine.lateness().count(), 1);
    assert_eq!(engine.network().packets_held(), 0);
    assert_eq!(engine.refusals().total(), 0);
}

#[test]
fn packets_cross_on_time_after_a_month() {
    let (mut engine, mut left, right) = network();
    let bytes = datagram([198, 51, 100, 9].into(), 7, 972);
    // An entry of the event queue spans at most 3.26 days.
    for hours in (0..24 * 30).step_by(7) {
        let sent = hours * 3_600_000_000_000 + 1000;
        send(&mut left, sent, &bytes);
        run_from(&mut engine, Time::from_nanos(sent));
        let (at, _) = right.take().expect("it arrives");
        assert_eq!(at, Time::from_nanos(sent + 22_000_000), "after {hours} h");
    }
}

#[test]
fn running_a_network_restores_the_nice_value() {
    // A separate thread, since the priority belongs to the thread.
    let drive = || {
        let before = crate::realtime_priority::nice_value();
        let (mut engine, _, _) = network();
        let clock = crate::Clock::start();
        let done = engine.run(clock, Span::from_millis(1), |_, _| false);
        assert_eq!(done.ok(), Some(false));
        (before, crate::realtime_priority::nice_value())
    };
    let (before, after) = std::thread::spawn(drive).join().expect("no panic");
    assert!(before.is_some());
    assert_eq!(before, after);
    for nice_value in -20..=19 {
        let priority =
            crate::realtime_priority::priority_of(nice_value).expect("every one has a name");
        assert_eq!(
            priority.to_posix(crate::realtime_priority::NORMAL_POLICY),
            Ok(nice_value)
        );
    }
}

#[test]
fn refused_packets_are_counted_by_reason() {
    let (mut engine, mut left, mut right) = network();
    let good = datagram([198, 51, 100, 9].into(), 7, 10);
    let mut wrong_sum = good.clone();
    wrong_sum[10] ^= 1;
    let mut short_header = good.clone();
    short_header[0] = 0x44;
    for bytes in [
        &good[..30],
        &[],
        &[0x75; 40],
        &short_header,
        &wrong_sum,
        &good,
    ] {
        send(&mut left, 0, bytes);
    }
    // Its destination is on the side it came from.
    send(&mut right, 0, &good);
    run(&mut engine);
    let counts: Vec<_> = engine.refusals().each().filter(|(_, n)| *n > 0).collect();
    let expected = [
        ("truncated", 2),
        ("version", 1),
        ("ipv4_header", 1),
        ("ipv4_checksum", 1),
        ("no_route", 1),
    ];
    assert_eq!(counts, expected);
    assert!(right.take().is_some());
    assert!(right.take().is_none());
}

#[test]
fn memory_is_bounded_with_a_million_flows_and_arbitrary_bytes() {
    let (mut engine, mut left, right) = network();
    engine.network_mut().packets_mut().limit_bytes(1 << 20);
    let mut random = RandomStream::new(3, "flows", "test");
    let mut noise = vec![0; 1500];
    let mut now = Time::ZERO;
    let flows: u64 = if cfg!(debug_assertions) {
        100_000
    } else {
        1_000_000
    };
    for _ in 0..flows {
        let bits = random.bits();
        let to = [198, 51, 100, bits as u8];
        let mut bytes = datagram(to.into(), (bits >> 8) as u16, (bits >> 24) as u16 % 1400);
        // A quarter of the source addresses is random, too.
        if bits & 0xc000_0000 == 0 {
            bytes[12..16].copy_from_slice(&(bits >> 16).to_le_bytes()[..4]);
        }
        if bits & 0x3000_0000 == 0 {
            for chunk in noise.chunks_mut(8) {
                chunk.copy_from_slice(&random.bits().to_le_bytes()[..chunk.len()]);
            }
            noise[0] = noise[0] & 0x2f | 0x40;
            let length = (bits >> 40) as usize % noise.len();
            bytes = noise[..length].to_vec();
        }
        left.send(now, &bytes).expect("memory");
        while engine.turn(&mut || now).expect("memory") {}
        now += Span::from_micros(7);
        while right.take().is_some() {}
    }
    assert!(engine.network().packets().bytes_allocated() <= 2 << 20);
    run_from(&mut engine, now);
    while right.take().is_some() {}
    assert_eq!(engine.network().packets_held(), 0);
    assert_eq!(engine.network().violations(), []);
    let good = datagram([198, 51, 100, 9].into(), 7, 10);
    let later = now + Span::from_secs(10);
    left.send(later, &good).expect("memory");
    run_from(&mut engine, later);
    assert!(right.take().is_some(), "packets still pass");
}

fn run_from(engine: &mut Engine, mut now: Time) {
    for _ in 0..1_000_000 {
        if !engine.turn(&mut || now).expect("memory does not fail") {
            match engine.next_event() {
                Some(next) => now = now.max(next),
                None => return,
            }
        }
    }
    panic!("the run never ends");
}

#[test]
fn recorded_captures_are_replayed_identically() {
    use crate::{Capture, Recorder, Replay};
    let path = std::env::temp_dir().join(format!("bentpipe-replay-{}.pcapng", std::process::id()));
    let (near, mut far) = memory_pair();
    let capture = Capture::create(&path, ["in", "out"], u64::MAX, None).expect("a file");
    let mut recorder = Recorder::new(near, capture);
    let mut batch = Batch::default();
    let bytes = datagram([198, 51, 100, 9].into(), 7, 100);
    for at in [5_000, 9_000, 1_000_000_123] {
        let at = Time::from_nanos(at);
        far.send(at, &bytes).expect("room");
        assert!(recorder.receive(at, &mut batch).expect("memory"));
        assert_eq!(batch.packets().collect::<Vec<_>>(), [&bytes]);
    }
    recorder.finish().expect("a file");
    let mut replay = Replay::open(&path, Time::from_nanos(100)).expect("a capture");
    std::fs::remove_file(&path).expect("it is there");
    for at in [100, 4_100, 999_995_223] {
        let at = Time::from_nanos(at);
        assert_eq!(replay.next_arrival(), Some(at));
        let before = Time::from_nanos(at.as_nanos() - 1);
        assert!(!replay.receive(before, &mut batch).expect("a file"));
        assert!(replay.receive(at, &mut batch).expect("a file"));
        assert_eq!(batch.packets().collect::<Vec<_>>(), [&bytes]);
    }
    assert_eq!(replay.next_arrival(), None);
    assert!(!replay.receive(Time::LAST, &mut batch).expect("a file"));
}

/// Cases of [`arbitrary_bytes_are_carried_or_refused`], unless an environment variable
/// sets their number.
const CASES: u64 = 60;

#[test]
fn arbitrary_bytes_are_carried_or_refused() {
    let cases = std::env::var("BENTPIPE_HOSTILE_CASES").ok();
    let cases = cases.and_then(|text| text.parse().ok()).unwrap_or(CASES);
    let mut out = 0;
    for seed in 0..cases {
        let mut random = RandomStream::new(seed, "engine", "hostile");
        let length = random.bits() as usize % 3000;
        let input: Vec<u8> = (0..length).map(|_| random.bits() as u8).collect();
        let before = out;
        // The error message names the seed.
        let played = std::panic::catch_unwind(|| super::hostile::play(&input));
        match played {
            Ok(packets) => out = before + packets,
            Err(panic) => {
                eprintln!("seed {seed}");
                std::panic::resume_unwind(panic);
            }
        }
    }
    assert!(
        out > 10 * cases,
        "{out} packets in {cases} cases: too few get through"
    );
}
