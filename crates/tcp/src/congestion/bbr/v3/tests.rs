use proptest::prelude::*;

use super::phase::Phase;
use super::*;
use crate::CongestionControlKind;
use crate::congestion::bbr::testing::{self, Operation, Path};

fn established() -> (Bbr3, Window) {
    let mut window = Window::new(1000, 10_000, u64::MAX);
    let mut bbr = Bbr3::new();
    bbr.seed(1);
    bbr.on_established(&mut window, testing::RTT, Time::ZERO);
    (bbr, window)
}

/// Returns a path with 1 MB/s and 100 ms: a BDP of 100 segments.
fn path() -> Path {
    Path::new(1_000_000, Span::from_millis(100))
}

fn name(state: State) -> &'static str {
    match state {
        State::Startup => "startup",
        State::Drain(_) => "drain",
        State::ProbeBw(Phase::Down) => "down",
        State::ProbeBw(Phase::Cruise) => "cruise",
        State::ProbeBw(Phase::Refill) => "refill",
        State::ProbeBw(Phase::Up) => "up",
        State::ProbeRtt(_) => "probe rtt",
    }
}

/// Simulates `milliseconds`. Returns the sequence of states and the time when each began.
fn states(
    path: &mut Path,
    bbr: &mut Bbr3,
    window: &mut Window,
    milliseconds: u64,
) -> Vec<(&'static str, Time)> {
    let mut states: Vec<(&'static str, Time)> = Vec::new();
    for _ in 0..milliseconds {
        path.simulate_share(bbr, window, 100);
        let name = name(bbr.state);
        if states.last().is_none_or(|last| last.0 != name) {
            states.push((name, path.now));
        }
    }
    states
}

#[test]
fn initial_rate_is_the_initial_window_per_round_trip() {
    let (bbr, window) = established();
    let rate = bbr.pacing_rate(&window).unwrap().bits_per_second();
    assert_eq!(rate, (800_000.0 * 2.77 * 0.99) as u64);
}

/// "Exiting STARTUP on Bandwidth Plateau", "Exiting DRAIN Based on Inflight", and the cycle.
#[test]
fn states_are_startup_drain_and_the_cycle() {
    let (mut bbr, mut window) = established();
    let seen = states(&mut path(), &mut bbr, &mut window, 12_000);
    let names: Vec<_> = seen.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names[..6],
        // After Drain, so little is in flight that the first Down ends with the next
        // acknowledgment.
        ["startup", "drain", "cruise", "refill", "up", "down"],
        "{seen:?}"
    );
    assert!((950_000..1_010_000).contains(&bbr.bandwidth.get()));
    assert_eq!(bbr.minimum_rtt.get(), Some(Span::from_millis(100)));
    // Two to three seconds from Down to the next probe, unless ProbeRTT interrupts.
    let times = |of: &str| -> Vec<Time> {
        let found = seen.iter().filter(|(name, _)| *name == of);
        found.map(|(_, at)| *at).collect()
    };
    let wait = times("refill")[0].since(times("cruise")[0]).as_secs_f64();
    assert!((2.0..3.1).contains(&wait), "{wait}");
    // Refill takes a round trip; Up takes three rounds without growth.
    let refill = times("up")[0].since(times("refill")[0]).as_secs_f64();
    assert!((0.09..0.25).contains(&refill), "{refill}");
    let up = times("down")[0].since(times("up")[0]).as_secs_f64();
    assert!((0.3..0.8).contains(&up), "{up}");
}

/// "Entering and Exiting PROBE_RTT": every five seconds, half of the BDP for 200 ms.
#[test]
fn probe_rtt_halves_the_window_every_five_seconds() {
    let (mut bbr, mut window) = established();
    let seen = states(&mut path(), &mut bbr, &mut window, 17_000);
    let probes: Vec<Time> = seen
        .iter()
        .filter(|(name, _)| *name == "probe rtt")
        .map(|(_, at)| *at)
        .collect();
    assert!(probes.len() >= 2, "{seen:?}");
    for pair in probes.windows(2) {
        let apart = pair[1].since(pair[0]).as_secs_f64();
        assert!((5.0..6.0).contains(&apart), "{seen:?}");
    }
    let after = seen
        .iter()
        .position(|(name, _)| *name == "probe rtt")
        .unwrap()
        + 1;
    let duration = seen[after].1.since(probes[0]).as_secs_f64();
    assert!((0.2..0.5).contains(&duration), "{duration}");
    assert_eq!(seen[after].0, "cruise");
    // Window in ProbeRTT.
    while !matches!(bbr.state, State::ProbeRtt(_)) {
        states(&mut path(), &mut bbr, &mut window, 1);
        window.congestion_window = window.congestion_window.max(4000);
        bbr.state = State::ProbeRtt(ProbeRttTimer::default());
    }
    assert_eq!(bbr.probe_rtt_window(1000), bbr.bdp_multiple(0.5).max(4000));
}

/// After a loss of more than 2% in a probe, inflight_longterm is the data in flight at which the
/// losses crossed 2%. The probe ends, and the next one is precautionary.
#[test]
fn a_shallow_queue_sets_the_long_term_bound() {
    let (mut bbr, mut window) = established();
    let mut path = path();
    path.queue = 30;
    let seen = states(&mut path, &mut bbr, &mut window, 30_000);
    let bound = bbr.long_term.inflight.expect("a bound");
    // The BDP and the queue are 130 segments.
    assert!((100_000..150_000).contains(&bound), "{bound}");
    assert!(seen.iter().filter(|(name, _)| *name == "up").count() > 3);
    // Cruise leaves headroom.
    while bbr.state != State::ProbeBw(Phase::Cruise) {
        path.simulate_share(&mut bbr, &mut window, 100);
    }
    let bound = bbr.long_term.inflight.expect("a bound");
    path.simulate_share(&mut bbr, &mut window, 10);
    assert!(window.congestion_window as f64 <= 0.86 * bound as f64);
    assert!(bbr.bandwidth.get() > 900_000);
}

#[test]
fn losses_below_two_percent_set_no_long_term_bound() {
    let (mut bbr, mut window) = established();
    let mut path = path();
    path.loss_interval = 100;
    states(&mut path, &mut bbr, &mut window, 20_000);
    assert_eq!(bbr.long_term.inflight, None);
    assert!(bbr.bandwidth.get() > 900_000, "{}", bbr.bandwidth.get());
}

/// In Cruise, a loss reduces the bandwidth and inflight bounds to what was delivered, by at most
/// 30%. Refill resets them.
#[test]
fn losses_in_cruise_set_the_short_term_bounds() {
    let (mut bbr, mut window) = established();
    let mut path = path();
    while bbr.state != State::ProbeBw(Phase::Cruise) {
        path.simulate_share(&mut bbr, &mut window, 100);
    }
    assert_eq!(
        (bbr.short_term.bandwidth, bbr.short_term.inflight),
        (None, None)
    );
    path.loss_interval = 10;
    for _ in 0..4 {
        path.simulate_share(&mut bbr, &mut window, 1);
    }
    assert_eq!(bbr.state, State::ProbeBw(Phase::Cruise));
    let bandwidth = bbr.short_term.bandwidth.expect("a bound");
    let inflight = bbr.short_term.inflight.expect("a bound");
    assert!((500_000..1_000_000).contains(&bandwidth), "{bandwidth}");
    assert!(window.congestion_window <= inflight);
    assert!(bbr.bandwidth() <= bandwidth);
    path.loss_interval = 0;
    while bbr.state != State::ProbeBw(Phase::Refill) {
        path.simulate_share(&mut bbr, &mut window, 100);
    }
    assert_eq!(
        (bbr.short_term.bandwidth, bbr.short_term.inflight),
        (None, None)
    );
}

/// "Increasing Bandwidth 10x" and "Decreasing Bandwidth 10x".
#[test]
fn the_estimate_follows_the_bandwidth() {
    let (mut bbr, mut window) = established();
    let mut path = path();
    // Two BDPs of the slower path. With a longer queue the round trip takes one second and a cycle
    // more than the five seconds between ProbeRTTs, so that the filter never advances: see
    // docs/congestion/bbr.md.
    path.queue = 200;
    states(&mut path, &mut bbr, &mut window, 5_000);
    path.bandwidth = 10_000_000;
    states(&mut path, &mut bbr, &mut window, 30_000);
    assert!(bbr.bandwidth.get() > 9_000_000, "{}", bbr.bandwidth.get());
    path.bandwidth = 1_000_000;
    states(&mut path, &mut bbr, &mut window, 30_000);
    let bandwidth = bbr.bandwidth.get();
    assert!((900_000..1_500_000).contains(&bandwidth), "{bandwidth}");
}

/// "Handling Spurious Fast Recovery".
#[test]
fn a_spurious_recovery_is_undone() {
    let (mut bbr, mut window) = established();
    let mut path = path();
    while bbr.state != State::ProbeBw(Phase::Up) {
        path.simulate_share(&mut bbr, &mut window, 100);
    }
    path.simulate_share(&mut bbr, &mut window, 1);
    let before = window;
    assert_eq!(
        (bbr.state, bbr.long_term.inflight),
        (State::ProbeBw(Phase::Up), None)
    );
    bbr.on_congestion(
        &mut window,
        &CongestionSample::new(Congestion::Loss, 0, path.now),
    );
    let loss = LossSample {
        now: path.now,
        position: 0,
        length: 1000,
        sent_in_flight: 100_000,
        lost_since_sent: 5000,
        app_limited: false,
        total_delivered: bbr.rounds.delivered(),
        selective: true,
    };
    bbr.on_path_loss(&mut window, &loss);
    assert_eq!(bbr.state, State::ProbeBw(Phase::Down));
    assert!(bbr.long_term.inflight.is_some());
    bbr.on_spurious(&mut window, before);
    assert_eq!(bbr.state, State::ProbeBw(Phase::Refill));
    assert_eq!(bbr.long_term.inflight, None);
    assert_eq!(window, before);
}

/// InflightAtLoss, computed by hand: 2% of 100,000 are 2000. With 1000 lost before, the losses
/// cross the threshold after (0.02 * 99,000 - 1000) / 0.98 = 1000 more.
#[test]
fn inflight_at_loss_equals_a_calculation_by_hand() {
    let (mut bbr, mut window) = established();
    bbr.cycle.probing = true;
    bbr.handle_loss(
        &mut window,
        &LossSample {
            now: Time::ZERO,
            position: 0,
            length: 1000,
            sent_in_flight: 99_000,
            lost_since_sent: 2000,
            app_limited: false,
            total_delivered: 0,
            selective: true,
        },
    );
    assert_eq!(bbr.long_term.inflight, Some(98_979));
}

proptest! {
    /// For any sequence of samples: at least one segment of window, a positive rate, no panic.
    #[test]
    fn window_and_rate_are_positive_after_any_operations(
        operations in proptest::collection::vec(Operation::any(), 1..300),
    ) {
        testing::run_operations(CongestionControlKind::Bbr3, &operations)?;
    }
}
