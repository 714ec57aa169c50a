use proptest::prelude::*;

use super::super::bench::{Bench, Done};
use super::*;

const SETTINGS: PieSettings = PieSettings {
    limit: Limit::Packets(1000),
    target: Span::from_millis(15),
    update_interval: Span::from_millis(15),
    burst_allowance: Span::from_millis(150),
    ecn: false,
};

fn bench_of(settings: PieSettings) -> Bench<Pie> {
    Bench::new(Pie::new(settings))
}

/// Section 4.2 by hand: 30 ms, then 40 ms of delay at a probability of 0.005, which scales steps by
/// 1/8.
#[test]
fn the_probability_follows_the_delay() {
    let mut control = Control {
        probability: 0.005,
        delay: Span::from_millis(30),
        last_delay: Span::from_millis(20),
        burst_allowance: Span::ZERO,
    };
    control.update(&SETTINGS, Bytes::new(9000));
    let first = 0.005 + (0.125 * 0.015 + 1.25 * 0.010) / 8.0;
    assert!((control.probability - first).abs() < 1e-15);
    control.delay = Span::from_millis(40);
    control.update(&SETTINGS, Bytes::new(9000));
    let second = first + (0.125 * 0.025 + 1.25 * 0.010) / 8.0;
    assert!((control.probability - second).abs() < 1e-15);
    // A tenth and more: at most 2% at once, except for delays above 250 ms.
    control.probability = 0.2;
    control.delay = Span::from_millis(240);
    control.update(&SETTINGS, Bytes::new(9000));
    assert!((control.probability - 0.22).abs() < 1e-15);
    control.delay = Span::from_millis(251);
    control.update(&SETTINGS, Bytes::new(9000));
    assert!((control.probability - 0.26).abs() < 1e-15);
    // No delay, twice: the step, and a decay of 2%.
    (control.delay, control.last_delay) = (Span::ZERO, Span::ZERO);
    control.update(&SETTINGS, Bytes::ZERO);
    let falls = (0.26 - 0.125 * 0.015) * 0.98;
    assert!((control.probability - falls).abs() < 1e-15);
}

/// With twice as many arrivals as departures, the delay converges to the target, and half of the
/// packets are dropped.
#[test]
fn the_delay_converges_to_the_target() {
    let mut bench = bench_of(SETTINGS);
    let (mut waits, mut taken, mut dropped, mut offered) = (0.0, 0, 0, 0);
    for tenth in 0..600_000_u64 {
        // A packet per 0.6 ms on average, with a transmission time of 1.2 ms.
        bench.now = Time::ZERO + Span::from_micros(100 * tenth);
        let settled = tenth > 300_000;
        if bench.random.happens(1.0 / 6.0) {
            let verdict = bench.put(0, 1500);
            offered += u32::from(settled);
            dropped += u32::from(settled && verdict == Verdict::Dropped);
        }
        if tenth % 12 == 0 && bench.take().is_some() && settled {
            waits += bench.queue.control.delay.as_millis_f64();
            taken += 1;
        }
    }
    let mean = waits / f64::from(taken);
    assert!((mean - 15.0).abs() < 1.5, "{mean} ms");
    let share = f64::from(dropped) / f64::from(offered);
    assert!((share - 0.5).abs() < 0.01, "{share}");
}

/// During the burst allowance nothing is dropped early; after a minute of silence it applies again.
#[test]
fn a_burst_after_a_silence_passes() {
    let mut bench = bench_of(SETTINGS);
    for round in 0..3_u64 {
        bench.now = Time::ZERO + Span::from_secs(60 * round);
        let start = bench.now;
        let early = bench.queue.early;
        for step in 0..140_u64 {
            bench.now = start + Span::from_millis(step);
            bench.put(0, 1500);
            bench.put(0, 1500);
            bench.take();
        }
        assert_eq!(bench.queue.early, early);
        // The burst continues, and some packets are dropped.
        for step in 140..3000_u64 {
            bench.now = start + Span::from_millis(step);
            bench.put(0, 1500);
            bench.put(0, 1500);
            bench.take();
        }
        assert!(bench.queue.early > early);
        while bench.take().is_some() {}
    }
}

/// Up to a probability of a tenth packets are marked; above, they are dropped.
#[test]
fn marks_up_to_a_tenth() {
    let mut bench = bench_of(PieSettings {
        ecn: true,
        ..SETTINGS
    });
    let mut most = 0.0_f64;
    for step in 0..6000_u64 {
        bench.now = Time::ZERO + Span::from_millis(step);
        bench.offer(0, 1500, Ecn::Capable0);
        if step % 14 == 0 {
            bench.offer(0, 1500, Ecn::Capable0);
        }
        bench.take();
        let queue = &bench.queue;
        if most <= MOST_MARKED {
            assert_eq!(queue.early, 0);
        }
        most = most.max(queue.control.probability);
    }
    assert!(bench.queue.marked > 0 && most > MOST_MARKED);
    assert!(bench.queue.early > 0);
}

/// A queue with three full packets, a probability of one and both delays above half the target: the
/// state in which the next packet is due.
fn congested() -> Bench<Pie> {
    let mut bench = bench_of(SETTINGS);
    for _ in 0..3 {
        assert_eq!(bench.put(0, 1500), Verdict::Queued);
    }
    bench.queue.control = Control {
        probability: 1.0,
        delay: Span::from_millis(15),
        last_delay: Span::from_millis(15),
        burst_allowance: Span::ZERO,
    };
    bench
}

/// Section 4.1: the three states in which no packet is dropped early, each beside the nearest state
/// in which one is.
#[test]
fn early_drops_have_three_exceptions() {
    assert_eq!(congested().put(0, 1500), Verdict::Dropped);

    // While a burst is allowed.
    let mut bench = congested();
    bench.queue.control.burst_allowance = Span::from_nanos(1);
    assert_eq!(bench.put(0, 1500), Verdict::Queued);

    // While the delay was below half the target and the probability is below a fifth.
    let half = Span::from_nanos(SETTINGS.target.as_nanos() / 2);
    for (last_delay, probability, verdict) in [
        (Span::from_nanos(half.as_nanos() - 1), 0.19, Verdict::Queued),
        (Span::from_nanos(half.as_nanos() - 1), 0.2, Verdict::Dropped),
        (half, 0.19, Verdict::Dropped),
    ] {
        let mut bench = congested();
        bench.queue.control.last_delay = last_delay;
        bench.queue.control.probability = probability;
        // The next packet is dropped whatever the random number is (section 5.4).
        bench.queue.accumulated = SPREAD.1;
        assert_eq!(bench.put(0, 1500), verdict, "{last_delay:?}, {probability}");
    }

    // While at most two full packets are queued.
    let mut bench = congested();
    bench.take();
    assert_eq!(bench.queue.waiting.bytes(), Bytes::new(2 * FULL_PACKET));
    bench.queue.control.delay = Span::from_millis(15);
    assert_eq!(bench.put(0, 1500), Verdict::Queued);
    assert_eq!(bench.put(0, 40), Verdict::Dropped);
}

/// Section 4.2: the burst allowance shrinks by an interval per update. It is restored when the
/// probability is zero and both delays are below half the target.
#[test]
fn the_burst_allowance_is_restored_without_congestion() {
    let half = SETTINGS.target.as_nanos() / 2;
    let after = |probability: f64, delay_ns: u64, last_delay_ns: u64| {
        let mut control = Control {
            probability,
            delay: Span::from_nanos(delay_ns),
            last_delay: Span::from_nanos(last_delay_ns),
            burst_allowance: Span::from_millis(40),
        };
        control.update(&SETTINGS, Bytes::new(9000));
        control.burst_allowance
    };
    let (whole, shrunk) = (SETTINGS.burst_allowance, Span::from_millis(25));
    assert_eq!(after(0.0, half - 1, half - 1), whole);
    assert_eq!(after(0.0, half, half - 1), shrunk);
    assert_eq!(after(0.0, half - 1, half), shrunk);
    assert_eq!(after(0.5, half - 1, half - 1), shrunk);
}

/// Linux: the probability decays only where two delays of zero mean an empty queue.
#[test]
fn the_probability_does_not_decay_while_packets_are_queued() {
    let after = |last_delay: Span, waiting: u64| {
        let mut control = Control {
            probability: 0.5,
            delay: Span::ZERO,
            last_delay,
            burst_allowance: Span::ZERO,
        };
        control.update(&SETTINGS, Bytes::new(waiting));
        control.probability
    };
    let step = |growth: f64| 0.125 * -0.015 + 1.25 * growth;
    assert!((after(Span::ZERO, 0) - (0.5 + step(0.0)) * 0.98).abs() < 1e-15);
    assert!((after(Span::ZERO, 1500) - (0.5 + step(0.0))).abs() < 1e-15);
    assert!((after(Span::from_millis(1), 0) - (0.5 + step(-0.001))).abs() < 1e-15);
}

proptest! {
    /// Updates are applied late with the same result, however often the queue is called.
    #[test]
    fn updates_are_never_missed(
        probability in 0.0_f64..1.0,
        delay_ms in 0_u64..400,
        last_ms in 0_u64..400,
        stops in prop::collection::vec(1_u64..3_000_000, 1..30),
    ) {
        let mut often = bench_of(SETTINGS);
        often.queue.control = Control {
            probability,
            delay: Span::from_millis(delay_ms),
            last_delay: Span::from_millis(last_ms),
            burst_allowance: Span::ZERO,
        };
        let mut seldom = bench_of(SETTINGS);
        seldom.queue.control = often.queue.control;
        let mut now = Time::ZERO;
        for microseconds in stops {
            now += Span::from_micros(microseconds);
            often.queue.catch_up(now);
        }
        seldom.queue.catch_up(now);
        prop_assert_eq!(often.queue.control, seldom.queue.control);
        prop_assert_eq!(often.queue.next_update, seldom.queue.next_update);
        prop_assert!(now < seldom.queue.next_update);
    }

    /// Under any arrivals and departures: every packet is sent, dropped or queued, and the
    /// probability is between 0 and 1.
    #[test]
    fn every_packet_is_accounted_for(
        steps in prop::collection::vec((0_u8..3, 40_u64..1500, 0_u64..60_000), 1..600),
        limit in 1_u64..60,
        ecn in any::<bool>(),
    ) {
        let mut bench = bench_of(PieSettings { limit: Limit::Packets(limit), ecn, ..SETTINGS });
        let mut done = Done::default();
        for (what, length, microseconds) in steps {
            bench.step((what, 0, length, Span::from_micros(microseconds)), Ecn::Capable0, &mut done)?;
            let queue = &bench.queue;
            prop_assert!(queue.packets() <= limit);
            prop_assert_eq!(queue.given_up().dropped, 0);
            prop_assert!((0.0..=1.0).contains(&queue.control.probability));
        }
    }
}
