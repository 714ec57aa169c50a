//! Tests with whole transfers between two connections.

use std::collections::BTreeSet;

use bentpipe_types::{Seq, Span, Time};

use crate::testing::{A, Hostility, Pair};
use crate::{Config, NewRenoKind, RecoveryKind, State};

const EVERY_RECOVERY: [RecoveryKind; 4] = [
    RecoveryKind::Reno,
    RecoveryKind::NewReno,
    RecoveryKind::Sack,
    RecoveryKind::Fack,
];

fn at(seconds: u64) -> Time {
    Time::ZERO + Span::from_secs(seconds)
}

fn pair(config: &Config) -> Pair {
    Pair::new(config, config, Hostility::default(), 1)
}

/// Drops the first transmissions of the segments with these numbers.
fn lose(pair: &mut Pair, config: &Config, segments: impl IntoIterator<Item = u64>) {
    let mut segments: BTreeSet<u64> = segments
        .into_iter()
        .map(|n| n * u64::from(config.mss))
        .collect();
    pair.filter = Box::new(move |from, packet| {
        from != A || packet.payload_length == 0 || !segments.remove(&packet.payload_offset)
    });
}

fn check(pair: &Pair, bytes: u64) {
    let (a, b) = (pair.a(), pair.b());
    assert_eq!((a.state(), b.state()), (State::Closed, State::Closed));
    assert_eq!(b.statistics().bytes_delivered, bytes);
    assert_eq!(a.statistics().bytes_acknowledged, bytes);
    assert_eq!(b.statistics().payload_mismatches, 0);
}

#[test]
fn without_loss_everything_is_sent_once() {
    let config = Config::default();
    let mut pair = pair(&config);
    pair.transfer(10_000_000, at(100));
    check(&pair, 10_000_000);
    let sent = pair.a().statistics();
    assert_eq!(sent.segments_sent, 10_000_000_u64.div_ceil(1448));
    assert_eq!(sent.segments_retransmitted, 0);
    assert_eq!((sent.timeouts, sent.fast_recoveries), (0, 0));
    assert_eq!(sent.rtt.min(), Some(Span::from_millis(20)));
}

/// More than two wraps of the sequence numbers, on the fast path.
#[test]
fn ten_gigabytes_wrap_the_sequence_numbers_twice() {
    let config = Config::default();
    let mut pair = pair(&config);
    pair.transfer(10_000_000_000, at(1_000));
    check(&pair, 10_000_000_000);
    assert_eq!(pair.a().statistics().segments_retransmitted, 0);
}

#[test]
fn recovery_across_the_sequence_number_wrap() {
    for recovery in EVERY_RECOVERY {
        for segment in 0..12 {
            let config = Config {
                recovery,
                ..Config::default()
            };
            // The harness starts A's sequence numbers less than 4096 before the wrap.
            let mut pair = pair(&config);
            lose(&mut pair, &config, [segment, segment + 2]);
            pair.transfer(100_000, at(100));
            check(&pair, 100_000);
            let sent = pair.a().statistics().segments_retransmitted;
            assert_eq!(sent, 2, "{recovery:?} {segment}");
        }
    }
}

#[test]
fn one_loss_costs_one_fast_retransmit_and_no_timeout() {
    for recovery in EVERY_RECOVERY {
        let config = Config {
            recovery,
            ..Config::default()
        };
        let mut pair = pair(&config);
        lose(&mut pair, &config, [50]);
        pair.transfer(1_000_000, at(100));
        check(&pair, 1_000_000);
        let sent = pair.a().statistics();
        assert_eq!(
            (sent.fast_recoveries, sent.timeouts),
            (1, 0),
            "{recovery:?}"
        );
        assert_eq!(sent.segments_retransmitted, 1, "{recovery:?}");
    }
}

/// The motivation of RFC 6582: several losses in one window.
#[test]
fn newreno_recovers_from_several_losses_without_a_timeout() {
    let config = Config {
        recovery: RecoveryKind::NewReno,
        newreno: NewRenoKind::SlowButSteady,
        ..Config::default()
    };
    let mut pair = pair(&config);
    lose(&mut pair, &config, [60, 62, 64, 66, 68]);
    pair.transfer(1_000_000, at(100));
    check(&pair, 1_000_000);
    let sent = pair.a().statistics();
    assert_eq!((sent.fast_recoveries, sent.timeouts), (1, 0));
    assert_eq!(sent.segments_retransmitted, 5);
}

#[test]
fn reordering_by_less_than_three_segments_is_no_loss() {
    let config = Config::default();
    let network = Hostility {
        jitter: Span::from_nanos(1),
        ..Hostility::default()
    };
    let mut pair = Pair::new(&config, &config, network, 1);
    pair.transfer(28_960, at(100));
    check(&pair, 28_960);
}

/// RFC 6298 section 3 (Karn's algorithm): the timeout never fires while acknowledgments arrive
/// regularly.
#[test]
fn no_spurious_timeout_on_a_long_path() {
    let config = Config {
        delayed_ack: Some(Span::from_millis(200)),
        ..Config::default()
    };
    let network = Hostility {
        delay: Span::from_millis(300),
        ..Hostility::default()
    };
    let mut pair = Pair::new(&config, &config, network, 1);
    // An odd number of segments each time: the last waits for the delayed acknowledgment.
    for round in 1..50 {
        pair.run(Span::from_secs(2));
        pair.with(A, |tcp, cx| tcp.write(3 * 1448, cx));
        pair.run(Span::from_secs(2));
        assert_eq!(pair.b().delivered_offset(), round * 3 * 1448);
    }
    assert_eq!(pair.a().statistics().timeouts, 0);
}

#[test]
fn the_same_seed_gives_the_same_packets() {
    let run = |seed| {
        let config = Config::default();
        let network = Hostility {
            loss: 0.03,
            jitter: Span::from_millis(5),
            duplication: 0.01,
            ..Hostility::default()
        };
        let mut pair = Pair::new(&config, &config, network, seed);
        pair.log = Some(Vec::new());
        pair.transfer(300_000, at(200));
        let log = pair.log.take().unwrap();
        log.iter()
            .map(|(from, at, p)| (*from, *at, p.sequence, p.acknowledgment, p.payload_length))
            .collect::<Vec<(usize, Time, Seq, Seq, u16)>>()
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}
