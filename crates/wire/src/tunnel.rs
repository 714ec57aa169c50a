//! Packets in tunnels (RFC 2003), with a compactor's data between the two headers.
//!
//! The protocol of the outer header determines what follows:
//!
//! | protocol | what follows |
//! |---|---|
//! | 4 | an IPv4 packet (RFC 2003 section 3.1) |
//! | 41 | an IPv6 packet (RFC 4213 section 3) |
//! | 253 | removed acknowledgments (1 byte), bytes they acknowledged (2), the remaining packet |
//!
//! samaraweera1999 (section 6) states that the expander "recognizes the new header", but not how.
//! Protocol 253 is reserved for experiments (RFC 3692 section 2.1) and costs no byte.

use std::net::{IpAddr, Ipv4Addr};

use bentpipe_types::{Address, Compaction, IpVersion, Packet, PacketRef, PacketStore, Tunnel};

use crate::checksum::update_u16;
use crate::error::{Layer, ParseError};
use crate::parse::read;
use crate::{Ipv4Header, Parsed, ipv4};

const IPV4_IN_IPV4: u8 = 4;
const IPV6_IN_IPV4: u8 = 41;
/// Outer protocol number of a compacted acknowledgment.
pub const COMPACTION_PROTOCOL: u8 = 253;
const PREFIX: usize = 3;

/// Hop limit of the outer header.
const HOP_LIMIT: u8 = 64;

/// Returns the number of bytes in front of the inner packet.
pub(crate) fn length(compaction: Option<Compaction>) -> usize {
    ipv4::LENGTH + compaction.map_or(0, |_| PREFIX)
}

/// Appends everything in front of the inner packet. `total_length` includes the inner packet.
pub(crate) fn write(
    ends: (IpAddr, IpAddr),
    packet: &Packet,
    compaction: Option<Compaction>,
    identification: u16,
    total_length: usize,
    bytes: &mut Vec<u8>,
) {
    let (IpAddr::V4(source), IpAddr::V4(destination)) = ends else {
        debug_assert!(false, "Addressing gave an address of another version");
        return;
    };
    let protocol = match (compaction, packet.ip_version()) {
        (Some(_), _) => COMPACTION_PROTOCOL,
        (None, IpVersion::V4) => IPV4_IN_IPV4,
        (None, IpVersion::V6) => IPV6_IN_IPV4,
    };
    let header = Ipv4Header {
        source,
        destination,
        dscp: 0,
        // RFC 6040 section 4.1, normal mode.
        ecn: packet.ecn(),
        identification,
        // RFC 2003 section 3.1: as in the inner header.
        dont_fragment: true,
        time_to_live: HOP_LIMIT,
    };
    header.write_in_front_of(protocol, total_length as u16, bytes);
    if let Some(Compaction { count, bytes: sum }) = compaction {
        let [high, low] = sum.to_be_bytes();
        bytes.extend_from_slice(&[count, high, low]);
    }
}

/// Sets the total length of the outer header to the length of `bytes`.
pub(crate) fn set_total_length(bytes: &mut [u8]) {
    let word = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let length = bytes.len() as u16;
    let sum = update_u16(word(10), word(2), length);
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// A parsed TCP segment in an IP packet inside an IPv4 packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tunnelled<'a> {
    /// The outer header.
    pub outer: Ipv4Header,
    /// A compactor's data.
    pub compaction: Option<Compaction>,
    /// The inner packet. Offsets in its `header_length` are relative to its own start.
    pub inner: Parsed<'a>,
}

/// Parses an IPv4 packet that contains another packet with a TCP segment, and verifies all
/// checksums.
///
/// # Errors
/// Returns an error for anything else; offsets behind the outer header are relative to the inner
/// packet. Never panics.
pub fn parse_tunnelled(bytes: &[u8]) -> Result<Tunnelled<'_>, ParseError> {
    let protocols = [IPV4_IN_IPV4, IPV6_IN_IPV4, COMPACTION_PROTOCOL];
    if let Some(first) = bytes.first().filter(|&first| first >> 4 != 4) {
        return Err(ParseError::Version {
            version: first >> 4,
        });
    }
    let (outer, protocol, range) = Ipv4Header::read_in_front_of(&protocols, bytes, true)?;
    let mut inner = &bytes[range];
    let mut compaction = None;
    if protocol == COMPACTION_PROTOCOL {
        let (&[count, high, low], rest) =
            inner
                .split_first_chunk::<PREFIX>()
                .ok_or(ParseError::Truncated {
                    layer: Layer::Ip,
                    needed: PREFIX,
                    available: inner.len(),
                })?;
        compaction = Some(Compaction {
            count,
            bytes: u16::from_be_bytes([high, low]),
        });
        inner = rest;
    }
    let inner = read(inner, true)?;
    let version = match protocol {
        IPV4_IN_IPV4 => Some(IpVersion::V4),
        IPV6_IN_IPV4 => Some(IpVersion::V6),
        _ => None,
    };
    if version.is_some_and(|version| version != inner.ip.version()) {
        return Err(ParseError::Version {
            version: match inner.ip.version() {
                IpVersion::V4 => 4,
                IpVersion::V6 => 6,
            },
        });
    }
    Ok(Tunnelled {
        outer,
        compaction,
        inner,
    })
}

impl Tunnelled<'_> {
    /// Stores the packet in its tunnel, as [`Parsed::insert`].
    ///
    /// # Errors
    /// Those of `node_of`.
    pub fn insert<E>(
        &self,
        packets: &mut PacketStore,
        mut node_of: impl FnMut(IpAddr) -> Result<Address, E>,
    ) -> Result<PacketRef, E> {
        let mut end = |address: Ipv4Addr| node_of(IpAddr::V4(address));
        let tunnel = Tunnel {
            source: end(self.outer.source)?,
            destination: end(self.outer.destination)?,
        };
        let packet = self.inner.insert(packets, node_of)?;
        packets.set_tunnel(packet, Some(tunnel));
        packets.set_compaction(packet, self.compaction);
        // At most 60 + 60 + 23.
        packets.get_mut(packet).header_length += length(self.compaction) as u8;
        Ok(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_types::{Ecn, Endpoint, Flags, Seq};
    use proptest::prelude::*;

    use crate::{EncodeError, Encoder, NodeAddresses};

    fn stored(packets: &mut PacketStore, version: IpVersion, payload: u16) -> PacketRef {
        let end = |address| Endpoint {
            address: Address(address),
            port: 80,
        };
        let mut packet = Packet::new(end(1), end(2), version);
        packet.flags = Flags::ACK;
        packet.acknowledgment = Seq::new(77);
        packet.payload_length = payload;
        packet.set_ecn(Ecn::Capable0);
        packets.insert(packet)
    }

    fn tunnelled(
        version: IpVersion,
        payload: u16,
        compaction: Option<Compaction>,
    ) -> (PacketStore, PacketRef, Vec<u8>) {
        let mut packets = PacketStore::default();
        let packet = stored(&mut packets, version, payload);
        let tunnel = Tunnel {
            source: Address(3),
            destination: Address(4),
        };
        packets.set_tunnel(packet, Some(tunnel));
        packets.set_compaction(packet, compaction);
        packets.get_mut(packet).header_length += length(compaction) as u8;
        let mut bytes = Vec::new();
        Encoder::new(NodeAddresses)
            .encode(&packets, packet, &mut bytes)
            .expect("a valid packet");
        (packets, packet, bytes)
    }

    fn node(ip: IpAddr) -> Result<Address, IpAddr> {
        NodeAddresses::node(ip).ok_or(ip)
    }

    const COMPACTION: Compaction = Compaction {
        count: 44,
        bytes: 64_240,
    };

    #[test]
    fn written_tunnel_packets_are_read_back_equal() {
        for version in [IpVersion::V4, IpVersion::V6] {
            for compaction in [None, Some(COMPACTION)] {
                let (mut packets, packet, bytes) = tunnelled(version, 9, compaction);
                assert_eq!(packets.get(packet).length().get(), bytes.len() as u64);
                let parsed = parse_tunnelled(&bytes).expect("what was written");
                assert_eq!(parsed.compaction, compaction);
                assert_eq!(parsed.outer.source, NodeAddresses::ipv4(Address(3)));
                assert_eq!(parsed.outer.ecn, Ecn::Capable0);
                let again = parsed.insert(&mut packets, node).expect("nodes");
                assert_eq!(packets.tunnel(again), packets.tunnel(packet));
                assert_eq!(packets.compaction(again), compaction);
                assert_eq!(
                    packets.get(again).header_length,
                    packets.get(packet).header_length
                );
            }
        }
    }

    #[test]
    fn encoded_tunnel_headers_equal_the_documented_table() {
        let (_, _, plain) = tunnelled(IpVersion::V4, 0, None);
        assert_eq!((plain.len(), plain[9], plain[20]), (60, 4, 0x45));
        let (_, _, plain) = tunnelled(IpVersion::V6, 0, None);
        assert_eq!((plain.len(), plain[9], plain[20]), (80, 41, 0x60));
        let (_, _, compacted) = tunnelled(IpVersion::V4, 0, Some(COMPACTION));
        assert_eq!((compacted.len(), compacted[9]), (63, 253));
        assert_eq!(compacted[20..24], [44, 0xfa, 0xf0, 0x45]);
    }

    #[test]
    fn a_compacted_acknowledgment_outside_a_tunnel_cannot_be_encoded() {
        let mut packets = PacketStore::default();
        let packet = stored(&mut packets, IpVersion::V4, 0);
        packets.set_compaction(packet, Some(COMPACTION));
        let mut bytes = Vec::new();
        assert_eq!(
            Encoder::new(NodeAddresses).encode(&packets, packet, &mut bytes),
            Err(EncodeError::CompactionOutsideTunnel)
        );
    }

    #[test]
    fn packets_without_a_tunnel_header_are_rejected() {
        let (_, _, mut bytes) = tunnelled(IpVersion::V6, 0, None);
        bytes[9] = IPV4_IN_IPV4;
        bytes[10] = 0;
        bytes[11] = 0;
        let sum = crate::checksum::checksum(&bytes[..20]);
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(
            parse_tunnelled(&bytes),
            Err(ParseError::Version { version: 6 })
        );
        assert!(parse_tunnelled(&[]).is_err());
        assert!(parse_tunnelled(&[0x60; 60]).is_err());
        let mut packets = PacketStore::default();
        let packet = stored(&mut packets, IpVersion::V4, 0);
        let mut bytes = Vec::new();
        Encoder::new(NodeAddresses)
            .encode(&packets, packet, &mut bytes)
            .expect("a valid packet");
        assert_eq!(
            parse_tunnelled(&bytes),
            Err(ParseError::Protocol { at: 9, protocol: 6 })
        );
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(
            noise in prop::collection::vec(any::<u8>(), 0..90),
            at in any::<prop::sample::Index>(),
            flip in any::<u8>(),
            cut in any::<prop::sample::Index>(),
        ) {
            let _ = parse_tunnelled(&noise);
            let (_, _, mut bytes) = tunnelled(IpVersion::V4, 9, Some(COMPACTION));
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            let _ = parse_tunnelled(&bytes[..cut.index(bytes.len() + 1)]);
        }
    }
}
