use bentpipe_types::{Ecn, RandomStream, Span, Time};
use proptest::prelude::*;

use super::super::bench::{Bench, Done};
use super::*;

fn bench_of(limit: Limit, quantum: u64, flows: usize) -> Bench<FqCodel> {
    let bounds = DelayBounds {
        target: Span::from_millis(5),
        interval: Span::from_millis(100),
        ecn: false,
    };
    Bench::new(FqCodel::new(FqCodelSettings {
        limit,
        bounds,
        quantum: Bytes::new(quantum),
        flows,
    }))
}

/// Takes the next packet and returns its flow.
fn next(bench: &mut Bench<FqCodel>) -> Option<u16> {
    Some(bench.take()?.flow)
}

/// Section 4.2: a new flow is served before those that have had a turn, for one quantum; then it is
/// one of them.
#[test]
fn a_new_flow_is_served_first_for_one_quantum() {
    let mut bench = bench_of(Limit::Packets(1000), 1500, 1024);
    for _ in 0..6 {
        bench.put(1, 1500);
        bench.put(2, 1500);
    }
    let mut order = Vec::new();
    for _ in 0..4 {
        order.push(next(&mut bench).expect("it waits"));
    }
    assert_eq!(order, [1, 2, 1, 2]);
    // A short request, then a long one.
    bench.put(3, 100);
    for _ in 0..3 {
        bench.put(4, 1000);
    }
    let order: Vec<u16> = std::iter::from_fn(|| next(&mut bench)).collect();
    // 4 sends two packets, as 500 bytes of its quantum are left; 3 is empty, and is removed after a
    // turn among the old ones. 2, which sent last, must first save up.
    assert_eq!(order[..3], [3, 4, 4]);
    assert_eq!(order[3..], [1, 4, 2, 1, 2, 1, 2, 1, 2]);
    assert_eq!(bench.packets.held(), 0);
}

/// Section 4.1.3: half of the longest queue is dropped from its front.
#[test]
fn the_longest_queue_is_halved() {
    let mut bench = bench_of(Limit::Packets(21), 1500, 1024);
    for _ in 0..20 {
        assert_eq!(bench.put(1, 1000), Verdict::Queued);
    }
    assert_eq!(bench.put(2, 500), Verdict::Queued);
    assert_eq!(bench.put(2, 500), Verdict::Queued);
    assert_eq!(bench.queue.given_up().dropped, 10);
    assert_eq!(bench.queue.packets(), 12);
    // At most 64 at once.
    let mut bench = bench_of(Limit::Packets(400), 1500, 1024);
    for _ in 0..=400 {
        bench.put(1, 1000);
    }
    assert_eq!(bench.queue.given_up().dropped, 64);
    // A packet longer than the limit cannot be queued.
    let mut bench = bench_of(Limit::Bytes(Bytes::new(100)), 1500, 8);
    assert_eq!(bench.put(2, 50), Verdict::Queued);
    assert_eq!(bench.put(1, 1000), Verdict::Dropped);
    assert_eq!(bench.queue.given_up().dropped, 0);
    assert_eq!(next(&mut bench), Some(2));
}

/// A flow that sends less than its share never waits for others and loses nothing.
#[test]
fn a_sparse_flow_has_no_losses() {
    let mut bench = bench_of(Limit::Packets(1000), 1500, 1024);
    let (mut greedy, mut sparse) = (0, 0);
    for millisecond in 0..20_000_u64 {
        bench.now = Time::ZERO + Span::from_millis(millisecond);
        bench.put(1, 1500);
        if millisecond % 3 == 0 {
            bench.put(1, 1500);
        }
        if millisecond % 20 == 0 {
            bench.put(2, 200);
        }
        match next(&mut bench) {
            Some(1) => greedy += 1,
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
fn flows_share_queues_as_often_as_random_hashing_predicts() {
    let mut shared = 0;
    for seed in 0..2000 {
        let mut bench = bench_of(Limit::Packets(1000), 1500, 64);
        bench.random = RandomStream::new(seed, "test", "queue");
        for flow in 0..8 {
            bench.put(flow, 1000);
        }
        shared += u32::from(bench.queue.shared > 0);
    }
    // Three standard deviations: 65.
    assert!(shared.abs_diff(730) < 65, "{shared}");
}

proptest! {
    /// Under any arrivals and departures, with few queues: every packet is sent, dropped or queued;
    /// a non-empty queue is in one list, once; the longest equals that of a search.
    #[test]
    fn every_packet_is_accounted_for(
        steps in prop::collection::vec((0_u8..3, 0_u16..12, 40_u64..1500, 0_u64..20_000), 1..500),
        flows in 1_usize..8,
        limit in 1_u64..40,
        quantum in 1_u64..3000,
    ) {
        let mut bench = bench_of(Limit::Packets(limit), quantum, flows);
        let mut done = Done::default();
        for (what, flow, length, microseconds) in steps {
            bench.step((what, flow, length, Span::from_micros(microseconds)), Ecn::NotCapable, &mut done)?;
            if what == 0 && bench.queue.packets() == 0 {
                bench.queue.idle_since(bench.now);
                prop_assert!(bench.queue.queues.iter().all(|queue| queue.place == Place::Nowhere));
            }
            let queue = &bench.queue;
            prop_assert!(queue.packets() <= limit);
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
