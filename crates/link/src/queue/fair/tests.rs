use proptest::prelude::*;

use super::super::bench::Bench;
use super::*;

fn bench_of(limit: Limit, quantum: u64, flows: usize) -> Bench<Fair> {
    Bench::new(Fair::new(FairSettings {
        limit,
        quantum: Bytes::new(quantum),
        flows,
    }))
}

/// Takes the next packet: (flow, length).
fn next(bench: &mut Bench<Fair>) -> Option<(u16, u64)> {
    let left = bench.take()?;
    Some((left.flow, left.length))
}

/// Figures 3 and 4 of the paper: quantum 500; queue 1 holds 20, 750, 200; queue 2 500, 500; queue 3
/// 200, 600, 100; queue 4 50, 700, 180 (in order of service).
#[test]
fn order_of_service_equals_the_example_of_the_paper() {
    let mut bench = bench_of(Limit::Packets(100), 500, 8);
    let lengths: [&[u64]; 4] = [
        &[200, 750, 200],
        &[500, 500],
        &[200, 600, 100],
        &[50, 700, 180],
    ];
    for (flow, lengths) in lengths.iter().enumerate() {
        for length in *lengths {
            bench.put(flow as u16, *length);
        }
    }
    let order: Vec<_> = std::iter::from_fn(|| next(&mut bench)).collect();
    let first_round = [(0, 200), (1, 500), (2, 200), (3, 50)];
    // Queue 1 saves 300 and then sends 750 of 800; queue 2 uses its quantum; queue 3 saves 300 and
    // sends 600 and 100; queue 4 saves 450 and sends 700 and 180.
    let second_round = [(0, 750), (1, 500), (2, 600), (2, 100), (3, 700), (3, 180)];
    assert_eq!(order[..4], first_round);
    assert_eq!(order[4..10], second_round);
    assert_eq!(order[10..], [(0, 200)]);
    assert_eq!(bench.packets.held(), 0);
}

#[test]
fn the_longest_queue_drops_at_a_full_buffer() {
    let mut bench = bench_of(Limit::Packets(5), 1500, 8);
    for _ in 0..4 {
        assert_eq!(bench.put(1, 1000), Verdict::Queued);
    }
    assert_eq!(bench.put(2, 500), Verdict::Queued);
    assert_eq!(bench.put(2, 500), Verdict::Queued);
    assert_eq!(bench.queue.given_up().dropped, 1);
    // The arriving packet is of the longest queue: its first packet is dropped, and the new one is
    // queued.
    assert_eq!(bench.put(1, 1000), Verdict::Queued);
    assert_eq!(bench.queue.packets(), 5);
    let flows: Vec<u16> = std::iter::from_fn(|| next(&mut bench))
        .map(|(f, _)| f)
        .collect();
    assert_eq!(flows.iter().filter(|flow| **flow == 2).count(), 2);
    // A packet longer than the limit cannot be queued and is dropped itself.
    let mut bench = bench_of(Limit::Bytes(Bytes::new(100)), 1500, 8);
    assert_eq!(bench.put(2, 50), Verdict::Queued);
    assert_eq!(bench.put(1, 1000), Verdict::Dropped);
    assert_eq!(bench.queue.given_up().dropped, 0);
    assert_eq!(next(&mut bench), Some((2, 50)));
}

proptest! {
    /// Theorem 1 and lemma 2: while two flows are backlogged, their bytes differ by less than twice
    /// the longest packet plus a quantum.
    #[test]
    fn backlogged_flows_get_equal_shares(
        lengths in prop::collection::vec(prop::collection::vec(40_u64..1500, 60..61), 2..6),
        quantum in 1500_u64..4000,
    ) {
        let flows = lengths.len();
        let mut bench = bench_of(Limit::Packets(10_000), quantum, 64);
        for n in 0..60 {
            for (flow, lengths) in lengths.iter().enumerate() {
                bench.put(flow as u16, lengths[n]);
            }
        }
        let mut sent = vec![0_u64; flows];
        let mut left = vec![60; flows];
        while let Some((flow, length)) = next(&mut bench) {
            let flow = usize::from(flow);
            sent[flow] += length;
            left[flow] -= 1;
            let most = sent.iter().max().copied().unwrap_or(0);
            let least = sent.iter().min().copied().unwrap_or(0);
            prop_assert!(most - least < quantum + 2 * 1500, "{sent:?}");
            if left[flow] == 0 {
                break;
            }
        }
    }

    /// With any number of flows, every queue is found again and nothing is lost.
    #[test]
    fn queues_of_starting_and_ending_flows_are_reused_without_losses(
        steps in prop::collection::vec((any::<bool>(), 0_u16..40, 40_u64..1500), 1..400),
        flows in 1_usize..8,
        limit in 1_u64..30,
    ) {
        let mut bench = bench_of(Limit::Packets(limit), 600, flows);
        for (take, flow, length) in steps {
            if take {
                let waits = bench.queue.packets() > 0;
                prop_assert_eq!(bench.take().is_some(), waits);
            } else {
                bench.put(flow, length);
            }
            let queue = &mut bench.queue;
            let longest = queue.longest.find(&mut queue.queues);
            let queue = &bench.queue;
            // The longest queue equals that of a search.
            let found = queue.queues.iter().enumerate().filter(|(_, q)| !q.waiting.is_empty());
            let found = found.max_by_key(|(_, q)| (q.bytes, std::cmp::Reverse(q.place)));
            let found = found.map(|(index, _)| index as u32);
            prop_assert_eq!(longest, found);
            let busy = queue.queues.iter().filter(|q| !q.waiting.is_empty()).count();
            prop_assert_eq!(busy, queue.active.len() - queue.abandoned);
            prop_assert_eq!(queue.free.len() + queue.flows.len(), flows.max(queue.flows.len()));
            prop_assert!(queue.packets() <= limit);
            prop_assert_eq!(bench.packets.held() as u64, queue.packets());
        }
        while bench.take().is_some() {}
        prop_assert_eq!(bench.packets.held(), 0);
        prop_assert_eq!(bench.queue.bytes(), 0);
        prop_assert_eq!(bench.queue.free.len(), flows);
    }
}
