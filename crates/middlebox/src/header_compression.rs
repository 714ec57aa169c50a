//! RFC 1144 header compression on a link: both ends of a direction and the frames between them.

use std::collections::VecDeque;

use bentpipe_link::{Flow, Framing, Tally};
use bentpipe_types::{Bytes, Flags, IpVersion, PacketRef, PacketStore, Seq, Time};
use bentpipe_wire::vj::{
    Compressor, DecompressError, Decompressor, LinkFraming, PacketType, SlotsError,
};
use bentpipe_wire::{Encoder, NodeAddresses, checksum};

use crate::flows::{FlowTable, Slot};

/// Settings of a link with header compression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeaderCompressionSettings {
    /// Connections that both ends store, 1 to 256.
    pub slots: usize,
    /// Bytes that the link adds to each packet, compressed or not.
    pub framing: LinkFraming,
    /// Whether the link detects every lost frame by its own checksum and reports it. Connection
    /// numbers are then omitted where they do not change, and packets are discarded after a loss.
    pub reports_losses: bool,
    /// Maximum number of flows with counters.
    pub flows: usize,
}

impl Default for HeaderCompressionSettings {
    /// 16 connections, as in the RFC; no framing; losses are reported.
    fn default() -> Self {
        Self {
            slots: 16,
            framing: LinkFraming::None,
            reports_losses: true,
            flows: 256,
        }
    }
}

/// Counters of a link with header compression.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HeaderCompressionCounters {
    /// Packets sent unchanged: no TCP, a tunnel, IPv6, SYN, FIN or RST.
    pub ip: u64,
    /// Packets sent with complete headers.
    pub uncompressed: u64,
    /// Packets sent with compressed headers.
    pub compressed: u64,
    /// Bytes of the packets.
    pub bytes_in: u64,
    /// Bytes on the link, framing included.
    pub bytes_out: u64,
    /// Packets discarded after a reported loss, until one contained its connection number.
    pub tossed: u64,
    /// Packets that could not be decoded for another reason.
    pub undecodable: u64,
    /// Packets decoded wrongly, which their TCP checksum revealed.
    pub bad_checksum: u64,
    /// Packets decoded wrongly with a matching TCP checksum; they were forwarded.
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

/// Maximum length of the headers: 60 bytes each of IP and TCP.
const LONGEST: usize = 120;

/// A frame on the link, without payload, which header compression does not read.
#[derive(Debug)]
struct Frame {
    packet: PacketRef,
    flow: Option<Slot>,
    packet_type: PacketType,
    encoded: [u8; LONGEST],
    encoded_length: u8,
    // The original headers: the receiver verifies their checksum.
    headers: [u8; LONGEST],
    headers_length: u8,
}

#[derive(Debug, Default)]
struct CompressedFlow {
    identification: u16,
    in_flight: u32,
    counters: HeaderCompressionCounters,
}

/// Both ends of a direction with compressed TCP/IPv4 headers.
///
/// Frames are really encoded and decoded. After a loss, packets with wrong headers are detected by
/// their TCP checksum, as the receiving host would do, and end here.
///
/// IP identifications are counted per connection as packets arrive here, the most favourable case.
/// A host that counts differently, or acknowledgments removed in between, cost one byte.
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
    // Reused for every packet.
    bytes: Vec<u8>,
    encoded: Vec<u8>,
}

impl HeaderCompression {
    /// Creates both ends.
    ///
    /// # Errors
    /// Returns an error if the format cannot number so many connections.
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

    /// Returns the totals.
    #[must_use]
    pub fn totals(&self) -> &HeaderCompressionCounters {
        &self.totals
    }

    /// Returns the counters per flow. A flow that was evicted starts again at zero.
    pub fn flows(&self) -> impl Iterator<Item = (Flow, &HeaderCompressionCounters)> {
        self.flows.iter().map(|(flow, f)| (flow, &f.counters))
    }

    fn count(&mut self, flow: Option<Slot>, count: impl Fn(&mut HeaderCompressionCounters)) {
        count(&mut self.totals);
        if let Some(slot) = flow {
            count(&mut self.flows.get_mut(slot).counters);
        }
    }

    /// Returns the packet's type, the length of `encoded`, and the number of header bytes that it
    /// replaces.
    fn compress(
        &mut self,
        packet: PacketRef,
        flow: Option<Slot>,
        packets: &PacketStore,
    ) -> (PacketType, usize) {
        self.encoded.clear();
        let record = packets.get(packet);
        // A packet in a tunnel is not a TCP packet on this link.
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

    /// Compares decoded headers with the sent ones; if they differ, determines whether the checksum
    /// reveals it.
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

/// Returns the sum over the headers that a TCP checksum covers, checksum included. The payload is
/// equal at both ends and cancels out.
fn sum(headers: &[u8]) -> u16 {
    let ip = usize::from(headers[0] & 0x0f) * 4;
    checksum::Sum::default()
        .bytes(&headers[12..20])
        .bytes(&headers[2..4])
        .bytes(&headers[ip..])
        .finish()
}

/// Writes the decoded headers to the packet: the fields that a wrong change can affect.
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
    fn transmit(&mut self, packet: PacketRef, length: Bytes, packets: &mut PacketStore) -> Bytes {
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
