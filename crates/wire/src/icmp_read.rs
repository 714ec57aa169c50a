//! Parsing of ICMP errors about TCP segments.

use std::net::{IpAddr, SocketAddr};

use bentpipe_types::{IcmpError, Seq};

use crate::checksum::Sum;
use crate::{ip, ipv4, ipv6, tcp};

/// IANA protocol numbers.
const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;

/// Length of an ICMP header in bytes.
const HEADER: usize = 8;

/// A received ICMP error about a TCP segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentError {
    /// The error.
    pub error: IcmpError,
    /// Claimed sender of the segment.
    pub source: SocketAddr,
    /// Claimed destination of the segment.
    pub destination: SocketAddr,
    /// Claimed sequence number of the segment.
    pub sequence: Seq,
}

impl SegmentError {
    /// Parses an IP packet as an ICMP error about a segment, which must quote the IP header and the
    /// first 64 bits of the TCP header (RFC 792, RFC 4443). Returns `None` for anything else, for
    /// malformed messages, and if the error was not sent to the segment's sender. Only that sender
    /// can tell whether the segment exists (RFC 5927 section 4).
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let packet = ip::parse_ip(bytes).ok()?;
        if packet.fragment {
            return None;
        }
        let message = bytes.get(packet.carried_at..packet.total_length)?;
        let v6 = packet.source.is_ipv6();
        let sum = match (packet.protocol, v6) {
            (ICMP, false) => Sum::default(),
            (ICMP_V6, true) => {
                let (from, to) = (packet.source, packet.destination);
                Sum::default().pseudo_header_of(ICMP_V6, from, to, message.len())
            }
            _ => return None,
        };
        if sum.bytes(message).finish() != 0 {
            return None;
        }
        let (&[kind, code, _, _, a, b, c, d], quoted) = message.split_first_chunk::<HEADER>()?;
        let rest = u32::from_be_bytes([a, b, c, d]);
        let error = if v6 {
            error_v6(kind, code, rest)
        } else {
            error_v4(kind, code, rest)
        }?;
        let (source, destination, segment) = if v6 { quoted_v6 } else { quoted_v4 }(quoted)?;
        let &[a, b, c, d, e, f, g, h] = segment.first_chunk::<8>()?;
        (source == packet.destination).then_some(Self {
            error,
            source: SocketAddr::new(source, u16::from_be_bytes([a, b])),
            destination: SocketAddr::new(destination, u16::from_be_bytes([c, d])),
            sequence: Seq::new(u32::from_be_bytes([e, f, g, h])),
        })
    }
}

/// Maps type and code (RFC 792, RFC 1122 section 3.2.2.1, RFC 1812 section 5.2.7.1). Source Quench
/// is ignored (RFC 9293 section 3.9.2.2).
fn error_v4(kind: u8, code: u8, rest: u32) -> Option<IcmpError> {
    Some(match (kind, code) {
        (3, 0 | 6 | 11) => IcmpError::NetworkUnreachable,
        (3, 1 | 5 | 7 | 8 | 12) => IcmpError::HostUnreachable,
        (3, 2) => IcmpError::ProtocolUnreachable,
        (3, 3) => IcmpError::PortUnreachable,
        // RFC 1191 section 4.
        (3, 4) => IcmpError::TooBig { mtu: rest & 0xffff },
        (3, 9 | 10 | 13..=15) => IcmpError::Prohibited,
        (11, _) => IcmpError::TimeExceeded,
        (12, _) => IcmpError::ParameterProblem,
        _ => return None,
    })
}

/// Maps type and code (RFC 4443 section 3).
fn error_v6(kind: u8, code: u8, rest: u32) -> Option<IcmpError> {
    Some(match (kind, code) {
        (1, 0 | 2) => IcmpError::NetworkUnreachable,
        (1, 1 | 5 | 6) => IcmpError::Prohibited,
        (1, 3) => IcmpError::HostUnreachable,
        (1, 4) => IcmpError::PortUnreachable,
        (2, _) => IcmpError::TooBig { mtu: rest },
        (3, _) => IcmpError::TimeExceeded,
        (4, 1) => IcmpError::ProtocolUnreachable,
        (4, _) => IcmpError::ParameterProblem,
        _ => return None,
    })
}

type Quoted<'a> = (IpAddr, IpAddr, &'a [u8]);

/// Returns the addresses of a quoted packet and the quoted part of its segment. The length field is
/// that of the original packet, and its checksum cannot be verified.
fn quoted_v4(bytes: &[u8]) -> Option<Quoted<'_>> {
    let fixed = bytes.first_chunk::<{ ipv4::LENGTH }>()?;
    let length = usize::from(fixed[0] & 0x0f) * 4;
    let first = u16::from_be_bytes([fixed[6], fixed[7]]) & 0x1fff == 0;
    if fixed[0] >> 4 != 4 || length < ipv4::LENGTH || fixed[9] != tcp::PROTOCOL || !first {
        return None;
    }
    let ip = |at: usize| IpAddr::from([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    Some((ip(12), ip(16), bytes.get(length..)?))
}

fn quoted_v6(bytes: &[u8]) -> Option<Quoted<'_>> {
    let (fixed, segment) = bytes.split_first_chunk::<{ ipv6::LENGTH }>()?;
    if fixed[0] >> 4 != 6 || fixed[6] != tcp::PROTOCOL {
        return None;
    }
    let ip = |at: usize| {
        let mut octets = [0; 16];
        octets.copy_from_slice(&fixed[at..at + 16]);
        IpAddr::from(octets)
    };
    Some((ip(8), ip(24), segment))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Encoder, NodeAddresses};
    use bentpipe_types::{Address, Endpoint, IpVersion, Packet, PacketStore};
    use proptest::prelude::*;

    const ERRORS: [IcmpError; 8] = [
        IcmpError::NetworkUnreachable,
        IcmpError::HostUnreachable,
        IcmpError::ProtocolUnreachable,
        IcmpError::PortUnreachable,
        IcmpError::TooBig { mtu: 1280 },
        IcmpError::Prohibited,
        IcmpError::TimeExceeded,
        IcmpError::ParameterProblem,
    ];

    fn end(node: u16, port: u16) -> Endpoint {
        Endpoint {
            address: Address(node),
            port,
        }
    }

    fn written(error: IcmpError, version: IpVersion) -> Vec<u8> {
        let mut packets = PacketStore::default();
        let mut segment = Packet::new(end(1, 40_000), end(2, 80), version);
        segment.sequence = Seq::new(0xfedc_ba98);
        segment.payload_length = 1000;
        let complaint = Packet::icmp_error(Address(3), &segment, error).expect("of a segment");
        let complaint = packets.insert(complaint);
        let mut bytes = Vec::new();
        let mut encoder = Encoder::new(NodeAddresses);
        let result = encoder.encode(&packets, complaint, &mut bytes);
        result.expect("it can be written");
        bytes
    }

    #[test]
    fn written_icmp_errors_are_read_back_equal() {
        for version in [IpVersion::V4, IpVersion::V6] {
            for error in ERRORS {
                let read = SegmentError::read(&written(error, version)).expect("an error");
                // IPv6 has no protocol unreachable, and IPv4's MTU has 16 bits.
                assert_eq!(read.error, error, "{version:?}");
                assert_eq!(read.source.port(), 40_000);
                assert_eq!(read.destination.port(), 80);
                assert_eq!(NodeAddresses::node(read.source.ip()), Some(Address(1)));
                assert_eq!(NodeAddresses::node(read.destination.ip()), Some(Address(2)));
                assert_eq!(read.sequence, Seq::new(0xfedc_ba98));
            }
        }
    }

    #[test]
    fn icmp_errors_in_the_name_of_a_real_host_quote_the_segment_sent_to_it() {
        for (host, server) in [
            ("192.0.2.1", "198.51.100.7"),
            ("2001:db8::1", "2001:db8::9"),
        ] {
            let [host, server]: [IpAddr; 2] =
                [host, server].map(|address| address.parse().expect("an address"));
            let version = if host.is_ipv4() {
                IpVersion::V4
            } else {
                IpVersion::V6
            };
            let mut packets = PacketStore::default();
            let segment = Packet::new(end(1, 80), end(2, 40_000), version);
            let error = IcmpError::TooBig { mtu: 1300 };
            let complaint = Packet::icmp_error(Address(2), &segment, error).expect("of a segment");
            let complaint = packets.insert(complaint);
            packets.set_ip(complaint, (host, server));
            let mut bytes = Vec::new();
            let mut encoder = Encoder::new(NodeAddresses);
            let written = encoder.encode(&packets, complaint, &mut bytes);
            written.expect("it can be written");
            let read = SegmentError::read(&bytes).expect("an error");
            assert_eq!(read.error, error);
            assert_eq!(read.source, SocketAddr::new(server, 80));
            assert_eq!(read.destination, SocketAddr::new(host, 40_000));
        }
    }

    #[test]
    fn damaged_or_foreign_icmp_errors_are_rejected() {
        let good = written(IcmpError::PortUnreachable, IpVersion::V4);
        for at in 20..good.len() {
            let mut damaged = good.clone();
            damaged[at] ^= 4;
            assert_eq!(SegmentError::read(&damaged), None, "byte {at}");
        }
        for length in 0..good.len() {
            assert_eq!(SegmentError::read(&good[..length]), None);
        }
        // Forwarded to another host: only the IP checksum covers the addresses.
        let mut elsewhere = good;
        elsewhere[19] ^= 1;
        elsewhere[10..12].fill(0);
        let sum = crate::checksum::checksum(&elsewhere[..20]);
        elsewhere[10..12].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(SegmentError::read(&elsewhere), None);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = SegmentError::read(&bytes);
        }
    }
}
