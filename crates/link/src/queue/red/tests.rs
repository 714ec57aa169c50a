use bentpipe_types::{Endpoint, IpVersion, Packet, PacketStore, RandomStream};

use super::*;

const SETTINGS: RedSettings = RedSettings {
    limit: Limit::Packets(1_000_000),
    measure: Measure::Packets,
    minimum_threshold: 5.0,
    maximum_threshold: 15.0,
    maximum_probability: 0.02,
    weight: 0.002,
    gentle: false,
    ecn: false,
    mean_packet: Bytes::new(1000),
    mean_transmission: Span::from_millis(1),
};

struct Bench {
    queue: Red,
    packets: PacketStore,
    random: RandomStream,
    now: Time,
}

impl Bench {
    fn new(settings: RedSettings) -> Self {
        Self {
            queue: Red::new(settings),
            packets: PacketStore::default(),
            random: RandomStream::new(11, "test", "queue"),
            now: Time::ZERO,
        }
    }

    fn offer(&mut self, length: u16, ecn: Ecn) -> (Verdict, PacketRef) {
        let mut packet = Packet::new(Endpoint::default(), Endpoint::default(), IpVersion::V4);
        packet.payload_length = length - 40;
        packet.set_ecn(ecn);
        let packet = self.packets.insert(packet);
        let mut cx = QueueCtx {
            now: self.now,
            packets: &mut self.packets,
            random: &mut self.random,
            idle: false,
        };
        (self.queue.enqueue(packet, &mut cx), packet)
    }

    fn take(&mut self) {
        let mut cx = QueueCtx {
            now: self.now,
            packets: &mut self.packets,
            random: &mut self.random,
            idle: false,
        };
        let (packet, _) = self.queue.dequeue(&mut cx).expect("something waits");
        self.packets.release(packet);
    }

    /// Fills the queue to `length` and sets the average to `average`.
    fn hold(&mut self, length: u64, average: f64) {
        while self.queue.waiting.packets() < length {
            let packet = Packet::new(Endpoint::default(), Endpoint::default(), IpVersion::V4);
            let packet = self.packets.insert(packet);
            self.queue.waiting.push(packet, Bytes::new(1000));
        }
        self.queue.average = average;
    }

    /// Offers packets to a queue of this length and average. Returns the gaps between drops.
    fn gaps(&mut self, length: u64, average: f64, offers: u32, size: u16) -> Vec<u32> {
        let (mut gaps, mut gap) = (Vec::new(), 0);
        for _ in 0..offers {
            self.hold(length, average);
            gap += 1;
            match self.offer(size, Ecn::NotCapable).0 {
                Verdict::Dropped => gaps.push(std::mem::take(&mut gap)),
                Verdict::Queued => {
                    let _ = self.queue.waiting.pop();
                }
            }
        }
        gaps
    }
}

/// Section 6: after L packets to a queue that grows by one each, from empty and an average of 0,
/// the average is L + 1 + ((1 - w)^(L+1) - 1) / w.
#[test]
fn the_average_follows_the_closed_form() {
    let mut bench = Bench::new(RedSettings {
        minimum_threshold: 1e9,
        maximum_threshold: 2e9,
        ..SETTINGS
    });
    for _ in 0..51 {
        assert_eq!(bench.offer(1000, Ecn::NotCapable).0, Verdict::Queued);
    }
    // The 51st packet finds 50: L is 50.
    let (l, w) = (50.0_f64, 0.002_f64);
    let expected = l + 1.0 + (libm::pow(1.0 - w, l + 1.0) - 1.0) / w;
    let average = bench.queue.average();
    assert!((average - expected).abs() < 1e-9, "{average} {expected}");
    // The paper's own number: with w = 0.001 a burst of 50 leaves the average below 5 (figure 4).
    assert!(expected < 5.0);
}

#[test]
fn an_idle_time_counts_as_many_small_packets() {
    let mut bench = Bench::new(SETTINGS);
    bench.hold(3, 4.0);
    for _ in 0..3 {
        bench.take();
    }
    bench.queue.idle_since(Time::ZERO + Span::from_millis(10));
    bench.now = Time::ZERO + Span::from_micros(110_500);
    assert_eq!(bench.offer(1000, Ecn::NotCapable).0, Verdict::Queued);
    // 100.5 ms are 100 packets of 1 ms, and the queue is empty.
    let expected = 4.0 * 0.998_f64.powi(100) * 0.998;
    assert!((bench.queue.average() - expected).abs() < 1e-12);
}

/// Section 7, method 2: gaps between drops are uniform. Figure 2 counts the packet itself, so they
/// are 1 to 1/p - 1 with mean 1/(2p).
#[test]
fn drops_are_spread_uniformly() {
    // The weight changes the average by less than 1e-9 each time; p_b is 0.02 * 5/10.
    let mut bench = Bench::new(RedSettings {
        weight: 1e-12,
        ..SETTINGS
    });
    let gaps = bench.gaps(10, 10.0, 400_000, 1000);
    let gaps = &gaps[1..];
    let mean = gaps.iter().map(|gap| f64::from(*gap)).sum::<f64>() / gaps.len() as f64;
    // About 7,900 gaps of standard deviation 28.9: the mean's is 0.33.
    assert!((mean - 50.0).abs() < 1.3, "{mean} of {}", gaps.len());
    assert!(gaps.iter().all(|gap| (1..=99).contains(gap)));
    for decile in 0..10 {
        let here = gaps.iter().filter(|gap| (**gap - 1) / 10 == decile).count() as f64;
        let share = here / gaps.len() as f64;
        assert!((share - 0.1).abs() < 0.015, "{decile}: {share}");
    }
}

#[test]
fn long_packets_are_dropped_more_often_by_bytes() {
    let bytes = RedSettings {
        measure: Measure::Bytes,
        minimum_threshold: 5_000.0,
        maximum_threshold: 15_000.0,
        weight: 1e-12,
        ..SETTINGS
    };
    let drops = |length| {
        let mut bench = Bench::new(bytes);
        bench.gaps(10, 10_000.0, 100_000, length).len() as f64
    };
    let ratio = drops(1500) / drops(500);
    assert!((ratio - 3.0).abs() < 0.2, "{ratio}");

    // The same in one queue. The packet itself is counted, so long ones are dropped slightly later.
    let mut bench = Bench::new(bytes);
    let mut drops = [0.0_f64; 2];
    for n in 0..400_000 {
        bench.hold(10, 10_000.0);
        match bench.offer([500, 1500][n % 2], Ecn::NotCapable).0 {
            Verdict::Dropped => drops[n % 2] += 1.0,
            Verdict::Queued => {
                let _ = bench.queue.waiting.pop();
            }
        }
    }
    let ratio = drops[1] / drops[0];
    assert!((ratio - 3.0).abs() < 0.3, "{ratio}");
}

#[test]
fn all_packets_beyond_the_maximum_are_dropped_or_gradually_more_with_gentle() {
    let mut bench = Bench::new(SETTINGS);
    assert_eq!(bench.gaps(20, 16.0, 100, 1000).len(), 100);
    let gentle = RedSettings {
        gentle: true,
        weight: 1e-12,
        ..SETTINGS
    };
    let mut bench = Bench::new(gentle);
    // A quarter of the way from 15 to 30, p_b is 0.02 + 0.98/4 = 0.265: a gap of 1 with probability
    // 0.265/0.735, else of 2 with 0.265/0.47, else of 3.
    let gaps = bench.gaps(25, 18.75, 30_000, 1000);
    let mean = 30_000.0 / gaps.len() as f64;
    assert!((mean - 1.9185).abs() < 0.02, "{mean}");
    assert_eq!(bench.gaps(40, 30.0, 100, 1000).len(), 100);
}

#[test]
fn ecn_capable_packets_are_marked_if_enabled() {
    let certain = RedSettings {
        maximum_probability: 1.0,
        weight: 1e-12,
        ecn: true,
        ..SETTINGS
    };
    let mut bench = Bench::new(certain);
    let mut marked = 0;
    for _ in 0..50 {
        bench.hold(10, 14.999);
        let (verdict, packet) = bench.offer(1000, Ecn::Capable0);
        assert_eq!(verdict, Verdict::Queued);
        marked += u32::from(bench.packets.get(packet).ecn() == Ecn::Congestion);
    }
    assert!(marked > 45, "{marked}");
    assert!(!bench.gaps(10, 14.999, 50, 1000).is_empty());
    let mut bench = Bench::new(RedSettings {
        ecn: false,
        ..certain
    });
    bench.hold(10, 14.999);
    let verdicts: Vec<_> = (0..3).map(|_| bench.offer(1000, Ecn::Capable0).0).collect();
    assert!(verdicts.contains(&Verdict::Dropped));
}
