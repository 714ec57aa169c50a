use proptest::prelude::*;

use super::*;

fn range(start: u64, end: u64) -> Range {
    Range { start, end }
}

fn reported(reassembly: &Reassembly) -> Vec<(u32, u32)> {
    reassembly
        .blocks()
        .unwrap_or_default()
        .as_slice()
        .iter()
        .map(|b| (b.start.get(), b.end.get()))
        .collect()
}

#[test]
fn rfc2018_section_4_case_3_reports_the_latest_first() {
    // Every other segment of eight is lost, including the first.
    let mut reassembly = Reassembly::new(100);
    for start in [5500, 6500, 7500, 8500] {
        assert_eq!(reassembly.insert(range(start, start + 500)), Inserted::New);
    }
    assert_eq!(
        reported(&reassembly),
        [(8500, 9000), (7500, 8000), (6500, 7000), (5500, 6000)]
    );
    // A segment that joins two ranges merges them, and comes first.
    reassembly.insert(range(7000, 7500));
    assert_eq!(
        reported(&reassembly),
        [(6500, 8000), (8500, 9000), (5500, 6000)]
    );
    assert_eq!(reassembly.advance(5500), 6000);
    assert_eq!(reported(&reassembly), [(6500, 8000), (8500, 9000)]);
}

#[test]
fn a_growing_range_is_reported_first() {
    let mut reassembly = Reassembly::new(100);
    for (start, end) in [
        (10, 20),
        (30, 40),
        (40, 50),
        (60, 70),
        (15, 22),
        (70, 80),
        (80, 90),
    ] {
        reassembly.insert(range(start, end));
    }
    assert_eq!(reported(&reassembly), [(60, 90), (10, 22), (30, 50)]);
}

#[test]
fn only_four_blocks_are_reported() {
    let mut reassembly = Reassembly::new(100);
    for n in 0..6 {
        reassembly.insert(range(10 + 10 * n, 15 + 10 * n));
    }
    assert_eq!(reported(&reassembly).len(), 4);
    assert_eq!(reassembly.len(), 6);
}

/// tcp_sack_new_ofo_skb, as observed with Linux 6.18
/// (crates/testkit/scripts/linux/receiver-943.pkt).
#[test]
fn with_forgetting_only_remembered_blocks_are_merged() {
    let mut reassembly = Reassembly::new(100).with_linux_blocks(true);
    for start in [10, 30, 50, 70, 90] {
        reassembly.insert(range(start, start + 10));
    }
    let remembered = [(90, 100), (70, 80), (50, 60), (30, 40)];
    assert_eq!(reported(&reassembly), remembered);
    // The block from 10 on is forgotten.
    reassembly.insert(range(20, 25));
    assert_eq!(
        reported(&reassembly),
        [(20, 25), (90, 100), (70, 80), (50, 60)]
    );
    // A remembered block grows and merges with those it touches.
    reassembly.insert(range(60, 70));
    assert_eq!(reported(&reassembly), [(50, 80), (20, 25), (90, 100)]);
    reassembly.insert(range(100, 110));
    assert_eq!(reported(&reassembly), [(90, 110), (50, 80), (20, 25)]);
    // Duplicate or partly duplicate data is reported in the same way.
    let known = range(12, 22);
    assert!(matches!(reassembly.insert(known), Inserted::Overlapping(_)));
    assert_eq!(reported(&reassembly), [(12, 25), (90, 110), (50, 80)]);
    // Without `with_linux_blocks`, complete ranges are reported.
    let mut whole = Reassembly::new(100);
    for start in [10, 30, 50, 70, 90] {
        whole.insert(range(start, start + 10));
    }
    whole.insert(range(20, 25));
    assert_eq!(reported(&whole)[0], (10, 25));
}

#[test]
fn overlaps_are_returned() {
    let mut reassembly = Reassembly::new(100);
    reassembly.insert(range(10, 20));
    assert_eq!(
        reassembly.insert(range(15, 25)),
        Inserted::Overlapping(range(15, 20))
    );
    assert_eq!(
        reassembly.insert(range(12, 18)),
        Inserted::Overlapping(range(12, 18))
    );
    assert_eq!(reassembly.containing(24), Some(range(10, 25)));
    assert_eq!(reassembly.containing(25), None);
    assert_eq!(reassembly.containing(9), None);
}

#[test]
fn number_of_ranges_is_limited() {
    let mut reassembly = Reassembly::new(50);
    let mut refused = 0;
    for n in 0..1000 {
        if reassembly.insert(range(2 * n + 10, 2 * n + 11)) == Inserted::Refused {
            refused += 1;
        }
    }
    assert_eq!((reassembly.len(), refused), (50, 950));
    // Data that extends a range is accepted.
    assert_eq!(reassembly.insert(range(11, 12)), Inserted::New);
}

proptest! {
    /// Comparison with a set of bytes.
    #[test]
    fn agrees_with_a_set_of_bytes(segments in proptest::collection::vec((1_u64..200, 1_u64..30, any::<bool>()), 1..80), forgets in any::<bool>()) {
        let mut reassembly = Reassembly::new(1000).with_linux_blocks(forgets);
        let mut bytes = [false; 300];
        let mut next = 1;
        for (start, length, in_order) in segments {
            let start = if in_order { next } else { start };
            let end = start + length;
            if end <= next || end > 290 {
                continue;
            }
            if start <= next {
                for byte in &mut bytes[next as usize..end as usize] {
                    *byte = true;
                }
                next = reassembly.advance(end);
            } else {
                let some = bytes[start as usize..end as usize].iter().any(|&b| b);
                let inserted = reassembly.insert(range(start, end));
                prop_assert_eq!(inserted != Inserted::New, some);
                for byte in &mut bytes[start as usize..end as usize] {
                    *byte = true;
                }
            }
            let expected = (next as usize..300).find(|&i| !bytes[i]).unwrap_or(300) as u64;
            prop_assert_eq!(next, expected);
            let mut previous = next;
            for r in reassembly.ranges().into_iter().flatten() {
                prop_assert!(r.start > previous && r.end > r.start);
                prop_assert!(bytes[r.start as usize..r.end as usize].iter().all(|&b| b));
                previous = r.end;
            }
            let blocks: SackBlocks = reassembly.recent().iter().map(|range| range.block(Seq::default())).collect();
            prop_assert_eq!(reassembly.blocks().unwrap_or_default(), blocks);
            for r in reassembly.recent() {
                let is_there = |range: &Range| if forgets { range.start <= r.start && r.end <= range.end } else { range == r };
                prop_assert!(reassembly.ranges().is_some_and(|ranges| ranges.iter().any(is_there)), "{:?} is reported but not held", r);
                let touches = |other: &&Range| other.start <= r.end && r.start <= other.end;
                prop_assert_eq!(reassembly.recent().iter().filter(touches).count(), 1, "{:?} touches another one", r);
            }
        }
    }
}
