//! Mahimahi's rule, written independently from its description: time advances in whole
//! milliseconds; at each opportunity 1500 bytes of earlier arrivals are sent; packets leave as a
//! whole.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

/// Returns when each packet leaves, by walking through every opportunity.
fn by_its_rule(at_ms: &[u64], offers: &[(Time, u64)]) -> Vec<Time> {
    let mut left = vec![Time::ZERO; offers.len()];
    let mut coming: VecDeque<(usize, Time, u64)> = (offers.iter().enumerate())
        .map(|(number, (at, length))| (number, *at, *length))
        .collect();
    let mut base = 0;
    let mut in_transit: Option<(usize, u64)> = None;
    while !coming.is_empty() || in_transit.is_some() {
        for opportunity in at_ms {
            let now = at(base + opportunity);
            let mut bytes = 1_500;
            while bytes > 0 {
                let (number, to_go) = match in_transit {
                    Some(packet) => packet,
                    None => match coming.pop_front_if(|(_, came, _)| *came < now) {
                        Some((number, _, length)) => (number, length),
                        None => break,
                    },
                };
                let sent = bytes.min(to_go);
                bytes -= sent;
                in_transit = (to_go > sent).then_some((number, to_go - sent));
                if in_transit.is_none() {
                    left[number] = now;
                }
            }
        }
        base += at_ms.last().expect("one at least");
    }
    left
}

proptest! {
    #[test]
    fn departures_of_a_trace_equal_those_of_mahimahi(
        gaps in prop::collection::vec(0_u64..6, 1..40),
        offers in prop::collection::vec((0_u64..8_000_000, 40_u64..4_000), 1..80),
        whole in any::<bool>(),
    ) {
        let mut at_ms: Vec<u64> = gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }).collect();
        if at_ms.last() == Some(&0) {
            at_ms.push(1);
        }
        let mut now = 0;
        let offers: Vec<(Time, u64)> = offers
            .iter()
            .map(|(gap, length)| {
                // Half of the cases at whole milliseconds, where ties occur.
                now += if whole { gap / 1_000_000 * 1_000_000 } else { *gap };
                (Time::from_nanos(now), *length)
            })
            .collect();
        let trace = Opportunities::new(at_ms.clone()).expect("sound");
        let changes = Changes { rate: RateCourse::Opportunities(trace), ..Changes::default() };
        let settings = Settings { delay: Span::ZERO, ..changing(changes) };
        let (arrivals, ..) = drive(settings, &offers);
        let mut left = vec![Time::ZERO; offers.len()];
        for (arrival, number, _) in arrivals {
            left[number as usize] = arrival;
        }
        prop_assert_eq!(left, by_its_rule(&at_ms, &offers));
    }
}

#[test]
fn a_trace_waits_for_an_outage_to_end() {
    let trace = Opportunities::new([1]).expect("sound");
    let changes = Changes {
        rate: RateCourse::Opportunities(trace),
        outages: vec![Outages {
            at: ms(2),
            lasts: ms(10),
            every: None,
            sending: Sending::Held,
            in_flight: InFlight::Arrive,
        }],
        ..Changes::default()
    };
    let settings = Settings {
        delay: Span::ZERO,
        ..changing(changes)
    };
    let (arrivals, counters, _) = drive(settings, &[(at(0), 1_500); 4]);
    let times: Vec<Time> = arrivals.iter().map(|(at, ..)| *at).collect();
    assert_eq!(times, [at(1), at(12), at(13), at(14)]);
    assert_eq!(counters.delivered, 4);
}

#[test]
fn utilization_is_the_share_of_the_bytes() {
    let trace = Opportunities::new([4, 10]).expect("sound");
    let changes = Changes {
        rate: RateCourse::Opportunities(trace),
        ..Changes::default()
    };
    let Direction::Managed(mut link) = Direction::new(changing(changes)) else {
        unreachable!("managed");
    };
    let mut packets = PacketStore::default();
    let mut arrivals = Vec::new();
    for number in 0..10 {
        let packet = packets.insert(numbered(number, 750));
        link.enqueue(Time::ZERO, packet, &mut packets, &mut ());
    }
    while let Some(event) = link.next_event() {
        run(&mut link, event, &mut packets, &mut arrivals);
    }
    // Five opportunities of the ten in 50 ms.
    assert_eq!(link.busy(at(50)), ms(25));
}
