//! The frame format (RFC 1144 section 3.2.2, figure 3).

use std::fmt;

use crate::checksum::checksum;
use crate::tcp;

/// Type of a frame, which the link's framing conveys (section 3.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketType {
    /// TYPE_IP: the unchanged packet.
    Ip,
    /// UNCOMPRESSED_TCP: the packet with a connection number in place of the IP protocol.
    UncompressedTcp,
    /// COMPRESSED_TCP: the changed fields.
    CompressedTcp,
}

/// Bytes that a serial link adds to each packet, escape bytes not included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LinkFraming {
    /// None, as in the RFC's own figures.
    #[default]
    None,
    /// SLIP (RFC 1055): one END byte; the frame type is in the packet's first byte (RFC 1144
    /// section 3.2.1).
    Slip,
    /// Asynchronous PPP (RFC 1662) with compressed address, control and protocol fields (RFC 1661
    /// sections 6.5 and 6.6): a flag shared by two frames, one byte of protocol, two of checksum.
    Ppp,
}

impl LinkFraming {
    /// Returns the bytes per packet.
    #[must_use]
    pub const fn overhead(self) -> usize {
        match self {
            Self::None => 0,
            Self::Slip => 1,
            Self::Ppp => 4,
        }
    }
}

/// Error: the format cannot number so many connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlotsError {
    /// Requested number.
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

// Bits of the change mask.
pub(super) const NEW_CONNECTION: u8 = 0x40;
pub(super) const NEW_IDENTIFICATION: u8 = 0x20;
pub(super) const PUSH: u8 = 0x10;
pub(super) const NEW_SEQUENCE: u8 = 0x08;
pub(super) const NEW_ACKNOWLEDGMENT: u8 = 0x04;
pub(super) const NEW_WINDOW: u8 = 0x02;
pub(super) const URGENT: u8 = 0x01;
/// Sequence and acknowledgment number advance by the previous payload: echoed interactive traffic.
pub(super) const SPECIAL_ECHO: u8 = NEW_SEQUENCE | NEW_WINDOW | URGENT;
/// The sequence number advances by the previous payload: one-way data.
pub(super) const SPECIAL_DATA: u8 = NEW_SEQUENCE | NEW_ACKNOWLEDGMENT | NEW_WINDOW | URGENT;
pub(super) const SPECIALS: u8 = SPECIAL_DATA;

/// Maximum length of the headers: 60 bytes each of IP and TCP.
pub(super) const LONGEST: usize = 120;
/// Length of an IPv4 header without options in bytes.
const IP_LENGTH: usize = 20;

// TCP flags.
pub(super) const FIN_SYN_RST: u8 = 0x07;
pub(super) const PSH: u8 = 0x08;
pub(super) const ACK: u8 = 0x10;
pub(super) const URG: u8 = 0x20;

/// The headers of a TCP/IPv4 packet, with checked length.
#[derive(Clone, Copy)]
pub(super) struct Headers {
    bytes: [u8; LONGEST],
    ip: u8,
    length: u8,
}

impl Headers {
    /// Reads the headers of a packet that is TCP in IPv4 and not a fragment. `protocol` is the
    /// required protocol field, or `None` for any.
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

    /// Returns the payload length.
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

    /// Whether addresses and ports are equal.
    pub(super) fn is_connection_of(&self, other: &Self) -> bool {
        self.bytes[12..20] == other.bytes[12..20]
            && self.bytes[self.tcp(0)..][..4] == other.bytes[other.tcp(0)..][..4]
    }

    /// Whether all fields are equal that a compressed frame cannot change.
    pub(super) fn is_compressible_after(&self, old: &Self) -> bool {
        let tcp = self.tcp(0);
        let unlisted_flags = !(PSH | URG);
        self.ip == old.ip
            && self.length == old.length
            // Version, header length, type of service; fragment, time to live, protocol.
            && self.bytes[..2] == old.bytes[..2]
            && self.bytes[6..10] == old.bytes[6..10]
            && self.bytes[20..tcp] == old.bytes[20..tcp]
            // Data offset and the bits reserved in 1990, now ECE and CWR (RFC 3168).
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
