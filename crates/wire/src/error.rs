//! What can be wrong with bytes from outside, and with a packet that is to become bytes.

use std::fmt;

use bentpipe_types::{Address, IpVersion};

/// One of the two headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layer {
    /// The IP header.
    Ip,
    /// The TCP header.
    Tcp,
}

/// Why bytes are not a TCP segment in an IP packet. `at` counts bytes from the IP header's first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseError {
    /// Fewer bytes than a header, or a length field, promises.
    Truncated {
        /// What is cut off: a header, or (with [`Layer::Ip`]) what the IP length field covers.
        layer: Layer,
        /// Bytes that there should be.
        needed: usize,
        /// Bytes that there are.
        available: usize,
    },
    /// Neither IPv4 nor IPv6.
    Version {
        /// The first four bits.
        version: u8,
    },
    /// An IPv4 header length under 20 bytes.
    Ipv4HeaderLength {
        /// Where in the packet, in bytes from its beginning.
        at: usize,
        /// What it says, in bytes.
        length: usize,
    },
    /// An IPv4 total length that does not cover the header.
    Ipv4TotalLength {
        /// Where in the packet, in bytes from its beginning.
        at: usize,
        /// What it says, in bytes.
        length: usize,
        /// The header's length.
        header: usize,
    },
    /// The IPv4 header's checksum is wrong.
    Ipv4Checksum {
        /// Where in the packet, in bytes from its beginning.
        at: usize,
        /// What the header says.
        found: u16,
        /// What it ought to say.
        expected: u16,
    },
    /// A fragment: it has no TCP header of its own, or not all of its payload.
    Fragment {
        /// Where in the packet, in bytes from its beginning.
        at: usize,
        /// Its offset in the whole packet, in bytes.
        offset: u16,
        /// Are there more behind it?
        more: bool,
    },
    /// Something else than TCP follows the IP header.
    Protocol {
        /// Where in the packet, in bytes from its beginning.
        at: usize,
        /// IANA protocol number.
        protocol: u8,
    },
    /// A TCP data offset under 20 bytes, or beyond the segment's end.
    DataOffset {
        /// Where in the packet, in bytes from its beginning.
        at: usize,
        /// What it says, in bytes.
        length: usize,
        /// Bytes of the segment.
        segment: usize,
    },
    /// The TCP checksum is wrong.
    TcpChecksum {
        /// Where in the packet, in bytes from its beginning.
        at: usize,
        /// What the header says.
        found: u16,
        /// What it ought to say.
        expected: u16,
    },
    /// A TCP option whose length is not one it can have, or that runs beyond the header.
    OptionLength {
        /// Where the option starts.
        at: usize,
        /// IANA option kind.
        kind: u8,
        /// What it says, in bytes; none if the header ends before the length byte.
        length: Option<u8>,
    },
}

impl ParseError {
    /// Are the headers well-formed, and only a checksum wrong?
    #[must_use]
    pub fn is_checksum(&self) -> bool {
        matches!(self, Self::Ipv4Checksum { .. } | Self::TcpChecksum { .. })
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Truncated {
                layer,
                needed,
                available,
            } => {
                let layer = match layer {
                    Layer::Ip => "IP",
                    Layer::Tcp => "TCP",
                };
                write!(f, "{layer}: {needed} bytes needed, {available} bytes there")
            }
            Self::Version { version } => write!(f, "byte 0: IP version {version}, not 4 or 6"),
            Self::Ipv4HeaderLength { at, length } => {
                write!(f, "byte {at}: IPv4 header length {length}, less than 20")
            }
            Self::Ipv4TotalLength { at, length, header } => write!(
                f,
                "byte {at}: IPv4 total length {length}, less than the header's {header}"
            ),
            Self::Ipv4Checksum {
                at,
                found,
                expected,
            } => write!(
                f,
                "byte {at}: IPv4 checksum {found:#06x}, expected {expected:#06x}"
            ),
            Self::Fragment { at, offset, more } => write!(
                f,
                "byte {at}: fragment at offset {offset}, {}",
                if more { "more follow" } else { "the last" }
            ),
            Self::Protocol { at, protocol } => {
                write!(f, "byte {at}: protocol {protocol}, not TCP")
            }
            Self::DataOffset {
                at,
                length,
                segment,
            } => write!(
                f,
                "byte {at}: TCP header length {length}, not within 20 and the segment's {segment}"
            ),
            Self::TcpChecksum {
                at,
                found,
                expected,
            } => write!(
                f,
                "byte {at}: TCP checksum {found:#06x}, expected {expected:#06x}"
            ),
            Self::OptionLength {
                at,
                kind,
                length: Some(length),
            } => write!(f, "byte {at}: TCP option {kind} of length {length}"),
            Self::OptionLength {
                at,
                kind,
                length: None,
            } => write!(f, "byte {at}: TCP option {kind} without a length"),
        }
    }
}

impl std::error::Error for ParseError {}

/// Why a packet has no bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EncodeError {
    /// The node has no IP address of the packet's version.
    NoIpAddress {
        /// The node.
        address: Address,
        /// The packet's version.
        version: IpVersion,
    },
    /// More options than the 40 bytes that a TCP header can hold.
    OptionsTooLong {
        /// Bytes they need.
        length: usize,
    },
    /// The packet's `header_length` is not that of its headers.
    HeaderLength {
        /// What the record says.
        recorded: u8,
        /// What its headers take.
        encoded: usize,
    },
    /// A compacted acknowledgment that is in no tunnel: it has no IP header of its own.
    CompactionOutsideTunnel,
    /// Longer than the IP header's length field can say.
    TooLong {
        /// Bytes it needs.
        length: usize,
    },
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NoIpAddress { address, version } => {
                write!(f, "{address:?} has no IP{version:?} address")
            }
            Self::OptionsTooLong { length } => write!(
                f,
                "{length} bytes of TCP options; a header holds at most 40"
            ),
            Self::HeaderLength { recorded, encoded } => write!(
                f,
                "header_length is {recorded}, but its headers take {encoded} bytes"
            ),
            Self::CompactionOutsideTunnel => {
                write!(f, "a compacted acknowledgment that is in no tunnel")
            }
            Self::TooLong { length } => {
                write!(
                    f,
                    "{length} bytes, more than the IP header's length can say"
                )
            }
        }
    }
}

impl std::error::Error for EncodeError {}
