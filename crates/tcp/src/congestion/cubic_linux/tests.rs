use bentpipe_types::Span;

use super::*;
use crate::congestion::ack_clock::{AckClock, SEGMENT};

type Clock = AckClock<LinuxCubic>;

impl Clock {
    fn new(segments: u64, rtt: Span) -> Self {
        let rule = LinuxCubic::new(AvoidanceKind::ByteCounting, HostClock::default());
        Self::of(rule, segments, Time::ZERO + Span::from_secs(1), rtt)
    }

    fn segments(&self) -> u64 {
        assert_eq!(self.window.congestion_window % SEGMENT, 0);
        self.window.congestion_window / SEGMENT
    }

    /// One acknowledgment of so many segments.
    fn acknowledge(&mut self, segments: u64) {
        let mut sample = AckSample::at(self.now, segments * SEGMENT);
        sample.rtt = Some(self.rtt);
        self.rule.on_delivery(&mut self.window, &sample);
        self.rule
            .on_ack(&mut self.window, segments * SEGMENT, &sample);
    }

    /// A round trip in which a whole window is acknowledged, evenly spaced.
    fn round(&mut self) {
        assert_eq!(self.window.congestion_window % SEGMENT, 0);
        self.round_trip(|clock| clock.acknowledge(1));
    }
}

#[test]
fn windows_equal_those_of_the_packetdrill_script() {
    // google/packetdrill, gtests/net/tcp/cubic/cubic-bulk-166k.pkt: two segments are acknowledged
    // per 100 ms, slow start ends with a window of 48, and then the script expects these windows.
    let mut clock = Clock::new(48, Span::from_millis(100));
    let mut windows = Vec::new();
    for acknowledgments in [11, 10, 10, 10] {
        for _ in 0..acknowledgments {
            clock.acknowledge(2);
            clock.now += Span::from_millis(100);
        }
        windows.push(clock.segments());
    }
    assert_eq!(windows, [49, 50, 52, 58]);
    // "CUBIC increases its cwnd by at most 1 packet for every 2 packets ACKed."
    for grown in 1..=100 {
        clock.acknowledge(2);
        clock.now += Span::from_millis(100);
        assert_eq!(clock.segments(), 58 + grown);
    }
}

#[test]
fn after_a_loss_the_window_is_the_curve() {
    let mut clock = Clock::new(1000, Span::from_millis(100));
    clock.acknowledge(1);
    clock.congestion(Congestion::Loss);
    // 1000 * 717 / 1024
    assert_eq!(clock.segments(), 700);
    assert_eq!(clock.window.slow_start_threshold, 700 * SEGMENT);
    clock.acknowledge(1);
    // RFC 9438 figure 2: K = cbrt(300 / 0.4) = 9.0856 s, here in 1/1024 s
    let epoch = clock.rule.epoch.unwrap();
    assert!(epoch.inflection.abs_diff(9303) <= 10, "{epoch:?}");
    let start = clock.now;
    while clock.now.since(start) < Span::from_secs(15) {
        clock.round();
        let seconds = clock.now.since(start).as_secs_f64();
        let expected = 0.4 * (seconds - 9.0856).powi(3) + 1000.0;
        let error = (clock.segments() as f64 - expected).abs() / expected;
        assert!(error < 0.01, "{seconds}: {} {expected}", clock.segments());
    }
}

#[test]
fn on_short_paths_the_window_is_renos_with_one_alpha() {
    // 20 segments at 10 ms: Reno recovers long before the curve. A window of w segments grows by
    // one per 15 w / 8 acknowledged, rounded down, and follows when Reno's is a segment ahead: from
    // 14 segments, Reno's window is 15 after 27 acknowledgments, and then each of them may count.
    let mut clock = Clock::new(20, Span::from_millis(10));
    clock.acknowledge(1);
    clock.congestion(Congestion::Loss);
    assert_eq!(clock.segments(), 14);
    let mut rounds = 0;
    while clock.segments() < 28 {
        clock.round();
        rounds += 1;
    }
    // 8 / 15 segments a round, beyond the 20 of before the loss as below: 26 rounds for 14.
    assert!((25..=29).contains(&rounds), "{rounds}");
}

#[test]
fn fast_convergence_lowers_the_maximum() {
    let mut clock = Clock::new(1000, Span::from_millis(100));
    clock.congestion(Congestion::Loss);
    assert_eq!(clock.rule.window_maximum, 1000);
    // Lost again before it got back: 700 * 1741 / 2048
    clock.congestion(Congestion::Loss);
    assert_eq!(clock.rule.window_maximum, 595);
}

#[test]
fn after_a_timeout_the_window_grows_by_at_least_a_twentieth() {
    let mut clock = Clock::new(100, Span::from_millis(100));
    clock.congestion(Congestion::Timeout);
    assert_eq!((clock.segments(), clock.rule.window_maximum), (1, 0));
    assert_eq!(clock.window.slow_start_threshold, 70 * SEGMENT);
    // Slow start has brought it back.
    clock.window.congestion_window = 70 * SEGMENT;
    clock.acknowledge(1);
    assert_eq!(clock.rule.count, 20);
    for _ in 0..19 {
        assert_eq!(clock.segments(), 70);
        clock.acknowledge(1);
    }
    assert_eq!(clock.segments(), 71);
}

#[test]
fn threshold_is_at_least_two_segments() {
    let mut clock = Clock::new(2, Span::from_millis(100));
    clock.congestion(Congestion::Loss);
    assert_eq!(clock.segments(), 2);
}

#[test]
fn idle_time_does_not_count() {
    let mut clock = Clock::new(1000, Span::from_millis(100));
    clock.acknowledge(1);
    clock.congestion(Congestion::Loss);
    for _ in 0..50 {
        clock.round();
    }
    let before = clock.segments();
    let last_sent = clock.now;
    clock.now += Span::from_secs(60);
    clock.rule.on_idle_end(last_sent, clock.now);
    clock.acknowledge(1);
    assert!(clock.segments() - before <= 1);
    for _ in 0..41 {
        clock.round();
    }
    assert!(clock.segments().abs_diff(1000) <= 1, "{}", clock.segments());
    // However long ago something was sent, the epoch is not in the future.
    clock.rule.on_idle_end(Time::ZERO, clock.now);
    assert_eq!(
        clock.rule.epoch.unwrap().start,
        HostClock::default().ticks(clock.now)
    );
}

#[test]
fn round_trips_in_the_second_after_a_reduction_are_ignored() {
    let mut clock = Clock::new(100, Span::from_millis(100));
    clock.acknowledge(1);
    assert_eq!(clock.rule.minimum_rtt, 100_000);
    clock.rtt = Span::from_millis(50);
    clock.now += Span::from_millis(900);
    clock.acknowledge(1);
    assert_eq!(clock.rule.minimum_rtt, 100_000);
    clock.now += Span::from_millis(100);
    clock.acknowledge(1);
    assert_eq!(clock.rule.minimum_rtt, 50_000);
}

#[test]
fn cube_root_is_rounded_down() {
    for root in [0, 1, 2, 3, 1000, 8960, 2_642_245] {
        let cube: u64 = root * root * root;
        assert_eq!(cube_root(cube), root);
        if root > 0 {
            assert_eq!(cube_root(cube - 1), root - 1);
        }
    }
    assert_eq!(cube_root(u64::MAX), 2_642_245);
}

/// Acknowledges that many segments, and returns by how many the window grows.
fn growth(clock: &mut Clock, acknowledged: u64) -> u64 {
    let before = clock.segments();
    clock.acknowledge(acknowledged);
    let growth = clock.segments().checked_sub(before);
    let growth = growth.expect("an acknowledgment does not shrink the window");
    assert!(growth <= acknowledged / MINIMUM_COUNT + 1, "{growth}");
    growth
}

#[test]
fn large_numbers_do_not_overflow() {
    let mut clock = Clock::new(1 << 20, Span::from_secs(100_000));
    for event in [Congestion::Loss, Congestion::Ecn, Congestion::Timeout] {
        growth(&mut clock, 1 << 20);
        let size = clock.segments();
        clock.congestion(event);
        let reduced = match event {
            Congestion::Timeout => 1,
            _ => size * BETA / BETA_SCALE,
        };
        assert_eq!(clock.segments(), reduced);
        assert!(growth(&mut clock, 1 << 30) > 0);
        // The target is far above the window: growth is the most that is allowed.
        clock.now += Span::from_secs(200_000);
        assert!(growth(&mut clock, 1 << 30) >= (1 << 30) / MAXIMUM_COUNT_BEFORE_LOSS);
        clock.window.congestion_window = (1 << 40) / SEGMENT * SEGMENT;
        growth(&mut clock, 1);
    }
}
