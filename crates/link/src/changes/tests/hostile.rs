//! Arbitrary changes: every packet is accounted for, order is kept, and repetition gives the same
//! result.

use proptest::prelude::*;

use super::*;

fn profile<T: Copy + std::fmt::Debug>(
    values: impl Strategy<Value = T>,
) -> impl Strategy<Value = Profile<T>> {
    let steps = prop::collection::vec((1_u64..400_000_000, values), 1..12);
    (steps, any::<bool>(), any::<bool>()).prop_map(|(steps, repeats, from_start)| {
        let mut at = 0;
        let mut ascending: Vec<(Span, T)> = steps
            .iter()
            .map(|(gap, value)| {
                at += gap;
                (Span::from_nanos(at), *value)
            })
            .collect();
        if from_start {
            ascending[0].0 = Span::ZERO;
        }
        let period = repeats.then_some(Span::from_nanos(at + 7));
        Profile::new(ascending, period).expect("ascending")
    })
}

fn outages() -> impl Strategy<Value = Outages> {
    let ends = (0_u64..2_000, 1_u64..300, prop::option::of(301_u64..3_000));
    (ends, any::<bool>(), 0..3).prop_map(|((at, lasts, every), holds, in_flight)| Outages {
        at: ms(at),
        lasts: ms(lasts),
        every: every.map(ms),
        sending: if holds { Sending::Held } else { Sending::Lost },
        in_flight: [InFlight::Arrive, InFlight::Lost, InFlight::Held][in_flight as usize],
    })
}

fn fading() -> impl Strategy<Value = FadingSettings> {
    let times = (0.0_f64..1.0, 0.0_f64..1.0);
    (times, prop::option::of(0_u64..20_000), 0.0..=1.0_f64).prop_map(
        |((clear, faded), rate, packet)| FadingSettings {
            clear: Distribution::Exponential(clear),
            faded: Distribution::Constant(faded),
            rate,
            losses: LossRates { packet, bit: 1e-4 },
        },
    )
}

prop_compose! {
    fn changes()(
        rate in prop_oneof![
            Just(RateCourse::Constant),
            profile(prop_oneof![Just(0_u64), 1_u64..100_000_000]).prop_map(RateCourse::Steps),
            prop::collection::vec(0_u64..50, 1..20).prop_map(|mut at| {
                at.push(51);
                at.sort_unstable();
                RateCourse::Opportunities(Opportunities::new(at).expect("sorted"))
            }),
        ],
        delay in prop::option::of((profile((0_u64..500).prop_map(ms)), any::<bool>())),
        losses in prop::option::of(profile((0.0..=1.0_f64, 0.0..1e-3_f64))),
        outages in prop::collection::vec(outages(), 0..3),
        fading in prop::option::of(fading()),
        duplication in 0.0..=1.0_f64,
        corruption in 0.0..=1.0_f64,
        reordering in prop::option::of((0.0..=1.0_f64, 0.0..1.0_f64)),
        keeps_order in any::<bool>(),
    ) -> Changes {
        Changes {
            rate,
            delay: delay.map(|(delay, ramps)| if ramps { Profile::ramps_through(delay.steps().to_vec(), delay.period()).expect("as it was") } else { delay }),
            losses: losses.map(|losses| {
                let rates = losses.steps().iter().map(|(at, (packet, bit))| {
                    (*at, LossRates { packet: *packet, bit: *bit })
                });
                Profile::new(rates.collect::<Vec<_>>(), losses.period()).expect("as it was")
            }),
            outages,
            fading,
            duplication,
            corruption,
            reordering: reordering.map(|(share, mean)| (share, Distribution::Exponential(mean))),
            keeps_order,
        }
    }
}

/// Integral of the rate between two instants, interval by interval from the start of the run, in
/// bit/s times nanoseconds.
fn sent_between(profile: &Profile<u64>, usual: u64, from: Time, to: Time) -> u128 {
    let mut edges = vec![from, to];
    let mut round = Time::ZERO;
    loop {
        edges.extend(profile.steps().iter().map(|(at, _)| round + *at));
        edges.push(round);
        match profile.period() {
            Some(period) if round <= to => round += period,
            _ => break,
        }
    }
    edges.retain(|edge| (from..=to).contains(edge));
    edges.sort_unstable();
    let value = |now: Time| {
        let into = profile
            .period()
            .map_or(now.as_nanos(), |period| now.as_nanos() % period.as_nanos());
        let before = profile
            .steps()
            .iter()
            .rev()
            .find(|(at, _)| at.as_nanos() <= into);
        before.map_or(usual, |(_, rate)| *rate)
    };
    let pieces = edges.windows(2);
    pieces
        .map(|pair| u128::from(value(pair[0])) * u128::from(pair[1].since(pair[0]).as_nanos()))
        .sum()
}

proptest! {
    /// `drive` checks after every event that every packet is accounted for.
    #[test]
    fn every_packet_is_accounted_for(
        changes in changes(),
        offers in prop::collection::vec((0_u64..30_000_000, 40_u64..3_000), 1..120),
    ) {
        let mut now = 0;
        let offers: Vec<(Time, u64)> = offers
            .iter()
            .map(|(gap, length)| { now += gap; (Time::from_nanos(now), *length) })
            .collect();
        let in_order = changes.keeps_order && changes.reordering.is_none();
        let (arrivals, counters, _) = drive(changing(changes.clone()), &offers);
        if in_order {
            prop_assert!(arrivals.is_sorted_by_key(|(_, number, _)| *number));
        }
        prop_assert!(arrivals.is_sorted_by_key(|(now, ..)| *now));
        let again = drive(changing(changes), &offers);
        prop_assert_eq!((arrivals, counters), (again.0, again.1));
    }

    /// The data sent between a packet's first and last bit are the packet.
    #[test]
    fn transmission_times_equal_the_integral_of_the_rates(
        profile in profile(prop_oneof![1 => Just(0_u64), 4 => 1_000_u64..100_000_000]),
        lengths in prop::collection::vec(40_u64..3_000, 1..60),
    ) {
        prop_assume!(profile.period().is_some() || profile.steps().last().expect("some").1 > 0);
        let changes = Changes { rate: RateCourse::Steps(profile.clone()), ..Changes::default() };
        let settings = Settings { delay: Span::ZERO, ..changing(changes) };
        let usual = settings.rate.bits_per_second();
        let offers: Vec<(Time, u64)> = lengths.iter().map(|length| (Time::ZERO, *length)).collect();
        let mut began = Time::ZERO;
        for (arrival, number, _) in drive(settings, &offers).0 {
            let bits = u128::from(lengths[number as usize]) * 8 * 1_000_000_000;
            // Rounding to the nearest nanosecond changes it by at most half of the rate.
            let sent = sent_between(&profile, usual, began, arrival);
            let rate = profile.at(Time::from_nanos(arrival.as_nanos().saturating_sub(1))).0.unwrap_or(usual);
            let next = profile.at(arrival).0.unwrap_or(usual);
            prop_assert!(sent.abs_diff(bits) <= u128::from(rate.max(next)) / 2 + 1, "{sent} {bits}");
            began = arrival;
        }
    }
}
