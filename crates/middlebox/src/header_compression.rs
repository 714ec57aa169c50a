//! RFC 1144 on a link: both ends of a direction, and the frames between them.

use std::collections::VecDeque;

use bentpipe_link::{Flow, Framing, Tally};
use bentpipe_types::{Bytes, Flags, IpVersion, PacketRef, PacketStore, Seq, Time};
use bentpipe_wire::vj::{
    Compressor, DecompressError, Decompressor, LinkFraming, PacketType, SlotsError,
};
use bentpipe_wire::{Encoder, NodeAddresses, checksum};

use crate::flows::{FlowTable, Slot};

/// What a link with header compression is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeaderCompressionSettings {
    /// Connections that both ends remember, 1 to 256.
    pub slots: usize,
    /// What the link adds to each packet, compressed or not.
    pub framing: LinkFraming,
    /// The link notices every frame that it loses, by a checksum of its own, and says so: then
    /// connection numbers are left out where they don't change, and packets tossed after a loss.
    pub reports_losses: bool,
    /// Flows it keeps count of.
    pub flows: usize,
}

impl Default for HeaderCompressionSettings {
    /// 16 connections, as in the RFC; nothing added; losses reported.
    fn default() -> Self {
        Self {
            slots: 16,
            framing: LinkFraming::None,
            reports_losses: true,
            flows: 256,
        }
    }
}

/// What a link with header compression has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HeaderCompressionCounters {
    /// Packets sent as they are: no TCP, a tunnel, IPv6, SYN, FIN or RST.
    pub ip: u64,
    /// Packets sent with their headers whole.
    pub uncompressed: u64,
    /// Packets sent with their headers compressed.
    pub compressed: u64,
    /// Bytes of the packets.
    pub bytes_in: u64,
    /// Bytes on the link, its framing included.
    pub bytes_out: u64,
    /// Packets tossed after a reported loss, till one named its connection.
    pub tossed: u64,
    /// Packets that could not be decoded for another reason.
    pub undecodable: u64,
    /// Packets that were decoded wrongly, as their TCP checksum showed.
    pub bad_checksum: u64,
    /// Packets that were decoded wrongly, and whose TCP checksum did not show it: they went on.
    pub undetected: u64,
}

impl HeaderCompressionCounters {
    fn tally(&self, flow: Option<Flow>, each: &mut Tally<'_>) {
        each(flow, "headers_ip", self.ip);
        each(flow, "headers_uncompressed", self.uncompressed);
        each(flow, "headers_compressed", self.compressed);
        each(flow, "header_bytes_in", self.bytes_in);
        each(flow, "header_bytes_out", self.bytes_out);
        each(flow, "headers_tossed", self.tossed);
        each(flow, "headers_undecodable", self.undecodable);
        each(flow, "headers_bad_checksum", self.bad_checksum);
        each(flow, "headers_undetected", self.undetected);
    }
}

/// The longest headers: 60 bytes of IP, 60 of TCP.
const LONGEST: usize = 120;

/// A frame on the link. Payloads are no affair of header compression, and are not in it.
#[derive(Debug)]
struct Frame {
    packet: PacketRef,
    flow: Option<Slot>,
    packet_type: PacketType,
    encoded: [u8; LONGEST],
    encoded_length: u8,
    // What was encoded: what the receiver of the packet checks its checksum against.
    headers: [u8; LONGEST],
    headers_length: u8,
}

#[derive(Debug, Default)]
struct CompressedFlow {
    identification: u16,
    in_flight: u32,
    counters: HeaderCompressionCounters,
}

/// Both ends of a direction whose TCP/IPv4 headers are compressed.
///
/// The frames are real, and so is what the far end makes of them: after a loss, packets with a wrong
/// header are found out by their TCP checksum, as the host they are for would do, and end here.
///
/// IP identifications are counted for each connection as its packets get here: the most favourable
/// way. A host that counts otherwise, or acknowledgments removed in between, cost a byte.
#[derive(Debug)]
pub struct HeaderCompression {
    compressor: Compressor,
    decompressor: Decompressor,
    framing: LinkFraming,
    reports_losses: bool,
    encoder: Encoder<NodeAddresses>,
    frames: VecDeque<Frame>,
    flows: FlowTable<CompressedFlow>,
    totals: HeaderCompressionCounters,
    // Used again for every packet.
    bytes: Vec<u8>,
    encoded: Vec<u8>,
}

impl HeaderCompression {
    /// Both ends, before the first packet.
    ///
    /// # Errors
    /// When the format cannot number so many connections.
    pub fn new(settings: HeaderCompressionSettings) -> Result<Self, SlotsError> {
        Ok(Self {
            compressor: Compressor::new(settings.slots, settings.reports_losses)?,
            decompressor: Decompressor::new(settings.slots)?,
            framing: settings.framing,
            reports_losses: settings.reports_losses,
            encoder: Encoder::new(NodeAddresses),
            frames: VecDeque::new(),
            flows: FlowTable::new(settings.flows),
            totals: HeaderCompressionCounters::default(),
            bytes: Vec::new(),
            encoded: Vec::new(),
        })
    }

    /// What it has done in all.
    #[must_use]
    pub fn totals(&self) -> &HeaderCompressionCounters {
        &self.totals
    }

    /// What it has done, by flow. A flow that was forgotten starts anew.
    pub fn flows(&self) -> impl Iterator<Item = (Flow, &HeaderCompressionCounters)> {
        self.flows.iter().map(|(flow, f)| (flow, &f.counters))
    }

    fn count(&mut self, flow: Option<Slot>, count: impl Fn(&mut HeaderCompressionCounters)) {
        count(&mut self.totals);
        if let Some(slot) = flow {
            count(&mut self.flows.get_mut(slot).counters);
        }
    }

    /// The packet's type, the bytes in `encoded` and how many bytes of headers these stand for.
    fn compress(
        &mut self,
        packet: PacketRef,
        flow: Option<Slot>,
        packets: &PacketStore,
    ) -> (PacketType, usize) {
        self.encoded.clear();
        let record = packets.get(packet);
        // What is in a tunnel is no TCP packet on this link.
        if record.ip_version() != IpVersion::V4
            || packets.tunnel(packet).is_some()
            || packets.compaction(packet).is_some()
            || self
                .encoder
                .encode(packets, packet, &mut self.bytes)
                .is_err()
        {
            return (PacketType::Ip, 0);
        }
        if let Some(slot) = flow {
            let identification = &mut self.flows.get_mut(slot).identification;
            *identification = identification.wrapping_add(1);
            set_identification(&mut self.bytes, *identification);
        }
        self.compressor
            .compress_headers(&self.bytes, &mut self.encoded)
    }

    fn next_frame(&mut self, packet: PacketRef) -> Option<Frame> {
        let frame = self.frames.pop_front();
        debug_assert!(
            frame.as_ref().is_some_and(|frame| frame.packet == packet),
            "packets arrive in the order in which they were sent"
        );
        let frame = frame?;
        if let Some(slot) = frame.flow {
            let flow = self.flows.get_mut(slot);
            flow.in_flight -= 1;
            if flow.in_flight == 0 {
                self.flows.set_busy(slot, false);
            }
        }
        Some(frame)
    }

    /// Are the decoded headers those that were sent; if not, does the checksum show it?
    fn compare(&self, frame: &Frame) -> Decoded {
        let sent = &frame.headers[..usize::from(frame.headers_length)];
        let decoded = &self.bytes[..];
        if decoded == sent {
            Decoded::Right
        } else if decoded.len() == sent.len()
            && decoded[12..24] == sent[12..24]
            && sum(decoded) == sum(sent)
        {
            Decoded::Undetected
        } else {
            Decoded::BadChecksum
        }
    }
}

enum Decoded {
    Right,
    BadChecksum,
    Undetected,
}

fn set_identification(bytes: &mut [u8], value: u16) {
    let word = |bytes: &[u8], at| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let sum = checksum::update_u16(word(bytes, 10), word(bytes, 4), value);
    bytes[4..6].copy_from_slice(&value.to_be_bytes());
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// The sum over the headers that a TCP checksum covers, and over the checksum. The payload is the same
/// on both ends, and cancels out.
fn sum(headers: &[u8]) -> u16 {
    let ip = usize::from(headers[0] & 0x0f) * 4;
    checksum::Sum::default()
        .bytes(&headers[12..20])
        .bytes(&headers[2..4])
        .bytes(&headers[ip..])
        .finish()
}

/// Makes the packet what was decoded: the fields that a wrong change can be in.
fn rewrite(packet: PacketRef, headers: &[u8], packets: &mut PacketStore) {
    let ip = usize::from(headers[0] & 0x0f) * 4;
    let word = |at: usize| u16::from_be_bytes([headers[ip + at], headers[ip + at + 1]]);
    let number = |at: usize| Seq::new(u32::from(word(at)) << 16 | u32::from(word(at + 2)));
    let record = packets.get_mut(packet);
    record.sequence = number(4);
    record.acknowledgment = number(8);
    record.flags = Flags(headers[ip + 13]);
    record.window = word(14);
}

impl Framing for HeaderCompression {
    fn transmit(
        &mut self,
        _now: Time,
        packet: PacketRef,
        length: Bytes,
        packets: &mut PacketStore,
    ) -> Bytes {
        let flow = Flow::of(packets, packet);
        let flow = self.flows.enter(flow, CompressedFlow::default, |_, _| {});
        let (packet_type, headers_length) = self.compress(packet, flow, packets);
        let mut frame = Frame {
            packet,
            flow,
            packet_type,
            encoded: [0; LONGEST],
            encoded_length: self.encoded.len() as u8,
            headers: [0; LONGEST],
            headers_length: headers_length as u8,
        };
        frame.encoded[..self.encoded.len()].copy_from_slice(&self.encoded);
        frame.headers[..headers_length].copy_from_slice(&self.bytes[..headers_length]);
        self.frames.push_back(frame);
        if let Some(slot) = flow {
            self.flows.get_mut(slot).in_flight += 1;
            self.flows.set_busy(slot, true);
        }
        let saved = (headers_length - self.encoded.len()) as u64;
        let on_link =
            length.saturating_sub(Bytes::new(saved)) + Bytes::new(self.framing.overhead() as u64);
        self.count(flow, |counters| {
            match packet_type {
                PacketType::Ip => counters.ip += 1,
                PacketType::UncompressedTcp => counters.uncompressed += 1,
                PacketType::CompressedTcp => counters.compressed += 1,
            }
            counters.bytes_in += length.get();
            counters.bytes_out += on_link.get();
        });
        on_link
    }

    fn adds(&self) -> Bytes {
        Bytes::new(self.framing.overhead() as u64)
    }

    fn receive(
        &mut self,
        _now: Time,
        packet: PacketRef,
        packets: &mut PacketStore,
    ) -> Option<PacketRef> {
        let frame = self.next_frame(packet)?;
        if frame.packet_type == PacketType::Ip {
            return Some(packet);
        }
        let payload = usize::from(packets.get(packet).payload_length);
        let encoded = &frame.encoded[..usize::from(frame.encoded_length)];
        let decoded = self.decompressor.decompress_headers(
            frame.packet_type,
            encoded,
            payload,
            &mut self.bytes,
        );
        let outcome = decoded.map(|_| self.compare(&frame));
        match outcome {
            Ok(Decoded::Right) => return Some(packet),
            Ok(Decoded::Undetected) => {
                rewrite(packet, &self.bytes, packets);
                self.count(frame.flow, |counters| counters.undetected += 1);
                return Some(packet);
            }
            Ok(Decoded::BadChecksum) => {
                self.count(frame.flow, |counters| counters.bad_checksum += 1);
            }
            Err(DecompressError::Tossed) => {
                self.count(frame.flow, |counters| counters.tossed += 1);
            }
            Err(_) => self.count(frame.flow, |counters| counters.undecodable += 1),
        }
        packets.release(packet);
        None
    }

    fn lose(&mut self, _now: Time, packet: PacketRef, _packets: &mut PacketStore) {
        let _lost = self.next_frame(packet);
        if self.reports_losses {
            self.decompressor.error();
        }
    }

    fn tally(&self, each: &mut Tally<'_>) {
        self.totals.tally(None, each);
        for (flow, counters) in self.flows() {
            counters.tally(Some(flow), each);
        }
    }
}

#[cfg(test)]
mod tests;
