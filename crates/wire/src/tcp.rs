//! The TCP header (RFC 9293 section 3.1).

use std::net::IpAddr;

use bentpipe_types::{Flags, Seq};

use crate::checksum::Sum;
use crate::error::{Layer, ParseError};
use crate::options::TcpOptions;

pub(crate) use crate::protocol::TCP as PROTOCOL;
/// Length of a header without options in bytes.
pub(crate) const LENGTH: usize = 20;

// Offsets of the fields.
const DATA_OFFSET: usize = 12;
const CHECKSUM: usize = 16;

/// A TCP header without reserved bits and unknown options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpHeader {
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
    /// Sequence number of the first payload byte, or of the SYN.
    pub sequence: Seq,
    /// Next sequence number that the sender expects; valid with [`Flags::ACK`].
    pub acknowledgment: Seq,
    /// Control bits.
    pub flags: Flags,
    /// The window field, not scaled.
    pub window: u16,
    /// Urgent pointer; valid with [`Flags::URG`].
    pub urgent_pointer: u16,
    /// Options. Without [`Flags::SYN`], those that only a SYN may have are ignored.
    pub options: TcpOptions,
}

impl TcpHeader {
    /// Appends the header with a checksum of zero.
    pub(crate) fn write(&self, bytes: &mut Vec<u8>) {
        let mut header = [0; LENGTH];
        header[0..2].copy_from_slice(&self.source_port.to_be_bytes());
        header[2..4].copy_from_slice(&self.destination_port.to_be_bytes());
        header[4..8].copy_from_slice(&self.sequence.get().to_be_bytes());
        header[8..12].copy_from_slice(&self.acknowledgment.get().to_be_bytes());
        header[12] = (((LENGTH + self.options.length()) / 4) << 4) as u8;
        header[13] = self.flags.0;
        header[14..16].copy_from_slice(&self.window.to_be_bytes());
        header[18..20].copy_from_slice(&self.urgent_pointer.to_be_bytes());
        bytes.extend_from_slice(&header);
        self.options.write(bytes);
    }

    /// Parses the header of a segment at offset `at`. Returns it with its length.
    pub(crate) fn read(
        segment: &[u8],
        at: usize,
        verify: Option<(IpAddr, IpAddr)>,
    ) -> Result<(Self, usize), ParseError> {
        let fixed = segment
            .first_chunk::<LENGTH>()
            .ok_or(ParseError::Truncated {
                layer: Layer::Tcp,
                needed: LENGTH,
                available: segment.len(),
            })?;
        // The checksum is first, since the fields of a corrupt segment are meaningless.
        if let Some((source, destination)) = verify {
            verify_checksum(segment, fixed, at, source, destination)?;
        }
        let length = usize::from(fixed[DATA_OFFSET] >> 4) * 4;
        let options = segment.get(LENGTH..length).ok_or(ParseError::DataOffset {
            at: at + DATA_OFFSET,
            length,
            segment: segment.len(),
        })?;
        let mut options = TcpOptions::read(options, at + LENGTH)?;
        let flags = Flags(fixed[13]);
        if !flags.has(Flags::SYN) {
            // RFC 9293 section 3.7.1 (MSS), RFC 7323 section 2.2 (window scale: "MUST be ignored"),
            // RFC 2018 section 2 (SACK-permitted).
            options.syn = Default::default();
        }
        let word = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let number = |at: usize| Seq::new(u32::from(word(at)) << 16 | u32::from(word(at + 2)));
        let header = Self {
            source_port: word(0),
            destination_port: word(2),
            sequence: number(4),
            acknowledgment: number(8),
            flags,
            window: word(14),
            urgent_pointer: word(18),
            options,
        };
        Ok((header, length))
    }
}

/// Sets the checksum of a TCP segment, which has at least a header.
pub fn set_tcp_checksum(segment: &mut [u8], source: IpAddr, destination: IpAddr) {
    segment[CHECKSUM..CHECKSUM + 2].fill(0);
    let sum = Sum::default()
        .pseudo_header(source, destination, segment.len())
        .bytes(segment)
        .finish();
    segment[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
}

fn verify_checksum(
    segment: &[u8],
    fixed: &[u8; LENGTH],
    at: usize,
    source: IpAddr,
    destination: IpAddr,
) -> Result<(), ParseError> {
    let sum = Sum::default()
        .pseudo_header(source, destination, segment.len())
        .bytes(segment);
    if sum.finish() == 0 {
        return Ok(());
    }
    let found = u16::from_be_bytes([fixed[CHECKSUM], fixed[CHECKSUM + 1]]);
    Err(ParseError::TcpChecksum {
        at: at + CHECKSUM,
        found,
        expected: Sum::default()
            .pseudo_header(source, destination, segment.len())
            .word(!found)
            .bytes(segment)
            .finish(),
    })
}
