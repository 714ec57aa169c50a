use bentpipe_types::{BitRate, Endpoint, IpVersion, Packet, PacketStore, RandomStream};
use proptest::prelude::*;

use super::*;
use crate::Limit;

fn direction(limit: Limit, errors: Vec<ErrorModel>) -> Fifo {
    // One byte per millisecond.
    let transmitter = Transmitter::new(BitRate::new(8_000).expect("not zero"), 1.0);
    Fifo::new(
        transmitter,
        Span::from_millis(250),
        DropTail { limit },
        errors,
    )
}

fn packets(count: usize) -> Vec<PacketRef> {
    let mut store = PacketStore::default();
    let packet = Packet::new(Endpoint::default(), Endpoint::default(), IpVersion::V4);
    (0..count).map(|_| store.insert(packet)).collect()
}

fn millis(milliseconds: u64) -> Time {
    Time::ZERO + Span::from_millis(milliseconds)
}

#[test]
fn a_packet_is_clocked_out_and_then_propagates() {
    let packet = packets(1)[0];
    let mut link = direction(Limit::Packets(10), vec![]);
    assert_eq!(
        link.enqueue(millis(5), packet, Bytes::new(100)),
        Verdict::Queued
    );
    assert_eq!(link.next_arrival(), Some(millis(5 + 100 + 250)));
    assert_eq!(link.arrive(millis(355)), Some(Arrival::Delivered(packet)));
    assert_eq!(link.next_arrival(), None);
    assert_eq!(link.busy(millis(355)), Span::from_millis(100));
}

#[test]
fn packets_arrive_later_than_the_arrives_after_bound() {
    let packet = packets(3);
    let mut link = direction(Limit::Packets(10), vec![]);
    for (at, reference) in [0, 50, 500].into_iter().zip(packet) {
        let least = link.arrives_after(millis(at));
        link.enqueue(millis(at), reference, Bytes::new(1));
        assert_eq!(link.last_arrival(), least + Span::from_millis(1));
        // The transmitter is busy for that millisecond, whatever is offered.
        assert_eq!(link.arrives_after(Time::ZERO), link.last_arrival());
    }
}

#[test]
fn the_packet_in_transmission_does_not_count_against_the_limit() {
    let packet = packets(4);
    let mut link = direction(Limit::Packets(2), vec![]);
    for reference in &packet[..3] {
        assert_eq!(
            link.enqueue(millis(0), *reference, Bytes::new(100)),
            Verdict::Queued
        );
    }
    assert_eq!(
        link.enqueue(millis(99), packet[3], Bytes::new(100)),
        Verdict::Dropped
    );
    assert_eq!((link.waiting_packets(), link.waiting_bytes()), (2, 200));
    // At 100 ms the first packet has left, and there is room again.
    assert_eq!(
        link.enqueue(millis(100), packet[3], Bytes::new(100)),
        Verdict::Queued
    );
    assert_eq!(link.counters().dropped, 1);
    assert_eq!(link.counters().queue_max_packets, 2);
}

#[test]
fn a_limit_in_bytes() {
    let packet = packets(4);
    let mut link = direction(Limit::Bytes(Bytes::new(150)), vec![]);
    assert_eq!(
        link.enqueue(millis(0), packet[0], Bytes::new(1_000)),
        Verdict::Queued
    );
    assert_eq!(
        link.enqueue(millis(0), packet[1], Bytes::new(100)),
        Verdict::Queued
    );
    assert_eq!(
        link.enqueue(millis(0), packet[2], Bytes::new(60)),
        Verdict::Dropped
    );
    assert_eq!(
        link.enqueue(millis(0), packet[3], Bytes::new(50)),
        Verdict::Queued
    );
    assert_eq!(link.counters().queue_max_bytes, 150);
}

#[test]
fn redundancy_lengthens_the_transmission() {
    let transmitter = Transmitter::new(BitRate::new(64_000).expect("not zero"), 16.0 / 15.0);
    let queue = DropTail {
        limit: Limit::Packets(1),
    };
    let mut link = Fifo::new(transmitter, Span::ZERO, queue, vec![]);
    link.enqueue(Time::ZERO, packets(1)[0], Bytes::new(1500));
    assert_eq!(link.next_arrival(), Some(millis(200)));
}

/// Sends packets of these lengths over a link with these models. Returns which are lost.
fn lost_behind(errors: Vec<ErrorModel>, lengths: &[u64]) -> Vec<bool> {
    let packet = packets(1)[0];
    let mut link = direction(Limit::Packets(10), errors);
    let mut lost = Vec::new();
    for (length, at) in lengths.iter().zip(0..) {
        let at = millis(1_000_000 * at);
        link.enqueue(at, packet, Bytes::new(*length));
        let arrival = link.arrive(at + Span::from_millis(999_999));
        lost.push(arrival == Some(Arrival::Lost(packet)));
    }
    lost
}

#[test]
fn packets_skipped_by_the_error_models_would_not_have_been_lost() {
    let random = || RandomStream::new(5, "test", "lent");
    let lengths: Vec<u64> = (0..4_000)
        .map(|number| [40, 1500, 576, 9000][number % 4])
        .collect();
    for rate in [1e-7, 1e-5, 1e-3, 1.0] {
        let asked = || {
            let mut model = ErrorModel::bit_errors(rate, random());
            let ask = |length: &u64| model.loses(Bytes::new(*length));
            lengths.iter().map(ask).collect::<Vec<_>>()
        };
        let bit_errors = || ErrorModel::bit_errors(rate, random());
        assert_eq!(lost_behind(vec![bit_errors()], &lengths), asked());
        // A second model that loses nothing here: every packet is passed to both.
        let two = vec![bit_errors(), ErrorModel::listed_losses([])];
        assert_eq!(lost_behind(two, &lengths), asked());
    }
    // The largest possible draw exceeds what can be lent at once.
    let rare = vec![ErrorModel::bit_errors(1e-12, random())];
    let jumbo = vec![60_000; 20_000];
    assert!(!lost_behind(rare, &jumbo).contains(&true));
}

#[test]
fn departures_are_reported_with_their_own_times() {
    let mut link = direction(Limit::Packets(10), vec![]);
    for reference in packets(3) {
        link.enqueue(millis(0), reference, Bytes::new(100));
    }
    let mut seen = Vec::new();
    link.advance(millis(1_000), |at, packets, bytes| {
        seen.push((at, packets, bytes))
    });
    assert_eq!(seen, [(millis(100), 1, 100), (millis(200), 0, 0)]);
}

proptest! {
    /// Every packet leaves, is lost, is dropped, or is still there; in order; never early.
    #[test]
    fn every_packet_is_accounted_for(
        offers in prop::collection::vec((0_u64..400, 1_u64..1_500), 1..200),
        limit in 0_u64..20,
        loss in 0.0_f64..0.5,
        seed in any::<u64>(),
        until in 0_u64..400_000,
    ) {
        let random = RandomStream::new(seed, "link", "errors");
        let mut link = direction(Limit::Packets(limit), vec![ErrorModel::packet_loss(loss, random)]);
        let references = packets(offers.len());
        let mut now = Time::ZERO;
        let (mut queued, mut arrived) = (Vec::new(), Vec::new());
        let mut collect = |link: &mut Fifo, now: Time| {
            while let Some(at) = link.next_arrival().filter(|at| *at <= now) {
                match link.arrive(at) {
                    Some(Arrival::Delivered(packet) | Arrival::Lost(packet)) => arrived.push(packet),
                    None => unreachable!("its time has come"),
                }
            }
        };
        for (reference, (gap, length)) in references.iter().zip(&offers) {
            now += Span::from_millis(*gap);
            collect(&mut link, now);
            if link.enqueue(now, *reference, Bytes::new(*length)) == Verdict::Queued {
                queued.push(*reference);
            }
            prop_assert!(link.waiting_packets() <= limit);
            prop_assert_eq!(link.waiting_packets() == 0, link.waiting_bytes() == 0);
        }
        collect(&mut link, now + Span::from_millis(until));
        let counters = link.counters();
        prop_assert_eq!(counters.offered, offers.len() as u64);
        prop_assert_eq!(
            counters.offered,
            counters.dropped + counters.lost + counters.delivered + link.in_transit() as u64
        );
        prop_assert_eq!(&arrived[..], &queued[..arrived.len()]);
    }
}

proptest! {
    /// Advancing the queue before each offer, or only where necessary, gives the same result.
    #[test]
    fn advancing_before_each_offer_or_only_if_needed_is_equal(
        offers in prop::collection::vec((0_u64..1_200, 1_u64..1_500), 1..300),
        limit in prop_oneof![
            (0_u64..20).prop_map(Limit::Packets),
            (0_u64..15_000).prop_map(|bytes| Limit::Bytes(Bytes::new(bytes))),
        ],
        ahead in 0_usize..5,
    ) {
        let mut seldom = direction(limit, vec![]);
        let mut always = direction(limit, vec![]);
        let mut now = Time::ZERO;
        for (reference, (gap, length)) in packets(offers.len()).into_iter().zip(offers) {
            now += Span::from_millis(gap);
            always.advance(now, |_, _, _| {});
            let verdicts = [&mut seldom, &mut always]
                .map(|link| link.enqueue(now, reference, Bytes::new(length)));
            prop_assert_eq!(verdicts[0], verdicts[1]);
            prop_assert!(seldom.waiting_packets() >= always.waiting_packets());
            while let Some(at) = always.next_arrival().filter(|at| *at <= now) {
                prop_assert_eq!(seldom.arrive(at), always.arrive(at));
            }
            prop_assert_eq!(seldom.counters(), always.counters());
            let ahead = ahead.min(seldom.in_transit());
            let without = |link: &Fifo| link.counters_without(ahead, link.in_transit() - ahead);
            prop_assert_eq!(without(&seldom), without(&always));
        }
        seldom.advance(now, |_, _, _| {});
        prop_assert_eq!(
            (seldom.waiting_packets(), seldom.waiting_bytes()),
            (always.waiting_packets(), always.waiting_bytes())
        );
    }
}

#[test]
fn packets_offered_at_once_beyond_the_free_space_are_dropped() {
    let packet = packets(12);
    let length = Bytes::new(100);
    let mut link = direction(Limit::Packets(4), vec![]);
    assert!(!link.is_cramped());
    // Room for five: one in transmission, four queued. The sixth is the first to be dropped.
    assert_eq!(link.most_at(millis(0)), 6);
    for (reference, number) in packet.iter().zip(0..) {
        let verdict = link.enqueue(millis(0), *reference, length);
        assert_eq!(verdict == Verdict::Dropped, number >= 5);
    }
    assert!(link.is_cramped());
    assert_eq!(link.most_at(millis(99)), 1);
    // Two have left the queue, each after a tenth of a second.
    assert_eq!(link.most_at(millis(250)), 3);
    assert_eq!(
        link.enqueue(millis(250), packet[0], length),
        Verdict::Queued
    );
    assert_eq!(
        link.enqueue(millis(250), packet[1], length),
        Verdict::Queued
    );
    assert_eq!(
        link.enqueue(millis(250), packet[2], length),
        Verdict::Dropped
    );
    assert_eq!(link.most_at(millis(10_000)), 6);
    // With a limit in bytes a shorter packet may still fit.
    let mut link = direction(Limit::Bytes(Bytes::new(250)), vec![]);
    for reference in &packet[..5] {
        link.enqueue(millis(0), *reference, length);
    }
    assert!(link.dropped() > 0 && !link.is_cramped());
    assert_eq!(link.most_at(millis(0)), u64::MAX);
}
