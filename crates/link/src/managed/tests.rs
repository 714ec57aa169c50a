use bentpipe_types::{BitRate, Endpoint, IpVersion, Packet};
use proptest::prelude::*;

use super::*;
use crate::{
    Arrival, Codel, CodelSettings, DelayBounds, Direction, DropTail, EarlyRandomDrop,
    EarlyRandomDropSettings, EndCtx, Fair, FairSettings, FarEnd, FqCodel, FqCodelSettings, Framing,
    Limit, Measure, Pie, PieSettings, Queueing, Red, RedSettings, Settings,
};

impl Watch for () {
    fn sent(&mut self, _now: Time, _packet: PacketRef, _packets: &PacketStore) {}
    fn received(&mut self, _now: Time, _packet: PacketRef, _packets: &PacketStore) {}
}

fn settings(queue: Queueing, errors: Vec<ErrorModel>, ends: Ends) -> Settings {
    Settings {
        errors,
        ends,
        ..Settings::new(
            BitRate::new(8_000).expect("not zero"),
            Span::from_millis(250),
            queue,
        )
    }
}

fn managed(queue: Box<dyn QueueDiscipline>, errors: Vec<ErrorModel>, ends: Ends) -> Managed {
    let random = RandomStream::new(1, "link", "queue");
    let queue = Queueing::Discipline { queue, random };
    match Direction::managed(settings(queue, errors, ends)) {
        Direction::Managed(managed) => *managed,
        _ => unreachable!("it is managed"),
    }
}

fn insert(packets: &mut PacketStore, flow: u16, length: u64) -> PacketRef {
    let mut packet = Packet::new(Endpoint::default(), Endpoint::default(), IpVersion::V4);
    packet.source.port = flow;
    packet.payload_length = (length - 40) as u16;
    packets.insert(packet)
}

/// A header of four bytes; every seventh arriving packet cannot be decoded.
#[derive(Debug, Default)]
struct Header {
    received: u64,
    lost: u64,
}

impl Framing for Header {
    fn transmit(&mut self, _: PacketRef, length: Bytes, _: &mut PacketStore) -> Bytes {
        length + Bytes::new(4)
    }

    fn receive(
        &mut self,
        _now: Time,
        packet: PacketRef,
        packets: &mut PacketStore,
    ) -> Option<PacketRef> {
        self.received += 1;
        if self.received.is_multiple_of(7) {
            packets.release(packet);
            return None;
        }
        Some(packet)
    }

    fn lose(&mut self, _: Time, _: PacketRef, _: &mut PacketStore) {
        self.lost += 1;
    }
}

/// Releases each packet 100 ms later, together with a copy; ends every fifth.
#[derive(Debug, Default)]
struct Doubler {
    arrived: u64,
    waiting: std::collections::VecDeque<(Time, PacketRef)>,
}

impl FarEnd for Doubler {
    fn on_arrival(&mut self, packet: PacketRef, cx: &mut EndCtx<'_>) {
        let (now, packets) = (cx.now, &mut *cx.packets);
        self.arrived += 1;
        if self.arrived.is_multiple_of(5) {
            packets.release(packet);
            return;
        }
        let at = now + Span::from_millis(100);
        let copy = packets.duplicate(packet);
        self.waiting.extend([(at, packet), (at, copy)]);
    }

    fn on_deadline(&mut self, cx: &mut EndCtx<'_>) {
        let (now, out) = (cx.now, &mut *cx.out);
        while let Some((_, packet)) = self.waiting.pop_front_if(|(at, _)| *at <= now) {
            out.push(packet);
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        self.waiting.front().map(|(at, _)| *at)
    }

    fn held(&self) -> usize {
        self.waiting.len()
    }
}

/// Runs a direction until `until`, and records its output with times.
fn run(
    link: &mut Managed,
    until: Time,
    packets: &mut PacketStore,
    out: &mut Vec<(Time, PacketRef)>,
) {
    let mut now_out = Vec::new();
    while let Some(at) = link.next_event().filter(|at| *at <= until) {
        link.on_event(at, packets, &mut (), &mut now_out);
        out.extend(now_out.drain(..).map(|packet| (at, packet)));
    }
}

#[test]
fn framing_lengthens_the_transmission_and_the_far_end_has_its_deadline() {
    let mut packets = PacketStore::default();
    let ends = Ends {
        divider: None,
        framings: vec![Box::new(Header::default())],
        far_end: Some(Box::new(Doubler::default())),
    };
    let queue = Box::new(crate::DropTailQueue::new(Limit::Packets(10)));
    let mut link = managed(queue, vec![], ends);
    let packet = insert(&mut packets, 0, 100);
    link.enqueue(Time::ZERO, packet, &mut packets, &mut ());
    let mut out = Vec::new();
    run(&mut link, Time::LAST, &mut packets, &mut out);
    let at = Time::ZERO + Span::from_millis(104 + 250 + 100);
    assert_eq!(out.len(), 2);
    assert!(out.iter().all(|(when, _)| *when == at), "{out:?}");
    let counters = link.counters();
    assert_eq!((counters.delivered, counters.delivered_bytes), (1, 104));
    assert_eq!((counters.made, counters.passed_on), (1, 2));
}

#[test]
fn a_packet_offered_at_the_end_of_a_transmission_is_queued() {
    let mut packets = PacketStore::default();
    let queue = Box::new(crate::DropTailQueue::new(Limit::Packets(1)));
    let mut link = managed(queue, vec![], Ends::default());
    let offer = |link: &mut Managed, packets: &mut PacketStore, ms| {
        let packet = insert(packets, 0, 100);
        link.enqueue(Time::ZERO + Span::from_millis(ms), packet, packets, &mut ())
    };
    assert_eq!(offer(&mut link, &mut packets, 0), Verdict::Queued);
    assert_eq!(offer(&mut link, &mut packets, 0), Verdict::Queued);
    assert_eq!(offer(&mut link, &mut packets, 99), Verdict::Dropped);
    assert_eq!(offer(&mut link, &mut packets, 100), Verdict::Queued);
    assert_eq!(link.counters().queue_max_packets, 1);
}

#[test]
fn the_packet_in_transmission_does_not_count_as_queued() {
    // 1500 B packets, and a limit below one packet: on an idle link they pass one after another;
    // queued ones are dropped.
    for kind in 0..KINDS {
        for limit in [Limit::Bytes(Bytes::new(40)), Limit::Packets(0)] {
            let (name, queue) = queue(kind, limit, true, 4);
            let mut packets = PacketStore::default();
            let mut link = managed(queue, vec![], Ends::default());
            let mut out = Vec::new();
            for n in 0..20 {
                let now = Time::ZERO + Span::from_millis(1_500 * n);
                run(&mut link, now, &mut packets, &mut out);
                for expected in [Verdict::Queued, Verdict::Dropped] {
                    let packet = insert(&mut packets, 0, 1_500);
                    let verdict = link.enqueue(now, packet, &mut packets, &mut ());
                    assert_eq!(verdict, expected, "{name}, {limit:?}, packet {n}");
                }
            }
            assert_eq!(link.counters().queue_max_packets, 0, "{name}");
        }
    }
}

/// Limit of each queue of `queues`.
const LIMIT: u64 = 12;

fn queues() -> impl Strategy<Value = (&'static str, Box<dyn QueueDiscipline>)> {
    (0_usize..KINDS, any::<bool>(), 1_usize..6)
        .prop_map(|(kind, gentle, flows)| queue(kind, Limit::Packets(LIMIT), gentle, flows))
}

const KINDS: usize = 7;

/// Creates a queue of a kind.
fn queue(
    kind: usize,
    limit: Limit,
    gentle: bool,
    flows: usize,
) -> (&'static str, Box<dyn QueueDiscipline>) {
    // A packet takes about 400 ms.
    let bounds = DelayBounds {
        target: Span::from_millis(500),
        interval: Span::from_millis(1000),
        ecn: false,
    };
    match kind {
        0 => ("drop-tail", Box::new(crate::DropTailQueue::new(limit))),
        1 => (
            "red",
            Box::new(Red::new(RedSettings {
                limit,
                measure: Measure::Packets,
                minimum_threshold: 2.0,
                maximum_threshold: 6.0,
                maximum_probability: 0.2,
                weight: 0.1,
                gentle,
                ecn: false,
                mean_packet: Bytes::new(500),
                mean_transmission: Span::from_millis(500),
            })),
        ),
        2 => (
            "early-random-drop",
            Box::new(EarlyRandomDrop::new(EarlyRandomDropSettings {
                limit,
                drop_level: Limit::Packets(2),
                drop_probability: 0.3,
            })),
        ),
        3 => (
            "fair",
            Box::new(Fair::new(FairSettings {
                limit,
                quantum: Bytes::new(300),
                flows,
            })),
        ),
        4 => (
            "codel",
            Box::new(Codel::new(CodelSettings { limit, bounds })),
        ),
        5 => (
            "fq-codel",
            Box::new(FqCodel::new(FqCodelSettings {
                limit,
                bounds,
                quantum: Bytes::new(300),
                flows,
            })),
        ),
        _ => (
            "pie",
            Box::new(Pie::new(PieSettings {
                limit,
                target: Span::from_millis(500),
                update_interval: Span::from_millis(200),
                burst_allowance: Span::from_millis(100),
                ecn: false,
            })),
        ),
    }
}

proptest! {
    /// A drop-tail queue gives the same result as `Fifo` and as `Managed`.
    #[test]
    fn drop_tail_equals_the_fifo_implementation(
        offers in prop::collection::vec((0_u64..400, 40_u64..1_500), 1..100),
        limit in prop_oneof![
            (0_u64..20).prop_map(Limit::Packets),
            (0_u64..5_000).prop_map(|bytes| Limit::Bytes(Bytes::new(bytes))),
        ],
        loss in 0.0_f64..0.5,
    ) {
        let errors = || vec![ErrorModel::packet_loss(loss, RandomStream::new(3, "link", "errors"))];
        let drop_tail = DropTail { limit };
        let quick = settings(drop_tail.into(), errors(), Ends::default());
        let Direction::Fifo(mut quick) = Direction::new(quick) else {
            unreachable!("a drop-tail queue with nothing at its ends");
        };
        let queue = Box::new(crate::DropTailQueue::new(limit));
        let mut link = managed(queue, errors(), Ends::default());
        let mut packets = PacketStore::default();
        let mut out = Vec::new();
        let mut quick_out = Vec::new();
        let mut now = Time::ZERO;
        let mut quick_run = |quick: &mut crate::Fifo, until: Time| {
            while let Some(at) = quick.next_arrival().filter(|at| *at <= until) {
                if let Some(Arrival::Delivered(packet)) = quick.arrive(at) {
                    quick_out.push((at, packet));
                }
            }
        };
        for (gap, length) in offers {
            now += Span::from_millis(gap);
            run(&mut link, now, &mut packets, &mut out);
            quick_run(&mut quick, now);
            // Retained, so that no two packets have the same reference.
            let packet = insert(&mut packets, 0, length);
            packets.retain(packet);
            let verdict = quick.enqueue(now, packet, Bytes::new(length));
            prop_assert_eq!(link.enqueue(now, packet, &mut packets, &mut ()), verdict);
            quick.advance(now, |_, _, _| {});
            prop_assert_eq!(link.waiting_packets(), quick.waiting_packets());
            prop_assert_eq!(link.waiting_bytes(), quick.waiting_bytes());
        }
        prop_assert_eq!(link.busy(now), quick.busy(now));
        run(&mut link, Time::LAST, &mut packets, &mut out);
        quick_run(&mut quick, Time::LAST);
        prop_assert_eq!(out, quick_out);
        prop_assert_eq!(link.counters(), quick.counters());
    }

    /// Any queue gives the same result whether departures are events or processed later, and when
    /// observation begins in between.
    #[test]
    fn departures_processed_later_give_the_same_result_as_events(
        offers in prop::collection::vec((0_u64..400, 40_u64..1_500, 0_u16..8), 1..100),
        (kind, gentle, flows) in (0_usize..KINDS, any::<bool>(), 1_usize..6),
        loss in 0.0_f64..0.3,
        looks_from in 0_usize..200,
    ) {
        let whole = || {
            let (name, queue) = queue(kind, Limit::Packets(LIMIT), gentle, flows);
            let random = RandomStream::new(1, "link", "queue");
            let errors = RandomStream::new(3, "link", "errors");
            let errors = vec![ErrorModel::packet_loss(loss, errors)];
            (name, settings(Queueing::Discipline { queue, random }, errors, Ends::default()))
        };
        let (name, one) = whole();
        let mut link = match Direction::managed(one) {
            Direction::Managed(managed) => *managed,
            _ => unreachable!("it is managed"),
        };
        let mut other = Direction::new(whole().1);
        prop_assert!(matches!(other, Direction::Queued(_)));
        let (mut packets, mut other_packets) = (PacketStore::default(), PacketStore::default());
        let (mut out, mut other_out) = (Vec::new(), Vec::new());
        let run_other = |other: &mut Direction, until, packets: &mut PacketStore, out: &mut Vec<_>| {
            let queued = match other {
                Direction::Managed(managed) => return run(managed, until, packets, out),
                Direction::Queued(queued) => queued,
                Direction::Fifo(_) => unreachable!("its queue chooses"),
            };
            while let Some(at) = queued.next_arrival().filter(|at| *at <= until) {
                match queued.arrive(at, packets) {
                    Some(Arrival::Delivered(packet)) => out.push((at, packet)),
                    Some(Arrival::Lost(packet)) => packets.release(packet),
                    None => unreachable!("it was the first"),
                }
            }
        };
        let mut now = Time::ZERO;
        let mut looked_at = Vec::new();
        for (number, (gap, length, flow)) in offers.into_iter().enumerate() {
            now += Span::from_millis(gap);
            if number == looks_from {
                other.attend(now, &mut other_packets);
            }
            run(&mut link, now, &mut packets, &mut out);
            run_other(&mut other, now, &mut other_packets, &mut other_out);
            let packet = insert(&mut packets, flow, length);
            let other_packet = insert(&mut other_packets, flow, length);
            let verdict = link.enqueue(now, packet, &mut packets, &mut ());
            let other_verdict = match &mut other {
                Direction::Managed(managed) => {
                    managed.enqueue(now, other_packet, &mut other_packets, &mut ())
                }
                Direction::Queued(queued) => {
                    queued.enqueue(now, other_packet, &mut other_packets)
                }
                Direction::Fifo(_) => unreachable!("its queue chooses"),
            };
            prop_assert_eq!(verdict, other_verdict, "{}", name);
            if verdict == Verdict::Dropped {
                packets.release(packet);
                other_packets.release(other_packet);
            }
            looked_at.push((link.waiting_packets(), other.waiting_packets()));
            prop_assert_eq!(link.waiting_bytes(), other.waiting_bytes());
            prop_assert_eq!(link.in_transit(), other.in_transit());
            prop_assert_eq!(link.busy(now), other.busy(now));
        }
        prop_assert!(looked_at.iter().all(|(one, other)| one == other), "{name}: {looked_at:?}");
        run(&mut link, Time::LAST, &mut packets, &mut out);
        run_other(&mut other, Time::LAST, &mut other_packets, &mut other_out);
        let told = |out: &[(Time, PacketRef)], packets: &PacketStore| -> Vec<_> {
            let tell = |(at, packet): &(Time, PacketRef)| {
                let record = packets.get(*packet);
                (*at, record.source.port, record.length())
            };
            out.iter().map(tell).collect()
        };
        prop_assert_eq!(told(&out, &packets), told(&other_out, &other_packets));
        prop_assert_eq!(link.counters(), other.counters());
    }

    /// Every packet is accounted for at any time, with any queue and ends; flows stay in order; the
    /// limit holds.
    #[test]
    fn every_packet_is_accounted_for(
        offers in prop::collection::vec((0_u64..400, 40_u64..1_500, 0_u16..8), 1..150),
        (name, queue) in queues(),
        loss in 0.0_f64..0.3,
        ends in any::<bool>(),
        until in 0_u64..100_000,
    ) {
        let errors = vec![ErrorModel::packet_loss(loss, RandomStream::new(3, "link", "errors"))];
        let ends = if ends {
            Ends {
                divider: None,
                framings: vec![Box::new(Header::default()), Box::new(Header::default())],
                far_end: Some(Box::new(Doubler::default())),
            }
        } else {
            Ends::default()
        };
        let mut link = managed(queue, errors, ends);
        let mut packets = PacketStore::default();
        let mut out = Vec::new();
        let mut now = Time::ZERO;
        let check = |link: &Managed, packets: &PacketStore, out: usize| {
            let c = link.counters();
            let left = c.delivered + c.lost + c.dropped + c.removed + c.undecodable;
            prop_assert_eq!(c.offered, left + link.in_transit() as u64, "{}", name);
            let after = c.passed_on + c.released + link.held_back() as u64;
            prop_assert_eq!(c.delivered + c.made, after);
            prop_assert_eq!(packets.held(), link.in_transit() + link.held_back() + out);
            prop_assert_eq!(link.waiting_packets() == 0, link.waiting_bytes() == 0);
            prop_assert!(link.waiting_packets() <= LIMIT);
            Ok(())
        };
        for (gap, length, flow) in offers {
            now += Span::from_millis(gap);
            run(&mut link, now, &mut packets, &mut out);
            let packet = insert(&mut packets, flow, length);
            packets.get_mut(packet).payload_offset = packets.inserted();
            if link.enqueue(now, packet, &mut packets, &mut ()) == Verdict::Dropped {
                packets.release(packet);
            }
            check(&link, &packets, out.len())?;
        }
        run(&mut link, now + Span::from_millis(until), &mut packets, &mut out);
        check(&link, &packets, out.len())?;
        run(&mut link, Time::LAST, &mut packets, &mut out);
        prop_assert_eq!(link.in_transit() + link.held_back(), 0);
        // A shared queue of the fair kind may move a flow to a queue of its own.
        if name != "fair" {
            for flow in 0..8 {
                let order: Vec<u64> = out
                    .iter()
                    .map(|(_, packet)| packets.get(*packet))
                    .filter(|packet| packet.source.port == flow)
                    .map(|packet| packet.payload_offset)
                    .collect();
                prop_assert!(order.is_sorted(), "{}: {:?}", name, order);
            }
        }
    }
}
