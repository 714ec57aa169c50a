use super::*;
use crate::Terminal;
use crate::testing::{Bench, ack};
use bentpipe_types::{Address, Span, Tunnel};

const TUNNEL: Tunnel = Tunnel {
    source: Address(1),
    destination: Address(9),
};

fn expander(spacing: Option<Spacing>) -> Expander {
    let terminal = Terminal {
        address: Address(1),
        behind: None,
    };
    Expander::new(ExpanderSettings {
        gate: Gate::new(Some(Address(9)), vec![terminal]),
        high: 60,
        spacing,
        flows: 8,
    })
}

/// A packet that arrives through the tunnel, optionally compacted.
fn arriving(
    bench: &mut Bench,
    ack: &crate::testing::Ack,
    compaction: Option<(u8, u16)>,
) -> PacketRef {
    let packet = ack.insert(&mut bench.packets);
    bench.packets.set_tunnel(packet, Some(TUNNEL));
    bench.packets.get_mut(packet).header_length += 20;
    if let Some((count, bytes)) = compaction {
        bench
            .packets
            .set_compaction(packet, Some(Compaction { count, bytes }));
        bench.packets.get_mut(packet).header_length += 3;
    }
    packet
}

fn expand(number: u32, count: u8, bytes: u16) -> Vec<u32> {
    let mut bench = Bench::default();
    let packet = arriving(&mut bench, &ack(number), Some((count, bytes)));
    let mut out = Vec::new();
    expander(None).on_arrival(
        packet,
        &mut EndCtx::new(Time::ZERO, &mut bench.packets, &mut out),
    );
    assert_eq!(bench.packets.held(), out.len());
    bench.numbers(&out)
}

#[test]
fn regenerated_numbers_are_equally_spaced_up_to_the_carried_one() {
    assert_eq!(expand(5000, 3, 3000), [2000, 3000, 4000, 5000]);
    // Fractions are rounded down.
    assert_eq!(expand(100, 3, 10), [90, 93, 96, 100]);
    assert_eq!(expand(4, 3, 3), [1, 2, 3, 4]);
    assert_eq!(expand(3, 2, 10), [u32::MAX - 6, u32::MAX - 1, 3]);
}

#[test]
fn a_regenerated_acknowledgment_is_a_copy_without_sack_blocks() {
    let mut bench = Bench::default();
    let carried = ack(5000).timestamps(70, 80).blocks(&[(9000, 9500)]);
    let packet = arriving(&mut bench, &carried, Some((1, 1000)));
    let mut out = Vec::new();
    expander(None).on_arrival(
        packet,
        &mut EndCtx::new(Time::ZERO, &mut bench.packets, &mut out),
    );
    let [first, last] = out[..] else {
        panic!("{out:?}")
    };
    for packet in [first, last] {
        assert_eq!(bench.packets.tunnel(packet), None);
        assert_eq!(bench.packets.compaction(packet), None);
        let record = bench.packets.get(packet);
        assert_eq!(record.timestamps(), Some((70, 80)));
        assert_eq!((record.window, record.sequence.get()), (60_000, 7));
    }
    assert!(bench.packets.sack_blocks(first).as_slice().is_empty());
    assert_eq!(bench.packets.get(first).length().get(), 52);
    assert_eq!(bench.packets.sack_blocks(last).as_slice().len(), 1);
    assert_eq!(bench.packets.get(last).length().get(), 64);
}

#[test]
fn invalid_compactions_are_refused_by_reason() {
    let mut bench = Bench::default();
    let mut expander = expander(None);
    let mut out = Vec::new();
    for (compaction, reason) in [
        ((61, 61_000), Refusal::HighMark),
        ((0, 0), Refusal::Nonsense),
        ((0, 100), Refusal::Nonsense),
        ((10, 9), Refusal::Nonsense),
    ] {
        let before = expander.totals().refused(reason);
        let packet = arriving(&mut bench, &ack(1000), Some(compaction));
        expander.on_arrival(
            packet,
            &mut EndCtx::new(Time::ZERO, &mut bench.packets, &mut out),
        );
        assert_eq!(
            expander.totals().refused(reason),
            before + 1,
            "{compaction:?}"
        );
    }
    let data = arriving(&mut bench, &ack(1000).payload(5), Some((1, 100)));
    expander.on_arrival(
        data,
        &mut EndCtx::new(Time::ZERO, &mut bench.packets, &mut out),
    );
    assert_eq!(expander.totals().refused(Refusal::NotAcknowledgment), 1);
    let outside = arriving(&mut bench, &ack(1000), Some((1, 100)));
    bench.packets.set_tunnel(outside, None);
    bench.packets.get_mut(outside).header_length -= 20;
    expander.on_arrival(
        outside,
        &mut EndCtx::new(Time::ZERO, &mut bench.packets, &mut out),
    );
    assert_eq!(expander.totals().refused(Refusal::OutsideTunnel), 1);
    let spoofed = arriving(&mut bench, &ack(1000), Some((1, 100)));
    let stranger = Tunnel {
        source: Address(2),
        ..TUNNEL
    };
    bench.packets.set_tunnel(spoofed, Some(stranger));
    expander.on_arrival(
        spoofed,
        &mut EndCtx::new(Time::ZERO, &mut bench.packets, &mut out),
    );
    assert_eq!(expander.gate().refused(crate::TunnelRefusal::Terminal), 1);
    assert!(out.is_empty());
    assert_eq!(bench.packets.held(), 0);
}

/// Drives an expander and records when each packet leaves.
struct Line {
    bench: Bench,
    expander: Expander,
    seen: Vec<(u64, u32)>,
}

impl Line {
    fn new(spacing: Spacing) -> Self {
        Self {
            bench: Bench::default(),
            expander: expander(Some(spacing)),
            seen: Vec::new(),
        }
    }

    /// Processes deadlines until `until` milliseconds.
    fn run(&mut self, until: u64) {
        let until = Time::from_nanos(until * 1_000_000);
        let mut out = Vec::new();
        while let Some(at) = self.expander.next_deadline().filter(|&at| at <= until) {
            assert!(at >= self.bench.now, "time goes on");
            self.bench.now = at;
            self.expander
                .on_deadline(&mut EndCtx::new(at, &mut self.bench.packets, &mut out));
            assert!(self.expander.next_deadline() != Some(at), "makes progress");
            self.note(&mut out);
        }
        self.bench.now = until;
    }

    fn note(&mut self, out: &mut Vec<PacketRef>) {
        for packet in out.drain(..) {
            let number = self.bench.packets.get(packet).acknowledgment.get();
            self.seen
                .push((self.bench.now.as_nanos() / 1_000_000, number));
            self.bench.packets.release(packet);
        }
    }

    fn arrive(&mut self, at: u64, ack: &crate::testing::Ack, compaction: Option<(u8, u16)>) {
        self.run(at);
        let packet = arriving(&mut self.bench, ack, compaction);
        let mut out = Vec::new();
        self.expander.on_arrival(
            packet,
            &mut EndCtx::new(self.bench.now, &mut self.bench.packets, &mut out),
        );
        self.note(&mut out);
    }

    fn seen(&mut self) -> Vec<(u64, u32)> {
        std::mem::take(&mut self.seen)
    }
}

#[test]
fn regenerated_acknowledgments_are_spread_over_the_interval_between_compacted_ones() {
    let mut line = Line::new(Spacing::default());
    // Ordinary acknowledgments, 80 ms apart, pass at once.
    for i in 0..3 {
        line.arrive(80 * i, &ack(1 + i as u32), None);
    }
    assert_eq!(line.seen(), [(0, 1), (80, 2), (160, 3)]);
    // The first compacted one: 80 ms / 8 = 10 ms each, four at a time.
    line.arrive(240, &ack(11), Some((7, 7)));
    line.run(319);
    assert_eq!(line.seen(), [(280, 4), (280, 5), (280, 6), (280, 7)]);
    line.arrive(320, &ack(19), Some((7, 7)));
    line.run(1000);
    let seen = line.seen();
    let numbers: Vec<u32> = seen.iter().map(|&(_, number)| number).collect();
    assert_eq!(numbers, (8..=19).collect::<Vec<_>>(), "in order, none lost");
    // The rest of the first one was due at that time.
    assert_eq!(seen[..4].iter().map(|&(at, _)| at).max(), Some(320));
    assert_eq!(seen.last(), Some(&(400, 19)));
    assert_eq!(line.expander.held(), 0);
    assert_eq!(line.expander.next_deadline(), None);
    assert_eq!(line.bench.packets.held(), 0);
    assert_eq!(line.expander.totals().delayed, 16);
}

#[test]
fn an_uncompacted_acknowledgment_adds_its_own_token() {
    let mut line = Line::new(Spacing::default());
    line.arrive(0, &ack(1), None);
    line.arrive(100, &ack(2), None);
    line.arrive(200, &ack(12), Some((9, 9)));
    assert_eq!(line.seen().len(), 2);
    // With data: the oldest packet leaves, and the data keep their position.
    line.arrive(201, &ack(12).payload(50), None);
    assert_eq!(line.seen(), [(201, 3)]);
    line.run(2000);
    let numbers: Vec<u32> = line.seen().iter().map(|&(_, number)| number).collect();
    assert_eq!(numbers, [4, 5, 6, 7, 8, 9, 10, 11, 12, 12]);
}

#[test]
fn acknowledgments_are_held_for_at_most_maximum_hold() {
    let mut line = Line::new(Spacing {
        maximum_hold: Span::from_millis(500),
        ..Spacing::default()
    });
    line.arrive(0, &ack(10), Some((5, 5)));
    // Without an estimate, all leave at once.
    assert_eq!(line.seen().len(), 6);
    // After a pause of ten seconds they are spread over half a second at most.
    line.arrive(10_000, &ack(30), Some((19, 19)));
    line.run(10_500);
    let seen = line.seen();
    assert_eq!(seen.len(), 20);
    assert_eq!(seen.last().map(|&(at, _)| at), Some(10_500));
}

#[test]
fn acknowledgments_beyond_the_capacity_are_released_early() {
    let mut line = Line::new(Spacing {
        capacity: 10,
        ..Spacing::default()
    });
    line.arrive(0, &ack(1), None);
    line.arrive(100, &ack(2), None);
    assert_eq!(line.seen().len(), 2);
    line.arrive(200, &ack(22), Some((19, 19)));
    assert_eq!(line.seen().len(), 10);
    assert_eq!(line.expander.held(), 10);
    assert_eq!(line.expander.totals().hurried, 10);
}

#[test]
fn flows_delay_one_another_only_in_a_shared_queue() {
    for per_flow in [false, true] {
        let mut line = Line::new(Spacing {
            per_flow,
            ..Spacing::default()
        });
        line.arrive(0, &ack(1), None);
        line.arrive(100, &ack(2), None);
        line.arrive(200, &ack(12), Some((9, 9)));
        line.arrive(201, &ack(77).port(6000), None);
        let expected = if per_flow { 77 } else { 3 };
        assert_eq!(line.seen().last(), Some(&(201, expected)));
        line.run(2000);
        assert_eq!(line.expander.held(), 0);
        let counters: Vec<u64> = line
            .expander
            .flows()
            .map(|(_, counters)| counters.delayed)
            .collect();
        assert_eq!(counters, [10, u64::from(!per_flow)]);
    }
}
