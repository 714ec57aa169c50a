//! The packet record.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Address, Bytes, Ecn, Endpoint, Flags, IpVersion, SackBlock, SackBlocks, Seq};

/// Kind of an address resolution packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resolution {
    /// Asks for a neighbour's link address.
    Request = 1,
    /// Contains the link address.
    Reply = 2,
}

/// A TCP segment in an IP packet, or any other IP packet: a *datagram*, of which only addresses,
/// ports if it has any, protocol number and length are known.
///
/// The record is 64 bytes, one cache line. Rare data (a SYN's options, a fourth SACK
/// block) is in an [`Extension`](crate::Extension) of the [`PacketStore`](crate::PacketStore). The
/// payload is not bytes but a range of the sender's stream. `payload_offset` is its offset, an
/// independent witness that the sequence number is right.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[repr(C, align(64))]
pub struct Packet {
    /// Sender.
    pub source: Endpoint,
    /// Destination.
    pub destination: Endpoint,
    /// Sequence number of the first payload byte, or of the SYN.
    pub sequence: Seq,
    /// Next sequence number that the sender expects; valid with [`Flags::ACK`].
    pub acknowledgment: Seq,
    /// Window field as on the wire, not scaled.
    pub window: u16,
    /// Payload length in bytes.
    pub payload_length: u16,
    /// Length of IP and TCP headers in bytes, options included.
    pub header_length: u8,
    /// Control bits.
    pub flags: Flags,
    attributes: u8,
    pub(crate) references: u8,
    timestamp_value: u32,
    timestamp_echo: u32,
    /// Offset of the payload's first byte in the sender's stream; the SYN is not counted.
    pub payload_offset: u64,
    // SACK blocks. With EXTENDED, the start of the first block is the extension's index, and the
    // blocks are in the extension.
    blocks: [SackBlock; INLINE_SACK_BLOCKS],
}

// Bits of `Packet::attributes`.
const SACK_COUNT: u8 = 0b0000_0111;
/// A SACK count that no segment has: marks a datagram.
const DATAGRAM: u8 = SACK_COUNT;
const EXTENDED: u8 = 0b0000_1000;
const TIMESTAMPED: u8 = 0b0001_0000;
const ECN: u8 = 0b0110_0000;
const ECN_SHIFT: u8 = 5;
const VERSION_6: u8 = 0b1000_0000;

/// All flags except PSH.
const ANY_FLAG_BUT_PUSH: u16 = !Flags::PSH.0 as u16;

/// Marks a corrupt datagram, beside the protocol number in `window`.
const CORRUPT: u16 = 0x100;
/// Marks an ARP packet or neighbour discovery message, beside RFC 826's operation in `window`.
const ARP: u16 = 0x200;

/// Length of an ARP packet for IPv4 on Ethernet (RFC 826). A neighbour solicitation or
/// advertisement has 72 bytes with IPv6 header, address and option (RFC 4861 sections 4.3 and 4.4).
const ARP_LENGTH: u8 = 28;
const NEIGHBOUR_LENGTH: u8 = 72;

/// IANA protocol numbers.
const TCP: u8 = 6;
const UDP: u8 = 17;

/// SACK blocks that fit into the record.
const INLINE_SACK_BLOCKS: usize = 3;

impl Packet {
    /// Creates a segment without payload or options.
    #[must_use]
    pub fn new(source: Endpoint, destination: Endpoint, version: IpVersion) -> Self {
        Self {
            source,
            destination,
            sequence: Seq::default(),
            acknowledgment: Seq::default(),
            window: 0,
            payload_length: 0,
            header_length: version.header_length() + 20,
            flags: Flags::NONE,
            attributes: if version == IpVersion::V6 {
                VERSION_6
            } else {
                0
            },
            references: 0,
            timestamp_value: 0,
            timestamp_echo: 0,
            payload_offset: 0,
            blocks: [SackBlock::default(); INLINE_SACK_BLOCKS],
        }
    }

    /// Creates a packet without payload that is not a TCP segment, with an IANA protocol number. It
    /// has an IP header, and a UDP header if the protocol is UDP.
    ///
    /// The protocol number is in `window`. The creator may use the other TCP fields and
    /// `payload_offset`, except the flags: they are empty, so that no node mistakes it for a
    /// segment.
    #[must_use]
    pub fn datagram(
        source: Endpoint,
        destination: Endpoint,
        version: IpVersion,
        protocol: u8,
    ) -> Self {
        let mut packet = Self::new(source, destination, version);
        let header = if protocol == UDP { 8 } else { 0 };
        packet.header_length = version.header_length() + header;
        packet.attributes |= DATAGRAM;
        packet.window = u16::from(protocol);
        packet
    }

    /// Creates a request for a neighbour's link address or the reply: ARP (RFC 826), for IPv6
    /// neighbour discovery (RFC 4861). It has no ports and is addressed to the other end of a link.
    #[must_use]
    pub fn resolution(
        source: Address,
        destination: Address,
        version: IpVersion,
        step: Resolution,
    ) -> Self {
        let end = |address| Endpoint { address, port: 0 };
        let mut packet = Self::datagram(end(source), end(destination), version, 0);
        packet.header_length = match version {
            IpVersion::V4 => ARP_LENGTH,
            IpVersion::V6 => NEIGHBOUR_LENGTH,
        };
        packet.window = ARP | step as u16;
        packet
    }

    /// Returns the kind of an address resolution packet, or `None` for other packets.
    #[must_use]
    pub fn resolves(&self) -> Option<Resolution> {
        let about = !self.is_tcp() && self.window & ARP != 0;
        about.then_some(if self.window & 1 == Resolution::Request as u16 {
            Resolution::Request
        } else {
            Resolution::Reply
        })
    }

    /// Returns the numbers set with [`set_numbers`](Self::set_numbers), or zeros.
    pub(crate) fn numbers(&self) -> (u32, u32) {
        (self.timestamp_value, self.timestamp_echo)
    }

    /// Stores two numbers in a datagram, in the place of a segment's timestamps.
    pub(crate) fn set_numbers(&mut self, first: u32, second: u32) {
        debug_assert!(!self.is_tcp(), "a segment has timestamps there");
        (self.timestamp_value, self.timestamp_echo) = (first, second);
    }

    /// Whether the packet is a TCP segment.
    #[must_use]
    pub fn is_tcp(&self) -> bool {
        self.attributes & SACK_COUNT != DATAGRAM
    }

    /// Returns the IANA protocol number. A TCP packet that is not a valid segment (a fragment, or
    /// malformed) is a datagram with TCP's number.
    #[must_use]
    pub fn protocol(&self) -> u8 {
        if self.is_tcp() {
            TCP
        } else {
            self.window as u8
        }
    }

    /// Whether the packet was corrupted on the way. A corrupt packet is a datagram: only its
    /// receiver detects the error and discards it.
    #[must_use]
    pub fn is_corrupt(&self) -> bool {
        !self.is_tcp() && self.window & CORRUPT != 0
    }

    /// Corrupts the packet. The `outer` bytes of a tunnel header, the IP header and the UDP header
    /// stay readable.
    pub(crate) fn corrupt(&mut self, outer: u8) {
        if self.resolves().is_some() {
            self.window |= CORRUPT;
            return;
        }
        let protocol = u16::from(self.protocol());
        if self.is_tcp() {
            let headers = outer + self.ip_version().header_length();
            let rest = self.header_length.saturating_sub(headers);
            self.header_length -= rest;
            self.payload_length = self.payload_length.saturating_add(u16::from(rest));
        }
        self.attributes |= DATAGRAM;
        self.attributes &= !TIMESTAMPED;
        self.flags = Flags::NONE;
        self.window = protocol | CORRUPT;
    }

    /// Returns the length as an IP packet: headers and payload.
    #[must_use]
    pub fn length(&self) -> Bytes {
        Bytes::new(u64::from(self.header_length) + u64::from(self.payload_length))
    }

    /// Returns the sequence numbers occupied by payload, SYN and FIN (RFC 9293 section 3.4,
    /// SEG.LEN).
    #[must_use]
    pub fn sequence_length(&self) -> u32 {
        u32::from(self.payload_length)
            + u32::from(self.flags.has(Flags::SYN))
            + u32::from(self.flags.has(Flags::FIN))
    }

    /// Returns the sequence number after the last one.
    #[must_use]
    pub fn sequence_end(&self) -> Seq {
        self.sequence + self.sequence_length()
    }

    /// Returns the IP version.
    #[must_use]
    pub fn ip_version(&self) -> IpVersion {
        if self.attributes & VERSION_6 == 0 {
            IpVersion::V4
        } else {
            IpVersion::V6
        }
    }

    /// Makes this record a copy of a template that has no extension, with one reference.
    #[inline]
    pub(crate) fn become_copy(&mut self, template: &Self) -> &mut Self {
        debug_assert!(
            template.extension().is_none(),
            "an extension belongs to one stored packet"
        );
        *self = *template;
        self.references = 1;
        self
    }

    /// Returns the timestamps option as (value, echo reply), if present.
    #[must_use]
    pub fn timestamps(&self) -> Option<(u32, u32)> {
        (self.attributes & TIMESTAMPED != 0).then_some((self.timestamp_value, self.timestamp_echo))
    }

    /// Sets the timestamps option. The caller includes its length in `header_length`.
    pub fn set_timestamps(&mut self, value: u32, echo: u32) {
        self.attributes |= TIMESTAMPED;
        self.timestamp_value = value;
        self.timestamp_echo = echo;
    }

    /// Replaces the values of an existing timestamps option.
    #[inline]
    pub fn renew_timestamps(&mut self, value: u32, echo: u32) {
        debug_assert!(self.timestamps().is_some(), "it has none");
        self.timestamp_value = value;
        self.timestamp_echo = echo;
    }

    /// Removes the timestamps option. The caller subtracts its length from `header_length`.
    pub fn clear_timestamps(&mut self) {
        self.attributes &= !TIMESTAMPED;
        (self.timestamp_value, self.timestamp_echo) = (0, 0);
    }

    /// Whether the segment has no flag except ACK and PSH, and no option except timestamps, which
    /// must be present if and only if `timestamped`.
    #[inline]
    #[must_use]
    pub fn is_bare(&self, timestamped: bool) -> bool {
        self.marks() & (ANY_FLAG_BUT_PUSH | u16::from(SACK_COUNT | TIMESTAMPED) << 8)
            == Self::bare_marks(timestamped)
    }

    /// Whether the segment is as in [`is_bare`](Self::is_bare), but has SACK blocks.
    #[inline]
    #[must_use]
    pub fn is_bare_with_sack_blocks(&self, timestamped: bool) -> bool {
        self.marks() & (ANY_FLAG_BUT_PUSH | u16::from(TIMESTAMPED) << 8)
            == Self::bare_marks(timestamped)
            && self.has_sack_blocks()
    }

    /// Returns flags and attributes as one number, for a single comparison.
    #[inline]
    fn marks(&self) -> u16 {
        u16::from_le_bytes([self.flags.0, self.attributes])
    }

    /// Returns the number of [`marks`](Self::marks) for a bare segment.
    #[inline]
    fn bare_marks(timestamped: bool) -> u16 {
        let options = if timestamped { TIMESTAMPED } else { 0 };
        u16::from_le_bytes([Flags::ACK.0, options])
    }

    /// Returns the ECN field.
    #[must_use]
    pub fn ecn(&self) -> Ecn {
        match (self.attributes & ECN) >> ECN_SHIFT {
            0 => Ecn::NotCapable,
            1 => Ecn::Capable1,
            2 => Ecn::Capable0,
            _ => Ecn::Congestion,
        }
    }

    /// Sets the ECN field.
    pub fn set_ecn(&mut self, ecn: Ecn) {
        self.attributes = self.attributes & !ECN | (ecn as u8) << ECN_SHIFT;
    }

    /// Whether the segment has SACK blocks.
    #[must_use]
    pub fn has_sack_blocks(&self) -> bool {
        !matches!(self.attributes & SACK_COUNT, 0 | DATAGRAM)
    }

    /// Returns the extension's index, if there is one.
    pub(crate) fn extension(&self) -> Option<u32> {
        (self.attributes & EXTENDED != 0).then_some(self.blocks[0].start.get())
    }

    pub(crate) fn set_extension(&mut self, index: u32) {
        self.attributes |= EXTENDED;
        self.blocks[0].start = Seq::new(index);
    }

    pub(crate) fn clear_extension(&mut self) {
        self.attributes &= !EXTENDED;
        self.blocks[0].start = Seq::default();
    }

    /// Returns the SACK blocks in the record, or none if an extension contains them.
    #[inline]
    pub(crate) fn inline_sack_blocks(&self) -> &[SackBlock] {
        let count = match self.attributes & SACK_COUNT {
            DATAGRAM => 0,
            count => usize::from(count).min(INLINE_SACK_BLOCKS),
        };
        &self.blocks[..count]
    }

    /// Stores the first `most` SACK blocks in the record. Returns false if they do not fit and the
    /// packet has no extension yet.
    #[inline]
    pub fn set_few_sack_blocks(&mut self, blocks: &SackBlocks, most: usize) -> bool {
        let count = blocks.count().min(most);
        let few = count <= INLINE_SACK_BLOCKS && self.extension().is_none();
        if few {
            self.set_sack_count(count);
            self.blocks = blocks.first_three();
        }
        few
    }

    pub(crate) fn set_sack_count(&mut self, count: usize) {
        debug_assert!(self.is_tcp(), "only a segment has SACK blocks");
        self.attributes = self.attributes & !SACK_COUNT | count as u8;
    }

    pub(crate) fn clear_sack_blocks(&mut self) {
        if self.is_tcp() {
            self.set_sack_count(0);
        }
    }
}

impl fmt::Debug for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_tcp() {
            return write!(
                f,
                "{}:{} > {}:{} protocol {} len {}",
                self.source.address.0,
                self.source.port,
                self.destination.address.0,
                self.destination.port,
                self.protocol(),
                self.length().get()
            );
        }
        write!(
            f,
            "{}:{} > {}:{} [{:?}] {:?} len {} ack {:?} win {}",
            self.source.address.0,
            self.source.port,
            self.destination.address.0,
            self.destination.port,
            self.flags,
            self.sequence,
            self.payload_length,
            self.acknowledgment,
            self.window
        )?;
        if let Some((value, echo)) = self.timestamps() {
            write!(f, " ts {value}/{echo}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_one_cache_line() {
        assert_eq!(size_of::<Packet>(), 64);
        assert_eq!(align_of::<Packet>(), 64);
    }

    #[test]
    fn a_datagram_is_not_a_tcp_segment() {
        let end = Endpoint::default();
        for (protocol, header) in [(UDP, 28), (TCP, 20), (1, 20), (255, 20)] {
            let mut packet = Packet::datagram(end, end, IpVersion::V4, protocol);
            packet.payload_length = 100;
            packet.set_ecn(Ecn::Congestion);
            assert!(!packet.is_tcp() && !packet.has_sack_blocks());
            assert_eq!(packet.protocol(), protocol);
            assert_eq!(packet.length().get(), header + 100);
            assert!(packet.inline_sack_blocks().is_empty());
        }
        assert_eq!(Packet::new(end, end, IpVersion::V6).protocol(), TCP);
    }

    #[test]
    fn attributes_are_independent() {
        let mut packet = Packet::new(Endpoint::default(), Endpoint::default(), IpVersion::V6);
        packet.set_ecn(Ecn::Congestion);
        packet.set_timestamps(7, 9);
        let block = SackBlock {
            start: Seq::new(1),
            end: Seq::new(2),
        };
        assert!(packet.set_few_sack_blocks(&SackBlocks::from_iter([block]), 1));
        packet.set_ecn(Ecn::Capable1);
        assert_eq!(packet.ecn(), Ecn::Capable1);
        assert_eq!(packet.timestamps(), Some((7, 9)));
        assert_eq!(packet.inline_sack_blocks().len(), 1);
        assert_eq!(packet.ip_version(), IpVersion::V6);
        assert_eq!(packet.header_length, 60);
    }
}
