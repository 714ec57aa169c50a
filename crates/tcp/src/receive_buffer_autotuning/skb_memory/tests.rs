use proptest::prelude::*;

use super::*;

fn segment(start: u64, length: u32) -> Buffer {
    Buffer::of(start, length, length + 40)
}

#[test]
fn data_that_fits_into_the_previous_buffer_uses_no_memory() {
    let mut memory = Memory::default();
    // Linux 6.18.44 (SO_MEMINFO): 536 bytes use 1280, the next 46 nothing, and 103 do not fit into
    // the 18 left.
    memory.queue(segment(1, 536));
    assert_eq!(memory.used(), 1280);
    memory.queue(segment(537, 46));
    assert_eq!(memory.used(), 1280);
    memory.queue(segment(583, 103));
    assert_eq!(memory.used(), 1280 + 832);
}

#[test]
fn a_buffer_is_freed_when_its_last_byte_was_read() {
    let mut memory = Memory::default();
    memory.queue(segment(1, 1000));
    memory.queue(segment(1001, 1000));
    memory.read(1000);
    assert_eq!(memory.used(), 2 * 2304);
    memory.read(1001);
    assert_eq!(memory.used(), 2304);
    memory.read(2001);
    assert_eq!((memory.used(), memory.has_queued()), (0, false));
}

#[test]
fn out_of_order_duplicates_are_dropped_and_overlaps_kept() {
    let mut memory = Memory::default();
    assert_eq!(
        memory.insert_out_of_order(segment(2000, 1000)),
        Placed::Alone
    );
    assert_eq!(
        memory.insert_out_of_order(segment(2500, 500)),
        Placed::Nowhere
    );
    assert_eq!(
        memory.insert_out_of_order(segment(2500, 1000)),
        Placed::Alone
    );
    assert_eq!(
        memory.insert_out_of_order(segment(3500, 600)),
        Placed::Joined
    );
    assert_eq!(memory.used(), 2 * 2304);
    // A segment that covers both replaces them.
    assert_eq!(
        memory.insert_out_of_order(segment(1900, 2200)),
        Placed::Alone
    );
    assert_eq!(memory.used(), true_size(2240));
    // Moving data into order does not change its memory.
    memory.queue(segment(1, 1899));
    memory.advance(1900);
    assert_eq!(memory.used(), true_size(1939) + true_size(2240));
    memory.read(4100);
    assert_eq!(memory.used(), 0);
}

#[test]
fn a_full_buffer_is_copied_together() {
    // Linux 6.18.44, SO_RCVBUF 3000, segments of 536 bytes: 6400 bytes used of 6000 when the next
    // segment arrived, and 3584 including it.
    let mut memory = Memory::default();
    memory.queue(segment(1, 536));
    memory.queue(segment(306, 536));
    memory.insert_out_of_order(segment(1378, 536));
    memory.insert_out_of_order(segment(1372, 536));
    memory.queue(segment(537, 536));
    assert_eq!(memory.used(), 6400);
    let pressure = Pressure {
        allowed: 6000,
        incoming: 1073,
        read: 1,
        next: 1073,
        ratio: 128,
    };
    assert_eq!(memory.prune(&pressure), None);
    memory.queue(segment(1073, 536));
    memory.advance(1609);
    assert_eq!(memory.used(), 3584);
    memory.read(1914);
    assert_eq!(memory.used(), 0);
}

#[test]
fn highest_out_of_order_data_is_discarded_if_copying_does_not_suffice() {
    let mut memory = Memory::default();
    memory.queue(segment(1, 1460));
    for start in [3000, 6000, 9000] {
        memory.insert_out_of_order(segment(start, 1460));
    }
    let mut pressure = Pressure {
        allowed: 7000,
        incoming: 1461,
        read: 1,
        next: 1461,
        ratio: 162,
    };
    // No two of them are adjacent: the highest of four is discarded, and nothing remains beyond the
    // third.
    assert_eq!(memory.prune(&pressure), Some(7460));
    assert_eq!(memory.used(), 3 * 2304);
    // A segment that would be the highest itself discards nothing.
    pressure.allowed = 5000;
    pressure.incoming = 12_000;
    assert_eq!(memory.prune(&pressure), None);
    assert_eq!(memory.used(), 3 * 2304);
    // All out-of-order data is discarded, without success.
    pressure.allowed = 2000;
    pressure.incoming = 1461;
    assert_eq!(memory.prune(&pressure), Some(0));
    assert_eq!(memory.used(), 2304);
}

proptest! {
    // Whether data is already present is checked in one buffer, if that is known to reach furthest.
    // The result equals a check of all buffers, for segments that overlap in any way, are appended
    // to each other, read, and copied together.
    #[test]
    fn check_of_one_buffer_equals_a_check_of_all(
        segments in prop::collection::vec((2..400_u64, 1..80_u32, 0..8_u8), 1..80),
    ) {
        let mut memory = Memory::default();
        let mut next = 1;
        for (start, length, what) in segments {
            let buffer = segment(next + start, length);
            let covered = (memory.ahead.iter()).any(|other| other.start <= buffer.start && other.end >= buffer.end);
            let placed = memory.insert_out_of_order(buffer);
            prop_assert!(covered == (placed == Placed::Nowhere) || placed == Placed::Joined);
            prop_assert!(memory.nested || memory.ends_ascend());
            if what == 0 {
                memory.queue(segment(next, 1 + length / 2));
                next += u64::from(1 + length / 2);
                memory.advance(next);
                next = memory.queued.iter().map(|buffer| buffer.end).fold(next, u64::max);
                memory.read(next);
            } else if what == 1 {
                let pressure = Pressure { allowed: memory.used / 2, incoming: next, read: next, next, ratio: 128 };
                memory.prune(&pressure);
            }
            prop_assert!(memory.nested || memory.ends_ascend());
        }
    }
}

#[test]
fn segments_of_equal_length_are_never_nested() {
    // Lost, retransmitted and duplicate segments have equal lengths, so that a check of one buffer
    // suffices where many are held.
    let mut memory = Memory::default();
    let at = |number: u64| 1 + 1448 * number;
    for number in (1..2_000).filter(|number| number % 7 != 0) {
        memory.insert_out_of_order(segment(at(number), 1448));
    }
    for number in (7..2_000).step_by(14).chain(1_500..1_600) {
        memory.insert_out_of_order(segment(at(number), 1448));
    }
    memory.queue(segment(1, 1448));
    memory.advance(at(1));
    assert!(!memory.nested && memory.ends_ascend());
}
