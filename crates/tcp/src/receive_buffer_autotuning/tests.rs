use proptest::prelude::*;

use super::*;

const SEGMENT: Segment = Segment {
    length: 1448,
    packet: 1500,
    stamped: true,
    flags: Flags::ACK,
    echo: None,
    schedules_quick_acks: false,
};

const RTO: Span = Span::from_secs(1);

fn at(next: u64) -> StreamState {
    StreamState {
        next,
        read: next,
        ahead: 0,
        highest: None,
    }
}

fn milliseconds(milliseconds: u64) -> Time {
    Time::ZERO + Span::from_millis(milliseconds)
}

/// Processes a read by the application. Returns whether the sender waits for an acknowledgment of
/// it.
fn has_read(sizing: &mut ReceiveBufferAutotuning, stream: &StreamState, now: Time) -> bool {
    if sizing.is_measurement_over(now) {
        sizing.end_measurement(stream, now);
    }
    sizing.peer_waits()
}

fn linux() -> ReceiveBufferAutotuning {
    let mut sizing = ReceiveBufferAutotuning::new(BufferSizes::RECEIVE);
    assert_eq!(sizing.initial_window(1448), 65_160);
    sizing.established(1448, 65_535 << 10, 1, Time::ZERO);
    sizing
}

#[test]
fn first_windows_equal_those_of_linux() {
    // A capture of Linux 6.18.44, tcp_rmem 4096 131072 33554432: windows after each of the first
    // segments.
    let seen = [68_608, 71_680, 74_752, 76_800, 79_872, 80_896, 80_896];
    let mut sizing = linux();
    for (index, expected) in seen.into_iter().enumerate() {
        let mut stream = at(1 + 1448 * (index as u64 + 1));
        // The application has not read the segment when the acknowledgment is sent.
        stream.read -= 1448;
        sizing.free_read(stream.read);
        sizing.queue(&SEGMENT, stream.read, stream.next, false);
        sizing.in_order(&SEGMENT, &stream, || RTO, milliseconds(1));
        let window = sizing.select_window(&stream, 10);
        sizing.advertised(window);
        assert_eq!(window, expected, "{index}");
    }
}

#[test]
fn a_buffer_of_16_mib_has_725_quick_acks_and_16_more() {
    // tcp_rmem 4096 16777216 67108864: the window grows from half of the buffer to five eighths, by
    // two segments per segment.
    let mut sizing = ReceiveBufferAutotuning::new(BufferSizes {
        least: 4096,
        initial: 16 << 20,
        most: 64 << 20,
        locked: false,
    });
    sizing.initial_window(1448);
    sizing.established(1448, 65_535 << 11, 1, Time::ZERO);
    let mut quick = 0;
    for number in 1..2000 {
        let stream = at(1 + 1448 * number);
        sizing.in_order(&SEGMENT, &stream, || RTO, milliseconds(1));
        if sizing.ack_time(1448, &stream, false, true, None) == AckTime::Now {
            quick += 1;
        }
        sizing.on_ack_sent(true, true);
    }
    // Plus the 16 at the start. (A capture of Linux has 742.)
    assert_eq!(quick, 725 + 16);
}

#[test]
fn buffer_grows_with_the_bytes_read_per_round_trip() {
    let mut sizing = linux();
    let mut first = SEGMENT;
    first.echo = Some(1);
    sizing.in_order(&first, &at(1449), || RTO, milliseconds(100));
    assert!(!has_read(&mut sizing, &at(1449), milliseconds(100)));
    // 28,960 bytes in the next round trip: twice the 14,480 that Linux starts with.
    let read = 1449 + 28_960;
    assert!(!has_read(&mut sizing, &at(read), milliseconds(199)));
    let before = sizing.buffer;
    has_read(&mut sizing, &at(read), milliseconds(200));
    // 2 x 28,960, and as much twice more because of the doubling: 3 x; at a payload share of
    // 160/256.
    let wanted = (2 * 28_960 + 2 * 2 * (30_408 - 14_480) * 30_408 / 14_480) * 256 / 160;
    assert!(sizing.buffer > before && sizing.buffer.abs_diff(wanted) < wanted / 10);
    assert_eq!(sizing.clamp, sizing.payload_in(sizing.buffer));
}

#[test]
fn buffer_grows_up_to_its_maximum() {
    let mut sizing = linux();
    sizing.rtt = 8;
    for round in 1..60_u64 {
        let stream = at(1 << round.min(50));
        has_read(&mut sizing, &stream, milliseconds(round));
    }
    assert_eq!(sizing.buffer, 32 << 20);
}

#[test]
fn acknowledgments_are_compressed_after_the_third_duplicate() {
    let mut sizing = linux();
    sizing.rtt = 8 * 100_000;
    let stream = StreamState {
        ahead: 1448,
        highest: Some(10_000),
        ..at(5_000)
    };
    for _ in 0..3 {
        assert_eq!(sizing.ack_time(0, &stream, false, true, None), AckTime::Now);
    }
    let waits = AckTime::Within(Span::from_micros(1_100));
    for _ in 0..44 {
        assert_eq!(sizing.ack_time(0, &stream, false, true, None), waits);
    }
    assert_eq!(sizing.ack_time(0, &stream, false, true, None), AckTime::Now);
    // A shorter delay with a short round trip, and none without SACK.
    sizing.on_ack_sent(true, true);
    sizing.rtt = 8 * 2_000;
    let waits = AckTime::Within(Span::from_micros(200));
    assert_eq!(sizing.ack_time(0, &stream, false, true, None), waits);
    assert_eq!(
        sizing.ack_time(0, &stream, false, false, None),
        AckTime::Now
    );
}

#[test]
fn quick_acks_after_an_idle_period() {
    let mut sizing = linux();
    let mut next = 1;
    let mut arrive = |sizing: &mut ReceiveBufferAutotuning, at_ms| {
        next += 100;
        let short = Segment {
            length: 100,
            packet: 152,
            ..SEGMENT
        };
        sizing.in_order(&short, &at(next), || RTO, milliseconds(at_ms));
        let when = sizing.ack_time(100, &at(next), false, true, None);
        sizing.on_ack_sent(true, true);
        when
    };
    for _ in 0..16 {
        assert_eq!(arrive(&mut sizing, 0), AckTime::Now);
    }
    assert_eq!(arrive(&mut sizing, 900), AckTime::Delayed);
    assert_eq!(arrive(&mut sizing, 1_901), AckTime::Now);
    // Unless data that is sent carries them.
    sizing.enter_interactive_mode();
    assert_eq!(arrive(&mut sizing, 1_902), AckTime::Delayed);
    sizing.on_delayed_ack_timer(RTO);
    assert_eq!(arrive(&mut sizing, 1_903), AckTime::Now);
}

#[test]
fn ack_delay_adapts_to_the_interval_between_segments() {
    let mut sizing = linux();
    let mut next = 1;
    let mut arrive = |sizing: &mut ReceiveBufferAutotuning, at_ms| {
        next += 1448;
        sizing.in_order(&SEGMENT, &at(next), || RTO, milliseconds(at_ms));
        sizing.delay(Some(Span::from_millis(150))).as_nanos() / 1_000_000
    };
    // tcp_event_data_recv: 40 ms for intervals below 20 ms; else half of the previous delay plus
    // the interval.
    assert_eq!(arrive(&mut sizing, 0), 40);
    assert_eq!(arrive(&mut sizing, 10), 40);
    assert_eq!(arrive(&mut sizing, 45), 55);
    assert_eq!(arrive(&mut sizing, 95), 77);
    // tcp_delack_timer_handler: doubled after the timer has expired, but at most a round trip.
    sizing.on_delayed_ack_timer(RTO);
    assert_eq!(arrive(&mut sizing, 300), 150);
    // tcp_enter_quickack_mode
    sizing.on_unexpected_segment();
    assert_eq!(arrive(&mut sizing, 500), 40);
}

#[test]
fn two_equal_short_segments_change_the_estimated_segment_size() {
    // On a path whose MTU has decreased, the first short segment might be the end of a write.
    let mut sizing = linux();
    sizing.in_order(&SEGMENT, &at(1449), || RTO, milliseconds(0));
    let short = Segment {
        length: 1000,
        packet: 1052,
        ..SEGMENT
    };
    sizing.in_order(&short, &at(2449), || RTO, milliseconds(1));
    assert_eq!(sizing.segment(), 1448);
    sizing.in_order(&short, &at(3449), || RTO, milliseconds(2));
    assert_eq!(sizing.segment(), 1000);
}

#[test]
fn true_sizes_follow_the_allocator() {
    // 1500 bytes: shown as 2304 by ss -m on Linux 6.18.44.
    for (packet, size) in [
        (52, 832),
        (192, 832),
        (576, 1280),
        (1500, 2304),
        (3_000, 4352),
        (9_000, 832 + 3 * 4096),
    ] {
        assert_eq!(true_size(packet), size, "{packet}");
    }
}

#[test]
fn a_window_of_one_segment_reopens_after_a_read() {
    // A window of one segment without scaling: the segment fills it except for one byte, and is
    // read afterwards.
    let mut sizing = ReceiveBufferAutotuning::new(BufferSizes {
        least: 4096,
        initial: 7410,
        most: 250_000,
        locked: false,
    });
    let first = sizing.initial_window(1448);
    sizing.established(1448, 65_535, 1, Time::ZERO);
    sizing.advertised(first);
    let full = Segment {
        length: 1448,
        ..SEGMENT
    };
    let mut stream = at(1 + 1448);
    stream.read = 1;
    sizing.in_order(&full, &stream, || RTO, milliseconds(1));
    sizing.threshold = 1448;
    sizing.advertised(1);
    stream.read = stream.next;
    assert!(sizing.owes_update(&stream, 1, 0));
    assert_eq!(sizing.select_window(&stream, 0), 1448);
}

/// Delays, the comparison with an earlier timer, and the intervals between segments are in ticks of
/// 4 ms (tcp_event_data_recv, tcp_send_delayed_ack: all in jiffies).
#[test]
fn ack_delays_are_in_ticks() {
    let microseconds = |microseconds| Time::ZERO + Span::from_micros(microseconds);
    let (first, second) = (microseconds(3_900), microseconds(32_100));
    for (in_ticks, waits, until) in [(false, 48_200, 80_300), (true, 52_000, 88_000)] {
        let mut sizing = linux().with_ack_delay(Some(INITIAL_ACK_DELAY), in_ticks);
        sizing.in_order(&SEGMENT, &at(1449), || RTO, first);
        sizing.in_order(&SEGMENT, &at(2897), || RTO, second);
        let delay = sizing.delay(None);
        assert_eq!(delay, Span::from_micros(waits), "eight ticks, or 28.2 ms");
        let until = microseconds(until);
        assert_eq!(
            sizing.delayed_ack_expiry(second, delay, Time::NEVER),
            Some(until)
        );
        // A quarter of that is three ticks, after the next tick.
        let soon = microseconds(48_000);
        assert_eq!(
            sizing.delayed_ack_expiry(second, delay, soon).is_none(),
            in_ticks,
            "44.15 ms, or 48 ms"
        );
        assert!(sizing.is_answer(second, second + Span::from_micros(waits - 300)));
    }
}

/// An autotuned buffer that is overfull grows to the memory used, and accepts the segment
/// (tcp_clamp_window), up to its maximum.
#[test]
fn an_overfull_buffer_grows_to_the_memory_used() {
    let segments = |most: u64| {
        let mut sizing = ReceiveBufferAutotuning::new(BufferSizes {
            least: 4096,
            initial: 20_000,
            most,
            locked: false,
        });
        sizing.initial_window(1448);
        sizing.established(1448, 65_535 << 10, 1, Time::ZERO);
        for number in 0..20 {
            let start = 1 + number * 1448;
            let mut stream = at(start);
            stream.read = 1;
            if sizing.is_overfull() && !sizing.prune(start, &stream).found {
                return number;
            }
            sizing.queue(&SEGMENT, start, start + 1448, false);
        }
        20
    };
    assert_eq!(segments(1 << 20), 20);
    // Nine segments of 2304 bytes each exceed the size. More than half of each is payload, so that
    // copying together saves nothing.
    assert_eq!(segments(20_000), 9);
}

/// SO_RCVBUF, or tcp_rmem and a route's window: until a full segment has arrived, half of the
/// memory, at most the clamp; then what the memory holds. Without window scaling in whole segments.
#[test]
fn a_fixed_buffer_advertises_the_capacity_of_its_memory() {
    // `emulate` and Linux 6.18.44, with a `receive_buffer` of 24,946 and 19,608 bytes.
    for (size, first, later) in [(24_946, 18_824, 23_168), (19_608, 14_480, 17_376)] {
        let sizes = BufferSizes::locked(memory_for(size, 1448, 1500));
        let mut sizing = ReceiveBufferAutotuning::new(sizes).with_clamp(Some(size));
        assert_eq!(sizing.initial_window(1448), first);
        sizing.established(1448, 65_535, 1, Time::ZERO);
        sizing.advertised(first);
        for index in 0..8 {
            let mut stream = at(1 + 1448 * (index + 1));
            stream.read -= 1448;
            sizing.free_read(stream.read);
            sizing.queue(&SEGMENT, stream.read, stream.next, false);
            sizing.in_order(&SEGMENT, &stream, || RTO, milliseconds(1));
            let window = sizing.select_window(&stream, 0);
            sizing.advertised(window);
        }
        assert_eq!(sizing.window, later, "{size}");
    }
    // With a small share of payload, the clamp is less than half of the memory.
    let mut short = ReceiveBufferAutotuning::new(BufferSizes::locked(memory_for(20_000, 100, 152)));
    short = short.with_clamp(Some(20_000));
    assert_eq!(short.initial_window(100), 20_000);
}

proptest! {
    /// In-order segments, each read at once, with occasional gaps.
    #[test]
    fn data_read_at_once_needs_no_record(
        segments in prop::collection::vec((1..1_449_u32, 0..8_u8), 1..200),
        initial in 4_096..200_000_u64,
    ) {
        let sizes = BufferSizes { initial, ..BufferSizes::RECEIVE };
        let mut passing = ReceiveBufferAutotuning::new(sizes);
        passing.initial_window(1448);
        passing.established(1448, 65_535 << 10, 1, Time::ZERO);
        passing.rtt = 8 * 100_000;
        passing.record();
        let mut remembering = passing.clone();
        let (mut next, mut now) = (1, Time::ZERO);
        for (length, gap) in segments {
            now += Span::from_millis(10);
            let segment = Segment { length, packet: length + 52, ..SEGMENT };
            let end = next + u64::from(length);
            for (sizing, at_once) in [(&mut passing, true), (&mut remembering, false)] {
                let whole = end + u64::from(length);
                if gap == 0 {
                    let ahead = StreamState { ahead: u64::from(length), highest: Some(whole), ..at(next) };
                    sizing.out_of_order(&segment, (end, whole), true, &ahead, true);
                }
                let until = if gap == 0 { whole } else { end };
                let stream = StreamState { read: next, ..at(until) };
                sizing.queue(&segment, next, end, at_once);
                sizing.in_order(&segment, &stream, || RTO, now);
                sizing.advance(end);
                sizing.free_read(until);
                let pushes = has_read(sizing, &at(until), now);
                prop_assert_eq!(pushes, sizing.peer_waits());
                let window = sizing.select_window(&at(until), 7);
                sizing.advertised(window);
            }
            next = if gap == 0 { end + u64::from(length) } else { end };
            let seen = |sizing: &ReceiveBufferAutotuning| (sizing.window, sizing.buffer, sizing.threshold, sizing.clamp, sizing.quick);
            prop_assert_eq!(seen(&passing), seen(&remembering));
            prop_assert!(!passing.has_record, "the record is empty");
        }
    }
}
