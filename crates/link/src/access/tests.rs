//! Terminals against closed forms, and against a model that computes every frame.

mod fades;
mod model;

use bentpipe_types::{BitRate, Endpoint, IpVersion, Packet, PacketRef, PacketStore, Span, Time};
use proptest::prelude::*;

use super::*;
use crate::{
    Changes, Direction, DropTail, Ends, InFlight, Limit, Managed, Sending, Settings, Streams,
    Verdict, Watch,
};

struct Nobody;

impl Watch for Nobody {
    fn sent(&mut self, _: Time, _: PacketRef, _: &PacketStore) {}
    fn received(&mut self, _: Time, _: PacketRef, _: &PacketStore) {}
}

fn rate(bits_per_second: u64) -> BitRate {
    BitRate::new(bits_per_second).expect("not zero")
}

fn ms(milliseconds: u64) -> Span {
    Span::from_millis(milliseconds)
}

fn at(milliseconds: u64) -> Time {
    Time::ZERO + ms(milliseconds)
}

/// One byte per millisecond, in frames of 10 ms.
const CARRIER: CarrierSettings = CarrierSettings {
    rate: match BitRate::new(8_000) {
        Some(rate) => rate,
        None => unreachable!(),
    },
    frame: Span::from_millis(10),
    processing: Span::ZERO,
};

/// 250 ms from the hub in each direction; makes no requests.
fn silent() -> TerminalSettings {
    TerminalSettings {
        rate: CARRIER.rate,
        constant: None,
        rate_based: None,
        volume_based: false,
        free: false,
        request_delay: ms(250),
        grant_delay: ms(250),
    }
}

fn direction(access: Option<Access>, rate: BitRate, redundancy: f64) -> Managed {
    changing(access, rate, redundancy, None)
}

fn changing(
    access: Option<Access>,
    rate: BitRate,
    redundancy: f64,
    changes: Option<(Changes, Streams)>,
) -> Managed {
    let settings = Settings {
        rate,
        delay: ms(250),
        queue: DropTail {
            limit: Limit::Packets(u64::MAX),
        }
        .into(),
        errors: Vec::new(),
        redundancy,
        ends: Ends::default(),
        changes,
        access,
    };
    match Direction::managed(settings) {
        Direction::Managed(managed) => *managed,
        _ => unreachable!("it is managed"),
    }
}

/// An offered packet: time, terminal, length.
type Offer = (Time, usize, u64);
/// An arrived packet: time, terminal, and its number among those offered.
type Arrival = (Time, usize, u64);

/// Runs terminals until `until`. Returns the arrivals. Checks throughout that every packet is
/// accounted for.
fn drive(links: &mut [Managed], offers: &[Offer], until: Time) -> Vec<Arrival> {
    let mut packets = PacketStore::default();
    let (mut arrivals, mut out) = (Vec::new(), Vec::new());
    let mut offers = offers.iter().zip(0..).peekable();
    loop {
        let next = links.iter().zip(0..).filter_map(|(link, index)| {
            let at: Time = link.next_event()?;
            Some((at, index))
        });
        let event: Option<(Time, usize)> = next.min().filter(|(at, _)| *at <= until);
        match (event, offers.peek()) {
            // An event simultaneous with an offer may come before or after it; the result must not
            // depend on it.
            (Some((now, index)), offer) if offer.is_none_or(|((offer, ..), _)| now < *offer) => {
                links[index].on_event(now, &mut packets, &mut Nobody, &mut out);
                for packet in out.drain(..) {
                    arrivals.push((now, index, packets.get(packet).payload_offset));
                    packets.release(packet);
                }
            }
            (_, Some(_)) => {
                let ((now, index, length), number) = offers.next().expect("there is one");
                let mut packet =
                    Packet::new(Endpoint::default(), Endpoint::default(), IpVersion::V4);
                packet.payload_length = (length - 40) as u16;
                packet.payload_offset = number;
                let packet = packets.insert(packet);
                let verdict = links[*index].enqueue(*now, packet, &mut packets, &mut Nobody);
                assert_eq!(verdict, Verdict::Queued);
            }
            (_, None) => return arrivals,
        }
        let here: u64 = links.iter().map(|link| link.in_transit() as u64).sum();
        assert_eq!(packets.references(), here);
    }
}

/// Creates these terminals on one carrier, each with an unlimited queue.
fn links(carrier: CarrierSettings, terminals: &[TerminalSettings]) -> Vec<Managed> {
    let places = Carrier::shared(carrier, terminals);
    let links = places.into_iter().zip(terminals);
    links
        .map(|(access, of)| direction(Some(access), of.rate, 1.0))
        .collect()
}

fn counts(link: &Managed, now: Time) -> AccessCounts {
    link.access(now).expect("it has to ask")
}

/// A number of packets of 100 bytes at each terminal from the start.
fn backlog(terminals: usize, packets: usize) -> Vec<Offer> {
    let all = (0..packets).flat_map(|_| 0..terminals);
    all.map(|terminal| (Time::ZERO, terminal, 100)).collect()
}

#[test]
fn a_first_packet_waits_for_its_request_frame_and_the_round_trip_to_the_hub() {
    let terminal = TerminalSettings {
        volume_based: true,
        request_delay: ms(243),
        ..silent()
    };
    let carrier = CarrierSettings {
        processing: ms(20),
        ..CARRIER
    };
    let mut links = links(carrier, &[terminal]);
    // Arrival at 13 ms, request at 20 ms. The hub's plan is back at 20 + 243 + 20 + 250 = 533 ms,
    // before the frame of 540 ms. Of 25 bytes, two frames carry ten each: the last byte is sent at
    // 565 ms.
    let arrivals = drive(&mut links, &[(at(13), 0, 45)], at(5_000));
    assert_eq!(arrivals, [(at(540 + 45 + 250), 0, 0)]);
    let counts = counts(&links[0], at(5_000));
    assert_eq!((counts.requests, counts.asked_by_volume), (1, 45));
    assert_eq!((counts.granted, counts.used), (45, 45));
    assert_eq!(counts.waits.max(), Some(ms(540 - 13)));
    assert_eq!(counts.unused_share(), Some(0.0));
}

#[test]
fn packets_arriving_at_a_frame_start_miss_the_request_of_that_frame() {
    let terminal = TerminalSettings {
        volume_based: true,
        ..silent()
    };
    let mut links = links(CARRIER, &[terminal]);
    // At 20 ms it is too late for the request of 20 ms, whether the terminal is active (at 3.02 s)
    // or not.
    let offers = [(at(20), 0, 40), (at(3_000), 0, 40), (at(3_020), 0, 40)];
    let arrivals = drive(&mut links, &offers, at(9_000));
    let sent: Vec<Time> = arrivals.iter().map(|(at, ..)| *at).collect();
    assert_eq!(sent[0], at(30 + 500 + 40 + 250));
    assert_eq!(sent[1], at(3_010 + 500 + 40 + 250));
    // Its own grant begins at 3030 + 500 ms, while the previous packet is being sent. It follows at
    // once, since the plan has granted the rest of each frame.
    assert_eq!(sent[2], sent[1] + ms(40));
    assert_eq!(counts(&links[0], at(9_000)).requests, 3);
}

#[test]
fn constant_capacity_equals_a_link_of_that_rate() {
    // The whole carrier equals a transmitter of that rate to the nanosecond. At 8 kbit/s nothing is
    // rounded.
    let all = TerminalSettings {
        constant: Some(CARRIER.rate),
        ..silent()
    };
    let mut offers = backlog(1, 7);
    offers.extend([(at(703), 0, 41), (at(1_234), 0, 55), (at(1_240), 0, 40)]);
    let demanded = drive(&mut links(CARRIER, &[all]), &offers, at(60_000));
    let plain = drive(
        &mut [direction(None, CARRIER.rate, 1.0)],
        &offers,
        at(60_000),
    );
    assert_eq!(demanded, plain);
    // A tenth of it: exactly one byte per frame on average, also for rates without a whole number
    // of bytes per frame.
    for constant in [800, 900, 777] {
        let terminal = TerminalSettings {
            constant: Some(rate(constant)),
            ..silent()
        };
        let mut links = links(CARRIER, &[terminal]);
        drive(&mut links, &backlog(1, 100), at(60_000));
        // The frame that begins at 60 s counts by its grant, not yet by what was sent.
        let counts = counts(&links[0], at(59_999));
        assert_eq!(counts.granted_constant, constant * 60 / 8);
        assert_eq!(counts.unused_share().map(|share| share < 1e-3), Some(true));
        assert_eq!(counts.requests, 0);
    }
}

#[test]
fn a_saturated_terminal_sends_at_its_maximum_rate_based_request() {
    let terminal = TerminalSettings {
        rate_based: Some(rate(3_200)),
        ..silent()
    };
    let mut links = links(CARRIER, &[terminal]);
    drive(&mut links, &backlog(1, 1_000), at(60_009));
    // Requested from 10 ms on, granted from 510 ms on: 4 bytes in each of 5950 frames.
    let counts = counts(&links[0], at(60_009));
    assert_eq!(counts.granted_by_rate, 4 * 5_950);
    assert_eq!(counts.used, 4 * 5_950);
    assert_eq!(counts.asked_by_rate, 4 * 6_000);
}

#[test]
fn saturated_terminals_share_the_carrier_to_the_byte() {
    let by_rate = |most| TerminalSettings {
        rate_based: Some(rate(most)),
        ..silent()
    };
    let by_volume = TerminalSettings {
        volume_based: true,
        ..silent()
    };
    let used = |terminals: &[TerminalSettings]| -> Vec<u64> {
        let mut links = links(CARRIER, terminals);
        // Frames from 510 ms on are full: 1000 of them.
        drive(&mut links, &backlog(terminals.len(), 1_000), at(10_509));
        let last = at(10_509);
        links.iter().map(|link| counts(link, last).used).collect()
    };
    assert_eq!(used(&[by_volume; 4]), [2_500; 4]);
    assert_eq!(used(&[by_rate(8_000); 4]), [2_500; 4]);
    // In proportion to the requests.
    assert_eq!(used(&[by_rate(6_000), by_rate(4_000)]), [6_000, 4_000]);
    // A third each of a capacity not divisible by three: the remainder of a frame goes to one of
    // them.
    let thirds = used(&[by_volume; 3]);
    assert_eq!(thirds.iter().sum::<u64>() / 3, 3_333);
    // Constant before rate-based before volume-based before free.
    let constant = TerminalSettings {
        constant: Some(rate(800)),
        ..silent()
    };
    let free = TerminalSettings {
        free: true,
        ..silent()
    };
    assert_eq!(
        used(&[free, by_volume, by_rate(4_800), constant])[1..],
        [3_000, 6_000, 1_051]
    );
}

#[test]
fn unrequested_capacity_is_assigned_without_request_delay() {
    let free = TerminalSettings {
        free: true,
        ..silent()
    };
    let mut links = links(CARRIER, &[free, free]);
    // Each has half of each frame. At 13 ms the first one's burst of 5 ms ends in 2 ms: the rest of
    // the 100 bytes takes 19 whole frames and 3 bytes.
    let arrivals = drive(&mut links, &[(at(13), 0, 100)], at(5_000));
    assert_eq!(arrivals, [(at(20 + 190 + 3 + 250), 0, 0)]);
    let counts = counts(&links[0], at(5_000));
    assert_eq!((counts.requests, counts.used), (0, 100));
}

#[test]
fn a_terminal_without_backlog_has_no_events() {
    let terminal = TerminalSettings {
        constant: Some(rate(1_000)),
        rate_based: Some(rate(4_000)),
        volume_based: true,
        free: true,
        ..silent()
    };
    let mut links = links(CARRIER, &[terminal, terminal]);
    assert!(links.iter().all(|link| link.next_event().is_none()));
    drive(&mut links, &[(at(5), 0, 400), (at(700), 1, 90)], at(20_000));
    assert!(links.iter().all(|link| link.next_event().is_none()));
    // A day later they are still in step with the frames.
    let late = at(86_400_000 + 4);
    let arrivals = drive(&mut links, &[(late, 1, 50)], late + ms(9_000));
    assert_eq!(arrivals.len(), 1);
}

#[test]
fn requests_and_grants_include_redundancy() {
    let terminal = TerminalSettings {
        volume_based: true,
        ..silent()
    };
    let place = Carrier::shared(CARRIER, &[terminal]).remove(0);
    let mut links = [direction(Some(place), CARRIER.rate, 1.1)];
    let offers: Vec<Offer> = (0..7).map(|_| (at(1), 0, 100)).collect();
    let arrivals = drive(&mut links, &offers, at(9_000));
    // 770 bytes on the air, and not a frame more because of rounding.
    assert_eq!(arrivals.last(), Some(&(at(510 + 770 + 250), 0, 6)));
    assert_eq!(counts(&links[0], at(9_000)).asked_by_volume, 770);
}

#[test]
fn packets_sent_at_a_fraction_of_a_nanosecond_are_not_requested_again() {
    let by_volume = |own, up, down| TerminalSettings {
        rate: rate(own),
        volume_based: true,
        request_delay: ms(up),
        grant_delay: ms(down),
        ..silent()
    };
    let terminals = [
        by_volume(3_000, 0, 0),
        by_volume(3_000, 5, 0),
        by_volume(8_000, 35, 64),
    ];
    let mut links = links(CARRIER, &terminals);
    let lengths = [(2, 40), (2, 40), (1, 52), (0, 55), (0, 40)];
    let offers = lengths.map(|(terminal, length)| (Time::ZERO, terminal, length));
    let arrivals = drive(&mut links, &offers, at(5_000));
    // All request at 10 ms. Plans from 80 ms on include two of them, plans from 110 ms on the last
    // as well. It is then owed 640 bits, less than the first terminal and more than the second, and
    // gets the second third of the 80 bits per frame: 26.666666667. Twelve of these are
    // 320.000000004: the first packet ends half a picosecond before its burst, which ends with its
    // frame at 230 ms. The rest belongs to the next packet, and with 44, 5 * 50 and 25.999999996
    // bits everything requested is granted: the last bit is sent half a picosecond before 3.25 ms
    // of the frame of 290 ms have passed.
    let sent: Vec<Time> = (arrivals.iter())
        .filter(|(_, terminal, _)| *terminal == 2)
        .map(|(at, ..)| Time::from_nanos(at.as_nanos() - ms(250).as_nanos()))
        .collect();
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[1], Time::from_nanos(293_250_000));
    let counts = counts(&links[2], at(5_000));
    assert_eq!((counts.requests, counts.asked_by_volume), (1, 80));
    assert_eq!((counts.granted, counts.used), (80, 80));
}

#[test]
fn departures_at_a_fraction_of_a_nanosecond_serve_queued_packets_first() {
    let all = |of: u64| TerminalSettings {
        rate: rate(of),
        constant: Some(rate(of)),
        ..silent()
    };
    // 320 bits take 106,666,666 2/3 ns. A queued packet follows then; one that arrives a third of a
    // nanosecond later does not.
    let sent = |second: u64| {
        let offers = [(Time::ZERO, 0, 40), (Time::from_nanos(second), 0, 40)];
        let arrivals = drive(&mut links(CARRIER, &[all(3_000)]), &offers, at(5_000));
        arrivals[1].0.as_nanos() - ms(250).as_nanos()
    };
    assert_eq!(sent(106_666_666), 213_333_333);
    assert_eq!(sent(106_666_667), 213_333_334);
    // At any rate: here half a nanosecond is six bytes, and a packet 3.2 ns.
    let carrier = CarrierSettings {
        rate: rate(100_000_000_000),
        frame: Span::from_micros(1),
        ..CARRIER
    };
    let offers = vec![(Time::ZERO, 0, 40); 1_000];
    let fast = &mut links(carrier, &[all(100_000_000_000)]);
    for (index, arrival) in (1..).zip(drive(fast, &offers, at(5_000))) {
        assert_eq!(
            arrival.0.as_nanos() - ms(250).as_nanos(),
            (index * 32 + 5) / 10
        );
    }
}

fn terminals() -> impl Strategy<Value = Vec<TerminalSettings>> {
    let terminal = (
        prop_oneof![Just(8_000_u64), Just(3_000)],
        prop::option::of(1_u64..1_500),
        prop::option::of(2_000_u64..9_000),
        any::<bool>(),
        any::<bool>(),
        (0_u64..70, 0_u64..70),
    );
    let terminals = prop::collection::vec(terminal, 1..5);
    terminals.prop_map(|all| {
        let of = |(own, constant, rate_based, volume_based, free, (up, down))| TerminalSettings {
            rate: rate(own),
            constant: Option::map(constant, rate),
            rate_based: Option::map(rate_based, rate),
            // A terminal that cannot request anything would never send.
            volume_based: volume_based || rate_based.is_none(),
            free,
            request_delay: ms(up),
            grant_delay: ms(down),
        };
        all.into_iter().map(of).collect()
    })
}

fn offers() -> impl Strategy<Value = Vec<(u64, usize, u64)>> {
    // Bursts, silences, and packets that arrive with a frame's beginning.
    let gap = prop_oneof![Just(0), 0_u64..30, Just(10), 0_u64..3_000];
    prop::collection::vec((gap, 0_usize..5, 40_u64..120), 1..40)
}

proptest! {
    #[test]
    fn random_arrivals_match_a_frame_by_frame_model(
        terminals in terminals(),
        offers in offers(),
        start in 0_u64..25,
        processing in 0_u64..40,
    ) {
        let mut now = at(start);
        let offers: Vec<Offer> = offers
            .into_iter()
            .map(|(gap, terminal, length)| {
                now += ms(gap);
                (now, terminal % terminals.len(), length)
            })
            .collect();
        let carrier = CarrierSettings { processing: ms(processing), ..CARRIER };
        let mut lazy = links(carrier, &terminals);
        let until = now + ms(25_000);
        let arrivals = drive(&mut lazy, &offers, until);
        prop_assert_eq!(arrivals.len(), offers.len(), "all that is asked for is granted in the end");

        let frames = until.as_nanos() / CARRIER.frame.as_nanos();
        let skies = vec![model::Sky::default(); terminals.len()];
        let model = model::walk(carrier, &terminals, &skies, &offers, frames);
        let mut sent: Vec<Option<Time>> = vec![None; offers.len()];
        for (at, _, number) in &arrivals {
            sent[*number as usize] = Some(Time::from_nanos(at.as_nanos() - ms(250).as_nanos()));
        }
        for (number, (here, there)) in sent.iter().zip(&model.departures).enumerate() {
            let (here, there) = (here.expect("all arrived"), there.expect("all are sent"));
            // The model does not round.
            let apart = (here.as_nanos() as f64 - there).abs();
            prop_assert!(apart <= 1.0, "packet {} at {:?}, not {}", number, here, there);
        }
        for (link, asked) in lazy.iter().zip(&model.asked_by_volume) {
            let counts = counts(link, until);
            prop_assert_eq!(u128::from(counts.asked_by_volume), asked / 8_000_000_000);
            prop_assert_eq!(counts.asked_by_volume, counts.granted_by_volume);
            prop_assert!(counts.used <= counts.granted);
        }
        // Repeatability.
        let again = drive(&mut links(carrier, &terminals), &offers, until);
        prop_assert_eq!(arrivals, again);
    }
}
