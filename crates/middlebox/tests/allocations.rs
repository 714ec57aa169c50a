//! The path of an acknowledgment allocates nothing once slabs, rings and tables have grown.

use bentpipe_link::{EndCtx, FarEnd, Framing, Limit, QueueCtx, QueueDiscipline, Verdict};
use bentpipe_middlebox::ack::{
    Expander, ExpanderSettings, Method, Reconstructor, ReconstructorSettings, Spacing, WaterMarks,
};
use bentpipe_middlebox::{
    Gate, HeaderCompression, HeaderCompressionSettings, Terminal, TunnelEntry,
};
use bentpipe_types::{
    Address, Endpoint, Flags, IpVersion, Packet, PacketRef, PacketStore, RandomStream, Seq, Span,
    Time, Tunnel,
};

/// Forty acknowledgments of eight flows in turn arrive per transmitted packet.
const PER_TRANSMISSION: u32 = 40;
const FLOWS: u32 = 8;

struct Link {
    now: Time,
    packets: PacketStore,
    random: RandomStream,
    queue: Box<dyn QueueDiscipline>,
    framings: Vec<Box<dyn Framing>>,
    far_end: Box<dyn FarEnd>,
    sent: u32,
    arrived: u64,
    out: Vec<PacketRef>,
}

impl Link {
    fn new(method: Method, framings: Vec<Box<dyn Framing>>, far_end: Box<dyn FarEnd>) -> Self {
        Self {
            now: Time::ZERO,
            packets: PacketStore::default(),
            random: RandomStream::new(1, "return", "queue"),
            queue: method.queue(Limit::Packets(1000), 4), // so that flows are forgotten and come back
            framings,
            far_end,
            sent: 0,
            arrived: 0,
            out: Vec::new(),
        }
    }

    fn round(&mut self) {
        for _ in 0..PER_TRANSMISSION {
            let end = |address, port| Endpoint {
                address: Address(address),
                port,
            };
            let port = (self.sent / 1000 % FLOWS) as u16;
            let mut packet = Packet::new(end(1, port), end(2, 80), IpVersion::V4);
            packet.flags = Flags::ACK;
            packet.acknowledgment = Seq::new(1000 * self.sent);
            self.sent += 1;
            let packet = self.packets.insert(packet);
            let mut cx = QueueCtx {
                now: self.now,
                packets: &mut self.packets,
                random: &mut self.random,
                idle: false,
            };
            if self.queue.enqueue(packet, &mut cx) == Verdict::Dropped {
                self.packets.release(packet);
            }
        }
        let until = self.now + Span::from_millis(50);
        while let Some(at) = self.far_end.next_deadline().filter(|&at| at <= until) {
            self.far_end
                .on_deadline(&mut EndCtx::new(at, &mut self.packets, &mut self.out));
        }
        self.now = until;
        let mut cx = QueueCtx {
            now: self.now,
            packets: &mut self.packets,
            random: &mut self.random,
            idle: false,
        };
        let taken = self.queue.dequeue(&mut cx);
        if let Some((packet, mut length)) = taken {
            for framing in &mut self.framings {
                length = framing.transmit(packet, length, &mut self.packets);
            }
        }
        let mut packet = taken.map(|(packet, _)| packet);
        for framing in self.framings.iter_mut().rev() {
            packet = packet.and_then(|p| framing.receive(self.now, p, &mut self.packets));
        }
        if let Some(packet) = packet {
            self.far_end.on_arrival(
                packet,
                &mut EndCtx::new(self.now, &mut self.packets, &mut self.out),
            );
        }
        for packet in self.out.drain(..) {
            self.arrived += 1;
            self.packets.release(packet);
        }
    }

    fn assert_no_allocations(&mut self, what: &str) {
        (0..2000).for_each(|_| self.round());
        let before = self.arrived;
        let allocations = allocation_counter::measure(|| (0..2000).for_each(|_| self.round()));
        assert!(
            self.arrived - before >= 2000,
            "{what}: hardly anything arrives"
        );
        assert_eq!(allocations.count_total, 0, "{what}");
    }
}

fn reconstructor() -> Box<dyn FarEnd> {
    Box::new(Reconstructor::new(ReconstructorSettings {
        flows: 4,
        ..ReconstructorSettings::default()
    }))
}

const MARKS: WaterMarks = WaterMarks {
    low: 4,
    high: 60,
    duplicates: u32::MAX,
};

#[test]
fn suppression_header_compression_and_reconstruction() {
    let compression = HeaderCompressionSettings {
        flows: 4,
        slots: 3,
        ..HeaderCompressionSettings::default()
    };
    let framing = HeaderCompression::new(compression).expect("three connections");
    Link::new(
        Method::Suppression(MARKS),
        vec![Box::new(framing)],
        reconstructor(),
    )
    .assert_no_allocations("suppression");
}

#[test]
fn the_filter() {
    Link::new(
        Method::Filter { aggressive: true },
        Vec::new(),
        reconstructor(),
    )
    .assert_no_allocations("filter");
}

#[test]
fn compaction_expansion_and_spacing() {
    for per_flow in [false, true] {
        let terminal = Terminal {
            address: Address(1),
            behind: None,
        };
        let expander = Expander::new(ExpanderSettings {
            gate: Gate::new(None, vec![terminal]),
            high: 60,
            spacing: Some(Spacing {
                per_flow,
                ..Spacing::default()
            }),
            flows: 4,
        });
        let entry = TunnelEntry::new(Tunnel {
            source: Address(1),
            destination: Address(2),
        });
        Link::new(
            Method::Compaction(MARKS),
            vec![Box::new(entry)],
            Box::new(expander),
        )
        .assert_no_allocations("compaction");
    }
}
