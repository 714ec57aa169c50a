use super::*;
use crate::testing::{Ack, Bench, ack};

struct Line {
    bench: Bench,
    far_end: Reconstructor,
    seen: Vec<(u64, u32)>,
}

impl Line {
    fn new() -> Self {
        Self {
            bench: Bench::default(),
            far_end: Reconstructor::new(ReconstructorSettings {
                threshold: 2000,
                ..ReconstructorSettings::default()
            }),
            seen: Vec::new(),
        }
    }

    fn run(&mut self, until: u64) {
        let until = Time::from_nanos(until * 1_000_000);
        let mut out = Vec::new();
        while let Some(at) = self.far_end.next_deadline().filter(|&at| at <= until) {
            self.bench.now = at;
            self.far_end
                .on_deadline(&mut EndCtx::new(at, &mut self.bench.packets, &mut out));
            assert_ne!(self.far_end.next_deadline(), Some(at), "makes progress");
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

    fn arrive(&mut self, at: u64, ack: &Ack) {
        self.run(at);
        let packet = ack.insert(&mut self.bench.packets);
        let mut out = Vec::new();
        self.far_end.on_arrival(
            packet,
            &mut EndCtx::new(self.bench.now, &mut self.bench.packets, &mut out),
        );
        self.note(&mut out);
    }
}

#[test]
fn a_gap_is_filled_over_the_time_that_acknowledgments_take() {
    let mut line = Line::new();
    for i in 0..4 {
        line.arrive(40 * i, &ack(1000 * (i as u32 + 1)));
    }
    line.seen.clear();
    // 8000 bytes more: three in between, 10 ms apart, and itself after 40 ms.
    line.arrive(160, &ack(12_000));
    line.arrive(200, &ack(13_000));
    line.run(1000);
    assert_eq!(
        line.seen,
        [
            (170, 6000),
            (180, 8000),
            (190, 10_000),
            (200, 12_000),
            (200, 13_000)
        ]
    );
    assert_eq!(line.far_end.held(), 0);
    assert_eq!(line.bench.packets.held(), 0);
    assert_eq!(line.far_end.totals().regenerated, 3);
    assert_eq!(line.far_end.totals().delayed, 4);
}

#[test]
fn gaps_are_not_filled_during_loss_recovery() {
    for sign in [ack(4000), ack(4000).blocks(&[(9000, 9500)])] {
        let mut line = Line::new();
        for i in 0..4 {
            line.arrive(40 * i, &ack(1000 * (i as u32 + 1)));
        }
        line.arrive(160, &sign);
        line.seen.clear();
        line.arrive(200, &ack(20_000));
        line.arrive(240, &ack(40_000));
        line.run(1000);
        assert_eq!(line.seen, [(200, 20_000), (240, 40_000)]);
        assert_eq!(line.far_end.totals().left_for_loss, 2);
        for i in 0..8 {
            line.arrive(1000 + 40 * i, &ack(41_000 + 1000 * i as u32));
        }
        line.arrive(1320, &ack(58_000));
        line.run(3000);
        assert_eq!(line.far_end.totals().regenerated, 4);
        assert_eq!(line.bench.packets.held(), 0);
    }
}

#[test]
fn reconstruction_keeps_order_and_does_not_hold_data() {
    let mut line = Line::new();
    for i in 0..4 {
        line.arrive(40 * i, &ack(1000 * (i as u32 + 1)));
    }
    line.seen.clear();
    line.arrive(160, &ack(12_000));
    line.arrive(165, &ack(12_000).payload(100));
    line.arrive(166, &ack(12_000).port(77)); // another flow
    line.run(200);
    let numbers: Vec<u32> = line.seen.iter().map(|&(_, number)| number).collect();
    assert_eq!(numbers, [12_000, 6000, 8000, 10_000, 12_000, 12_000]);
    assert_eq!(line.seen[0].0, 166);
    assert_eq!(line.seen[5].0, 200);
}
