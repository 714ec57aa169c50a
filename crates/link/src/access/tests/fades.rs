//! Terminals with fades and outages.

use bentpipe_types::{Distribution, RandomStream};

use super::*;
use crate::{FadingSettings, LossRates, Outages, Profile, RateCourse};

/// Rates with their start times, in bit/s and milliseconds.
fn steps(of: &[(u64, u64)]) -> Changes {
    let steps: Vec<(Span, u64)> = of.iter().map(|(at, rate)| (ms(*at), *rate)).collect();
    Changes {
        rate: Profile::new(steps, None).map_or(RateCourse::Constant, RateCourse::Steps),
        ..Changes::default()
    }
}

fn outage(at: u64, lasts: u64, sending: Sending, in_flight: InFlight) -> Outages {
    Outages {
        at: ms(at),
        lasts: ms(lasts),
        every: None,
        sending,
        in_flight,
    }
}

/// Creates a changing direction, on a carrier or alone.
fn over(access: Option<Access>, rate: BitRate, name: &str, changes: Changes) -> Managed {
    let streams = Streams {
        seed: 7,
        component: name.to_owned(),
    };
    changing(access, rate, 1.0, Some((changes, streams)))
}

/// Creates these terminals on one carrier, each with its own path.
fn under(
    carrier: CarrierSettings,
    terminals: &[TerminalSettings],
    skies: Vec<Changes>,
) -> Vec<Managed> {
    let places = Carrier::shared(carrier, terminals);
    let links = places.into_iter().zip(terminals).zip(skies).enumerate();
    links
        .map(|(index, ((access, of), changes))| {
            over(Some(access), of.rate, &format!("home-{index}"), changes)
        })
        .collect()
}

fn clear() -> Changes {
    Changes::default()
}

#[test]
fn constant_capacity_at_full_rate_equals_a_fading_link_without_access_control() {
    let all = TerminalSettings {
        constant: Some(CARRIER.rate),
        request_delay: Span::ZERO,
        grant_delay: Span::ZERO,
        ..silent()
    };
    // The hub knows a mode one frame late. A decrease takes effect at once, an increase with the
    // plan.
    let faded = [(100, 4_000), (300, 0), (400, 2_000), (700, 8_000)];
    let known = [(100, 4_000), (300, 0), (410, 2_000), (710, 8_000)];
    let mut offers = backlog(1, 7);
    offers.extend([(at(703), 0, 41), (at(1_234), 0, 55), (at(1_240), 0, 40)]);
    let held = outage(120, 53, Sending::Held, InFlight::Arrive);
    let with = |steps: Changes| Changes {
        outages: vec![held],
        ..steps
    };
    let mut demanded = under(CARRIER, &[all], vec![with(steps(&faded))]);
    let demanded = drive(&mut demanded, &offers, at(60_000));
    let plain = over(None, CARRIER.rate, "plain", with(steps(&known)));
    assert_eq!(demanded, drive(&mut [plain], &offers, at(60_000)));
    assert_eq!(demanded.len(), 10);
}

#[test]
fn a_faded_terminal_on_a_full_carrier_reduces_the_capacity_of_all() {
    let by_volume = TerminalSettings {
        volume_based: true,
        ..silent()
    };
    let by_rate = TerminalSettings {
        rate_based: Some(CARRIER.rate),
        ..silent()
    };
    let constant = TerminalSettings {
        constant: Some(rate(2_000)),
        ..by_volume
    };
    let used = |terminals: &[TerminalSettings], mode: u64| -> Vec<u64> {
        let mut skies = vec![clear(); terminals.len()];
        skies[0] = steps(&[(0, mode)]);
        let mut links = under(CARRIER, terminals, skies);
        // Frames from 510 ms on are full: 1000 of them, of ten bytes each in clear sky.
        drive(&mut links, &backlog(terminals.len(), 1_000), at(10_509));
        let last = at(10_509);
        links.iter().map(|link| counts(link, last).used).collect()
    };
    // Carrier time is shared equally: a terminal at half the rate gets half of what the others get.
    assert_eq!(used(&[by_volume; 4], 4_000), [1_250, 2_500, 2_500, 2_500]);
    // Rate requests are shared in proportion to the carrier time that they take, which is at most
    // all of it.
    assert_eq!(used(&[by_rate; 2], 2_000), [1_250, 5_000]);
    // Constant capacity is a rate: it takes twice as much of the carrier, and the others share the
    // rest. Before 510 ms there is nothing else.
    let [faded, other] = used(&[constant, by_volume], 4_000)[..] else {
        unreachable!("two of them");
    };
    // 2 kbit/s take half of the carrier at 4 kbit/s; each has half of the other half.
    assert_eq!((faded, other), (2_500 + 1_250 + 127, 2_500));
    // At most its full rate.
    let [faded, other] = used(&[constant, by_volume], 1_000)[..] else {
        unreachable!("two of them");
    };
    assert_eq!((faded, other), (1_313, 0));
}

#[test]
fn constant_capacity_beyond_the_carrier_is_reduced_in_proportion() {
    let half = TerminalSettings {
        constant: Some(rate(4_000)),
        ..silent()
    };
    // From 1 s on one needs all of the carrier for its 4 kbit/s, the other half of it: two thirds
    // and one third.
    let mut links = under(CARRIER, &[half; 2], vec![steps(&[(1_000, 4_000)]), clear()]);
    drive(&mut links, &backlog(2, 1_000), at(7_509));
    let used = |link: &Managed| counts(link, at(7_509)).used;
    let known = 1_000 + 500;
    // Until the hub knows the fade, half of its grant is usable at half the rate.
    let before = 5 * known / 10 - 5 * 50 / 2;
    let after = (7_510 - known) * 8 / 3 / 8;
    assert_eq!(used(&links[0]), before + after);
    assert_eq!(used(&links[1]), 5 * known / 10 + after);
    let counts = counts(&links[0], at(7_509));
    assert_eq!(counts.faded, Some(5 * 50 / 2));
    assert_eq!(counts.granted, counts.used);
}

#[test]
fn reading_the_granted_capacity_does_not_change_grants() {
    let half = TerminalSettings {
        constant: Some(rate(4_000)),
        ..silent()
    };
    let granted = |looks: &[u64], by: u64| {
        let skies = vec![steps(&[(1_000, 4_000), (2_000, 8_000)]), clear()];
        let mut links = under(CARRIER, &[half; 2], skies);
        drive(&mut links, &backlog(2, 1), at(300));
        for look in looks {
            assert!(links[1].granted_bits(at(*look)).is_some());
        }
        [0, 1].map(|link| counts(&links[link], at(by)).granted_constant)
    };
    // Later than the request, in frames that no terminal has entered.
    assert_eq!(granted(&[5_000], 700), granted(&[], 700));
    assert_eq!(granted(&[900, 1_600, 5_000], 5_000), granted(&[], 5_000));
    assert_eq!(granted(&[5_000, 9_000], 1_700), granted(&[], 1_700));
}

#[test]
fn fades_apply_at_once_and_their_ends_after_the_grant_delay() {
    let free = TerminalSettings {
        free: true,
        ..silent()
    };
    let mut links = under(
        CARRIER,
        &[free],
        vec![steps(&[(1_000, 2_000), (3_000, 8_000)])],
    );
    drive(&mut links, &backlog(1, 1_000), at(4_999));
    let counts = counts(&links[0], at(4_999));
    // 1 s at ten bytes per frame, 2.5 s at two and a half, 1.5 s at ten again.
    assert_eq!(counts.used, 1_000 + 625 + 1_500);
    assert_eq!(
        (counts.granted, counts.granted_free),
        (counts.used, counts.used)
    );
    // A quarter of half a second of grants in the clear-sky mode is usable.
    assert_eq!(counts.faded, Some(500 - 125));
}

#[test]
fn a_request_lost_in_an_outage_is_repeated_when_its_grant_is_due() {
    let by_volume = TerminalSettings {
        volume_based: true,
        ..silent()
    };
    let away = |sending, in_flight| Changes {
        outages: vec![outage(5, 100, sending, in_flight)],
        ..Changes::default()
    };
    let first = |changes: Changes| {
        let mut links = under(CARRIER, &[by_volume], vec![changes]);
        let arrivals = drive(&mut links, &[(at(1), 0, 45)], at(5_000));
        (
            arrivals,
            counts(&links[0], at(5_000)),
            links[0].counters(),
            links.remove(0),
        )
    };
    let lost_requests = |link: &Managed| {
        let mut lost = 0;
        link.tally(&mut |_, name, value| {
            if name == "requests_lost" {
                lost = value;
            }
        });
        lost
    };
    // The request of 10 ms is lost; the plan of 510 ms lacks it, and the next one takes effect 500
    // ms later.
    let (arrivals, counted, _, link) = first(away(Sending::Lost, InFlight::Lost));
    assert_eq!(arrivals, [(at(1_010 + 45 + 250), 0, 0)]);
    assert_eq!((counted.requests, counted.asked_by_volume), (2, 90));
    assert_eq!((counted.granted_by_volume, counted.used), (45, 45));
    assert_eq!(lost_requests(&link), 1);
    // A terminal that detects the outage waits for its end at 105 ms.
    let (arrivals, counted, _, link) = first(away(Sending::Held, InFlight::Lost));
    assert_eq!(arrivals, [(at(110 + 500 + 45 + 250), 0, 0)]);
    assert_eq!((counted.requests, lost_requests(&link)), (1, 0));
    // A request in flight from 0 ms on may be lost or held as well: until 405 ms, so the plan of
    // 660 ms includes it.
    let early = |in_flight| Changes {
        outages: vec![outage(15, 390, Sending::Held, in_flight)],
        ..Changes::default()
    };
    let (arrivals, ..) = first(early(InFlight::Held));
    assert_eq!(arrivals, [(at(660 + 45 + 250), 0, 0)]);
    let (arrivals, _, _, link) = first(early(InFlight::Lost));
    assert_eq!(arrivals, [(at(1_010 + 45 + 250), 0, 0)]);
    assert_eq!(lost_requests(&link), 1);
    let (arrivals, _, _, link) = first(early(InFlight::Arrive));
    assert_eq!(arrivals, [(at(510 + 45 + 250), 0, 0)]);
    assert_eq!(lost_requests(&link), 0);
}

#[test]
fn random_fades_are_steps_at_the_drawn_times() {
    let settings = FadingSettings {
        clear: Distribution::Exponential(0.7),
        faded: Distribution::Exponential(0.4),
        rate: Some(3_000),
        losses: LossRates::default(),
    };
    let terminal = TerminalSettings {
        constant: Some(rate(1_000)),
        volume_based: true,
        ..silent()
    };
    let offers = backlog(3, 100);
    let fading = Changes {
        fading: Some(settings),
        ..Changes::default()
    };
    let mut links = under(CARRIER, &[terminal; 3], vec![fading.clone(); 3]);
    let random = drive(&mut links, &offers, at(60_000));
    // The same draws in sequence.
    let drawn = (0..3).map(|index| {
        let mut random = RandomStream::new(7, &format!("home-{index}"), "fading");
        let (mut now, mut of, mut faded) = (Span::ZERO, Vec::new(), false);
        while now < ms(70_000) {
            let lasts = if faded {
                settings.faded
            } else {
                settings.clear
            };
            now += lasts.span(&mut random).max(Span::from_micros(100));
            faded = !faded;
            of.push((now, if faded { 3_000 } else { 8_000 }));
        }
        Changes {
            rate: RateCourse::Steps(Profile::new(of, None).expect("in order")),
            ..Changes::default()
        }
    });
    let mut links = under(CARRIER, &[terminal; 3], drawn.collect());
    assert_eq!(random, drive(&mut links, &offers, at(60_000)));
    assert_eq!(random.len(), 300);
}

fn skies() -> impl Strategy<Value = Vec<model::Sky>> {
    let part = prop_oneof![
        Just(0.0),
        Just(0.25),
        Just(1.0 / 3.0),
        Just(0.93),
        Just(1.0)
    ];
    let steps = prop::collection::vec((0_u64..900, part), 0..6);
    let sending = prop_oneof![Just(Sending::Held), Just(Sending::Lost)];
    let in_flight = prop_oneof![
        Just(InFlight::Arrive),
        Just(InFlight::Lost),
        Just(InFlight::Held)
    ];
    // Single or periodic; frames of 10 ms and outages beat.
    let again = prop_oneof![Just(0), 1_u64..400];
    let away = (0_u64..3_000, 1_u64..300, again, sending, in_flight);
    let sky = (steps, prop::collection::vec(away, 0..3));
    let skies = sky.prop_map(|(steps, away)| {
        let mut now = 0;
        let steps = steps.into_iter().map(|(gap, part)| {
            now += gap * 1_000_000 + 100_000;
            // Relative to the terminal's rate; the model receives all values below.
            (now, (part * 1e6) as u64)
        });
        model::Sky {
            steps: steps.collect(),
            away: away
                .into_iter()
                .map(|(at, lasts, again, sending, in_flight)| model::Away {
                    from: at * 1_000_000,
                    to: (at + lasts) * 1_000_000,
                    every: (again > 0).then_some((lasts + again) * 1_000_000),
                    sending,
                    in_flight,
                })
                .collect(),
        }
    });
    prop::collection::vec(skies, 4)
}

proptest! {
    #[test]
    fn random_fades_match_a_frame_by_frame_model(
        terminals in terminals(),
        mut skies in skies(),
        offers in offers(),
        start in 0_u64..25,
        processing in 0_u64..40,
    ) {
        let mut now = at(start);
        let offers: Vec<Offer> = offers
            .into_iter()
            .map(|(gap, terminal, length)| {
                now += ms(gap.min(400));
                (now, terminal % terminals.len(), length)
            })
            .collect();
        for (sky, of) in skies.iter_mut().zip(&terminals) {
            for (_, rate) in &mut sky.steps {
                *rate = of.rate.bits_per_second() * *rate / 1_000_000;
            }
        }
        let changes = skies.iter().map(|sky| {
            let steps: Vec<_> = (sky.steps.iter())
                .map(|(at, rate)| (Span::from_nanos(*at), *rate))
                .collect();
            Changes {
                rate: Profile::new(steps, None).map_or(RateCourse::Constant, RateCourse::Steps),
                outages: (sky.away.iter())
                    .map(|of| {
                        let lasts = of.to - of.from;
                        Outages {
                            at: Span::from_nanos(of.from),
                            lasts: Span::from_nanos(lasts),
                            every: of.every.map(Span::from_nanos),
                            sending: of.sending,
                            in_flight: of.in_flight,
                        }
                    })
                    .collect(),
                ..Changes::default()
            }
        });
        let changes: Vec<Changes> = changes.collect();
        // The model lists each outage.
        for sky in &mut skies {
            sky.away = sky.away.iter().flat_map(|of| of.all(60_000_000_000)).collect();
        }
        let carrier = CarrierSettings { processing: ms(processing), ..CARRIER };
        let run = || {
            let mut links = under(carrier, &terminals, changes.clone());
            let until = now + ms(25_000);
            let arrivals = drive(&mut links, &offers, until);
            (links, arrivals, until)
        };
        let (links, arrivals, until) = run();
        let frames = until.as_nanos() / CARRIER.frame.as_nanos() + 1;
        let model = model::walk(carrier, &terminals, &skies, &offers, frames);

        // Arrivals of packets that are neither held nor lost in flight.
        let mut arrived: Vec<Option<Time>> = vec![None; offers.len()];
        for (at, _, number) in &arrivals {
            arrived[*number as usize] = Some(*at);
        }
        for (number, arrival) in arrived.iter().enumerate() {
            let (first, last) = (model.starts[number], model.departures[number]);
            let sky = &skies[offers[number].1];
            let free = |first: f64, last: f64| sky.away.iter().all(|away| {
                away.to as f64 + 2.0 < first || away.from as f64 > last + 250e6 + 2.0
                    || (away.in_flight == InFlight::Arrive && away.sending == Sending::Held)
            });
            let (Some(first), Some(last)) = (first, last) else {
                prop_assert_eq!(*arrival, None, "packet {} has not left", number);
                continue;
            };
            if !free(first, last) || last + 250e6 + 2.0 > until.as_nanos() as f64 {
                continue;
            }
            let arrival = arrival.expect("nothing lost it");
            let apart = (arrival.as_nanos() as f64 - 250e6 - last).abs();
            prop_assert!(apart <= 1.0, "packet {} at {:?}, not {}", number, arrival, last + 250e6);
        }
        for (index, link) in links.iter().enumerate() {
            let counts = counts(link, until);
            let bytes = |capacity: u128| (capacity / 8_000_000_000) as u64;
            prop_assert_eq!(counts.asked_by_volume, bytes(model.asked_by_volume[index]));
            prop_assert_eq!(counts.granted_constant, bytes(model.constant[index]));
            if !terminals[index].free {
                // Free capacity is not counted while there is nothing to send.
                prop_assert_eq!(counts.granted, bytes(model.granted[index]));
            }
            if !terminals[index].free && terminals[index].constant.is_none() {
                prop_assert_eq!(counts.faded.unwrap_or(0), bytes(model.faded[index]));
            }
            prop_assert!(counts.used <= counts.granted);
            let mut lost = 0;
            link.tally(&mut |_, name, value| {
                if name == "requests_lost" {
                    lost = value;
                }
            });
            prop_assert_eq!(lost, model.requests_lost[index]);
            // Sent bytes equal used bytes.
            let sent = (0..offers.len()).filter(|number| offers[*number].1 == index);
            let all: Option<u64> = sent.map(|number| {
                model.departures[number].map(|_| offers[number].2)
            }).sum();
            if let Some(all) = all {
                prop_assert_eq!(counts.used, all);
            }
        }
        // Repeatability.
        prop_assert_eq!(arrivals, run().1);
    }
}
