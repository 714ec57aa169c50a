//! The format that both ends agree on: RFC 1144 section 3.2.2, figure 3.

use std::fmt;

use crate::checksum::checksum;
use crate::tcp;

/// How a packet travels; the link's framing says it (section 3.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketType {
    /// TYPE_IP: as it is.
    Ip,
    /// UNCOMPRESSED_TCP: as it is, but for a connection number in the place of the IP protocol.
    UncompressedTcp,
    /// COMPRESSED_TCP: changes alone.
    CompressedTcp,
}

/// What a serial link adds to each packet, escaped bytes aside.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LinkFraming {
    /// Nothing: what the RFC's own figures count.
    #[default]
    None,
    /// SLIP (RFC 1055): one END; the packet's type is in its first byte (RFC 1144 section 3.2.1).
    Slip,
    /// PPP on an asynchronous line (RFC 1662) with address, control and protocol fields compressed
    /// (RFC 1661 sections 6.5 and 6.6): a flag shared by two frames, one byte of protocol, two of
    /// checksum.
    Ppp,
}

impl LinkFraming {
    /// Bytes per packet.
    #[must_use]
    pub const fn overhead(self) -> usize {
        match self {
            Self::None => 0,
            Self::Slip => 1,
            Self::Ppp => 4,
        }
    }
}

/// A number of connections that the format cannot hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlotsError {
    /// The number asked for.
    pub slots: usize,
}

impl fmt::Display for SlotsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} connections; a connection number is 0 to 255",
            self.slots
        )
    }
}

impl std::error::Error for SlotsError {}

// The change mask.
pub(super) const NEW_CONNECTION: u8 = 0x40;
pub(super) const NEW_IDENTIFICATION: u8 = 0x20;
pub(super) const PUSH: u8 = 0x10;
pub(super) const NEW_SEQUENCE: u8 = 0x08;
pub(super) const NEW_ACKNOWLEDGMENT: u8 = 0x04;
pub(super) const NEW_WINDOW: u8 = 0x02;
pub(super) const URGENT: u8 = 0x01;
/// Sequence and acknowledgment advance by the last packet's payload: echoed interactive traffic.
pub(super) const SPECIAL_ECHO: u8 = NEW_SEQUENCE | NEW_WINDOW | URGENT;
/// The sequence number advances by the last packet's payload: data one way.
pub(super) const SPECIAL_DATA: u8 = NEW_SEQUENCE | NEW_ACKNOWLEDGMENT | NEW_WINDOW | URGENT;
pub(super) const SPECIALS: u8 = SPECIAL_DATA;

/// The longest headers: 60 bytes of IP, 60 of TCP.
pub(super) const LONGEST: usize = 120;
/// Bytes of an IPv4 header without options.
const IP_LENGTH: usize = 20;

// TCP flags.
pub(super) const FIN_SYN_RST: u8 = 0x07;
pub(super) const PSH: u8 = 0x08;
pub(super) const ACK: u8 = 0x10;
pub(super) const URG: u8 = 0x20;

/// The headers of a TCP/IPv4 packet: its first bytes, checked for length.
#[derive(Clone, Copy)]
pub(super) struct Headers {
    bytes: [u8; LONGEST],
    ip: u8,
    length: u8,
}

impl Headers {
    /// The headers in front of a packet that is TCP in IPv4 and no fragment. `protocol` is what the
    /// protocol field has to say; none: anything.
    pub(super) fn read(packet: &[u8], protocol: Option<u8>) -> Option<Self> {
        let fixed = packet.first_chunk::<IP_LENGTH>()?;
        let ip = usize::from(fixed[0] & 0x0f) * 4;
        let fragment = u16::from_be_bytes([fixed[6], fixed[7]]) & 0x3fff;
        if fixed[0] >> 4 != 4
            || ip < IP_LENGTH
            || fragment != 0
            || protocol.is_some_and(|p| p != fixed[9])
        {
            return None;
        }
        let tcp = usize::from(*packet.get(ip + 12)? >> 4) * 4;
        if tcp < tcp::LENGTH {
            return None;
        }
        let length = ip + tcp;
        let mut bytes = [0; LONGEST];
        bytes[..length].copy_from_slice(packet.get(..length)?);
        let headers = Self {
            bytes,
            ip: ip as u8,
            length: length as u8,
        };
        (usize::from(headers.total_length()) >= length).then_some(headers)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    pub(super) fn length(&self) -> usize {
        usize::from(self.length)
    }

    fn word(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    fn set_word(&mut self, at: usize, value: u16) {
        self.bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
    }

    fn number(&self, at: usize) -> u32 {
        u32::from(self.word(at)) << 16 | u32::from(self.word(at + 2))
    }

    fn set_number(&mut self, at: usize, value: u32) {
        self.bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
    }

    fn tcp(&self, at: usize) -> usize {
        usize::from(self.ip) + at
    }

    pub(super) fn total_length(&self) -> u16 {
        self.word(2)
    }

    pub(super) fn set_total_length(&mut self, length: u16) {
        self.set_word(2, length);
    }

    /// Bytes of payload.
    pub(super) fn payload(&self) -> u16 {
        self.total_length().saturating_sub(u16::from(self.length))
    }

    pub(super) fn identification(&self) -> u16 {
        self.word(4)
    }

    pub(super) fn set_identification(&mut self, value: u16) {
        self.set_word(4, value);
    }

    pub(super) fn set_protocol(&mut self, value: u8) {
        self.bytes[9] = value;
    }

    pub(super) fn protocol(&self) -> u8 {
        self.bytes[9]
    }

    pub(super) fn is_checksum_right(&self) -> bool {
        checksum(&self.bytes[..usize::from(self.ip)]) == 0
    }

    pub(super) fn seal(&mut self) {
        self.set_word(10, 0);
        let sum = checksum(&self.bytes[..usize::from(self.ip)]);
        self.set_word(10, sum);
    }

    /// Addresses and ports.
    pub(super) fn is_connection_of(&self, other: &Self) -> bool {
        self.bytes[12..20] == other.bytes[12..20]
            && self.bytes[self.tcp(0)..][..4] == other.bytes[other.tcp(0)..][..4]
    }

    /// Are all fields equal that a compressed packet has no place for?
    pub(super) fn is_compressible_after(&self, old: &Self) -> bool {
        let tcp = self.tcp(0);
        let unlisted_flags = !(PSH | URG);
        self.ip == old.ip
            && self.length == old.length
            // Version, header length, type of service; fragment, time to live, protocol.
            && self.bytes[..2] == old.bytes[..2]
            && self.bytes[6..10] == old.bytes[6..10]
            && self.bytes[20..tcp] == old.bytes[20..tcp]
            // Data offset and what was reserved in 1990: ECE and CWR (RFC 3168) are there now.
            && self.bytes[tcp + 12] == old.bytes[tcp + 12]
            && self.flags() & unlisted_flags == old.flags() & unlisted_flags
            && self.bytes[tcp + 20..self.length()] == old.bytes[tcp + 20..self.length()]
    }

    pub(super) fn sequence(&self) -> u32 {
        self.number(self.tcp(4))
    }

    pub(super) fn set_sequence(&mut self, value: u32) {
        self.set_number(self.tcp(4), value);
    }

    pub(super) fn acknowledgment(&self) -> u32 {
        self.number(self.tcp(8))
    }

    pub(super) fn set_acknowledgment(&mut self, value: u32) {
        self.set_number(self.tcp(8), value);
    }

    pub(super) fn flags(&self) -> u8 {
        self.bytes[self.tcp(13)]
    }

    pub(super) fn set_flag(&mut self, flag: u8, on: bool) {
        let at = self.tcp(13);
        self.bytes[at] = self.bytes[at] & !flag | if on { flag } else { 0 };
    }

    pub(super) fn window(&self) -> u16 {
        self.word(self.tcp(14))
    }

    pub(super) fn set_window(&mut self, value: u16) {
        self.set_word(self.tcp(14), value);
    }

    pub(super) fn tcp_checksum(&self) -> u16 {
        self.word(self.tcp(16))
    }

    pub(super) fn set_tcp_checksum(&mut self, value: u16) {
        self.set_word(self.tcp(16), value);
    }

    pub(super) fn urgent_pointer(&self) -> u16 {
        self.word(self.tcp(18))
    }

    pub(super) fn set_urgent_pointer(&mut self, value: u16) {
        self.set_word(self.tcp(18), value);
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x?}", self.bytes())
    }
}
