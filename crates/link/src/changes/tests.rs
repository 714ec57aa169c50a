//! Changing directions against closed forms and independently written rules.

mod hostile;
mod mahimahi;

use bentpipe_types::{
    BitRate, Bytes, Distribution, Endpoint, IpVersion, Packet, PacketStore, RandomStream, Span,
    Time,
};

use super::*;
use crate::{
    Counters, Direction, DropTail, ErrorModel, Head, Limit, Managed, Settings, Streams, Verdict,
};

fn ms(milliseconds: u64) -> Span {
    Span::from_millis(milliseconds)
}

fn at(milliseconds: u64) -> Time {
    Time::ZERO + ms(milliseconds)
}

/// One byte per millisecond, 250 ms long, with an unlimited queue.
fn usual() -> Settings {
    Settings::new(
        BitRate::new(8_000).expect("not zero"),
        ms(250),
        DropTail {
            limit: Limit::Packets(u64::MAX),
        },
    )
}

fn changing(changes: Changes) -> Settings {
    let streams = Streams {
        seed: 3,
        component: "link.forward".to_owned(),
    };
    Settings {
        changes: Some((changes, streams)),
        ..usual()
    }
}

/// Arrivals: time, number of the packet, whether it is corrupt.
type Arrivals = Vec<(Time, u64, bool)>;

/// Offers packets of these lengths at these times, in order, and runs until all have arrived.
fn drive(settings: Settings, offers: &[(Time, u64)]) -> (Arrivals, Counters, PacketStore) {
    let Direction::Managed(mut link) = Direction::new(settings) else {
        unreachable!("a path that changes is managed");
    };
    let mut packets = PacketStore::default();
    let mut arrivals = Vec::new();
    let mut offers = offers.iter().enumerate().peekable();
    loop {
        let event = link.next_event().filter(|at| *at <= Time::LAST);
        match (event, offers.peek()) {
            (Some(event), Some((_, (offer, _)))) if event <= *offer => {
                run(&mut link, event, &mut packets, &mut arrivals);
            }
            (_, Some(_)) => {
                let (number, (now, length)) = offers.next().expect("there is one");
                let packet = packets.insert(numbered(number as u64, *length));
                if link.enqueue(*now, packet, &mut packets, &mut ()) == Verdict::Dropped {
                    packets.release(packet);
                }
            }
            (Some(event), None) => run(&mut link, event, &mut packets, &mut arrivals),
            (None, None) => break,
        }
        check(&link, &packets);
    }
    (arrivals, link.counters(), packets)
}

fn run(link: &mut Managed, now: Time, packets: &mut PacketStore, arrivals: &mut Arrivals) {
    let mut out = Vec::new();
    link.on_event(now, packets, &mut (), &mut out);
    for packet in out {
        let record = packets.get(packet);
        arrivals.push((now, record.payload_offset, record.is_corrupt()));
        packets.release(packet);
    }
}

/// Checks that every packet is accounted for.
fn check(link: &Managed, packets: &PacketStore) {
    let counted = link.counters();
    let gone = counted.delivered + counted.lost + counted.dropped;
    let here = link.in_transit() as u64;
    assert_eq!(counted.offered + counted.duplicated, gone + here);
    assert_eq!(counted.delivered, counted.passed_on);
    assert_eq!(packets.references(), here);
}

fn numbered(number: u64, length: u64) -> Packet {
    let mut packet = Packet::new(Endpoint::default(), Endpoint::default(), IpVersion::V4);
    packet.payload_length = (length - 40) as u16;
    packet.payload_offset = number;
    packet
}

fn steps<T: Copy>(steps: &[(u64, T)], period: Option<u64>) -> Profile<T> {
    let steps: Vec<(Span, T)> = steps.iter().map(|(at, value)| (ms(*at), *value)).collect();
    Profile::new(steps, period.map(ms)).expect("sound")
}

#[test]
fn a_change_of_rate_in_mid_packet_is_exact() {
    // 1000 B: 500 of them at a byte per millisecond, 500 at two.
    let rate = RateCourse::Steps(steps(&[(500, 16_000)], None));
    let changes = Changes {
        rate,
        ..Changes::default()
    };
    let (arrivals, ..) = drive(changing(changes), &[(at(0), 1_000), (at(10), 1_000)]);
    assert_eq!(arrivals, [(at(1_000), 0, false), (at(1_500), 1, false)]);
    // A third of it, nothing for a second, the rest at 3 bit/ns: 666.6 B take more than 1777.7 ns.
    let rate = RateCourse::Steps(steps(&[(0, 8_000), (333, 0), (1_333, 3_000_000_000)], None));
    let changes = Changes {
        rate,
        ..Changes::default()
    };
    let (arrivals, ..) = drive(changing(changes), &[(at(0), 1_000)]);
    let rest = Span::from_nanos(1_779); // 667 B * 8 / 3 = 1778.67 ns
    assert_eq!(arrivals, [(at(1_333) + rest + ms(250), 0, false)]);
}

#[test]
fn schedules_with_constant_values_equal_a_fifo_link() {
    let offers: Vec<(Time, u64)> = (0..200)
        .map(|i| (Time::from_nanos(i * i * 7_000_003), 40 + i * 37 % 1_400))
        .collect();
    let Direction::Fifo(mut fifo) = Direction::new(usual()) else {
        unreachable!("drop-tail is plain");
    };
    let mut packets = PacketStore::default();
    let mut plain = Vec::new();
    for (number, (now, length)) in offers.iter().enumerate() {
        let packet = packets.insert(numbered(number as u64, *length));
        fifo.enqueue(*now, packet, Bytes::new(*length));
    }
    while let Some(Head {
        arrival, packet, ..
    }) = fifo.first()
    {
        plain.push((arrival, packets.get(packet).payload_offset, false));
        fifo.arrive(arrival);
    }
    assert_eq!(drive(changing(Changes::default()), &offers).0, plain);
    let same = Changes {
        rate: RateCourse::Steps(steps(&[(0, 8_000), (7, 8_000), (90, 8_000)], Some(93))),
        delay: Some(steps(&[(11, ms(250))], None)),
        ..Changes::default()
    };
    assert_eq!(drive(changing(same), &offers).0, plain);
}

#[test]
fn a_repeated_schedule_sends_the_integral_of_its_rates() {
    // 8 kbit/s and 24 kbit/s, a tenth of a second each: 200 B per period and 2 kB per second.
    let rate = RateCourse::Steps(steps(&[(0, 8_000), (100, 24_000)], Some(200)));
    let changes = Changes {
        rate,
        ..Changes::default()
    };
    let (arrivals, ..) = drive(changing(changes), &[(at(0), 1_000); 40]);
    // 400 B per period, 5 packets in two.
    for (number, (arrival, ..)) in arrivals.iter().enumerate() {
        let sent = 1_000 * (number as u64 + 1);
        let (periods, rest) = (sent / 400, sent % 400);
        let rest = if rest <= 100 {
            ms(rest)
        } else {
            ms(100)
                + Span::from_nanos((rest - 100) * 1_000_000 / 3 + u64::from((rest - 100) % 3 == 2))
        };
        assert_eq!(*arrival, at(200 * periods) + rest + ms(250), "{number}");
    }
}

#[test]
fn packets_are_reordered_only_if_keeps_order_is_off() {
    // The delay decreases from 250 ms to 50 ms at 100 ms.
    let changes = |keeps_order| Changes {
        delay: Some(steps(&[(100, ms(50))], None)),
        keeps_order,
        ..Changes::default()
    };
    let offers = [(at(0), 40), (at(40), 50), (at(95), 40)];
    // The third is sent by 135 ms and would arrive at 185 ms, before the second, sent by 90 ms.
    let (arrivals, ..) = drive(changing(changes(true)), &offers);
    let expected = [
        (at(290), 0, false),
        (at(340), 1, false),
        (at(340), 2, false),
    ];
    assert_eq!(arrivals, expected);
    let (arrivals, ..) = drive(changing(changes(false)), &offers);
    let expected = [
        (at(185), 2, false),
        (at(290), 0, false),
        (at(340), 1, false),
    ];
    assert_eq!(arrivals, expected);
}

fn outage(sending: Sending, in_flight: InFlight) -> Changes {
    Changes {
        outages: vec![Outages {
            at: ms(1_000),
            lasts: ms(400),
            every: Some(ms(10_000)),
            sending,
            in_flight,
        }],
        ..Changes::default()
    }
}

#[test]
fn packets_in_an_outage_are_held_or_lost() {
    // 100 B take 100 ms and arrive 250 ms later. At 1 s the first has arrived, the second is in
    // flight, the third in transmission, the fourth queued; the fifth comes afterwards.
    let offers = [
        (at(600), 100),
        (at(750), 100),
        (at(930), 100),
        (at(1_010), 100),
        (at(2_000), 100),
    ];
    let times = |changes| -> Vec<(u64, u64)> {
        let (arrivals, counters, _) = drive(changing(changes), &offers);
        assert_eq!(counters.lost + counters.delivered, 5);
        let time = |time: Time| time.as_nanos() / 1_000_000;
        arrivals
            .iter()
            .map(|(at, number, _)| (*number, time(*at)))
            .collect()
    };
    use InFlight::{Arrive, Held, Lost};
    let arrived = [(0, 950), (1, 1_100), (3, 1_750), (4, 2_350)];
    // The third continues for 30 ms after 1.4 s, so the fourth starts at 1.43 s.
    let third = (2, 1_680);
    let fourth = (3, 1_780);
    assert_eq!(
        times(outage(Sending::Held, Arrive)),
        [arrived[0], arrived[1], third, fourth, arrived[3]]
    );
    assert_eq!(
        times(outage(Sending::Held, Lost)),
        [arrived[0], fourth, arrived[3]]
    );
    assert_eq!(
        times(outage(Sending::Held, Held)),
        [arrived[0], (1, 1_400), third, fourth, arrived[3]]
    );
    // A transmitter that continues sends the third and the fourth into the outage.
    assert_eq!(
        times(outage(Sending::Lost, Arrive)),
        [arrived[0], arrived[1], arrived[3]]
    );
    assert_eq!(times(outage(Sending::Lost, Lost)), [arrived[0], arrived[3]]);
}

#[test]
fn packets_held_into_a_following_outage_are_held_until_its_end() {
    let first = Outages {
        at: ms(100),
        lasts: ms(100),
        every: None,
        sending: Sending::Held,
        in_flight: InFlight::Held,
    };
    let second = Outages {
        at: ms(190),
        lasts: ms(500),
        ..first
    };
    let changes = Changes {
        outages: vec![second, first],
        ..Changes::default()
    };
    // Sent by 40 ms; with 100 ms of delay it would arrive before the second was sent.
    let settings = Settings {
        delay: ms(100),
        ..changing(changes)
    };
    let (arrivals, ..) = drive(settings, &[(at(0), 40)]);
    assert_eq!(arrivals, [(at(690), 0, false)]);
}

#[test]
fn losses_follow_the_schedule() {
    let losses = |packet, bit| LossRates { packet, bit };
    // 40 B per packet, 40 ms each: a minute at 10%, a minute at zero, a minute at 1e-3 per bit,
    // which is 1 - 0.999^320 = 27.4%.
    let profile = steps(
        &[
            (0, losses(0.1, 0.0)),
            (60_000, losses(0.0, 0.0)),
            (120_000, losses(0.0, 1e-3)),
        ],
        Some(180_000),
    );
    let changes = Changes {
        losses: Some(profile),
        ..Changes::default()
    };
    let mut settings = changing(changes);
    settings.rate = BitRate::new(3_200_000).expect("not zero"); // 40 B in 0.1 ms
    let count = 1_800_000_u64;
    let offers: Vec<(Time, u64)> = (0..count)
        .map(|i| (Time::from_nanos(i * 1_000_000), 40))
        .collect();
    let (arrivals, counters, _) = drive(settings, &offers);
    let mut arrived = [0_u64; 3];
    for (_, number, _) in &arrivals {
        arrived[(number / 60_000 % 3) as usize] += 1;
    }
    let sent = count / 3;
    let expected = [0.1, 0.0, 1.0 - 0.999_f64.powi(320)];
    for (arrived, expected) in arrived.iter().zip(expected) {
        let lost = (sent - arrived) as f64 / sent as f64;
        let error = (expected * (1.0 - expected) / sent as f64).sqrt();
        assert!((lost - expected).abs() <= 4.0 * error, "{lost} {expected}");
    }
    assert_eq!(counters.lost + counters.delivered, count);
}

#[test]
fn shares_of_impaired_packets_match_the_settings() {
    let changes = Changes {
        duplication: 0.02,
        corruption: 0.05,
        reordering: Some((0.1, Distribution::Constant(0.5))),
        ..Changes::default()
    };
    let mut settings = changing(changes);
    settings.rate = BitRate::new(3_200_000).expect("not zero");
    let count = 400_000_u64;
    let offers: Vec<(Time, u64)> = (0..count)
        .map(|i| (Time::from_nanos(i * 1_000_000), 40))
        .collect();
    let (arrivals, counters, _) = drive(settings, &offers);
    let corrupted = arrivals.iter().filter(|(.., corrupted)| *corrupted).count() as f64;
    let share = |number: f64, expected: f64, of: f64| {
        let error = (expected * (1.0 - expected) / of).sqrt();
        assert!(
            (number / of - expected).abs() < 4.0 * error,
            "{number} of {of}"
        );
    };
    share(counters.duplicated as f64, 0.02, count as f64);
    share(corrupted, 0.05, counters.delivered as f64);
    // A packet half a second late arrives after the next 500.
    let late = arrivals
        .iter()
        .filter(|(now, number, _)| *now > Time::from_nanos(number * 1_000_000) + ms(700))
        .count();
    share(late as f64, 0.1, counters.delivered as f64);
    assert_eq!(counters.delivered, count + counters.duplicated);
}

#[test]
fn impairments_have_independent_random_streams() {
    let offers: Vec<(Time, u64)> = (0..5_000).map(|i| (at(i), 40)).collect();
    let corrupted = |changes| -> Vec<u64> {
        let mut settings = changing(changes);
        settings.rate = BitRate::new(3_200_000).expect("not zero");
        settings.errors = vec![ErrorModel::packet_loss(
            0.0,
            RandomStream::new(3, "link.forward", "errors"),
        )];
        let (mut arrivals, ..) = drive(settings, &offers);
        arrivals.retain(|(.., corrupted)| *corrupted);
        arrivals.sort_by_key(|(_, number, _)| *number);
        arrivals.dedup_by_key(|(_, number, _)| *number);
        arrivals.iter().map(|(_, number, _)| *number).collect()
    };
    let alone = Changes {
        corruption: 0.1,
        ..Changes::default()
    };
    let together = Changes {
        duplication: 0.3,
        reordering: Some((0.2, Distribution::Exponential(0.1))),
        ..alone.clone()
    };
    assert_eq!(corrupted(alone), corrupted(together));
}

#[test]
fn a_permanent_rate_of_zero_sends_no_packets_and_schedules_no_events() {
    let changes = Changes {
        rate: RateCourse::Steps(steps(&[(10, 0)], None)),
        ..Changes::default()
    };
    let Direction::Managed(mut link) = Direction::new(changing(changes)) else {
        unreachable!("managed");
    };
    let mut packets = PacketStore::default();
    for number in 0..3 {
        let packet = packets.insert(numbered(number, 100));
        link.enqueue(at(number), packet, &mut packets, &mut ());
    }
    assert!(link.next_event().is_none_or(|at| at > Time::LAST));
    assert_eq!(link.in_transit(), 3);
    assert_eq!(link.busy(at(1_000)), ms(1_000));
}
