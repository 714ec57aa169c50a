//! Parsing of any IP packet as far as a network needs to forward it.

use std::net::IpAddr;

use bentpipe_types::{Address, Ecn, Endpoint, IpVersion, Packet, PacketRef, PacketStore, PoolFull};

use crate::checksum::checksum;
use crate::error::{Layer, ParseError};
use crate::parse::IpHeader;
use crate::{Ipv4Header, Ipv6Header, Parsed, TcpHeader, TcpOptions, ipv4, ipv6, tcp};

/// IANA protocol number of UDP.
pub(crate) const UDP: u8 = 17;
/// Length of a UDP header in bytes.
pub(crate) const UDP_LENGTH: usize = 8;

/// The header of an IP packet, and its ports if the protocol has them and the packet is not a
/// fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IpPacket {
    /// The version.
    pub version: IpVersion,
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Header length in bytes, with IPv4 options, without IPv6 extension headers.
    pub header_length: usize,
    /// Packet length in bytes, from the header.
    pub total_length: usize,
    /// IANA protocol number of the content behind IPv6 extension headers.
    pub protocol: u8,
    /// Offset of the content behind IPv6 extension headers.
    pub carried_at: usize,
    /// Whether it is a fragment.
    pub fragment: bool,
    /// The ECN field.
    pub ecn: Ecn,
    /// Remaining hops.
    pub hop_limit: u8,
    /// Source and destination port; 0 if the protocol has none.
    pub ports: (u16, u16),
}

// IPv6 extension headers with a length field in their second byte (RFC 8200 section 4).
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION_OPTIONS: u8 = 60;
/// Maximum number of extension headers that are read. After that, the protocol is that of the next
/// header.
const EXTENSION_HEADERS: usize = 8;

/// Parses the header of an IPv4 or IPv6 packet of any protocol.
///
/// # Errors
/// Returns an error if the bytes are not a complete IP packet or the IPv4 header checksum is wrong.
/// Never panics.
pub fn parse_ip(bytes: &[u8]) -> Result<IpPacket, ParseError> {
    let first = bytes.first().ok_or(ParseError::Truncated {
        layer: Layer::Ip,
        needed: 1,
        available: 0,
    })?;
    let mut packet = match first >> 4 {
        4 => parse_v4(bytes)?,
        6 => parse_v6(bytes)?,
        version => return Err(ParseError::Version { version }),
    };
    // TCP, UDP, DCCP, SCTP and UDP-Lite have their ports in the same position.
    if !packet.fragment
        && matches!(packet.protocol, tcp::PROTOCOL | UDP | 33 | 132 | 136)
        && let Some(&[a, b, c, d]) = bytes[..packet.total_length]
            .get(packet.carried_at..)
            .and_then(<[u8]>::first_chunk::<4>)
    {
        packet.ports = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    }
    Ok(packet)
}

fn truncated(needed: usize, available: usize) -> ParseError {
    ParseError::Truncated {
        layer: Layer::Ip,
        needed,
        available,
    }
}

fn parse_v4(bytes: &[u8]) -> Result<IpPacket, ParseError> {
    let short = |needed| truncated(needed, bytes.len());
    let fixed = bytes
        .first_chunk::<{ ipv4::LENGTH }>()
        .ok_or(short(ipv4::LENGTH))?;
    let header_length = usize::from(fixed[0] & 0x0f) * 4;
    if header_length < ipv4::LENGTH {
        return Err(ParseError::Ipv4HeaderLength {
            at: 0,
            length: header_length,
        });
    }
    let header = bytes.get(..header_length).ok_or(short(header_length))?;
    // RFC 1812 section 5.2.2: a router verifies the checksum first.
    if checksum(header) != 0 {
        let found = u16::from_be_bytes([fixed[10], fixed[11]]);
        return Err(ParseError::Ipv4Checksum {
            at: 10,
            found,
            expected: crate::checksum::Sum::default()
                .bytes(header)
                .word(!found)
                .finish(),
        });
    }
    let total_length = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    if total_length < header_length {
        return Err(ParseError::Ipv4TotalLength {
            at: 2,
            length: total_length,
            header: header_length,
        });
    }
    if total_length > bytes.len() {
        return Err(short(total_length));
    }
    let address =
        |at: usize| IpAddr::from([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    Ok(IpPacket {
        version: IpVersion::V4,
        source: address(12),
        destination: address(16),
        header_length,
        total_length,
        protocol: fixed[9],
        carried_at: header_length,
        // More-fragments flag or a fragment offset.
        fragment: u16::from_be_bytes([fixed[6], fixed[7]]) & 0x3fff != 0,
        ecn: ipv4::ecn(fixed[1]),
        hop_limit: fixed[8],
        ports: (0, 0),
    })
}

fn parse_v6(bytes: &[u8]) -> Result<IpPacket, ParseError> {
    let short = |needed| truncated(needed, bytes.len());
    let fixed = bytes
        .first_chunk::<{ ipv6::LENGTH }>()
        .ok_or(short(ipv6::LENGTH))?;
    let total_length = ipv6::LENGTH + usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
    if total_length > bytes.len() {
        return Err(short(total_length));
    }
    let address = |at: usize| {
        let mut octets = [0; 16];
        octets.copy_from_slice(&fixed[at..at + 16]);
        IpAddr::from(octets)
    };
    let mut packet = IpPacket {
        version: IpVersion::V6,
        source: address(8),
        destination: address(24),
        header_length: ipv6::LENGTH,
        total_length,
        protocol: fixed[6],
        carried_at: ipv6::LENGTH,
        fragment: false,
        ecn: ipv4::ecn(fixed[0] << 4 | fixed[1] >> 4),
        hop_limit: fixed[7],
        ports: (0, 0),
    };
    for _ in 0..EXTENSION_HEADERS {
        let header = bytes[..total_length].get(packet.carried_at..);
        let Some(&[next, length]) = header.and_then(<[u8]>::first_chunk::<2>) else {
            break;
        };
        let length = match packet.protocol {
            // A router processes neither; an invalid length is detected by the receiver.
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS => 8 * (usize::from(length) + 1),
            FRAGMENT => {
                packet.fragment = true;
                8
            }
            _ => break,
        };
        packet.protocol = next;
        packet.carried_at += length;
    }
    Ok(packet)
}

/// Reason why a received packet was not stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// It is not a valid IP packet.
    Malformed(ParseError),
    /// No node has its destination address.
    NoRoute,
    /// The pool has no room for its bytes.
    PoolFull(PoolFull),
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Malformed(error) => error.fmt(f),
            Self::NoRoute => write!(f, "nobody has the destination address"),
            Self::PoolFull(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Refused {}

/// Stores a received packet with its bytes and real addresses. A complete, unsigned TCP segment
/// with a correct checksum is stored as a segment, anything else as a datagram that is forwarded
/// only. Bytes behind the packet's end are dropped.
///
/// `source` is the node where it arrived. `destination` maps the IP addresses (source first) to the
/// destination node. The record's `header_length` is that of the original headers.
///
/// # Errors
/// Returns [`Refused`] and stores nothing.
pub fn insert(
    bytes: &[u8],
    packets: &mut PacketStore,
    source: Address,
    destination: impl FnOnce(IpAddr, IpAddr) -> Option<Address>,
) -> Result<PacketRef, Refused> {
    let ip = parse_ip(bytes).map_err(Refused::Malformed)?;
    let bytes = &bytes[..ip.total_length];
    let destination = destination(ip.source, ip.destination).ok_or(Refused::NoRoute)?;
    let source = Endpoint {
        address: source,
        port: ip.ports.0,
    };
    let destination = Endpoint {
        address: destination,
        port: ip.ports.1,
    };
    let segment = segment(bytes, &ip);
    let (record, header_length) = match &segment {
        Some(parsed) => (
            parsed.record(source, destination),
            usize::from(parsed.header_length as u8),
        ),
        None => {
            let mut record = Packet::datagram(source, destination, ip.version, ip.protocol);
            record.set_ecn(ip.ecn);
            let carried = ip.total_length - ip.header_length;
            let udp = ip.protocol == UDP && ip.carried_at == ip.header_length && !ip.fragment;
            let inner = if udp && carried >= UDP_LENGTH {
                UDP_LENGTH
            } else {
                0
            };
            (record, ip.header_length + inner)
        }
    };
    let mut record = record;
    // At most 60 + 60, or 65535 + 40 - 40.
    record.header_length = header_length as u8;
    record.payload_length = (bytes.len() - header_length) as u16;
    let reference = packets
        .insert_with_bytes(record, bytes)
        .map_err(Refused::PoolFull)?;
    packets.set_ip(reference, (ip.source, ip.destination));
    if let Some(parsed) = segment {
        parsed.add_options(packets, reference);
    }
    Ok(reference)
}

/// Whether a received packet contains a TCP segment with Multipath TCP options (RFC 8684).
#[must_use]
pub fn is_multipath(bytes: &[u8]) -> bool {
    let Some(ip) = parse_ip(bytes)
        .ok()
        .filter(|ip| ip.protocol == tcp::PROTOCOL)
    else {
        return false;
    };
    let Some(carried) = bytes.get(ip.carried_at..ip.total_length) else {
        return false;
    };
    let length = |offset: &u8| usize::from(offset >> 4) * 4;
    (carried.get(12).map(length))
        .and_then(|end| carried.get(tcp::LENGTH..end))
        .is_some_and(TcpOptions::are_multipath)
}

/// Returns the TCP segment in a packet if it is complete and valid.
fn segment<'a>(bytes: &'a [u8], ip: &IpPacket) -> Option<Parsed<'a>> {
    if ip.protocol != tcp::PROTOCOL || ip.fragment || ip.carried_at != ip.header_length {
        return None;
    }
    let carried = &bytes[ip.carried_at..];
    let addresses = Some((ip.source, ip.destination));
    let (header, length) = TcpHeader::read(carried, ip.carried_at, addresses).ok()?;
    // A node that changes a signed segment would have to sign the result, and has no key.
    if header.options.are_signed(&carried[tcp::LENGTH..length]) {
        return None;
    }
    let ip_header = match (ip.source, ip.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => IpHeader::V4(Ipv4Header {
            source,
            destination,
            dscp: bytes[1] >> 2,
            ecn: ip.ecn,
            identification: u16::from_be_bytes([bytes[4], bytes[5]]),
            dont_fragment: bytes[6] & 0x40 != 0,
            time_to_live: ip.hop_limit,
        }),
        (IpAddr::V6(source), IpAddr::V6(destination)) => IpHeader::V6(Ipv6Header {
            source,
            destination,
            dscp: (bytes[0] << 4 | bytes[1] >> 4) >> 2,
            ecn: ip.ecn,
            flow_label: u32::from_be_bytes([0, bytes[1] & 0x0f, bytes[2], bytes[3]]),
            hop_limit: ip.hop_limit,
        }),
        _ => return None,
    };
    Some(Parsed {
        ip: ip_header,
        tcp: header,
        header_length: ip.carried_at + length,
        payload: &carried[length..],
    })
}
