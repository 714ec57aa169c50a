//! Errors of parsing bytes and of encoding packets.

use std::fmt;

use bentpipe_types::{Address, IpVersion};

/// A header layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layer {
    /// The IP header.
    Ip,
    /// The TCP header.
    Tcp,
}

/// Reason why bytes are not a TCP segment in an IP packet. `at` is an offset from the start of the
/// IP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseError {
    /// Fewer bytes than a header or a length field requires.
    Truncated {
        /// The truncated part: a header, or with [`Layer::Ip`] the length of the IP packet.
        layer: Layer,
        /// Required bytes.
        needed: usize,
        /// Available bytes.
        available: usize,
    },
    /// Neither IPv4 nor IPv6.
    Version {
        /// The first four bits.
        version: u8,
    },
    /// An IPv4 header length below 20 bytes.
    Ipv4HeaderLength {
        /// Offset in the packet.
        at: usize,
        /// Value of the field in bytes.
        length: usize,
    },
    /// An IPv4 total length shorter than the header.
    Ipv4TotalLength {
        /// Offset in the packet.
        at: usize,
        /// Value of the field in bytes.
        length: usize,
        /// Length of the header.
        header: usize,
    },
    /// A wrong IPv4 header checksum.
    Ipv4Checksum {
        /// Offset in the packet.
        at: usize,
        /// Checksum in the header.
        found: u16,
        /// Correct checksum.
        expected: u16,
    },
    /// A fragment, which lacks the TCP header or part of the payload.
    Fragment {
        /// Offset in the packet.
        at: usize,
        /// Fragment offset in bytes.
        offset: u16,
        /// Whether more fragments follow.
        more: bool,
    },
    /// Another protocol than TCP.
    Protocol {
        /// Offset in the packet.
        at: usize,
        /// IANA protocol number.
        protocol: u8,
    },
    /// A TCP data offset below 20 bytes or beyond the segment's end.
    DataOffset {
        /// Offset in the packet.
        at: usize,
        /// Value of the field in bytes.
        length: usize,
        /// Length of the segment.
        segment: usize,
    },
    /// A wrong TCP checksum.
    TcpChecksum {
        /// Offset in the packet.
        at: usize,
        /// Checksum in the header.
        found: u16,
        /// Correct checksum.
        expected: u16,
    },
    /// A TCP option with an invalid length, or one that exceeds the header.
    OptionLength {
        /// Offset of the option.
        at: usize,
        /// IANA option kind.
        kind: u8,
        /// Value of the length byte, or `None` if the header ends before it.
        length: Option<u8>,
    },
}

impl ParseError {
    /// Whether the headers are well-formed and only a checksum is wrong.
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

/// Reason why a packet cannot be encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EncodeError {
    /// The node has no IP address of the packet's version.
    NoIpAddress {
        /// The node.
        address: Address,
        /// The packet's version.
        version: IpVersion,
    },
    /// More options than the 40 bytes of a TCP header.
    OptionsTooLong {
        /// Required bytes.
        length: usize,
    },
    /// `header_length` differs from the length of the packet's headers.
    HeaderLength {
        /// Length in the record.
        recorded: u8,
        /// Length of the headers.
        encoded: usize,
    },
    /// A compacted acknowledgment outside a tunnel: it has no IP header of its own.
    CompactionOutsideTunnel,
    /// Longer than the IP length field can express.
    TooLong {
        /// Required bytes.
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
