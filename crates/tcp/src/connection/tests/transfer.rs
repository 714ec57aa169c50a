//! Whole transfers between two connections.

use bentpipe_types::{Span, Time};

use crate::testing::{A, B, Hostility, Pair};
use crate::{Config, RecoveryKind, State};

fn at(seconds: u64) -> Time {
    Time::ZERO + Span::from_secs(seconds)
}

#[test]
fn without_loss_everything_arrives_once() {
    let config = Config::default();
    let mut pair = Pair::new(&config, &config, Hostility::default(), 1);
    pair.transfer(10_000_000, at(100));
    let (a, b) = (pair.a(), pair.b());
    assert_eq!((a.state(), b.state()), (State::Closed, State::Closed));
    let (sent, received) = (a.statistics(), b.statistics());
    assert_eq!(received.bytes_delivered, 10_000_000);
    assert_eq!(sent.bytes_acknowledged, 10_000_000);
    assert_eq!(sent.segments_sent, 10_000_000_u64.div_ceil(1448));
    assert_eq!(sent.segments_retransmitted, 0);
    assert_eq!((sent.timeouts, sent.fast_recoveries), (0, 0));
    assert_eq!(received.payload_mismatches, 0);
    assert_eq!(sent.rtt.min(), Some(Span::from_millis(20)));
    let _ = (A, B, RecoveryKind::Reno);
}

/// More than twice around the sequence numbers, on the fast path.
#[test]
fn ten_gigabytes() {
    let config = Config::default();
    let mut pair = Pair::new(&config, &config, Hostility::default(), 1);
    pair.transfer(10_000_000_000, at(1_000));
    let (a, b) = (pair.a(), pair.b());
    assert_eq!((a.state(), b.state()), (State::Closed, State::Closed));
    assert_eq!(b.statistics().bytes_delivered, 10_000_000_000);
    assert_eq!(b.statistics().payload_mismatches, 0);
    assert_eq!(a.statistics().segments_retransmitted, 0);
}
