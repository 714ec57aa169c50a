use proptest::prelude::*;

use super::*;
use crate::congestion::Window;
use crate::pacing::{is_window_slower, rate_of_window};

fn held(unacknowledged: u64, next: u64, end: u64) -> SendBufferContents {
    SendBufferContents {
        merged: 0,
        unacknowledged,
        next,
        end,
    }
}

/// Buffer size after a handshake with a Linux receiver, whose window is 65,160 bytes.
const GOAL: u64 = 22 * 1448;

/// Half of a window so large that nothing is pushed before the end of a write.
const NEVER: Option<u64> = Some(1 << 40);

fn linux() -> SendBufferAutotuning {
    let mut sizing = SendBufferAutotuning::new(BufferSizes::SEND);
    sizing.expand(10, 1448, 2);
    sizing
}

#[test]
fn first_write_equals_that_of_linux() {
    // ss -m on Linux 6.18.44: sndbuf 46080; ten segments in five buffers, and one buffer of 31,856
    // bytes.
    let mut sizing = linux();
    assert_eq!(sizing.buffer, 46_080);
    assert_eq!(goal(1448, 65_160), GOAL);
    sizing.record_write(&held(1, 1, 1), GOAL, 14_480);
    for number in 1..=5 {
        sizing.sent(1 + 2 * 1448 * number);
    }
    let written = held(1, 14_481, 14_481 + 31_856);
    assert_eq!(sizing.memory(&written), 51_328);
    assert_eq!(room_for_a_waiting_writer(&sizing, &written, GOAL), 0);
    assert_eq!(
        sizing.room(&held(1, 1, 1), 14_480, 2896, GOAL, NEVER),
        written.end - 1
    );
    // With BBR, sndbuf is 69120, the first ten segments are sent one by one, and 54 are written.
    let mut bbr = linux();
    bbr.expand(10, 1448, 3);
    assert_eq!(
        bbr.room(&held(1, 1, 1), 14_480, 1448, GOAL, NEVER),
        54 * 1448
    );
}

/// Bytes that a waiting writer may write, with full windows.
fn room_for_a_waiting_writer(
    sizing: &SendBufferAutotuning,
    held: &SendBufferContents,
    goal: u64,
) -> u64 {
    match sizing.is_writeable(held) {
        true => sizing.room(held, 0, 2896, goal, NEVER),
        false => 0,
    }
}

#[test]
fn a_waiting_writer_continues_when_a_third_is_free() {
    let mut sizing = linux();
    sizing.sent(40_001);
    let full = held(1, 40_001, 40_001);
    assert_eq!(sizing.memory(&full), 40_832);
    assert_eq!(room_for_a_waiting_writer(&sizing, &full, GOAL), 0);
    assert_eq!(sizing.room(&full, 0, 2896, GOAL, NEVER), 31_856);
    let third = held(10_115, 40_001, 40_001);
    assert_eq!(
        room_for_a_waiting_writer(&sizing, &held(10_100, 40_001, 40_001), GOAL),
        0
    );
    assert_eq!(room_for_a_waiting_writer(&sizing, &third, GOAL), 31_856);
}

#[test]
fn data_sent_at_once_uses_no_room() {
    let mut sizing = linux();
    let empty = held(1, 1, 1);
    sizing.record_write(&empty, GOAL, 0);
    assert_eq!(
        sizing.room(&empty, 1_000_000, 2896, GOAL, NEVER),
        1_000_000 + 31_856
    );
    let waits = held(1, 1, 31_857);
    assert_eq!(sizing.room(&waits, 10_000, 2896, GOAL, NEVER), 31_856);
}

#[test]
fn memory_is_checked_after_half_of_the_largest_window() {
    // forced_push: 22 segments fill a buffer; then two are sent and two written, which exceeds
    // 32,580 bytes.
    let sizing = linux();
    let half = Some(65_160 / 2);
    let empty = held(1, 1, 1);
    // The sent data uses 24 * 1448 + 12 * 832 = 44,736 bytes of 46,080: as much again is written.
    assert_eq!(sizing.room(&empty, 1_000_000, 2896, GOAL, half), 48 * 1448);
    // If the windows admit less than that, the last buffer remains and is filled.
    assert_eq!(sizing.room(&empty, 20 * 1448, 2896, GOAL, half), 42 * 1448);
}

#[test]
fn a_write_after_everything_was_sent_checks_memory() {
    let mut sizing = linux();
    // A write of 182 segments that the windows admitted completely; its end is shorter than a
    // segment.
    sizing.record_write(&held(1, 1, 1), GOAL, 181 * 1448);
    for number in 1..=91 {
        sizing.sent(1 + 2 * 1448 * number);
    }
    let written = 1 + 181 * 1448 + 56;
    let sent = held(1, written, written);
    assert_eq!(sizing.room(&sent, 100_000, 2896, GOAL, NEVER), 0);
    // If the end is still unsent, the next write continues its buffer.
    let begun = held(1, written - 56, written);
    assert_eq!(sizing.room(&begun, 0, 2896, GOAL, NEVER), GOAL - 56);
    // A deferred segment is sent when the buffer is full, and one more is written.
    let waits = held(1, written - 56 - 1448, written);
    let room = sizing.room(&waits, 1448, 2896, GOAL, NEVER);
    assert_eq!(room, GOAL - 56 - 1448 + 1448);
}

#[test]
fn bytes_that_fill_the_last_buffer() {
    let mut sizing = linux();
    assert_eq!(sizing.until_full(&held(1, 1, 1), GOAL), GOAL);
    sizing.record_write(&held(1, 1, 1), GOAL, 0);
    let full = held(1, 1, 1 + GOAL);
    assert_eq!(sizing.until_full(&full, GOAL), GOAL, "a new buffer");
    // Two of its segments are sent.
    let begun = held(1, 1 + 2896, 1 + GOAL);
    assert_eq!(sizing.until_full(&begun, GOAL), 2896);
}

#[test]
fn buffer_grows_to_two_windows_up_to_its_maximum() {
    let mut sizing = linux();
    sizing.expand(80, 1448, 2);
    assert_eq!(sizing.buffer, 368_640); // as observed
    sizing.expand(38, 1448, 3);
    assert_eq!(sizing.buffer, 368_640);
    sizing.expand(80, 1448, 3);
    assert_eq!(sizing.buffer, 552_960); // with BBR, as observed
    sizing.expand(100_000, 1448, 2);
    assert_eq!(sizing.buffer, 4 << 20);
}

#[test]
fn a_burst_is_two_segments_or_a_millisecond() {
    let long = Some(Span::from_millis(100));
    assert_eq!(segments_at_once(1_250_000, 1448, 2, long), 2);
    assert_eq!(segments_at_once(7_500_000, 1448, 2, long), 5);
    assert_eq!(segments_at_once(u64::MAX, 1448, 2, long), 45);
    // More on short paths.
    let short = Some(Span::from_micros(1_100));
    assert_eq!(segments_at_once(0, 1448, 2, short), 65_279 / 4 / 1448);
}

#[test]
fn buffer_boundaries() {
    let mut sizing = SendBufferAutotuning::new(BufferSizes::SEND);
    assert_eq!(sizing.left_of_buffer(1), None);
    // Written while the peer advertised 65,160 bytes: 22 segments per buffer.
    sizing.record_write(&held(1, 1, 1), goal(1448, 65_160), 0);
    assert_eq!(sizing.left_of_buffer(1), Some(22 * 1448));
    assert_eq!(sizing.left_of_buffer(1 + 21 * 1448), Some(1448));
    assert_eq!(sizing.left_of_buffer(1 + 22 * 1448), Some(22 * 1448));
    // With three and a half buffers, the peer advertises more: the last one is extended to 45
    // segments.
    let written = 1 + 77 * 1448;
    sizing.record_write(&held(1, 1, written), goal(1448, 1_000_000), 0);
    assert_eq!(sizing.left_of_buffer(1 + 65 * 1448), Some(1448));
    assert_eq!(sizing.left_of_buffer(1 + 66 * 1448), Some(45 * 1448));
    // Ten of its segments are sent, and do not count when it is filled.
    let next = 1 + 76 * 1448;
    sizing.record_write(&held(1, next, written), goal(1448, 1_000_000), 0);
    assert_eq!(sizing.left_of_buffer(next), Some(45 * 1448));
    assert!(sizing.written.len() <= 3);
}

#[test]
fn a_buffer_begins_where_the_last_one_ended() {
    // ss -tim on Linux 6.18.44 at 40 Mbit/s and 300 ms: 1080 segments written, sndbuf 2327040; then
    // 900 are written.
    const SEGMENT: u64 = 1448;
    let at = |segment: u64| 1 + segment * SEGMENT;
    let mut sizing = SendBufferAutotuning::new(BufferSizes::SEND);
    sizing.expand(505, SEGMENT, 2);
    assert_eq!(sizing.buffer, 2_327_040);
    let goal = goal(SEGMENT, 1_000_000);
    // Twelve buffers of 45 segments begin at 540; ten segments and another buffer are unsent.
    sizing.record_write(&held(at(266), at(540), at(540)), goal, 0);
    for sent in 1..=252 {
        sizing.sent(at(496 + 2 * sent));
    }
    let waits = held(at(496), at(1000), at(1080));
    assert_eq!(sizing.unsent_buffers(&waits), 2);
    assert_eq!(
        room_for_a_waiting_writer(&sizing, &waits, goal),
        900 * SEGMENT
    );
    // Ten more segments were written: the third buffer takes 35.
    let begun = held(at(496), at(1000), at(1090));
    assert_eq!(sizing.unsent_buffers(&begun), 3);
    assert_eq!(
        room_for_a_waiting_writer(&sizing, &begun, goal) % goal,
        35 * SEGMENT
    );
    // None if everything written was sent.
    let sent = held(at(496), at(1090), at(1090));
    assert_eq!(sizing.unsent_buffers(&sent), 0);
    assert_eq!(room_for_a_waiting_writer(&sizing, &sent, goal) % goal, 0);
}

#[test]
fn polling_a_full_buffer_lets_it_grow() {
    // tcp_poll sets SOCK_NOSPACE if less than half of the used memory is free, and
    // sk_stream_write_space clears it.
    let mut sizing = linux();
    for (taken, lacks) in [(40_000, true), (20_000, false), (40_000, true)] {
        let all = held(1, 1 + taken, 1 + taken);
        sizing.ends.clear();
        sizing.sent(1 + taken);
        sizing.note_poll(&all);
        assert_eq!(sizing.lacks_room(), lacks, "{taken}");
    }
}

proptest! {
    /// Windows around the one from which on bursts become longer.
    #[test]
    fn minimum_burst_is_detected_without_a_division(
        per_mille in 0..3_000_u64,
        slow_start in any::<bool>(),
        milliseconds in 1..20_000_u64,
        minimum in prop::option::of(0..20_000_u64),
        segment in 1..9_000_u64,
        shortest in 1..50_u64,
    ) {
        let (rtt, minimum) = (Span::from_millis(milliseconds), minimum.map(Span::from_micros));
        let slow = minimum_burst_rate(segment, shortest, minimum);
        let congestion_window = slow * milliseconds / 1_000 * per_mille / 1_000;
        let slow_start_threshold = if slow_start { u64::MAX } else { congestion_window };
        let window = Window::new(segment as u32, congestion_window, slow_start_threshold);
        let rate = rate_of_window(&window, 0, rtt);
        let bytes = rate.map_or(u64::MAX, |rate| rate.bits_per_second() / 8);
        let at_once = segments_at_once(bytes, segment, shortest, minimum);
        let is_slower = is_window_slower(&window, 0, rtt, slow);
        if is_slower {
            prop_assert_eq!(at_once, shortest);
        } else if slow > 0 && at_once == shortest && congestion_window < 1 << 32 {
            prop_assert!((shortest + 1) * segment > MAXIMUM_BUFFER, "reported unless there is an overflow");
        }
    }
}
