use bentpipe_types::Span;
use proptest::prelude::*;

use super::gain_cycle::GAINS;
use super::*;
use crate::CongestionControlKind;
use crate::congestion::bbr::testing::{self, Operation};

fn established() -> (Bbr1, Window) {
    let mut window = Window::new(1000, 10_000, u64::MAX);
    let mut bbr = Bbr1::new();
    bbr.seed(1);
    bbr.on_established(&mut window, testing::RTT, Time::ZERO);
    (bbr, window)
}

#[test]
fn initial_rate_is_the_initial_window_per_round_trip() {
    let (bbr, window) = established();
    // 10,000 bytes per 100 ms, times 2/ln 2, less 1%.
    let rate = bbr.pacing_rate(&window).unwrap().bits_per_second();
    assert_eq!(rate, (800_000.0 * 739.0 / 256.0 * 0.99) as u64);
}

/// The sequence of states described in the paper, at 1 MB/s and 100 ms.
#[test]
fn states_are_startup_drain_and_probe_bw() {
    let (mut bbr, mut window) = established();
    let mut path = testing::Path::new(1_000_000, Span::from_millis(100));
    let mut states = Vec::new();
    for _ in 0..400 {
        path.simulate_share(&mut bbr, &mut window, 20);
        let name = match bbr.state {
            State::Startup => "startup",
            State::Drain => "drain",
            State::ProbeBw(_) => "probe bw",
            State::ProbeRtt(_) => "probe rtt",
        };
        if states.last() != Some(&name) {
            states.push(name);
        }
    }
    assert_eq!(states, ["startup", "drain", "probe bw"]);
    assert!((950_000..1_010_000).contains(&bbr.bandwidth.get()));
    assert_eq!(bbr.minimum_rtt.get(), Some(Span::from_millis(100)));
}

/// The gain cycle: 1.25, 0.75, and six times 1, one round trip each.
#[test]
fn the_gain_cycle_has_eight_phases() {
    let (mut bbr, mut window) = established();
    let mut path = testing::Path::new(1_000_000, Span::from_millis(100));
    let mut gains: Vec<(f64, Time)> = Vec::new();
    for _ in 0..1600 {
        path.simulate_share(&mut bbr, &mut window, 20);
        if let State::ProbeBw(cycle) = bbr.state {
            let at = (cycle.gain(), cycle.since);
            if gains.last().is_none_or(|last| last.1 != at.1) {
                gains.push(at);
            }
        }
    }
    let first = gains.iter().position(|(gain, _)| *gain == 1.25).unwrap();
    let phases: Vec<f64> = gains[first..].iter().map(|(gain, _)| *gain).collect();
    assert!(phases.len() > 16, "{phases:?}");
    for cycle in phases.chunks_exact(8) {
        assert_eq!(cycle, GAINS);
    }
}

#[test]
fn a_policed_path_is_paced_at_the_policers_rate() {
    let (mut bbr, mut window) = established();
    let mut path = testing::Path::new(1_000_000, Span::from_millis(100));
    for _ in 0..200 {
        path.simulate_share(&mut bbr, &mut window, 20);
    }
    assert_eq!(bbr.policer.rate(), None);
    path.policer_rate = Some(300_000);
    for _ in 0..600 {
        path.simulate_share(&mut bbr, &mut window, 20);
    }
    let rate = bbr.policer.rate().unwrap();
    assert!((250_000..350_000).contains(&rate), "{rate}");
}

proptest! {
    /// For any sequence of samples: at least one segment of window, a positive rate, no panic.
    #[test]
    fn window_and_rate_are_positive_after_any_operations(
        operations in proptest::collection::vec(Operation::any(), 1..300),
    ) {
        testing::run_operations(CongestionControlKind::Bbr1, &operations)?;
    }
}
