//! The IPv6 header (RFC 8200 section 3).

use std::net::Ipv6Addr;
use std::ops::Range;

use bentpipe_types::Ecn;

use crate::error::{Layer, ParseError};
use crate::ipv4::{ecn, traffic_class};
use crate::tcp;

/// Length of the header in bytes.
pub(crate) const LENGTH: usize = 40;

const NEXT_HEADER: usize = 6;
// RFC 8200 section 4.5.
const FRAGMENT_HEADER: u8 = 44;
const FRAGMENT_HEADER_LENGTH: usize = 8;

/// An IPv6 header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv6Header {
    /// Source address.
    pub source: Ipv6Addr,
    /// Destination address.
    pub destination: Ipv6Addr,
    /// Differentiated services code point (RFC 2474 section 3).
    pub dscp: u8,
    /// ECN field (RFC 3168 section 5).
    pub ecn: Ecn,
    /// Flow label, 20 bits (RFC 6437).
    pub flow_label: u32,
    /// Remaining hops.
    pub hop_limit: u8,
}

impl Ipv6Header {
    /// Appends the header of a packet with this protocol and `payload_length` bytes.
    pub(crate) fn write_in_front_of(&self, protocol: u8, payload_length: u16, bytes: &mut Vec<u8>) {
        let class = u32::from(traffic_class(self.dscp, self.ecn));
        let first = 6 << 28 | class << 20 | self.flow_label & 0x000f_ffff;
        let mut header = [0; LENGTH];
        header[0..4].copy_from_slice(&first.to_be_bytes());
        header[4..6].copy_from_slice(&payload_length.to_be_bytes());
        header[6] = protocol;
        header[7] = self.hop_limit;
        header[8..24].copy_from_slice(&self.source.octets());
        header[24..40].copy_from_slice(&self.destination.octets());
        bytes.extend_from_slice(&header);
    }

    /// Parses the header of a TCP packet. Returns it with the segment's range.
    ///
    /// Extension headers are not read: their content is reported as not TCP.
    pub(crate) fn read(bytes: &[u8]) -> Result<(Self, Range<usize>), ParseError> {
        let truncated = |needed| ParseError::Truncated {
            layer: Layer::Ip,
            needed,
            available: bytes.len(),
        };
        let fixed = bytes.first_chunk::<LENGTH>().ok_or(truncated(LENGTH))?;
        match fixed[NEXT_HEADER] {
            tcp::PROTOCOL => (),
            FRAGMENT_HEADER => {
                let needed = LENGTH + FRAGMENT_HEADER_LENGTH;
                let extension = bytes.get(LENGTH..needed).ok_or(truncated(needed))?;
                let fragment = u16::from_be_bytes([extension[2], extension[3]]);
                return Err(ParseError::Fragment {
                    at: LENGTH + 2,
                    offset: fragment & !7, // in units of 8 bytes, above three other bits
                    more: fragment & 1 != 0,
                });
            }
            protocol => {
                return Err(ParseError::Protocol {
                    at: NEXT_HEADER,
                    protocol,
                });
            }
        }
        let end = LENGTH + usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
        if end > bytes.len() {
            return Err(truncated(end));
        }
        let first = u32::from_be_bytes([fixed[0], fixed[1], fixed[2], fixed[3]]);
        let class = (first >> 20) as u8;
        let address = |at: usize| {
            let mut octets = [0; 16];
            octets.copy_from_slice(&fixed[at..at + 16]);
            Ipv6Addr::from(octets)
        };
        let header = Self {
            source: address(8),
            destination: address(24),
            dscp: class >> 2,
            ecn: ecn(class),
            flow_label: first & 0x000f_ffff,
            hop_limit: fixed[7],
        };
        Ok((header, LENGTH..end))
    }
}
