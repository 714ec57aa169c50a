use bentpipe_types::{
    Address, Bytes, Endpoint, IpVersion, Packet, PacketStore, RandomStream, Span,
};
use proptest::prelude::*;

use super::*;

/// A class for each of the ports 1, 2, ...; other ports belong to the last class.
struct Bench {
    queue: Classes,
    packets: PacketStore,
    random: RandomStream,
    now: Time,
}

impl Bench {
    fn new(service: Service, limit: Limit, weights: &[u32]) -> Self {
        let classes = weights.iter().zip(1..).map(|(weight, port)| ClassSettings {
            name: format!("class-{port}").into(),
            packets: (port < weights.len() as u16).then(|| TrafficClass {
                ports: Some(vec![(port, port)]),
                ..TrafficClass::default()
            }),
            weight: *weight,
        });
        Self {
            queue: Classes::new(ClassesSettings {
                limit,
                service,
                classes: classes.collect(),
            }),
            packets: PacketStore::default(),
            random: RandomStream::new(1, "test", "queue"),
            now: Time::ZERO,
        }
    }

    fn offer(&mut self, port: u16, length: u64) -> Verdict {
        let mut packet = Packet::new(Endpoint::default(), Endpoint::default(), IpVersion::V4);
        packet.destination.port = port;
        packet.payload_length = (length - 40) as u16;
        let packet = self.packets.insert(packet);
        let verdict = self.queue.enqueue(
            packet,
            &mut QueueCtx {
                now: self.now,
                packets: &mut self.packets,
                random: &mut self.random,
                idle: false,
            },
        );
        if verdict == Verdict::Dropped {
            self.packets.release(packet);
        }
        verdict
    }

    /// Takes the next packet: (port, length).
    fn take(&mut self) -> Option<(u16, u64)> {
        let (packet, _) = self.queue.dequeue(&mut QueueCtx {
            now: self.now,
            packets: &mut self.packets,
            random: &mut self.random,
            idle: false,
        })?;
        let record = self.packets.get(packet);
        let taken = (record.destination.port, record.length().get());
        self.packets.release(packet);
        Some(taken)
    }
}

const ROOM: Limit = Limit::Packets(1_000_000);

#[test]
fn the_first_backlogged_class_by_priority_sends() {
    let mut bench = Bench::new(Service::Priority, ROOM, &[1, 1, 1]);
    for port in [9, 2, 1, 2, 1] {
        bench.offer(port, 100);
    }
    let order: Vec<u16> = std::iter::from_fn(|| bench.take()).map(|t| t.0).collect();
    assert_eq!(order, [1, 1, 2, 2, 9]);
}

#[test]
fn at_a_full_queue_the_last_class_drops_from_its_front() {
    let mut bench = Bench::new(Service::Priority, Limit::Packets(3), &[1, 1]);
    for length in [100, 200] {
        assert_eq!(bench.offer(9, length), Verdict::Queued);
    }
    for _ in 0..3 {
        assert_eq!(bench.offer(1, 60), Verdict::Queued);
    }
    // It has no other packet to drop than the arriving one.
    assert_eq!(bench.offer(9, 300), Verdict::Dropped);
    assert_eq!(bench.queue.given_up().dropped, 2);
    let counts = bench.queue.classes();
    assert_eq!((counts[0].dropped, counts[1].dropped), (0, 3));
    assert_eq!(counts[0].packets, 3);
    assert_eq!(bench.packets.held(), 3);
}

#[test]
fn at_a_full_queue_the_class_with_most_bytes_per_weight_drops() {
    let mut bench = Bench::new(Service::Weighted, Limit::Bytes(Bytes::new(1000)), &[4, 1]);
    bench.offer(1, 700);
    bench.offer(9, 300);
    // 700 / 4 is less than 300 / 1.
    assert_eq!(bench.offer(1, 100), Verdict::Queued);
    assert_eq!(bench.queue.classes()[1].dropped, 1);
}

#[test]
fn shares_of_backlogged_classes_follow_the_weights() {
    let mut bench = Bench::new(Service::Weighted, ROOM, &[5_000, 2_500, 1_000]);
    for port in 1..=3 {
        for n in 0..4_000 {
            bench.offer(port, 40 + (n * 7919 * u64::from(port)) % 1461);
        }
    }
    let mut sent = [0; 3];
    for _ in 0..3_000 {
        let (port, length) = bench.take().unwrap();
        sent[usize::from(port) - 1] += length;
    }
    let all: u64 = sent.iter().sum();
    for (bytes, weight) in sent.iter().zip([5.0, 2.5, 1.0]) {
        let share = *bytes as f64 / all as f64;
        assert!((share - weight / 8.5).abs() < 0.001, "{share} of {weight}");
    }
}

#[test]
fn a_class_backlogged_again_gets_no_more_than_its_share() {
    let mut bench = Bench::new(Service::Weighted, ROOM, &[1, 1]);
    for _ in 0..1_000 {
        bench.offer(1, 1000);
    }
    for _ in 0..500 {
        bench.take();
    }
    // It was idle for 500 packets, which are not made up for.
    for _ in 0..100 {
        bench.offer(9, 1000);
    }
    let turns: Vec<u16> = (0..100).filter_map(|_| bench.take()).map(|t| t.0).collect();
    assert_eq!(turns.iter().filter(|port| **port == 9).count(), 50);
}

#[test]
fn classes_report_the_waiting_times_of_their_packets() {
    let mut bench = Bench::new(Service::Priority, ROOM, &[1, 1]);
    bench.offer(1, 100);
    bench.offer(9, 150);
    bench.now += Span::from_millis(30);
    bench.take();
    bench.now += Span::from_millis(20);
    bench.take();
    let [first, second] = bench.queue.classes() else {
        panic!("two classes")
    };
    assert_eq!(first.waits.mean(), Some(Span::from_millis(30)));
    assert_eq!(second.waits.mean(), Some(Span::from_millis(50)));
    assert_eq!((first.sent_bytes, second.sent_bytes), (100, 150));
}

#[test]
fn flows_are_matched_by_the_ports_of_the_initiator_in_both_directions() {
    let flow = |opener_ports, server_ports: Option<Vec<u16>>| TrafficClass {
        flows: Some(
            [Ends {
                opener: Address(1),
                opener_ports,
                server: Address(2),
                server_ports,
            }]
            .into_iter()
            .collect(),
        ),
        ..TrafficClass::default()
    };
    let packet = |from: (u16, u16), to: (u16, u16)| {
        let end = |(address, port)| Endpoint {
            address: Address(address),
            port,
        };
        Packet::new(end(from), end(to), IpVersion::V4)
    };
    let known = flow(Some((100, 110)), None);
    assert!(known.contains(&packet((1, 105), (2, 80))));
    assert!(known.contains(&packet((2, 80), (1, 110))));
    assert!(!known.contains(&packet((1, 111), (2, 80))));
    assert!(!known.contains(&packet((1, 105), (3, 80))));
    let real = flow(None, Some(vec![80]));
    assert!(real.contains(&packet((2, 80), (1, 60_000))));
    assert!(!real.contains(&packet((2, 81), (1, 60_000))));
    let both = TrafficClass {
        hosts: Some(vec![Address(7)]),
        ..flow(Some((100, 110)), None)
    };
    assert!(!both.contains(&packet((1, 105), (2, 80))), "all must fit");
}

proptest! {
    /// Section II.B, theorem 1 of the paper: while two classes are backlogged, their bytes divided
    /// by weight differ by no more than their longest packets. Every packet is accounted for, each
    /// class's in order.
    #[test]
    fn bytes_per_weight_of_backlogged_classes_differ_by_at_most_the_longest_packets(
        weights in prop::collection::vec(1_u32..5_000, 2..5),
        lengths in prop::collection::vec((0_usize..4, 40_u64..1500), 50..400),
        limit in 20_u64..400,
        service in prop_oneof![Just(Service::Priority), Just(Service::Weighted)],
    ) {
        let mut bench = Bench::new(service, Limit::Packets(limit), &weights);
        let classes = weights.len();
        let mut offered = vec![0; classes];
        for (n, (class, length)) in lengths.iter().enumerate() {
            let class = class % classes;
            offered[class] += 1;
            bench.offer(class as u16 + 1, *length);
            if n % 3 == 0 {
                bench.take();
            }
        }
        // No further arrivals: intervals in which both are backlogged.
        let mut got = vec![0.0; classes];
        let before: Vec<u64> = bench.queue.classes().iter().map(|c| c.sent).collect();
        prop_assert!(before.iter().sum::<u64>() > 0);
        loop {
            let busy: Vec<bool> = bench.queue.classes().iter().map(|c| c.packets > 0).collect();
            let Some((port, length)) = bench.take() else { break };
            let class = usize::from(port) - 1;
            match service {
                Service::Priority => prop_assert_eq!(busy.iter().position(|b| *b), Some(class)),
                Service::Weighted => {
                    got[class] += length as f64 / f64::from(weights[class]);
                    for other in (0..classes).filter(|other| busy[*other]) {
                        let bound = 1500.0 / f64::from(weights[class])
                            + 1500.0 / f64::from(weights[other]);
                        prop_assert!(got[class] - got[other] <= bound + 1e-6);
                    }
                }
            }
        }
        for (counts, offered) in bench.queue.classes().iter().zip(offered) {
            prop_assert_eq!(counts.sent + counts.dropped, offered);
            prop_assert_eq!((counts.packets, counts.bytes), (0, 0));
        }
        prop_assert_eq!(bench.packets.held(), 0);
    }
}
