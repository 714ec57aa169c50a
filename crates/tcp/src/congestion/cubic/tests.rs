use super::*;
use crate::congestion::ack_clock::{AckClock, SEGMENT};

type Clock = AckClock<Cubic>;

impl Clock {
    fn new(segments: u64, rtt: Span) -> Self {
        let rule = Cubic::new(AvoidanceKind::ByteCounting);
        Self::of(rule, segments, Time::ZERO, rtt)
    }

    fn segments(&self) -> f64 {
        self.window.congestion_window as f64 / SEGMENT as f64
    }

    /// Processes one acknowledgment of one segment.
    fn acknowledge(&mut self) {
        let mut sample = AckSample::at(self.now, SEGMENT);
        sample.smoothed_rtt = Some(self.rtt);
        self.rule.on_ack(&mut self.window, SEGMENT, &sample);
    }

    /// Simulates a round trip with evenly spaced acknowledgments.
    fn round(&mut self) {
        self.round_trip(Self::acknowledge);
    }
}

#[test]
fn after_a_loss_the_window_is_the_rfcs_cubic() {
    // 1000 segments at 100 ms: far outside the Reno-friendly region.
    let mut clock = Clock::new(1000, Span::from_millis(100));
    clock.congestion(Congestion::Loss);
    assert_eq!(clock.window.congestion_window, 700 * SEGMENT);
    assert_eq!(clock.window.slow_start_threshold, 700 * SEGMENT);
    // Figure 2: K = cbrt((1000 - 700) / 0.4) = 9.0856 s
    clock.acknowledge();
    let stage = clock.rule.stage.unwrap();
    assert!((stage.inflection - 9.085_603).abs() < 1e-6, "{stage:?}");
    let start = clock.now;
    while clock.now.since(start) < Span::from_secs(15) {
        clock.round();
        let seconds = clock.now.since(start).as_secs_f64();
        let expected = 0.4 * (seconds - 9.085_603).powi(3) + 1000.0;
        // The target is one round trip ahead, and the window covers most of the distance within
        // one.
        let error = (clock.segments() - expected).abs() / expected;
        assert!(error < 0.01, "{seconds}: {} {expected}", clock.segments());
    }
}

#[test]
fn the_plateau_is_where_the_loss_was() {
    let mut clock = Clock::new(1000, Span::from_millis(100));
    clock.congestion(Congestion::Loss);
    for _ in 0..91 {
        clock.round();
    }
    assert!(
        (clock.segments() - 1000.0).abs() < 1.0,
        "{}",
        clock.segments()
    );
}

#[test]
fn on_short_paths_the_window_is_renos() {
    // 20 segments at 10 ms: the cubic function would need K = 2.47 s to return.
    let mut clock = Clock::new(20, Span::from_millis(10));
    clock.congestion(Congestion::Loss);
    assert_eq!(clock.segments(), 14.0);
    // RFC 9438 section 4.3: alpha = 3 * 0.3 / 1.7 = 0.529 segments per round trip up to cwnd_prior,
    // which takes 12 round trips, and 1 from then on. (This clock acknowledges whole segments only:
    // 2% less.)
    for _ in 0..10 {
        clock.round();
    }
    assert!(
        (clock.segments() - 19.3).abs() < 0.3,
        "{}",
        clock.segments()
    );
    for _ in 0..10 {
        clock.round();
    }
    assert!(
        (clock.segments() - 28.2).abs() < 0.3,
        "{}",
        clock.segments()
    );
}

#[test]
fn fast_convergence_lowers_the_maximum() {
    let mut clock = Clock::new(1000, Span::from_millis(100));
    clock.congestion(Congestion::Loss);
    assert_eq!(clock.rule.state.window_maximum, Some(1000.0));
    // A loss before the window has returned: 700 * 1.7 / 2.
    clock.congestion(Congestion::Loss);
    assert_eq!(clock.rule.state.window_maximum, Some(595.0));
    assert_eq!(clock.rule.state.window_prior, 700.0);
}

#[test]
fn growth_is_never_negative_and_never_beyond_half_a_window_a_round_trip() {
    let mut clock = Clock::new(100, Span::from_secs(1));
    clock.congestion(Congestion::Loss);
    let mut before = clock.segments();
    for _ in 0..40 {
        clock.round();
        assert!(clock.segments() >= before);
        assert!(clock.segments() <= before * 1.66, "{before}");
        before = clock.segments();
    }
}

#[test]
fn after_a_timeout_the_maximum_is_the_window_of_congestion_avoidance() {
    let mut clock = Clock::new(1000, Span::from_millis(100));
    clock.congestion(Congestion::Timeout);
    assert_eq!(clock.window.congestion_window, SEGMENT);
    assert_eq!(clock.window.slow_start_threshold, 700 * SEGMENT);
    // Slow start has restored the window.
    clock.window.congestion_window = 700 * SEGMENT;
    clock.acknowledge();
    let stage = clock.rule.stage.unwrap();
    assert_eq!((stage.inflection, stage.origin), (0.0, 700.0));
}

#[test]
fn a_mark_may_reduce_the_window_to_one_segment() {
    let mut clock = Clock::new(2, Span::from_millis(100));
    clock.congestion(Congestion::Ecn);
    assert_eq!(clock.window.congestion_window, 1400);
    clock.congestion(Congestion::Ecn);
    assert_eq!(clock.window.congestion_window, SEGMENT);
    assert_eq!(clock.window.slow_start_threshold, 2 * SEGMENT);
}

#[test]
fn a_spurious_loss_is_undone() {
    let mut clock = Clock::new(1000, Span::from_millis(100));
    clock.congestion(Congestion::Loss);
    for _ in 0..50 {
        clock.round();
    }
    let mut undisturbed = Clock {
        rule: clock.rule.clone(),
        ..clock
    };
    let before = clock.window;
    clock.congestion(Congestion::Loss);
    clock.rule.on_spurious(&mut clock.window, before);
    for clock in [&mut clock, &mut undisturbed] {
        for _ in 0..50 {
            clock.round();
        }
    }
    assert!((clock.segments() - undisturbed.segments()).abs() < 0.01);
}

#[test]
fn application_limited_time_does_not_count() {
    let mut clock = Clock::new(1000, Span::from_millis(100));
    clock.congestion(Congestion::Loss);
    for _ in 0..50 {
        clock.round();
    }
    let before = clock.segments();
    clock.rule.on_application_limited();
    clock.now += Span::from_secs(60);
    clock.acknowledge();
    assert!((clock.segments() - before).abs() < 1.0);
    for _ in 0..41 {
        clock.round();
    }
    assert!(
        (clock.segments() - 1000.0).abs() < 1.0,
        "{}",
        clock.segments()
    );
}
