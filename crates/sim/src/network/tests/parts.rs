//! Divided networks give the same results as undivided ones.

use super::link_chains::{Case, build, case};
use super::*;
use crate::{Progress, Undivided};

/// Runs a case in at most this many parts. Returns the clock at each reading time and the outcome,
/// or `None` if the network is not divided.
fn play(case: &Case, parts: usize, budget: u64) -> Option<Vec<String>> {
    let (network, _) = build(case);
    let mut parts = match network.split(parts) {
        Ok(parts) => parts,
        Err((_, reason)) => {
            assert_eq!(reason, Undivided::Connected);
            return None;
        }
    };
    let mut read = Vec::new();
    for until in case.asked.iter().copied().chain([400_000]) {
        let until = Time::ZERO + Span::from_millis(until);
        while parts.run(until, budget) == Progress::Running {}
        assert_eq!(parts.violations(), []);
        read.push(format!("{:?}", parts.packets_held()));
    }
    read.push(format!("{:#?}", parts.outcome()));
    Some(read)
}

/// The same for the undivided network.
fn play_undivided(case: &Case) -> Vec<String> {
    let (mut network, _) = build(case);
    let mut read = Vec::new();
    for until in case.asked.iter().copied().chain([400_000]) {
        let until = Time::ZERO + Span::from_millis(until);
        network.run_until(until);
        read.push(format!("{:?}", network.packets_held()));
    }
    read.push(format!("{:#?}", network.outcome()));
    read
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// Random rows of routers with hosts at any of them, links with and without delay, losses and
    /// several kinds of queues.
    #[test]
    fn divided_networks_equal_undivided_ones(case in case(), parts in 2_usize..6, budget in 1_u64..2_000) {
        let undivided = play_undivided(&case);
        for budget in [budget, u64::MAX] {
            if let Some(divided) = play(&case, parts, budget) {
                prop_assert_eq!(&divided, &undivided);
            }
        }
    }
}
