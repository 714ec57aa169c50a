//! Streams of acknowledgments for tests.

use bentpipe_link::QueueCtx;
use bentpipe_types::{
    Address, Endpoint, Flags, IpVersion, Packet, PacketRef, PacketStore, RandomStream, SackBlock,
    SackBlocks, Seq, Time,
};
use bentpipe_wire::tcp_options_length;

/// Description of an acknowledgment.
#[derive(Clone, Debug)]
pub(crate) struct Ack {
    pub(crate) port: u16,
    pub(crate) number: u32,
    pub(crate) window: u16,
    pub(crate) flags: Flags,
    pub(crate) payload: u16,
    pub(crate) timestamps: Option<(u32, u32)>,
    pub(crate) blocks: Vec<(u32, u32)>,
}

/// A plain acknowledgment.
pub(crate) fn ack(number: u32) -> Ack {
    Ack {
        port: 5000,
        number,
        window: 60_000,
        flags: Flags::ACK,
        payload: 0,
        timestamps: None,
        blocks: Vec::new(),
    }
}

impl Ack {
    pub(crate) fn port(self, port: u16) -> Self {
        Self { port, ..self }
    }

    pub(crate) fn flags(self, flags: Flags) -> Self {
        Self { flags, ..self }
    }

    pub(crate) fn window(self, window: u16) -> Self {
        Self { window, ..self }
    }

    pub(crate) fn payload(self, payload: u16) -> Self {
        Self { payload, ..self }
    }

    pub(crate) fn timestamps(self, value: u32, echo: u32) -> Self {
        Self {
            timestamps: Some((value, echo)),
            ..self
        }
    }

    pub(crate) fn blocks(self, blocks: &[(u32, u32)]) -> Self {
        Self {
            blocks: blocks.to_vec(),
            ..self
        }
    }

    pub(crate) fn insert(&self, packets: &mut PacketStore) -> PacketRef {
        let end = |address, port| Endpoint {
            address: Address(address),
            port,
        };
        let mut packet = Packet::new(end(1, self.port), end(2, 80), IpVersion::V4);
        packet.acknowledgment = Seq::new(self.number);
        packet.sequence = Seq::new(7);
        packet.window = self.window;
        packet.flags = self.flags;
        packet.payload_length = self.payload;
        let options = tcp_options_length(
            Default::default(),
            self.timestamps.is_some(),
            self.blocks.len(),
        );
        packet.header_length += options as u8;
        if let Some((value, echo)) = self.timestamps {
            packet.set_timestamps(value, echo);
        }
        let reference = packets.insert(packet);
        let blocks: SackBlocks = self
            .blocks
            .iter()
            .map(|&(start, end)| SackBlock {
                start: Seq::new(start),
                end: Seq::new(end),
            })
            .collect();
        packets.set_sack_blocks(reference, &blocks);
        reference
    }
}

/// Packets, random numbers and a clock.
pub(crate) struct Bench {
    pub(crate) now: Time,
    pub(crate) packets: PacketStore,
    pub(crate) random: RandomStream,
}

impl Default for Bench {
    fn default() -> Self {
        Self {
            now: Time::ZERO,
            packets: PacketStore::default(),
            random: RandomStream::new(1, "test", "queue"),
        }
    }
}

impl Bench {
    pub(crate) fn cx(&mut self) -> QueueCtx<'_> {
        QueueCtx {
            now: self.now,
            packets: &mut self.packets,
            random: &mut self.random,
            idle: false,
        }
    }

    /// Returns the acknowledgment numbers of packets.
    pub(crate) fn numbers(&self, packets: &[PacketRef]) -> Vec<u32> {
        packets
            .iter()
            .map(|&packet| self.packets.get(packet).acknowledgment.get())
            .collect()
    }
}
