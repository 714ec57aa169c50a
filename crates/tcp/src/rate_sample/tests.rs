use proptest::prelude::*;

use super::*;

const SEGMENT: u64 = 1000;

fn at(milliseconds: u64) -> Time {
    Time::ZERO + Span::from_millis(milliseconds)
}

fn around(now: Time, rtt: u64) -> SampleContext {
    SampleContext {
        now,
        in_flight: 0,
        rtt: Some(Span::from_millis(rtt)),
        window_limited: true,
        next_send: Time::ZERO,
        phase: RecoveryPhase::Open,
        selective: false,
        segment: SEGMENT as u32,
    }
}

/// Sends segments `first` to `last` at once.
fn send(rate: &mut DeliveryRate, first: u64, last: u64, now: Time) {
    for n in first..=last {
        let in_flight = (n - first + 1) * SEGMENT;
        rate.on_sent(n * SEGMENT, (n + 1) * SEGMENT, in_flight, n == 0, now);
    }
}

fn acknowledge(rate: &mut DeliveryRate, segments: u64, newly: u64, now: Time) -> RateSample {
    rate.begin(0);
    rate.on_acknowledged(segments * SEGMENT, newly * SEGMENT, now);
    rate.sample(&around(now, 100))
}

#[test]
fn sample_counts_deliveries_between_transmission_and_acknowledgment() {
    let mut rate = DeliveryRate::default();
    send(&mut rate, 0, 3, at(0));
    let sample = acknowledge(&mut rate, 2, 2, at(100));
    assert_eq!((sample.delivered, sample.acknowledged), (2000, 2000));
    assert_eq!(sample.interval, Some(Span::from_millis(100)));
    assert_eq!(sample.rate(), Some(20_000));
    assert_eq!((sample.prior_delivered, sample.sent_in_flight), (0, 2000));
    // Segment 4 is sent at that acknowledgment; three segments are delivered until its own.
    rate.on_sent(4000, 5000, 3000, false, at(100));
    let sample = acknowledge(&mut rate, 5, 3, at(200));
    assert_eq!((sample.prior_delivered, sample.delivered), (2000, 3000));
    assert_eq!(sample.rate(), Some(30_000));
    assert_eq!(sample.total_delivered, 5000);
}

/// Linux counts packets: a first flight with a short last segment grows BBR's window by three.
#[test]
fn short_segments_count_as_full_ones_with_count_segments() {
    let mut rate = DeliveryRate::default();
    rate.count_segments(SEGMENT as u32);
    rate.on_sent(0, 1000, 1000, true, at(0));
    rate.on_sent(1000, 1300, 2000, false, at(0));
    rate.begin(2000);
    rate.on_sacked(1000, 1300, at(100));
    assert_eq!(rate.sample(&around(at(100), 100)).acknowledged, 1000);
    rate.begin(1000);
    rate.on_acknowledged(1300, 1300, at(110));
    let sample = rate.sample(&around(at(110), 110));
    assert_eq!((sample.acknowledged, sample.total_delivered), (1000, 2000));
    rate.on_sent(1300, 1500, 1000, true, at(110));
    assert_eq!(rate.on_lost(1300, 1000, true, at(300)).length, 1000);
    rate.on_sent(1300, 1500, 1000, false, at(300));
    rate.begin(1000);
    rate.on_acknowledged(1500, 200, at(400));
    let sample = rate.sample(&around(at(400), 100));
    assert_eq!(sample.acknowledged, 1000);
    assert!(sample.delayed, "a short segment may have been delayed");
}

/// Compressed acknowledgments do not raise the rate: the send phase was longer.
#[test]
fn the_longer_of_both_phases_counts() {
    let mut rate = DeliveryRate::default();
    for n in 0..10 {
        rate.on_sent(n * SEGMENT, (n + 1) * SEGMENT, SEGMENT, n == 0, at(10 * n));
    }
    acknowledge(&mut rate, 1, 1, at(200));
    let sample = acknowledge(&mut rate, 10, 9, at(201));
    // From the first transmission, 0, to the last, 90 ms; and from its delivered_time, 0, to 201
    // ms.
    assert_eq!(sample.interval, Some(Span::from_millis(201)));
    rate.on_sent(10_000, 11_000, SEGMENT, false, at(201));
    rate.on_sent(11_000, 12_000, SEGMENT, false, at(500));
    rate.begin(0);
    rate.on_acknowledged(12_000, 2000, at(505));
    let sample = rate.sample(&around(at(505), 5));
    // Transmissions: from 90 ms, when the last delivered segment was sent, to 500 ms.
    assert_eq!(sample.interval, Some(Span::from_millis(410)));
}

#[test]
fn an_interval_below_the_minimum_rtt_gives_no_sample() {
    let mut rate = DeliveryRate::default();
    send(&mut rate, 0, 1, at(0));
    acknowledge(&mut rate, 1, 1, at(100));
    // Retransmitted, and the acknowledgment of the first copy arrives.
    rate.on_sent(1000, 2000, 1000, true, at(150));
    let sample = acknowledge(&mut rate, 2, 1, at(160));
    assert_eq!(sample.interval, None);
    assert_eq!(sample.acknowledged, 1000);
}

#[test]
fn sacked_data_is_not_counted_again() {
    let mut rate = DeliveryRate::default();
    send(&mut rate, 0, 4, at(0));
    rate.begin(0);
    rate.on_sacked(2000, 4000, at(100));
    rate.on_sacked(2000, 4000, at(100));
    let sample = rate.sample(&around(at(100), 100));
    assert_eq!((sample.acknowledged, sample.delivered), (2000, 2000));
    let sample = acknowledge(&mut rate, 5, 5, at(110));
    assert_eq!((sample.acknowledged, sample.total_delivered), (3000, 5000));
}

#[test]
fn duplicates_count_once_for_a_segment() {
    let mut rate = DeliveryRate::default();
    send(&mut rate, 0, 4, at(0));
    for _ in 0..2 {
        rate.begin(0);
        rate.on_duplicate(1000, 5000, at(100));
        let sample = rate.sample(&SampleContext {
            phase: RecoveryPhase::FastRecovery,
            ..around(at(100), 100)
        });
        assert_eq!((sample.acknowledged, sample.interval), (1000, None));
    }
    let sample = acknowledge(&mut rate, 5, 5, at(200));
    assert_eq!((sample.acknowledged, sample.total_delivered), (3000, 5000));
}

#[test]
fn app_limited_mark_expires() {
    let mut rate = DeliveryRate::default();
    send(&mut rate, 0, 1, at(0));
    rate.mark_app_limited(2000);
    rate.on_sent(2000, 3000, 3000, false, at(10));
    rate.on_sent(3000, 4000, 3000, false, at(10));
    assert!(!acknowledge(&mut rate, 2, 2, at(100)).app_limited);
    assert!(rate.is_app_limited());
    assert!(acknowledge(&mut rate, 3, 1, at(110)).app_limited);
    assert!(!rate.is_app_limited());
    rate.on_sent(4000, 5000, 2000, false, at(110));
    assert!(!acknowledge(&mut rate, 5, 2, at(210)).app_limited);
}

#[test]
fn memory_is_bounded() {
    let mut rate = DeliveryRate::default();
    for n in 0..2 * CAPACITY as u64 {
        rate.on_sent(n, n + 1, 1, false, Time::ZERO);
    }
    assert_eq!(rate.segments.len(), CAPACITY);
    // Segments that are not tracked still count as delivered.
    let all = 2 * CAPACITY as u64;
    rate.begin(0);
    rate.on_acknowledged(all, all, at(1));
    assert_eq!(rate.sample(&around(at(1), 1)).total_delivered, all);
}

proptest! {
    /// The lookup by the length of the first segment agrees with a search.
    #[test]
    fn segment_lookup_equals_a_search(
        lengths in prop::collection::vec(prop_oneof![Just(1448_u64), 1..3000_u64], 0..40),
        position in 0..60_000_u64,
    ) {
        let mut rate = DeliveryRate::default();
        let mut start = 1;
        for length in lengths {
            rate.on_sent(start, start + length, 0, false, Time::ZERO);
            start += length;
        }
        let searched = rate.segments.partition_point(|segment| segment.end <= position);
        prop_assert_eq!(rate.first_beyond(position), searched);
    }
}
