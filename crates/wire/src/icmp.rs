//! Encoding of ICMP errors and echo messages (RFC 792, RFC 4443).

use std::net::IpAddr;

use bentpipe_types::{ECHO_HEADER, Echo, IcmpError, IcmpQuote, Packet};

use crate::checksum::Sum;
use crate::{Ipv4Header, Ipv6Header, ipv6, payload};

/// IANA protocol numbers.
const TCP: u8 = 6;
const ICMP_V6: u8 = 58;

/// Hop limit in the quoted packet, as it was sent. The remaining hops are not stored.
const HOP_LIMIT: u8 = 64;

/// Returns type, code and the second half of the ICMP header.
fn header(error: IcmpError, v6: bool) -> (u8, u8, u32) {
    // RFC 1191 section 4: the MTU is in the last 16 bits.
    let mtu_of_16_bits = |mtu: u32| mtu.min(u32::from(u16::MAX));
    match (error, v6) {
        (IcmpError::NetworkUnreachable, _) => (if v6 { 1 } else { 3 }, 0, 0),
        (IcmpError::HostUnreachable, false) => (3, 1, 0),
        (IcmpError::ProtocolUnreachable, false) => (3, 2, 0),
        (IcmpError::PortUnreachable, false) => (3, 3, 0),
        (IcmpError::TooBig { mtu }, false) => (3, 4, mtu_of_16_bits(mtu)),
        (IcmpError::Prohibited, false) => (3, 13, 0),
        (IcmpError::TimeExceeded, false) => (11, 0, 0),
        (IcmpError::ParameterProblem, false) => (12, 0, 0),
        (IcmpError::HostUnreachable, true) => (1, 3, 0),
        (IcmpError::PortUnreachable, true) => (1, 4, 0),
        (IcmpError::TooBig { mtu }, true) => (2, 0, mtu),
        (IcmpError::Prohibited, true) => (1, 1, 0),
        (IcmpError::TimeExceeded, true) => (3, 0, 0),
        // RFC 4443 section 3.4, code 1: unrecognized next header.
        (IcmpError::ProtocolUnreachable, true) => (4, 1, 0),
        (IcmpError::ParameterProblem, true) => (4, 0, 0),
    }
}

/// Appends the content of an ICMP error between `outer` addresses about a packet between `quoted`
/// addresses.
pub(crate) fn write(
    quote: &IcmpQuote,
    outer: (IpAddr, IpAddr),
    quoted: (IpAddr, IpAddr),
    bytes: &mut Vec<u8>,
) {
    let start = bytes.len();
    let v6 = outer.0.is_ipv6();
    let (kind, code, rest) = header(quote.error, v6);
    bytes.extend_from_slice(&[kind, code, 0, 0]);
    bytes.extend_from_slice(&rest.to_be_bytes());
    let length = quote.length.min(u32::from(u16::MAX)) as u16;
    match quoted {
        (IpAddr::V4(source), IpAddr::V4(destination)) => Ipv4Header {
            source,
            destination,
            dscp: 0,
            ecn: bentpipe_types::Ecn::NotCapable,
            identification: 0,
            dont_fragment: true,
            time_to_live: HOP_LIMIT,
        }
        .write_in_front_of(TCP, length, bytes),
        (IpAddr::V6(source), IpAddr::V6(destination)) => Ipv6Header {
            source,
            destination,
            dscp: 0,
            ecn: bentpipe_types::Ecn::NotCapable,
            flow_label: 0,
            hop_limit: HOP_LIMIT,
        }
        .write_in_front_of(TCP, length.saturating_sub(ipv6::LENGTH as u16), bytes),
        _ => debug_assert!(false, "Addressing gave an address of another version"),
    }
    for port in [quote.source.port, quote.destination.port] {
        bytes.extend_from_slice(&port.to_be_bytes());
    }
    bytes.extend_from_slice(&quote.sequence.get().to_be_bytes());
    put_checksum(outer, start, bytes);
}

/// Appends an echo message of `length` bytes between `ends` (RFC 792; RFC 4443 sections 4.1 and
/// 4.2). Its sequence number is the creator's, modulo 65,536; its data are filler.
pub(crate) fn write_echo(
    packet: &Packet,
    ends: (IpAddr, IpAddr),
    length: usize,
    bytes: &mut Vec<u8>,
) {
    let start = bytes.len();
    let kind = match (packet.echo_kind(), ends.0.is_ipv6()) {
        (Some(Echo::Reply), false) => 0,
        (_, false) => 8,
        (Some(Echo::Reply), true) => 129,
        (_, true) => 128,
    };
    bytes.extend_from_slice(&[kind, 0, 0, 0]);
    bytes.extend_from_slice(&packet.echo_identifier().to_be_bytes());
    bytes.extend_from_slice(&(packet.payload_offset as u16).to_be_bytes());
    debug_assert_eq!(bytes.len() - start, usize::from(ECHO_HEADER));
    bytes.resize(start + length.max(usize::from(ECHO_HEADER)), 0);
    payload::fill(0, &mut bytes[start + usize::from(ECHO_HEADER)..]);
    put_checksum(ends, start, bytes);
}

/// Writes the checksum of the ICMP message that begins at `start`. ICMPv6 includes the addresses.
fn put_checksum(ends: (IpAddr, IpAddr), start: usize, bytes: &mut [u8]) {
    let sum = if ends.0.is_ipv6() {
        let length = bytes.len() - start;
        Sum::default().pseudo_header_of(ICMP_V6, ends.0, ends.1, length)
    } else {
        Sum::default()
    };
    let sum = sum.bytes(&bytes[start..]).finish();
    bytes[start + 2..start + 4].copy_from_slice(&sum.to_be_bytes());
}
