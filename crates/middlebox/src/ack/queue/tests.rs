use bentpipe_link::Verdict;
use bentpipe_types::{Flags, PacketRef};

use super::*;
use crate::ack::KeepReason;
use crate::testing::{Ack, Bench, ack};

const MARKS: WaterMarks = WaterMarks {
    low: 4,
    high: 60,
    duplicates: u32::MAX,
};

const MANY: Limit = Limit::Packets(10_000);

fn queue(method: Method) -> Box<dyn QueueDiscipline> {
    method.queue(MANY, 8)
}

fn suppressing(limit: Limit) -> ThinningQueue {
    ThinningQueue::suppressing(MARKS, limit, 8)
}

/// Offers acknowledgments and removes all that are left in the queue.
fn pass(queue: &mut dyn QueueDiscipline, bench: &mut Bench, acks: &[Ack]) -> Vec<PacketRef> {
    for ack in acks {
        let packet = ack.insert(&mut bench.packets);
        assert_eq!(queue.enqueue(packet, &mut bench.cx()), Verdict::Queued);
    }
    drain(queue, bench)
}

fn drain(queue: &mut dyn QueueDiscipline, bench: &mut Bench) -> Vec<PacketRef> {
    let mut out = Vec::new();
    while let Some((packet, _)) = queue.dequeue(&mut bench.cx()) {
        out.push(packet);
    }
    assert_eq!((queue.packets(), queue.bytes()), (0, 0));
    assert_eq!(bench.packets.held(), out.len());
    out
}

fn numbers(method: Method, acks: &[Ack]) -> Vec<u32> {
    let mut bench = Bench::default();
    let out = pass(&mut *queue(method), &mut bench, acks);
    bench.numbers(&out)
}

fn suppressed(acks: &[Ack]) -> Vec<u32> {
    numbers(Method::Suppression(MARKS), acks)
}

fn advancing(count: u32) -> Vec<Ack> {
    (1..=count).map(|i| ack(1000 * i)).collect()
}

#[test]
fn no_acknowledgments_are_removed_up_to_the_low_mark() {
    assert_eq!(suppressed(&advancing(4)), [1000, 2000, 3000, 4000]);
    // The first of a flow is kept: it might be a duplicate of an earlier one.
    assert_eq!(suppressed(&advancing(5)), [1000, 2000, 3000, 4000, 5000]);
    assert_eq!(suppressed(&advancing(6)), [1000, 6000]);
}

#[test]
fn one_acknowledgment_replaces_at_most_the_high_mark() {
    let mut expected = vec![1000];
    // 2 to 61 are removed, 62 stays, and so on; the last four are within the low-water mark.
    expected.extend([62_000, 123_000]);
    expected.extend((124..=127).map(|i| 1000 * i));
    assert_eq!(suppressed(&advancing(127)), expected);
}

#[test]
fn acknowledgments_are_counted_per_flow() {
    let mut acks = advancing(4);
    acks.extend((1..=8).map(|i| ack(1000 * i).port(6000)));
    assert_eq!(
        suppressed(&acks),
        [1000, 2000, 3000, 4000, 1000, 8000],
        "four of the first flow stay"
    );
}

#[test]
fn duplicates_and_their_original_are_kept() {
    let mut acks = advancing(10);
    acks.extend([ack(10_000), ack(10_000), ack(10_000)]);
    acks.extend((11..=20).map(|i| ack(1000 * i)));
    assert_eq!(
        suppressed(&acks),
        [1000, 10_000, 10_000, 10_000, 10_000, 20_000]
    );
}

#[test]
fn acknowledgments_with_data_or_flags_are_kept() {
    let middle = |odd: Ack| {
        let mut acks = advancing(10);
        acks.push(odd);
        acks.extend((12..=20).map(|i| ack(1000 * i)));
        suppressed(&acks)
    };
    let stays = [1000, 10_000, 11_000, 20_000];
    for odd in [
        ack(11_000).payload(1),
        ack(11_000).flags(Flags::ACK.with(Flags::FIN)),
        ack(11_000).flags(Flags::ACK.with(Flags::SYN)),
        ack(11_000).flags(Flags::ACK.with(Flags::RST)),
        ack(11_000).flags(Flags::ACK.with(Flags::URG)),
        ack(11_000).flags(Flags::ACK.with(Flags::CWR)),
        ack(11_000).flags(Flags::ACK.with(Flags::PSH)),
    ] {
        assert_eq!(middle(odd.clone()), stays, "{odd:?}");
    }
    assert_eq!(middle(ack(11_000)), [1000, 20_000]);
    // A window update repeats a number; the packet that it repeats stays as well.
    assert_eq!(
        middle(ack(10_000).window(61_000)),
        [1000, 10_000, 10_000, 20_000]
    );
    // ECE changes: the last packet with it and the last one without it stay.
    let mut acks = advancing(10);
    acks.extend((11..=15).map(|i| ack(1000 * i).flags(Flags::ACK.with(Flags::ECE))));
    acks.extend((16..=26).map(|i| ack(1000 * i)));
    assert_eq!(suppressed(&acks), [1000, 10_000, 15_000, 26_000]);
}

#[test]
fn acknowledgments_with_unknown_options_are_kept() {
    let mut bench = Bench::default();
    let mut queue = suppressing(MANY);
    for i in 1..=12 {
        let packet = ack(1000 * i).insert(&mut bench.packets);
        if i == 6 {
            bench.packets.get_mut(packet).header_length += 4;
        }
        queue.enqueue(packet, &mut bench.cx());
    }
    let out = drain(&mut queue, &mut bench);
    assert_eq!(bench.numbers(&out), [1000, 5000, 6000, 12_000]);
    assert_eq!(queue.totals().kept(KeepReason::Options), 1);
}

#[test]
fn sack_blocks_are_kept_unless_a_later_acknowledgment_repeats_them() {
    let run = |blocks: &[(u32, u32)], later: &[(u32, u32)]| {
        let mut acks = advancing(8);
        acks.push(ack(9000).blocks(blocks));
        acks.extend((10..=16).map(|i| ack(1000 * i).blocks(later)));
        suppressed(&acks)
    };
    let both = [1000, 9000, 16_000];
    let last = [1000, 16_000];
    assert_eq!(run(&[(20_000, 21_000)], &[]), both);
    assert_eq!(run(&[(20_000, 21_000)], &[(20_000, 21_000)]), last);
    assert_eq!(run(&[(20_000, 21_000)], &[(19_000, 22_000)]), last);
    assert_eq!(run(&[(20_000, 21_000)], &[(20_000, 20_500)]), both);
    // Acknowledged meanwhile.
    assert_eq!(run(&[(9500, 10_000)], &[]), last);
    // D-SACKs: below the number, or within the next block.
    assert_eq!(run(&[(4000, 5000)], &[]), both);
    assert_eq!(
        run(
            &[(20_000, 20_500), (20_000, 21_000)],
            &[(20_000, 21_000), (30_000, 31_000)]
        ),
        both
    );
}

#[test]
fn acknowledgments_with_older_timestamps_replace_no_others() {
    let mut acks: Vec<Ack> = (1..=10)
        .map(|i| ack(1000 * i).timestamps(i, 100 + i))
        .collect();
    acks.extend((11..=20).map(|i| ack(1000 * i).timestamps(i, 90 + i)));
    assert_eq!(suppressed(&acks), [1000, 10_000, 20_000]);
}

fn compacted(acks: &[Ack]) -> Vec<(u32, Option<(u8, u16)>)> {
    let mut bench = Bench::default();
    let out = pass(&mut *queue(Method::Compaction(MARKS)), &mut bench, acks);
    out.iter()
        .map(|&packet| {
            let compaction = bench.packets.compaction(packet);
            let record = bench.packets.get(packet);
            let options = if record.has_sack_blocks() { 12 } else { 0 };
            let prefix = if compaction.is_some() { 3 } else { 0 };
            assert_eq!(record.length().get(), 40 + options + prefix);
            (
                record.acknowledgment.get(),
                compaction.map(|c| (c.count, c.bytes)),
            )
        })
        .collect()
}

#[test]
fn a_kept_acknowledgment_carries_the_count_and_bytes_of_those_removed() {
    assert_eq!(
        compacted(&advancing(12)),
        [(1000, None), (12_000, Some((10, 10_000)))]
    );
}

#[test]
fn removals_beyond_16_bits_of_bytes_are_split_over_several_acknowledgments() {
    // 1460 bytes each: 44 steps are 64,240 bytes, 45 are 65,700.
    let acks: Vec<Ack> = (1..=100).map(|i| ack(1460 * i)).collect();
    let out = compacted(&acks);
    assert_eq!(out[0], (1460, None));
    assert_eq!(out[1], (46 * 1460, Some((44, 64_240))));
    assert_eq!(out[2], (91 * 1460, Some((44, 64_240))));
    assert_eq!(out[3], (100 * 1460, Some((8, 11_680))));
    assert_eq!(out.len(), 4);
}

#[test]
fn numbers_wrap() {
    let start = u32::MAX - 5000;
    let acks: Vec<Ack> = (0..12).map(|i| ack(start.wrapping_add(1000 * i))).collect();
    let last = start.wrapping_add(11_000);
    assert_eq!(
        compacted(&acks),
        [(start, None), (last, Some((10, 10_000)))]
    );
}

#[test]
fn a_jump_after_loss_recovery_is_not_compacted() {
    let mut acks = advancing(10);
    acks.extend((30..=40).map(|i| ack(1000 * i)));
    assert_eq!(
        compacted(&acks),
        [
            (1000, None),
            (10_000, Some((8, 8000))),
            (40_000, Some((10, 10_000)))
        ]
    );
}

#[test]
fn removals_at_a_full_queue_are_written_when_the_acknowledgment_is_sent() {
    let mut bench = Bench::default();
    let mut queue = ThinningQueue::compacting(MARKS, Limit::Packets(8), 8);
    for packet in pass(&mut queue, &mut bench, &advancing(3)) {
        bench.packets.release(packet);
    }
    // Another flow's data are at the head; the queue is full when 11,000 and 17,000 arrive.
    let mut acks = vec![ack(1).port(9).payload(100)];
    acks.extend((4..=17).map(|i| ack(1000 * i)));
    let out = pass(&mut queue, &mut bench, &acks);
    // Compacted at once, five at a time, they would fill the queue and stay in it.
    assert_eq!(bench.numbers(&out), [1, 17_000]);
    let counts: Vec<_> = out
        .iter()
        .map(|&packet| bench.packets.compaction(packet).map(|c| (c.count, c.bytes)))
        .collect();
    assert_eq!(counts, [None, Some((13, 13_000))]);
    assert_eq!(queue.given_up().removed, 13);
}

#[test]
fn the_kept_acknowledgment_takes_the_position_of_the_oldest() {
    let mut bench = Bench::default();
    for method in [Method::Suppression(MARKS), Method::Compaction(MARKS)] {
        let mut queue = queue(method);
        for packet in pass(&mut *queue, &mut bench, &advancing(1)) {
            bench.packets.release(packet);
        }
        // Data of an upload are between the acknowledgments, whose content does not wait for them.
        let mut acks = Vec::new();
        for i in 2..=8 {
            acks.extend([ack(1000 * i), ack(i).port(9).payload(1000)]);
        }
        let out = pass(&mut *queue, &mut bench, &acks);
        assert_eq!(bench.numbers(&out), [8000, 2, 3, 4, 5, 6, 7, 8]);
        out.into_iter()
            .for_each(|packet| bench.packets.release(packet));
    }
    for aggressive in [false, true] {
        let mut acks = Vec::new();
        for i in 2..=8 {
            acks.extend([ack(1000 * i), ack(i).port(9).payload(1000)]);
        }
        let out = filtered(aggressive, &acks);
        if aggressive {
            assert_eq!(out, [8000, 2, 3, 4, 5, 6, 7, 8]);
        } else {
            assert_eq!(out, [7000, 2, 8000, 3, 4, 5, 6, 7, 8]);
        }
    }
}

#[test]
fn the_first_three_and_the_last_duplicate_with_sack_blocks_are_kept() {
    let dup = |i: u32| ack(2000).blocks(&[(5000, 5000 + 1000 * i)]);
    let mut acks = vec![ack(1000), ack(2000)];
    acks.extend((1..=40).map(dup));
    acks.extend((1..=10).map(|i| ack(50_000 + 1000 * i)));
    let numbers = suppressed(&acks);
    assert_eq!(numbers, [1000, 2000, 2000, 2000, 2000, 2000, 60_000]);
    assert_eq!(
        compacted(&acks[..42])
            .iter()
            .filter(|(number, compaction)| *number == 2000 && compaction.is_none())
            .count(),
        5,
        "duplicates are never restored"
    );
    // Without blocks, each of them counts for the sender.
    let mut acks = vec![ack(1000), ack(2000)];
    acks.extend((0..40).map(|_| ack(2000)));
    assert_eq!(suppressed(&acks).len(), 42);
    // Unless three are configured to suffice: those and the last one, which has the same content.
    let three = Method::Suppression(WaterMarks {
        duplicates: 3,
        ..MARKS
    });
    let expected = [1000, 2000, 2000, 2000, 2000, 2000];
    assert_eq!(self::numbers(three, &acks), expected);
    // Blocks that the next one does not cover stay.
    let mut acks = vec![ack(1000)];
    acks.extend((1..=10).map(|i| ack(1000).blocks(&[(5000 * i, 5000 * i + 1000)])));
    assert_eq!(suppressed(&acks).len(), 11);
}

#[test]
fn a_full_queue_removes_before_it_drops() {
    let mut bench = Bench::default();
    let mut queue = suppressing(Limit::Packets(6));
    let out = pass(&mut queue, &mut bench, &advancing(9)[1..]);
    // 2000 is the first of its flow; when 8000 and 9000 arrive, the oldest is dropped.
    assert_eq!(bench.numbers(&out), [2000, 9000]);
    assert_eq!(queue.totals().dropped, 0);
    let mut queue = suppressing(Limit::Packets(3));
    for i in 1..=5 {
        let packet = ack(1000 * i).insert(&mut bench.packets);
        let verdict = queue.enqueue(packet, &mut bench.cx());
        assert_eq!(verdict == Verdict::Queued, i <= 3, "{i}");
    }
    assert_eq!(queue.totals().dropped, 2);
}

#[test]
fn counters_are_kept_per_flow_and_the_table_is_bounded() {
    let mut bench = Bench::default();
    let mut queue = suppressing(MANY);
    for port in 0..20 {
        let acks: Vec<Ack> = (1..=8).map(|i| ack(1000 * i).port(port)).collect();
        let out = pass(&mut queue, &mut bench, &acks);
        out.into_iter()
            .for_each(|packet| bench.packets.release(packet));
    }
    assert_eq!(queue.flows().count(), 8);
    assert!(queue.flows().all(|(_, counters)| counters.removed == 6));
    assert_eq!(queue.totals().removed, 20 * 6);
    let (mut removed, mut forgotten) = ((0, 0), (0, 0));
    queue.tally(&mut |flow, name, value| {
        if name == "acks_removed" {
            let sum = if flow.is_some() {
                &mut removed.0
            } else {
                &mut removed.1
            };
            *sum += value;
        }
        match name {
            "flows_forgotten" => forgotten.0 += value,
            "flows_refused" => forgotten.1 += value,
            _ => (),
        }
    });
    assert_eq!(forgotten, (12, 0));
    assert_eq!(removed, (48, 120));
}

fn filtered(aggressive: bool, acks: &[Ack]) -> Vec<u32> {
    numbers(Method::Filter { aggressive }, acks)
}

#[test]
fn the_filter_keeps_one_or_two_acknowledgments_per_flow() {
    assert_eq!(filtered(false, &advancing(5)), [4000, 5000]);
    assert_eq!(filtered(true, &advancing(5)), [5000]);
}

#[test]
fn the_filter_keeps_duplicates_without_a_later_advance() {
    let acks = [ack(1000), ack(2000), ack(2000), ack(2000), ack(2000)];
    assert_eq!(filtered(false, &acks), [1000, 2000, 2000, 2000, 2000]);
    // They are dropped one by one from the front when later ones advance.
    let mut more = acks.to_vec();
    more.extend([ack(3000), ack(4000)]);
    assert_eq!(filtered(false, &more), [2000, 2000, 2000, 3000, 4000]);
}

#[test]
fn the_filter_drops_duplicates_with_growing_sack_blocks() {
    let acks: Vec<Ack> = (1..=5)
        .map(|i| ack(1000).blocks(&[(2000, 2000 + 1000 * i)]))
        .collect();
    assert_eq!(filtered(true, &acks).len(), 1);
    assert_eq!(filtered(false, &acks).len(), 2);
    // A D-SACK stays.
    let mut with_duplicate = vec![ack(1000), ack(2000).blocks(&[(500, 1000)])];
    with_duplicate.extend((3..=6).map(|i| ack(1000 * i)));
    assert_eq!(filtered(true, &with_duplicate), [2000, 6000]);
}

#[test]
fn the_filter_keeps_ecn_changes_data_and_flags() {
    let ece = Flags::ACK.with(Flags::ECE);
    let mut acks = advancing(3);
    acks.extend((4..=6).map(|i| ack(1000 * i).flags(ece)));
    acks.extend((7..=9).map(|i| ack(1000 * i)));
    assert_eq!(filtered(true, &acks), [3000, 6000, 9000]);
    let mut acks = advancing(3);
    acks.push(ack(4000).payload(10));
    acks.extend((5..=9).map(|i| ack(1000 * i)));
    // In aggressive mode nothing may be between the last one and its replacement.
    assert_eq!(filtered(true, &acks), [4000, 9000]);
}
