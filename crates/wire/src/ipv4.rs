//! The IPv4 header (RFC 791 section 3.1).

use std::net::Ipv4Addr;
use std::ops::Range;

use bentpipe_types::{Ecn, Fragment};

use crate::checksum::{Sum, checksum};
use crate::error::{Layer, ParseError};
use crate::tcp;

/// Length of a header without options in bytes. Only such headers are written.
pub(crate) const LENGTH: usize = 20;

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const FRAGMENT_OFFSET: u16 = 0x1fff;

// Offsets of the fields.
const TOTAL_LENGTH: usize = 2;
const FRAGMENT: usize = 6;
const PROTOCOL: usize = 9;
const CHECKSUM: usize = 10;

/// An IPv4 header without options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv4Header {
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// Differentiated services code point (RFC 2474 section 3).
    pub dscp: u8,
    /// ECN field (RFC 3168 section 5).
    pub ecn: Ecn,
    /// Identification, for reassembly.
    pub identification: u16,
    /// Whether routers must not fragment it.
    pub dont_fragment: bool,
    /// Remaining hops.
    pub time_to_live: u8,
}

/// Returns the header of a fragment, derived from the original header (RFC 791 section 3.2).
pub(crate) fn piece(whole: &[u8; LENGTH], fragment: &Fragment, carried: u16) -> [u8; LENGTH] {
    let mut header = *whole;
    let total = LENGTH as u16 + carried;
    header[TOTAL_LENGTH..TOTAL_LENGTH + 2].copy_from_slice(&total.to_be_bytes());
    header[4..6].copy_from_slice(&fragment.identification.to_be_bytes());
    let more = if fragment.more { MORE_FRAGMENTS } else { 0 };
    let place = (fragment.offset / 8) | more;
    header[FRAGMENT..FRAGMENT + 2].copy_from_slice(&place.to_be_bytes());
    header[CHECKSUM..CHECKSUM + 2].fill(0);
    let sum = checksum(&header);
    header[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
    header
}

impl Ipv4Header {
    /// Appends the header of a packet of `total_length` bytes with this protocol.
    pub(crate) fn write_in_front_of(&self, protocol: u8, total_length: u16, bytes: &mut Vec<u8>) {
        let mut header = [0; LENGTH];
        header[0] = 0x40 | (LENGTH / 4) as u8;
        header[1] = traffic_class(self.dscp, self.ecn);
        header[2..4].copy_from_slice(&total_length.to_be_bytes());
        header[4..6].copy_from_slice(&self.identification.to_be_bytes());
        let fragment = if self.dont_fragment { DONT_FRAGMENT } else { 0 };
        header[6..8].copy_from_slice(&fragment.to_be_bytes());
        header[8] = self.time_to_live;
        header[9] = protocol;
        header[12..16].copy_from_slice(&self.source.octets());
        header[16..20].copy_from_slice(&self.destination.octets());
        let sum = checksum(&header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        bytes.extend_from_slice(&header);
    }

    /// Parses the header of a TCP packet. Returns it with the segment's range.
    pub(crate) fn read(bytes: &[u8], verify: bool) -> Result<(Self, Range<usize>), ParseError> {
        let (header, _, range) = Self::read_in_front_of(&[tcp::PROTOCOL], bytes, verify)?;
        Ok((header, range))
    }

    /// Parses the header of a packet with one of these protocols. Returns header, protocol and
    /// content range.
    pub(crate) fn read_in_front_of(
        protocols: &[u8],
        bytes: &[u8],
        verify: bool,
    ) -> Result<(Self, u8, Range<usize>), ParseError> {
        let truncated = |needed| ParseError::Truncated {
            layer: Layer::Ip,
            needed,
            available: bytes.len(),
        };
        let fixed = bytes.first_chunk::<LENGTH>().ok_or(truncated(LENGTH))?;
        let header_length = usize::from(fixed[0] & 0x0f) * 4;
        if header_length < LENGTH {
            return Err(ParseError::Ipv4HeaderLength {
                at: 0,
                length: header_length,
            });
        }
        let header = bytes.get(..header_length).ok_or(truncated(header_length))?;
        // RFC 791 section 3.1: the checksum is verified wherever the header is processed, before
        // use.
        if verify && checksum(header) != 0 {
            let found = u16::from_be_bytes([fixed[CHECKSUM], fixed[CHECKSUM + 1]]);
            return Err(ParseError::Ipv4Checksum {
                at: CHECKSUM,
                found,
                expected: Sum::default().bytes(header).word(!found).finish(),
            });
        }
        let total_length = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
        if total_length < header_length {
            return Err(ParseError::Ipv4TotalLength {
                at: TOTAL_LENGTH,
                length: total_length,
                header: header_length,
            });
        }
        // Checked before the length, since a fragment's missing content is not a truncation.
        let fragment = u16::from_be_bytes([fixed[6], fixed[7]]);
        if fragment & (MORE_FRAGMENTS | FRAGMENT_OFFSET) != 0 {
            return Err(ParseError::Fragment {
                at: FRAGMENT,
                offset: (fragment & FRAGMENT_OFFSET) * 8,
                more: fragment & MORE_FRAGMENTS != 0,
            });
        }
        if !protocols.contains(&fixed[9]) {
            return Err(ParseError::Protocol {
                at: PROTOCOL,
                protocol: fixed[9],
            });
        }
        if total_length > bytes.len() {
            return Err(truncated(total_length));
        }
        // RFC 9293 section 3.9.2: IP options are ignored.
        let header = Self {
            source: Ipv4Addr::new(fixed[12], fixed[13], fixed[14], fixed[15]),
            destination: Ipv4Addr::new(fixed[16], fixed[17], fixed[18], fixed[19]),
            dscp: fixed[1] >> 2,
            ecn: ecn(fixed[1]),
            identification: u16::from_be_bytes([fixed[4], fixed[5]]),
            dont_fragment: fragment & DONT_FRAGMENT != 0,
            time_to_live: fixed[8],
        };
        Ok((header, fixed[9], header_length..total_length))
    }
}

/// Returns the byte with DSCP and ECN (RFC 3168 section 5; RFC 8200 section 7 for IPv6).
pub(crate) fn traffic_class(dscp: u8, ecn: Ecn) -> u8 {
    dscp << 2 | ecn as u8
}

/// Returns the ECN field of a traffic class.
pub(crate) fn ecn(traffic_class: u8) -> Ecn {
    match traffic_class & 3 {
        0 => Ecn::NotCapable,
        1 => Ecn::Capable1,
        2 => Ecn::Capable0,
        _ => Ecn::Congestion,
    }
}
