//! A packet: one 64-byte record, whatever it carries.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Address, Bytes, Ecn, Endpoint, Flags, IpVersion, SackBlock, SackBlocks, Seq};

/// One of the two packets in which neighbours tell each other their link addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resolution {
    /// Whose link address is wanted.
    Request = 1,
    /// It.
    Reply = 2,
}

/// A TCP segment inside an IP packet, as the protocol code sees it; or any other IP packet, a
/// *datagram*, of which there are only addresses, ports if it has any, protocol number and length.
///
/// The record is 64 bytes, one cache line. What few packets carry (a SYN's options, a fourth SACK
/// block) is in an [`Extension`](crate::Extension) of the [`PacketStore`](crate::PacketStore). The
/// payload is not bytes but a range of the sender's stream: `payload_offset` is where it starts, an
/// independent witness that what `sequence` says is what was sent.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[repr(C, align(64))]
pub struct Packet {
    /// Who sent it.
    pub source: Endpoint,
    /// Who is to get it.
    pub destination: Endpoint,
    /// Sequence number of the first payload byte (of the SYN, if it is one).
    pub sequence: Seq,
    /// The next sequence number the sender expects; significant with [`Flags::ACK`].
    pub acknowledgment: Seq,
    /// The window field as on the wire: not yet scaled.
    pub window: u16,
    /// Bytes of payload.
    pub payload_length: u16,
    /// Bytes of IP and TCP headers together, options included.
    pub header_length: u8,
    /// Control bits.
    pub flags: Flags,
    attributes: u8,
    pub(crate) references: u8,
    timestamp_value: u32,
    timestamp_echo: u32,
    /// Offset of the payload's first byte in the sender's stream (no SYN counted).
    pub payload_offset: u64,
    // SACK blocks; or, with EXTENDED, the first one's start is the extension's index and the blocks are
    // there.
    blocks: [SackBlock; INLINE_SACK_BLOCKS],
}

// Packet::attributes
const SACK_COUNT: u8 = 0b0000_0111;
/// In the place of a count that no segment has: this is no TCP segment.
const DATAGRAM: u8 = SACK_COUNT;
const EXTENDED: u8 = 0b0000_1000;
const TIMESTAMPED: u8 = 0b0001_0000;
const ECN: u8 = 0b0110_0000;
const ECN_SHIFT: u8 = 5;
const VERSION_6: u8 = 0b1000_0000;

/// Of the marks of an ordinary segment, a push is none.
const ANY_FLAG_BUT_PUSH: u16 = !Flags::PSH.0 as u16;

/// Beside the protocol number in a datagram's `window`.
const CORRUPT: u16 = 0x100;
/// In its place: this is no IP packet, but an ARP request or a reply (RFC 826's operation).
const ARP: u16 = 0x200;

/// Bytes of an ARP packet about IPv4 addresses on Ethernet (RFC 826); a neighbour solicitation and its answer
/// are as long with IPv6's header, addresses and option (RFC 4861 sections 4.3 and 4.4): 72.
const ARP_LENGTH: u8 = 28;
const NEIGHBOUR_LENGTH: u8 = 72;

/// IANA protocol numbers.
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Blocks that fit into the record itself.
const INLINE_SACK_BLOCKS: usize = 3;

impl Packet {
    /// A segment with neither payload nor options.
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

    /// A packet without payload that is not a TCP segment, of this IANA protocol number. Its headers
    /// are those of IP, and of UDP if it is that.
    ///
    /// The number is in the record's `window`. The other fields of a TCP header and `payload_offset`
    /// are free for who makes it, but for the flags: it has none, so that nobody takes it for a segment.
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

    /// A question for a neighbour's link address, or the answer to one: ARP (RFC 826), neighbour discovery (RFC
    /// 4861) of IPv6. It has no ports, and is for the other end of a link, not for hosts.
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

    /// What it asks for or answers, where it is about a neighbour's link address.
    #[must_use]
    pub fn resolves(&self) -> Option<Resolution> {
        let about = !self.is_tcp() && self.window & ARP != 0;
        about.then_some(if self.window & 1 == Resolution::Request as u16 {
            Resolution::Request
        } else {
            Resolution::Reply
        })
    }

    /// What somebody has said with [`set_said`](Self::set_said): zeros, if nobody has.
    pub(crate) fn said(&self) -> (u32, u32) {
        (self.timestamp_value, self.timestamp_echo)
    }

    /// Two numbers in the place of the timestamps of a segment, which a datagram doesn't have.
    pub(crate) fn set_said(&mut self, first: u32, second: u32) {
        debug_assert!(!self.is_tcp(), "a segment has timestamps there");
        (self.timestamp_value, self.timestamp_echo) = (first, second);
    }

    /// Is it a TCP segment?
    #[must_use]
    pub fn is_tcp(&self) -> bool {
        self.attributes & SACK_COUNT != DATAGRAM
    }

    /// IANA protocol number. A TCP packet that is no segment (a fragment, or malformed) is a datagram
    /// of TCP's number.
    #[must_use]
    pub fn protocol(&self) -> u8 {
        if self.is_tcp() {
            TCP
        } else {
            self.window as u8
        }
    }

    /// Has its checksum gone wrong on the way? Such a packet is a datagram, whatever it was: nobody
    /// but the receiver finds out, and it throws it away.
    #[must_use]
    pub fn is_corrupt(&self) -> bool {
        !self.is_tcp() && self.window & CORRUPT != 0
    }

    /// Its checksum is wrong from now on. Of its headers, the `outer` bytes of a tunnel's and IP's own
    /// can still be made out, and UDP's, which nobody reads.
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

    /// Its length as an IP packet: headers and payload.
    #[must_use]
    pub fn length(&self) -> Bytes {
        Bytes::new(u64::from(self.header_length) + u64::from(self.payload_length))
    }

    /// Sequence numbers it occupies: payload, SYN and FIN (RFC 9293 section 3.4, SEG.LEN).
    #[must_use]
    pub fn sequence_length(&self) -> u32 {
        u32::from(self.payload_length)
            + u32::from(self.flags.has(Flags::SYN))
            + u32::from(self.flags.has(Flags::FIN))
    }

    /// The sequence number after its last.
    #[must_use]
    pub fn sequence_end(&self) -> Seq {
        self.sequence + self.sequence_length()
    }

    /// IP version.
    #[must_use]
    pub fn ip_version(&self) -> IpVersion {
        if self.attributes & VERSION_6 == 0 {
            IpVersion::V4
        } else {
            IpVersion::V6
        }
    }

    /// This record is a copy of another one now, which has no extension, and somebody holds it.
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

    /// The timestamps option: (value, echo reply), if it is there.
    #[must_use]
    pub fn timestamps(&self) -> Option<(u32, u32)> {
        (self.attributes & TIMESTAMPED != 0).then_some((self.timestamp_value, self.timestamp_echo))
    }

    /// Sets the timestamps option. The caller counts its bytes in `header_length`.
    pub fn set_timestamps(&mut self, value: u32, echo: u32) {
        self.attributes |= TIMESTAMPED;
        self.timestamp_value = value;
        self.timestamp_echo = echo;
    }

    /// Other timestamps than it has.
    #[inline]
    pub fn renew_timestamps(&mut self, value: u32, echo: u32) {
        debug_assert!(self.timestamps().is_some(), "it has none");
        self.timestamp_value = value;
        self.timestamp_echo = echo;
    }

    /// Takes the timestamps option away. The caller counts its bytes in `header_length`.
    pub fn clear_timestamps(&mut self) {
        self.attributes &= !TIMESTAMPED;
        (self.timestamp_value, self.timestamp_echo) = (0, 0);
    }

    /// Is it a segment without anything special: no flag but ACK, and perhaps PSH, no option but timestamps,
    /// if it is to have those?
    #[inline]
    #[must_use]
    pub fn is_bare(&self, timestamped: bool) -> bool {
        self.marks() & (ANY_FLAG_BUT_PUSH | u16::from(SACK_COUNT | TIMESTAMPED) << 8)
            == Self::bare_marks(timestamped)
    }

    /// Is it the same, but for SACK blocks, of which it has some?
    #[inline]
    #[must_use]
    pub fn is_bare_with_sack_blocks(&self, timestamped: bool) -> bool {
        self.marks() & (ANY_FLAG_BUT_PUSH | u16::from(TIMESTAMPED) << 8)
            == Self::bare_marks(timestamped)
            && self.has_sack_blocks()
    }

    /// Its flags and what else it says of itself, which lie beside each other, to be looked at together.
    #[inline]
    fn marks(&self) -> u16 {
        u16::from_le_bytes([self.flags.0, self.attributes])
    }

    /// Those of a segment without anything special.
    #[inline]
    fn bare_marks(timestamped: bool) -> u16 {
        let options = if timestamped { TIMESTAMPED } else { 0 };
        u16::from_le_bytes([Flags::ACK.0, options])
    }

    /// The ECN field.
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

    /// Does it carry SACK blocks?
    #[must_use]
    pub fn has_sack_blocks(&self) -> bool {
        !matches!(self.attributes & SACK_COUNT, 0 | DATAGRAM)
    }

    /// The extension's index, if it has one.
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

    /// The blocks of the record itself; none where an extension holds them.
    #[inline]
    pub(crate) fn inline_sack_blocks(&self) -> &[SackBlock] {
        let count = match self.attributes & SACK_COUNT {
            DATAGRAM => 0,
            count => usize::from(count).min(INLINE_SACK_BLOCKS),
        };
        &self.blocks[..count]
    }

    /// Gives it the first of these SACK blocks, so many at most. False: there is no room for them in the record, and it
    /// has none as yet.
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
    fn a_datagram_is_no_segment() {
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
    fn attributes_do_not_disturb_one_another() {
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
