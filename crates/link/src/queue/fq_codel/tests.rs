use bentpipe_types::{Endpoint, IpVersion, Packet, PacketStore, RandomStream, Span, Time};
use proptest::prelude::*;

use super::*;

struct Bench {
    queue: FqCodel,
    packets: PacketStore,
    random: RandomStream,
    now: Time,
}

impl Bench {
    fn new(limit: Limit, quantum: u64, flows: usize) -> Self {
        let bounds = DelayBounds {
            target: Span::from_millis(5),
            interval: Span::from_millis(100),
            ecn: false,
        };
        Self {
            queue: FqCodel::new(FqCodelSettings {
                limit,
                bounds,
                quantum: Bytes::new(quantum),
                flows,
            }),
            packets: PacketStore::default(),
            random: RandomStream::new(1, "test", "queue"),
            now: Time::ZERO,
        }
    }

    fn cx(&mut self) -> (&mut FqCodel, QueueCtx<'_>) {
        let cx = QueueCtx {
            now: self.now,
            packets: &mut self.packets,
            random: &mut self.random,
            idle: false,
        };
        (&mut self.queue, cx)
    }

    fn offer(&mut self, flow: u16, length: u64) -> Verdict {
        let mut packet = Packet::new(Endpoint::default(), Endpoint::default(), IpVersion::V4);
        packet.source.port = flow;
        packet.payload_length = (length - 40) as u16;
        let packet = self.packets.insert(packet);
        let (queue, mut cx) = self.cx();
        let verdict = queue.enqueue(packet, &mut cx);
        if verdict == Verdict::Dropped {
            self.packets.release(packet);
        }
        verdict
    }

    /// (flow, length) of the next to be sent.
    fn take(&mut self) -> Option<(u16, u64)> {
        let (queue, mut cx) = self.cx();
        let (packet, _) = queue.dequeue(&mut cx)?;
        let record = self.packets.get(packet);
        let taken = (record.source.port, record.length().get());
        self.packets.release(packet);
        Some(taken)
    }
}

/// Section 4.2: a flow that begins goes before those that have had a turn, for a quantum; then it is one of them.
#[test]
fn a_new_flow_goes_first() {
    let mut bench = Bench::new(Limit::Packets(1000), 1500, 1024);
    for _ in 0..6 {
        bench.offer(1, 1500);
        bench.offer(2, 1500);
    }
    let mut order = Vec::new();
    for _ in 0..4 {
        order.push(bench.take().expect("it waits").0);
    }
    assert_eq!(order, [1, 2, 1, 2]);
    // A short request, and then a long one.
    bench.offer(3, 100);
    for _ in 0..3 {
        bench.offer(4, 1000);
    }
    let order: Vec<u16> = std::iter::from_fn(|| bench.take())
        .map(|(f, _)| f)
        .collect();
    // 4 sends a packet, and one more, as it has 500 of its quantum left; 3 had nothing more, and is forgotten after a turn
    // among the others. Of these 2, which had sent last, has to save up first.
    assert_eq!(order[..3], [3, 4, 4]);
    assert_eq!(order[3..], [1, 4, 2, 1, 2, 1, 2, 1, 2]);
    assert_eq!(bench.packets.held(), 0);
}

/// Section 4.1.3: half of the longest queue goes, from its front.
#[test]
fn the_longest_queue_is_halved() {
    let mut bench = Bench::new(Limit::Packets(21), 1500, 1024);
    for _ in 0..20 {
        assert_eq!(bench.offer(1, 1000), Verdict::Queued);
    }
    assert_eq!(bench.offer(2, 500), Verdict::Queued);
    assert_eq!(bench.offer(2, 500), Verdict::Queued);
    assert_eq!(bench.queue.given_up().dropped, 10);
    assert_eq!(bench.queue.packets(), 12);
    // At most 64 at once.
    let mut bench = Bench::new(Limit::Packets(400), 1500, 1024);
    for _ in 0..=400 {
        bench.offer(1, 1000);
    }
    assert_eq!(bench.queue.given_up().dropped, 64);
    // A packet longer than the limit can't wait.
    let mut bench = Bench::new(Limit::Bytes(Bytes::new(100)), 1500, 8);
    assert_eq!(bench.offer(2, 50), Verdict::Queued);
    assert_eq!(bench.offer(1, 1000), Verdict::Dropped);
    assert_eq!(bench.queue.given_up().dropped, 0);
    assert_eq!(bench.take(), Some((2, 50)));
}

/// A flow that sends less than its share waits for nobody, whatever others do: nothing of it is ever dropped.
#[test]
fn a_sparse_flow_is_not_touched() {
    let mut bench = Bench::new(Limit::Packets(1000), 1500, 1024);
    let (mut greedy, mut sparse) = (0, 0);
    for millisecond in 0..20_000_u64 {
        bench.now = Time::ZERO + Span::from_millis(millisecond);
        bench.offer(1, 1500);
        if millisecond % 3 == 0 {
            bench.offer(1, 1500);
        }
        if millisecond % 20 == 0 {
            bench.offer(2, 200);
        }
        match bench.take() {
            Some((1, _)) => greedy += 1,
            Some(_) => sparse += 1,
            None => {}
        }
    }
    assert_eq!(sparse, 1000);
    assert_eq!(greedy, 19_000);
    assert!(bench.queue.control.dropped() > 1000);
}

/// Eight flows over 64 queues: at least two share one in 1 - 64! / (56! 64^8) = 36.5% of the draws.
#[test]
fn flows_share_queues_as_often_as_by_luck() {
    let mut shared = 0;
    for seed in 0..2000 {
        let mut bench = Bench::new(Limit::Packets(1000), 1500, 64);
        bench.random = RandomStream::new(seed, "test", "queue");
        for flow in 0..8 {
            bench.offer(flow, 1000);
        }
        shared += u32::from(bench.queue.shared > 0);
    }
    // Three standard deviations: 65.
    assert!(shared.abs_diff(730) < 65, "{shared}");
}

proptest! {
    /// Whatever comes and leaves, over few queues: every packet is sent, dropped, or waits; a queue with packets is in a
    /// list, once; the longest is the one that a search finds.
    #[test]
    fn every_packet_is_somewhere(
        steps in prop::collection::vec((0_u8..3, 0_u16..12, 40_u64..1500, 0_u64..20_000), 1..500),
        flows in 1_usize..8,
        limit in 1_u64..40,
        quantum in 1_u64..3000,
    ) {
        let mut bench = Bench::new(Limit::Packets(limit), quantum, flows);
        let (mut offered, mut refused, mut sent) = (0_u64, 0_u64, 0_u64);
        for (what, flow, length, microseconds) in steps {
            bench.now += Span::from_micros(microseconds);
            if what == 0 {
                let waits = bench.queue.packets() > 0;
                let taken = bench.take().is_some();
                prop_assert_eq!(taken, waits);
                sent += u64::from(taken);
                if bench.queue.packets() == 0 {
                    bench.queue.idle_since(bench.now);
                    prop_assert!(bench.queue.queues.iter().all(|queue| queue.place == Place::Nowhere));
                }
            } else {
                offered += 1;
                refused += u64::from(bench.offer(flow, length) == Verdict::Dropped);
            }
            let queue = &bench.queue;
            prop_assert!(queue.packets() <= limit);
            let gone = refused + queue.given_up().dropped;
            prop_assert_eq!(offered, gone + sent + queue.packets());
            prop_assert_eq!(bench.packets.held() as u64, queue.packets());
            let bytes: u64 = queue.queues.iter().map(|queue| queue.bytes).sum();
            prop_assert_eq!(bytes, queue.bytes());
            for (index, each) in queue.queues.iter().enumerate() {
                let index = index as u32;
                let listed = |list: &VecDeque<u32>| list.iter().filter(|other| **other == index).count();
                let places = (listed(&queue.new), listed(&queue.old));
                prop_assert_eq!(places, match each.place {
                    Place::Nowhere => (0, 0),
                    Place::New => (1, 0),
                    Place::Old => (0, 1),
                });
                prop_assert!(each.waiting.is_empty() || each.place != Place::Nowhere);
            }
            let queue = &mut bench.queue;
            let longest = queue.longest.find(&mut queue.queues);
            let most = queue.queues.iter().map(|queue| queue.bytes).max().filter(|most| *most > 0);
            prop_assert_eq!(longest.map(|index| queue.queues[index as usize].bytes), most);
        }
        while bench.take().is_some() {}
        prop_assert_eq!(bench.queue.bytes(), 0);
        prop_assert_eq!(bench.packets.held(), 0);
    }
}
