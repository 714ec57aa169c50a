//! Benchmarks of return-link methods: nanoseconds per acknowledgment.

use bentpipe_link::{EndCtx, FarEnd, Framing, Limit, QueueCtx, Verdict};
use bentpipe_middlebox::ack::{Expander, ExpanderSettings, Method, Spacing, WaterMarks};
use bentpipe_middlebox::{Gate, HeaderCompression, HeaderCompressionSettings, Terminal};
use bentpipe_types::{
    Address, Bytes, Compaction, Endpoint, Flags, IpVersion, Packet, PacketRef, PacketStore,
    RandomStream, Seq, Span, Time, Tunnel,
};
use bentpipe_wire::vj::{Compressor, Decompressor};
use bentpipe_wire::{Encoder, NodeAddresses};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const MARKS: WaterMarks = WaterMarks {
    low: 4,
    high: 60,
    duplicates: u32::MAX,
};
/// Acknowledgments that arrive while one is transmitted: 10 Mbit/s with 1064-byte packets, and 9.6
/// kbit/s with 40-byte acknowledgments.
const PER_TRANSMISSION: u32 = 39;

fn acknowledgment(number: u32, flows: u32) -> Packet {
    let end = |address, port| Endpoint {
        address: Address(address),
        port,
    };
    let port = (number % flows) as u16;
    let mut packet = Packet::new(end(1, port), end(2, 80), IpVersion::V4);
    packet.flags = Flags::ACK;
    packet.acknowledgment = Seq::new(1024 * (number / flows));
    packet.window = 60_000;
    packet
}

/// Enqueues and dequeues. Every acknowledgment that is removed or transmitted is released.
fn queues(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("return link");
    group.throughput(Throughput::Elements(u64::from(PER_TRANSMISSION)));
    for (name, method) in [
        ("suppress", Method::Suppression(MARKS)),
        ("compact", Method::Compaction(MARKS)),
        ("filter", Method::Filter { aggressive: false }),
    ] {
        for flows in [1, 100] {
            let mut packets = PacketStore::default();
            let mut random = RandomStream::new(1, "return", "queue");
            let mut queue = method.queue(Limit::Packets(1000), 1024);
            let mut number = 0;
            group.bench_function(BenchmarkId::new(name, flows), |bencher| {
                bencher.iter(|| {
                    for _ in 0..PER_TRANSMISSION {
                        let packet = packets.insert(acknowledgment(number, flows));
                        number = number.wrapping_add(1);
                        let mut cx = QueueCtx {
                            now: Time::ZERO,
                            packets: &mut packets,
                            random: &mut random,
                            idle: false,
                        };
                        if queue.enqueue(packet, &mut cx) == Verdict::Dropped {
                            packets.release(packet);
                        }
                    }
                    let mut cx = QueueCtx {
                        now: Time::ZERO,
                        packets: &mut packets,
                        random: &mut random,
                        idle: false,
                    };
                    if let Some((packet, _)) = queue.dequeue(&mut cx) {
                        packets.release(packet);
                    }
                });
            });
        }
    }
    group.finish();
}

/// Measured per acknowledgment that comes out.
fn expand_and_space(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("return link");
    group.throughput(Throughput::Elements(u64::from(PER_TRANSMISSION)));
    for (name, spacing) in [
        ("expand", None),
        ("expand and space", Some(Spacing::default())),
    ] {
        let terminal = Terminal {
            address: Address(1),
            behind: None,
        };
        let mut expander = Expander::new(ExpanderSettings {
            gate: Gate::new(None, vec![terminal]),
            high: 60,
            spacing,
            flows: 16,
        });
        let mut packets = PacketStore::default();
        let (mut now, mut number) = (Time::ZERO, 0);
        let mut out: Vec<PacketRef> = Vec::new();
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                number += PER_TRANSMISSION;
                let packet = packets.insert(acknowledgment(number, 1));
                packets.set_tunnel(
                    packet,
                    Some(Tunnel {
                        source: Address(1),
                        destination: Address(2),
                    }),
                );
                let count = (PER_TRANSMISSION - 1) as u8;
                packets.set_compaction(
                    packet,
                    Some(Compaction {
                        count,
                        bytes: 1024 * u16::from(count),
                    }),
                );
                packets.get_mut(packet).header_length += 23;
                expander.on_arrival(packet, &mut EndCtx::new(now, &mut packets, &mut out));
                let until = now + Span::from_millis(33);
                while let Some(at) = expander.next_deadline().filter(|&at| at <= until) {
                    expander.on_deadline(&mut EndCtx::new(at, &mut packets, &mut out));
                }
                now = until;
                out.drain(..).for_each(|packet| packets.release(packet));
            });
        });
    }
    group.finish();
}

fn header_compression(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("return link");
    group.throughput(Throughput::Elements(1));
    let mut packets = PacketStore::default();
    let mut encoder = Encoder::new(NodeAddresses);
    let encoded: Vec<Vec<u8>> = (0..1000)
        .map(|number| {
            let packet = packets.insert(acknowledgment(number, 1));
            let mut bytes = Vec::new();
            encoder
                .encode(&packets, packet, &mut bytes)
                .expect("a valid packet");
            packets.release(packet);
            bytes
        })
        .collect();
    let mut compressor = Compressor::new(16, true).expect("sixteen connections");
    let mut decompressor = Decompressor::new(16).expect("sixteen connections");
    let (mut frame, mut packet) = (Vec::new(), Vec::new());
    let mut next = encoded.iter().cycle();
    group.bench_function("vj compress and decompress", |bencher| {
        bencher.iter(|| {
            let Some(bytes) = next.next() else { return };
            let packet_type = compressor.compress(bytes, &mut frame);
            decompressor
                .decompress(packet_type, &frame, &mut packet)
                .expect("nothing is lost");
        });
    });

    let mut link =
        HeaderCompression::new(HeaderCompressionSettings::default()).expect("sixteen connections");
    let mut number = 0;
    group.bench_function("vj on a link, headers written and checked", |bencher| {
        bencher.iter(|| {
            let packet = packets.insert(acknowledgment(number, 1));
            number = number.wrapping_add(1);
            link.transmit(packet, Bytes::new(40), &mut packets);
            if let Some(packet) = link.receive(Time::ZERO, packet, &mut packets) {
                packets.release(packet);
            }
        });
    });
    group.finish();
}

criterion_group!(benches, queues, expand_and_space, header_compression);
criterion_main!(benches);
