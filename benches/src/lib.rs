//! Networks for the criterion benchmarks and for whole runs.

pub mod gateways;

use bentpipe_link::{DropTail, Limit, Settings};
use bentpipe_sim::{LinkSettings, Network, NetworkBuilder};
use bentpipe_types::{
    Address, Agent, BitRate, Ctx, Endpoint, IpVersion, Packet, PacketRef, Port, Span, Time,
};

/// Returns every packet to its sender: a minimal handler.
struct Mirror {
    /// Number of packets to send at the start.
    starts: u32,
    started: bool,
}

impl Agent for Mirror {
    fn on_packet(&mut self, from: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        cx.emit(from, packet);
    }

    fn on_deadline(&mut self, cx: &mut Ctx<'_>) {
        self.started = true;
        for _ in 0..self.starts {
            let mut packet = Packet::new(Endpoint::default(), Endpoint::default(), IpVersion::V4);
            packet.destination.address = Address(1);
            packet.payload_length = 1460;
            let packet = cx.packets.insert(packet);
            cx.emit(Port(0), packet);
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        (!self.started && self.starts > 0).then_some(Time::ZERO)
    }
}

/// Returns a link with this rate and delay in both directions, and queues that never drop.
#[must_use]
pub fn link(name: &str, bits_per_second: u64, delay: Span) -> LinkSettings {
    let direction = || {
        BitRate::new(bits_per_second).map(|rate| {
            Settings::new(
                rate,
                delay,
                DropTail {
                    limit: Limit::Packets(1 << 20),
                },
            )
        })
    };
    LinkSettings {
        name: name.to_owned(),
        forward: direction(),
        backward: direction(),
    }
}

/// Returns a network in which `packets` packets bounce forever between two mirrors over a 100
/// Mbit/s link of 300 ms.
///
/// # Panics
/// Never: the network is valid.
#[must_use]
pub fn mirrors(packets: u32) -> Network {
    let mut builder = NetworkBuilder::new(1);
    let left = builder.custom(
        "left",
        Box::new(Mirror {
            starts: packets,
            started: false,
        }),
    );
    let right = builder.custom(
        "right",
        Box::new(Mirror {
            starts: 0,
            started: false,
        }),
    );
    builder.link(
        left,
        right,
        link("link", 100_000_000, Span::from_millis(300)),
    );
    builder.build().expect("two nodes and a link fit together")
}
