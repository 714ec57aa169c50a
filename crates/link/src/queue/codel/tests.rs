use bentpipe_types::{Ecn, Span, Time};
use proptest::prelude::*;

use super::super::bench::{Bench, Done};
use super::*;

const BOUNDS: DelayBounds = DelayBounds {
    target: Span::from_millis(5),
    interval: Span::from_millis(100),
    ecn: false,
};

fn bench_of(bounds: DelayBounds, limit: Limit) -> Bench<Codel> {
    Bench::new(Codel::new(CodelSettings { limit, bounds }))
}

/// One packet arrives and one leaves per millisecond, with a backlog of 50 ms. Returns the times of
/// drops or marks in ms.
fn signals(bench: &mut Bench<Codel>, milliseconds: u64, ecn: Ecn) -> Vec<u64> {
    for _ in 0..50 {
        bench.offer(0, 1000, ecn);
    }
    let mut signals = Vec::new();
    let (mut dropped, mut marked) = (0, 0);
    for millisecond in 0..milliseconds {
        bench.now = Time::ZERO + Span::from_millis(millisecond);
        bench.offer(0, 1000, ecn);
        bench.take();
        let control = &bench.queue.control;
        if (control.dropped(), control.marked()) != (dropped, marked) {
            (dropped, marked) = (control.dropped(), control.marked());
            // The backlog stays constant.
            if bench.queue.packets() < 50 {
                bench.offer(0, 1000, ecn);
            }
            signals.push(millisecond);
        }
    }
    signals
}

/// The first delay above the target is at 5 ms. Drops follow after an interval, and then at
/// intervals divided by the root of the count, by Newton steps from 1: 0.5, 0.5625, 0.4878, 0.4416
/// ... (exact: 1, 0.7071, 0.5774, 0.5, 0.4472).
#[test]
fn intervals_between_drops_shrink() {
    let mut expected = vec![105.0];
    let mut root = 1.0_f64;
    let mut next = 105.0 + 100.0;
    for count in 2..20 {
        expected.push(next);
        root *= 0.5 * (3.0 - f64::from(count) * root * root);
        next += 100.0 * root;
    }
    let last = *expected.last().expect("there are some") as u64;
    for (bounds, ecn) in [
        (BOUNDS, Ecn::NotCapable),
        (
            DelayBounds {
                ecn: true,
                ..BOUNDS
            },
            Ecn::Capable0,
        ),
        (
            DelayBounds {
                ecn: true,
                ..BOUNDS
            },
            Ecn::NotCapable,
        ),
    ] {
        let mut bench = bench_of(bounds, Limit::Packets(1000));
        let signals = signals(&mut bench, last + 2, ecn);
        assert_eq!(signals.len(), expected.len(), "{signals:?} {expected:?}");
        for (signal, expected) in signals.iter().zip(&expected) {
            // Observed when the next packet leaves; roots have 16 bits.
            let late = *signal as f64 - expected;
            assert!((-0.1..=1.1).contains(&late), "{signals:?} {expected:?}");
        }
        let marks = bounds.ecn && ecn == Ecn::Capable0;
        assert_eq!(bench.queue.control.dropped() == 0, marks);
        assert_eq!(bench.queue.control.marked() > 0, marks);
    }
}

/// A burst that ends within an interval passes, and so does a delay below the target, however long
/// it lasts.
#[test]
fn short_bursts_are_not_dropped() {
    let mut bench = bench_of(BOUNDS, Limit::Packets(1000));
    for burst in 0..20 {
        bench.now = Time::ZERO + Span::from_millis(200 * burst);
        for _ in 0..90 {
            bench.put(0, 1500);
        }
        for _ in 0..90 {
            bench.now += Span::from_millis(1);
            assert!(bench.take().is_some());
        }
    }
    assert_eq!(bench.queue.control.dropped(), 0);
}

/// With less than a full packet behind it, a packet leaves whatever its delay: otherwise a slow
/// link would idle.
#[test]
fn the_last_packet_is_never_dropped() {
    let mut bench = bench_of(BOUNDS, Limit::Packets(1000));
    for second in 0..100 {
        bench.now = Time::ZERO + Span::from_secs(second);
        bench.put(0, 1500);
        if second > 0 {
            assert!(bench.take().is_some());
        }
    }
    assert_eq!(bench.queue.control.dropped(), 0);
}

proptest! {
    /// Under any arrivals and departures: every packet is sent, dropped or queued; sent packets are
    /// in order; nothing is dropped before an interval has passed; the limit holds.
    #[test]
    fn every_packet_is_accounted_for(
        steps in prop::collection::vec((0_u8..3, 40_u64..1500, 0_u64..40_000), 1..600),
        interval_ms in 1_u64..200,
        limit in 1_u64..60,
        ecn in any::<bool>(),
    ) {
        let bounds = DelayBounds { target: Span::from_millis(1), interval: Span::from_millis(interval_ms), ecn };
        let mut bench = bench_of(bounds, Limit::Packets(limit));
        let capable = if ecn { Ecn::Capable0 } else { Ecn::NotCapable };
        let mut done = Done::default();
        for (what, length, microseconds) in steps {
            bench.step((what, 0, length, Span::from_micros(microseconds)), capable, &mut done)?;
            let queue = &bench.queue;
            let dropped = queue.given_up().dropped;
            prop_assert!(dropped == 0 || !ecn);
            prop_assert!(dropped == 0 || bench.now.as_nanos() >= interval_ms * 1_000_000);
            prop_assert!(queue.packets() <= limit);
        }
        while bench.take().is_some() {}
        prop_assert_eq!(bench.queue.bytes(), 0);
        prop_assert_eq!(bench.packets.held(), 0);
    }
}
