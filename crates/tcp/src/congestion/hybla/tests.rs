use super::super::Reno;
use super::*;

const SEGMENT: u64 = 1000;

fn window(segments: u64) -> Window {
    Window::new(SEGMENT as u32, segments * SEGMENT, 0)
}

/// Returns the rate in bytes per second after `seconds` of congestion avoidance in which a window
/// is acknowledged every `rtt`.
fn rate_after(rule: &mut dyn CongestionControl, start: u64, rtt: Span, seconds: u64) -> f64 {
    let mut window = window(start);
    rule.on_established(&mut window, Some(rtt), Time::ZERO);
    window.congestion_window = start * SEGMENT;
    let mut now = Time::ZERO;
    while now.since(Time::ZERO) < Span::from_secs(seconds) {
        for _ in 0..window.congestion_window / SEGMENT {
            let mut sample = AckSample::at(now, SEGMENT);
            sample.smoothed_rtt = Some(rtt);
            rule.on_ack(&mut window, SEGMENT, &sample);
        }
        now += rtt;
    }
    window.congestion_window as f64 / rtt.as_secs_f64()
}

#[test]
fn a_long_path_grows_as_fast_as_the_reference() {
    // The claim of the Hybla paper: the same rate at the same time, at 600 ms and at 25 ms; rho is
    // 24. (W in rho^2 / W includes the growth earlier in the same round trip. While the window is
    // at most a few times rho^2 = 576 segments, it therefore grows more slowly than claimed.)
    for seconds in [60, 180, 600] {
        let mut hybla = Hybla::new(HyblaSettings::default(), AvoidanceKind::ByteCounting);
        let long = rate_after(&mut hybla, 2400, Span::from_millis(600), seconds);
        let mut reno = Reno::new(AvoidanceKind::ByteCounting);
        let reference = rate_after(&mut reno, 100, Span::from_millis(25), seconds);
        assert!(
            (long - reference).abs() < 0.02 * reference,
            "{seconds}: {long} {reference}"
        );
        // The closed form: one segment more every RTT0, so that the rate grows by 1 / RTT0^2.
        let start = 100.0 * SEGMENT as f64 / 0.025;
        let closed = start + seconds as f64 * SEGMENT as f64 / (0.025 * 0.025);
        assert!(
            (long - closed).abs() < 0.02 * closed,
            "{seconds}: {long} {closed}"
        );
    }
}

#[test]
fn slow_start_multiplies_the_window_by_two_to_the_rho_each_round_trip() {
    let mut hybla = Hybla::new(HyblaSettings::default(), AvoidanceKind::ByteCounting);
    let mut window = Window::new(SEGMENT as u32, SEGMENT, u64::MAX);
    hybla.on_established(&mut window, Some(Span::from_millis(100)), Time::ZERO);
    // rho = 4: W(0) = 4 segments, where the reference connection has one.
    assert_eq!(window.congestion_window, 4 * SEGMENT);
    let mut sample = AckSample::at(Time::ZERO, SEGMENT);
    sample.smoothed_rtt = Some(Span::from_millis(100));
    for _ in 0..4 {
        window.congestion_window += hybla.slow_start_growth(&mut window, SEGMENT, &sample);
    }
    assert_eq!(window.congestion_window, 4 * 16 * SEGMENT);
}

#[test]
fn on_a_short_path_the_window_is_renos() {
    let rtt = Span::from_millis(5);
    let mut hybla = Hybla::new(HyblaSettings::default(), AvoidanceKind::ByteCounting);
    let mut reno = Reno::new(AvoidanceKind::ByteCounting);
    let (ours, reference) = (
        rate_after(&mut hybla, 20, rtt, 5),
        rate_after(&mut reno, 20, rtt, 5),
    );
    assert!((ours - reference).abs() < 0.01 * reference);
}

#[test]
fn fractions_of_bytes_accumulate() {
    // 100,000 segments at rho = 1: 0.01 bytes per acknowledgment.
    let mut hybla = Hybla::new(HyblaSettings::default(), AvoidanceKind::ByteCounting);
    let mut window = window(100_000);
    for _ in 0..100_000 {
        hybla.on_ack(&mut window, SEGMENT, &AckSample::at(Time::ZERO, SEGMENT));
    }
    let grown = window.congestion_window - 100_000 * SEGMENT;
    assert!((998..=1000).contains(&grown), "{grown}");
}

#[test]
fn windows_after_a_loss_and_a_timeout() {
    let rtt = Some(Span::from_millis(600));
    for (after_loss, after_timeout, event, expected) in [
        (
            AfterLoss::Half,
            AfterTimeout::OneSegment,
            Congestion::Loss,
            (50, 50),
        ),
        (
            AfterLoss::Half,
            AfterTimeout::OneSegment,
            Congestion::Timeout,
            (1, 50),
        ),
        (
            AfterLoss::Half,
            AfterTimeout::Rho,
            Congestion::Timeout,
            (24, 50),
        ),
        (
            AfterLoss::Quarter,
            AfterTimeout::Rho,
            Congestion::Loss,
            (25, 50),
        ),
        (
            AfterLoss::Quarter,
            AfterTimeout::Rho,
            Congestion::Timeout,
            (24, 50),
        ),
    ] {
        let settings = HyblaSettings {
            after_loss,
            after_timeout,
            ..HyblaSettings::default()
        };
        let mut hybla = Hybla::new(settings, AvoidanceKind::ByteCounting);
        let mut window = window(100);
        hybla.on_established(&mut window, rtt, Time::ZERO);
        hybla.on_congestion(
            &mut window,
            &CongestionSample::new(event, 100 * SEGMENT, Time::ZERO),
        );
        let left = (
            window.congestion_window / SEGMENT,
            window.slow_start_threshold / SEGMENT,
        );
        assert_eq!(left, expected, "{settings:?} {event:?}");
    }
}

#[test]
fn initial_threshold_is_the_bdp_estimated_from_ack_spacing() {
    let settings = HyblaSettings {
        initial_threshold: InitialThreshold::BandwidthEstimate,
        ..HyblaSettings::default()
    };
    let rtt = Span::from_millis(600);
    let mut hybla = Hybla::new(settings, AvoidanceKind::ByteCounting);
    let mut window = Window::new(1448, 14_480, u64::MAX);
    hybla.on_established(&mut window, Some(rtt), Time::ZERO);
    for n in 1..=4 {
        let arrival = Time::ZERO + rtt + Span::from_micros(120 * n);
        let mut sample = AckSample::at(arrival, 1448);
        sample.unacknowledged = 1448 * n;
        sample.next = 24 * 1448;
        sample.smoothed_rtt = Some(rtt);
        sample.minimum_rtt = Some(rtt);
        hybla.slow_start_growth(&mut window, 1448, &sample);
    }
    // 100 Mbit/s in packets of 1500 bytes, times 600 ms: 5000 segments.
    let segments = window.slow_start_threshold as f64 / 1448.0;
    assert!((segments - 5000.0).abs() < 2.0, "{segments}");
}
