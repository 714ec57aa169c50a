//! RED and deficit round robin compared with ns-2, packet by packet (`benches/witness/queues.tcl`).
//! Skipped with a message where ns-2 is not installed.

use std::collections::HashSet;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use bentpipe_link::{
    Fair, FairSettings, Limit, Measure, QueueCtx, QueueDiscipline, Red, RedSettings, Verdict, Watch,
};
use bentpipe_types::{
    Bytes, Endpoint, IpVersion, Packet, PacketRef, PacketStore, RandomStream, Span, Time,
};

use crate::common::Bottleneck;

/// An event at ns-2's queue.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Event {
    what: char,
    at_us: u64,
    flow: u16,
    bytes: u64,
    /// ns-2's packet number.
    id: u64,
}

/// Runs one of the script's queues in ns-2. Returns its trace, or `None` without ns-2.
fn ns2(kind: &str) -> Option<(Vec<Event>, PathBuf)> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/witness/queues.tcl");
    let trace = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{kind}.tr"));
    match Command::new("ns")
        .arg(script)
        .arg(kind)
        .arg(&trace)
        .output()
    {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            skipped("ns-2 is not installed (no `ns` on PATH)");
            return None;
        }
        Err(error) => panic!("ns: {error}"),
        Ok(output) => assert!(output.status.success(), "ns: {output:?}"),
    }
    let text = std::fs::read_to_string(&trace).expect("ns-2 wrote its trace");
    let events = text.lines().map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        Event {
            what: line.chars().next().expect("not empty"),
            at_us: microseconds(fields[1]),
            flow: fields[7].parse().expect("a flow"),
            bytes: fields[5].parse().expect("a size"),
            id: fields[11].parse().expect("a number"),
        }
    });
    Some((events.filter(|event| event.what != 'r').collect(), trace))
}

fn microseconds(seconds: &str) -> u64 {
    (seconds.parse::<f64>().expect("a time") * 1e6).round() as u64
}

fn packet_of(event: &Event) -> Packet {
    let mut packet = Packet::new(Endpoint::default(), Endpoint::default(), IpVersion::V4);
    packet.source.port = event.flow;
    packet.payload_length = (event.bytes - 40) as u16;
    packet.payload_offset = event.id;
    packet
}

/// Records when transmissions begin.
#[derive(Default)]
struct Departures(Vec<(u64, u64)>);

impl Watch for Departures {
    fn sent(&mut self, now: Time, packet: PacketRef, packets: &PacketStore) {
        self.0
            .push((now.as_nanos() / 1000, packets.get(packet).payload_offset));
    }

    fn received(&mut self, _now: Time, _packet: PacketRef, _packets: &PacketStore) {}
}

struct Replay {
    /// Start of transmission, and packet.
    departures: Vec<(u64, u64)>,
    dropped: u64,
    /// Average backlog in packets at arrivals.
    mean_queue: f64,
}

/// Offers ns-2's arrivals to a queue here, in front of the same link.
fn replay(events: &[Event], queue: Box<dyn QueueDiscipline>) -> Replay {
    let (rate, delay) = (1_000_000, Span::from_millis(10));
    let mut bottleneck = Bottleneck::new(rate, delay, queue, 5, Departures::default());
    let (mut waiting, mut arrivals) = (0, 0);
    for event in events.iter().filter(|event| event.what == '+') {
        let now = Time::ZERO + Span::from_micros(event.at_us);
        bottleneck.run(now);
        waiting += bottleneck.link.waiting_packets();
        arrivals += 1;
        bottleneck.offer(now, packet_of(event));
    }
    bottleneck.finish();
    Replay {
        departures: bottleneck.watch.0,
        dropped: bottleneck.link.counters().dropped,
        mean_queue: waiting as f64 / f64::from(arrivals),
    }
}

/// Returns ns-2's result.
fn theirs(events: &[Event]) -> Replay {
    let mut waiting: i64 = 0;
    let (mut sum, mut arrivals, mut dropped) = (0, 0, 0);
    let mut departures = Vec::new();
    for event in events {
        match event.what {
            '+' => {
                sum += waiting;
                arrivals += 1;
                waiting += 1;
            }
            '-' => {
                waiting -= 1;
                departures.push((event.at_us, event.id));
            }
            _ => {
                waiting -= 1;
                dropped += 1;
            }
        }
    }
    Replay {
        departures,
        dropped,
        mean_queue: sum as f64 / f64::from(arrivals),
    }
}

#[test]
fn deficit_round_robin_sends_the_same_packets_at_the_same_times() {
    let Some((events, _)) = ns2("drr") else {
        return;
    };
    let queue = Fair::new(FairSettings {
        limit: Limit::Bytes(Bytes::new(12_000)),
        quantum: Bytes::new(1500),
        flows: 16,
    });
    let ours = replay(&events, Box::new(queue));
    let theirs = theirs(&events);
    let pairs = ours.departures.iter().zip(&theirs.departures);
    let same = pairs.take_while(|(ours, theirs)| ours == theirs).count();
    assert_eq!(
        ours.departures.get(same),
        theirs.departures.get(same),
        "after {same} of {} the same",
        theirs.departures.len()
    );
    assert_eq!(ours.dropped, theirs.dropped);
    assert!(theirs.dropped > 200, "or nothing was tested");
}

const RED: RedSettings = RedSettings {
    limit: Limit::Packets(40),
    measure: Measure::Packets,
    minimum_threshold: 5.0,
    maximum_threshold: 15.0,
    maximum_probability: 0.1,
    weight: 0.002,
    gentle: true,
    ecn: false,
    mean_packet: Bytes::new(1000),
    mean_transmission: Span::from_millis(8),
};

/// The same arrivals and parameters with other random numbers.
#[test]
fn red_drops_as_many_and_keeps_as_long_a_queue() {
    let Some((events, _)) = ns2("red") else {
        return;
    };
    let ours = replay(&events, Box::new(Red::new(RED)));
    let theirs = theirs(&events);
    let relative = |ours: f64, theirs: f64| (ours - theirs).abs() / theirs;
    println!(
        "drops {} and ns-2's {}, queue {:.3} and {:.3}",
        ours.dropped, theirs.dropped, ours.mean_queue, theirs.mean_queue
    );
    assert!(relative(ours.dropped as f64, theirs.dropped as f64) < 0.02);
    assert!(relative(ours.mean_queue, theirs.mean_queue) < 0.03);
}

/// Thresholds in bytes, packets of 250 to 1249 bytes: the same numbers are dropped of each size.
#[test]
fn red_by_bytes_drops_as_many_of_each_size() {
    let Some((events, _)) = ns2("red-bytes") else {
        return;
    };
    let settings = RedSettings {
        measure: Measure::Bytes,
        minimum_threshold: 5000.0,
        maximum_threshold: 15_000.0,
        ..RED
    };
    let arrivals = || events.iter().filter(|event| event.what == '+');
    let drops = |of: &Replay| {
        let departed: HashSet<u64> = of.departures.iter().map(|(_, id)| *id).collect();
        let mut drops = [0.0; 4];
        for event in arrivals().filter(|event| !departed.contains(&event.id)) {
            drops[usize::from(event.flow)] += 1.0;
        }
        drops
    };
    let ours = drops(&replay(&events, Box::new(Red::new(settings))));
    let theirs = drops(&theirs(&events));
    println!("dropped of each size {ours:?}, and by ns-2 {theirs:?}");
    for (ours, theirs) in ours.into_iter().zip(theirs) {
        // Three standard deviations of the difference of counts whose variance is below their
        // value.
        let most = 3.0 * f64::sqrt(ours + theirs);
        assert!((ours - theirs).abs() < most, "{ours} {theirs}");
    }
}

/// Without drops the average is deterministic: busy and idle periods in turn.
#[test]
fn reds_average_is_the_same_at_every_arrival() {
    let Some((events, trace)) = ns2("red-average") else {
        return;
    };
    let text = std::fs::read_to_string(trace.with_extension("tr.average")).expect("the averages");
    let mut averages = text.lines().map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let average: f64 = fields[2].parse().expect("a value");
        (microseconds(fields[1]), average)
    });
    let mut expected = averages.next();
    let mut queue = Red::new(RedSettings {
        limit: Limit::Packets(1000),
        minimum_threshold: 1000.0,
        maximum_threshold: 3000.0,
        weight: 0.02,
        ..RED
    });
    let mut packets = PacketStore::default();
    let mut random = RandomStream::new(1, "witness", "queue");
    // The transmitter, by hand.
    let mut busy_until = Time::ZERO;
    let (mut compared, mut worst) = (0, 0.0_f64);
    for event in events.iter().filter(|event| event.what == '+') {
        let now = Time::ZERO + Span::from_micros(event.at_us);
        let mut cx = QueueCtx {
            now,
            packets: &mut packets,
            random: &mut random,
            idle: false,
        };
        let transmission = Span::from_micros(8 * event.bytes);
        while busy_until <= now && queue.packets() > 0 {
            let (packet, _) = queue.dequeue(&mut cx).expect("it waits");
            cx.packets.release(packet);
            busy_until += transmission;
        }
        let idle = busy_until <= now;
        if idle {
            queue.idle_since(busy_until);
        }
        let packet = cx.packets.insert(packet_of(event));
        assert_eq!(queue.enqueue(packet, &mut cx), Verdict::Queued);
        if idle {
            let (packet, _) = queue.dequeue(&mut cx).expect("it waits");
            cx.packets.release(packet);
            busy_until = now + transmission;
        }
        // ns-2 writes a changed average: time, and value with six digits.
        if let Some((at, average)) = expected
            && at.abs_diff(event.at_us) <= 1 + event.at_us / 100_000
        {
            worst = worst.max((queue.average() - average).abs() / average.max(1.0));
            compared += 1;
            expected = averages.next();
        }
    }
    assert_eq!(expected, None, "every value belongs to an arrival");
    println!("{compared} averages compared, the worst differs by {worst:e}");
    assert!(compared > 600, "{compared}");
    assert!(worst < 1e-5, "{worst:e}");
}

/// Reports a missing witness: a failure where all are required (`BENTPIPE_WITNESSES=required`, as
/// in continuous integration).
fn skipped(reason: &str) {
    let required = std::env::var("BENTPIPE_WITNESSES").is_ok_and(|value| value == "required");
    assert!(!required, "{reason}; BENTPIPE_WITNESSES=required");
    // Not eprintln!, whose output is hidden in passing tests.
    writeln!(std::io::stderr(), "skipped: {reason}").expect("standard error");
}
