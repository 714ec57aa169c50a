//! Encoding of stored packets as bytes.

use std::net::IpAddr;

use bentpipe_types::{Flags, IpVersion, Packet, PacketRef, PacketStore, SynOptions, Tunnel};

use crate::checksum::Sum;
use crate::error::EncodeError;
use crate::ip::{UDP, UDP_LENGTH};
use crate::options::{MAXIMUM_OPTIONS_LENGTH, TcpOptions};
use crate::rewrite::rewrite;
use crate::{
    Addressing, Ipv4Header, Ipv6Header, TcpHeader, icmp, ipv4, ipv6, payload, tcp, tunnel,
};

/// Bytes of a TCP header without options.
const TCP_LENGTH: u8 = 20;
/// IANA protocol number of TCP.
const TCP: u8 = 6;

/// Writes stored packets as the bytes of IP packets.
///
/// In packets created in the network, DSCP, flow label and hop limit are those of
/// [`PacketStore::ip_fields`], by default 0, 0 and 64. The urgent pointer is 0, and don't-fragment
/// is set. Only the IPv4 identification
/// counts the packets that this encoder has written.
#[derive(Clone, Debug)]
pub struct Encoder<A> {
    addressing: A,
    identification: u16,
}

impl<A: Addressing> Encoder<A> {
    /// Creates an encoder that takes IP addresses of nodes from `addressing`.
    pub fn new(addressing: A) -> Self {
        Self {
            addressing,
            identification: 0,
        }
    }

    /// Returns the source of IP addresses.
    pub fn addressing(&mut self) -> &mut A {
        &mut self.addressing
    }

    /// Writes the packet into `bytes`, replacing their content. Once `bytes` has grown, nothing is
    /// allocated.
    ///
    /// A packet received from a wire is written with its original bytes, patched where the record
    /// differs. A packet created in the network is encoded from its record. Its payload is the
    /// attached one, or the range of the simulated stream ([`payload::fill`]).
    ///
    /// # Errors
    /// Returns an error if a node has no IP address or the packet contradicts itself; `bytes` is
    /// then empty.
    pub fn encode(
        &mut self,
        packets: &PacketStore,
        packet: PacketRef,
        bytes: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        if packets.fragment(packet).is_some() {
            return self.encode_fragment(packets, packet, bytes);
        }
        if packets.bytes(packet).is_some() || !packets.get(packet).is_tcp() {
            return self.encode_datagram(packets, packet, bytes);
        }
        let payload = packets.payload(packet);
        self.encode_with(packets, packet, bytes, |packet, out| match payload {
            Some(payload) => out.copy_from_slice(payload),
            None => payload::fill(packet.payload_offset, out),
        })
    }

    /// Returns the outer addresses of a tunnelled packet.
    fn tunnel_ends(&self, outer: Tunnel) -> Result<(IpAddr, IpAddr), EncodeError> {
        Ok((
            self.ip_address(outer.source, IpVersion::V4)?,
            self.ip_address(outer.destination, IpVersion::V4)?,
        ))
    }

    /// Encodes a fragment (RFC 791 section 3.2): the header of the original packet with the
    /// fragment's own fields, and the fragment's part of the content.
    fn encode_fragment(
        &mut self,
        packets: &PacketStore,
        reference: PacketRef,
        bytes: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        bytes.clear();
        let (Some(fragment), Some(whole)) =
            (packets.fragment(reference), packets.whole_of(reference))
        else {
            return Ok(());
        };
        let mut all = Vec::new();
        self.encode(packets, whole, &mut all)?;
        let record = packets.get(reference);
        let start = ipv4::LENGTH + usize::from(fragment.offset);
        let length = usize::from(record.payload_length);
        let (Some(header), Some(piece)) = (
            all.first_chunk::<{ ipv4::LENGTH }>(),
            all.get(start..start + length),
        ) else {
            // The original packet has changed since it was fragmented.
            return Err(EncodeError::TooLong {
                length: start + length,
            });
        };
        if let Some(outer) = packets.tunnel(reference) {
            let ends = self.tunnel_ends(outer)?;
            self.identification = self.identification.wrapping_add(1);
            tunnel::write(ends, record, None, self.identification, 0, bytes);
        }
        bytes.extend_from_slice(&ipv4::piece(header, &fragment, length as u16));
        bytes.extend_from_slice(piece);
        if record.is_corrupt()
            && let Some(last) = bytes.last_mut()
        {
            *last ^= 1;
        }
        if packets.tunnel(reference).is_some() {
            tunnel::set_total_length(bytes);
        }
        Ok(())
    }

    /// Encodes a packet with original bytes, or a datagram.
    fn encode_datagram(
        &mut self,
        packets: &PacketStore,
        reference: PacketRef,
        bytes: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        bytes.clear();
        let compaction = packets.compaction(reference);
        let prefix = match packets.tunnel(reference) {
            Some(outer) => {
                let ends = self.tunnel_ends(outer)?;
                self.identification = self.identification.wrapping_add(1);
                let (record, id) = (packets.get(reference), self.identification);
                tunnel::write(ends, record, compaction, id, 0, bytes);
                bytes.len()
            }
            None if compaction.is_some() => return Err(EncodeError::CompactionOutsideTunnel),
            None => 0,
        };
        let written = match packets.bytes(reference) {
            Some(original) => rewrite(packets, reference, original, bytes),
            None => self.write_datagram(packets, reference, prefix, bytes),
        };
        let fits = prefix == 0 || bytes.len() <= usize::from(u16::MAX);
        let length = bytes.len();
        let written = written.and(fits.then_some(()).ok_or(EncodeError::TooLong { length }));
        match written {
            Ok(()) if prefix > 0 => tunnel::set_total_length(bytes),
            Ok(()) => {}
            Err(_) => bytes.clear(),
        }
        written
    }

    /// Appends a datagram created in the network.
    fn write_datagram(
        &mut self,
        packets: &PacketStore,
        reference: PacketRef,
        prefix: usize,
        bytes: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let packet = packets.get(reference);
        let version = packet.ip_version();
        let (source, destination) = self.ip_addresses(packets, reference)?;
        let payload_length = usize::from(packet.payload_length);
        let udp = packet.protocol() == UDP;
        let headers = usize::from(version.header_length()) + if udp { UDP_LENGTH } else { 0 };
        if usize::from(packet.header_length) != prefix + headers {
            return Err(EncodeError::HeaderLength {
                recorded: packet.header_length,
                encoded: prefix + headers,
            });
        }
        let length = headers + payload_length;
        let carried = length - usize::from(version.header_length());
        if length > longest(version) {
            return Err(EncodeError::TooLong { length });
        }
        self.write_ip(packets, reference, (source, destination), length, bytes);
        let start = bytes.len();
        if let Some(quote) = packet.icmp_quote() {
            let quoted = match packets.ip(reference) {
                // The error is sent in the name of the packet's destination to its source.
                Some((by, to)) => (to, by),
                None => (
                    self.ip_address(quote.source.address, version)?,
                    self.ip_address(quote.destination.address, version)?,
                ),
            };
            icmp::write(&quote, (source, destination), quoted, bytes);
            debug_assert_eq!(bytes.len(), start + carried, "what an error's length says");
            return Ok(());
        }
        if packet.echo_kind().is_some() {
            icmp::write_echo(packet, (source, destination), carried, bytes);
            return Ok(());
        }
        if udp {
            for word in [
                packet.source.port,
                packet.destination.port,
                carried as u16,
                0,
            ] {
                bytes.extend_from_slice(&word.to_be_bytes());
            }
        }
        let at = bytes.len();
        bytes.resize(start + carried, 0);
        match packets.payload(reference) {
            Some(payload) => bytes[at..].copy_from_slice(payload),
            None => payload::fill(packet.payload_offset, &mut bytes[at..]),
        }
        let corrupt_segment = packet.protocol() == TCP && packet.is_corrupt();
        let checksum_at = if udp {
            Some(6)
        } else if corrupt_segment && carried >= usize::from(TCP_LENGTH) {
            // Ports and type of a segment that was corrupted on the way.
            bytes[start..start + 2].copy_from_slice(&packet.source.port.to_be_bytes());
            bytes[start + 2..start + 4].copy_from_slice(&packet.destination.port.to_be_bytes());
            bytes[start + 12] = (TCP_LENGTH / 4) << 4;
            bytes[start + 16..start + 18].fill(0);
            Some(16)
        } else {
            None
        };
        if let Some(at) = checksum_at {
            let sum = Sum::default()
                .pseudo_header_of(packet.protocol(), source, destination, carried)
                .bytes(&bytes[start..])
                .finish();
            let wrong = u16::from(packet.is_corrupt());
            // RFC 768: a checksum of zero is sent as all ones.
            let sum = match sum ^ wrong {
                0 if udp => 0xffff ^ (wrong << 1),
                sum => sum,
            };
            bytes[start + at..start + at + 2].copy_from_slice(&sum.to_be_bytes());
        }
        Ok(())
    }

    /// [`encode`](Self::encode) with a payload that `fill` writes into zeroed bytes.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    pub fn encode_with(
        &mut self,
        packets: &PacketStore,
        reference: PacketRef,
        bytes: &mut Vec<u8>,
        fill: impl FnOnce(&Packet, &mut [u8]),
    ) -> Result<(), EncodeError> {
        bytes.clear();
        let mut options = TcpOptions::of(packets, reference);
        let outer = packets.tunnel(reference);
        let compaction = packets.compaction(reference);
        if outer.is_none() && compaction.is_some() {
            // Without its tunnel it is not an IP packet (samaraweera1999, section 6).
            return Err(EncodeError::CompactionOutsideTunnel);
        }
        let packet = packets.get(reference);
        if !packet.flags.has(Flags::SYN) {
            options.syn = SynOptions::default();
        }
        let prefix = outer.map_or(0, |_| tunnel::length(compaction));
        let total_length = lengths(packet, &options, prefix)?;
        let (source, destination) = self.ip_addresses(packets, reference)?;

        if let Some(outer) = outer {
            let ends = self.tunnel_ends(outer)?;
            self.identification = self.identification.wrapping_add(1);
            let total_length = prefix + total_length;
            tunnel::write(
                ends,
                packet,
                compaction,
                self.identification,
                total_length,
                bytes,
            );
        }
        self.write_ip(
            packets,
            reference,
            (source, destination),
            total_length,
            bytes,
        );
        let segment = bytes.len();
        let header = TcpHeader {
            source_port: packet.source.port,
            destination_port: packet.destination.port,
            sequence: packet.sequence,
            acknowledgment: packet.acknowledgment,
            flags: packet.flags,
            window: packet.window,
            urgent_pointer: 0,
            options,
        };
        header.write(bytes);
        let payload = bytes.len();
        debug_assert_eq!(payload, usize::from(packet.header_length));
        bytes.resize(prefix + total_length, 0);
        fill(packet, &mut bytes[payload..]);
        tcp::set_tcp_checksum(&mut bytes[segment..], source, destination);
        Ok(())
    }

    /// Returns the packet's real addresses, or those of its nodes.
    fn ip_addresses(
        &self,
        packets: &PacketStore,
        reference: PacketRef,
    ) -> Result<(IpAddr, IpAddr), EncodeError> {
        let packet = packets.get(reference);
        let version = packet.ip_version();
        match packets.ip(reference) {
            Some((source, destination)) if source.is_ipv4() == destination.is_ipv4() => {
                // The record's lengths are for its IP version.
                if source.is_ipv4() != (version == IpVersion::V4) {
                    let address = packet.source.address;
                    return Err(EncodeError::NoIpAddress { address, version });
                }
                Ok((source, destination))
            }
            _ => Ok((
                self.ip_address(packet.source.address, version)?,
                self.ip_address(packet.destination.address, version)?,
            )),
        }
    }

    fn ip_address(
        &self,
        address: bentpipe_types::Address,
        version: IpVersion,
    ) -> Result<IpAddr, EncodeError> {
        self.addressing
            .ip_address(address, version)
            .ok_or(EncodeError::NoIpAddress { address, version })
    }

    fn write_ip(
        &mut self,
        packets: &PacketStore,
        reference: PacketRef,
        addresses: (IpAddr, IpAddr),
        total_length: usize,
        bytes: &mut Vec<u8>,
    ) {
        let packet = packets.get(reference);
        let fields = packets.ip_fields(reference).unwrap_or_default();
        match addresses {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                // RFC 6864 section 4.1: a packet that is never fragmented may have any value.
                self.identification = self.identification.wrapping_add(1);
                let header = Ipv4Header {
                    source,
                    destination,
                    dscp: fields.dscp,
                    ecn: packet.ecn(),
                    identification: self.identification,
                    dont_fragment: true,
                    time_to_live: fields.hop_limit,
                };
                header.write_in_front_of(packet.protocol(), total_length as u16, bytes);
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let header = Ipv6Header {
                    source,
                    destination,
                    dscp: fields.dscp,
                    ecn: packet.ecn(),
                    flow_label: fields.flow_label,
                    hop_limit: fields.hop_limit,
                };
                let length = (total_length - ipv6::LENGTH) as u16;
                header.write_in_front_of(packet.protocol(), length, bytes);
            }
            _ => debug_assert!(false, "Addressing gave an address of another version"),
        }
    }
}

/// Returns the inner packet's length. Fails if its headers, after `prefix` bytes of a tunnel
/// header, contradict the record.
fn lengths(packet: &Packet, options: &TcpOptions, prefix: usize) -> Result<usize, EncodeError> {
    let options = options.length();
    if options > MAXIMUM_OPTIONS_LENGTH {
        return Err(EncodeError::OptionsTooLong { length: options });
    }
    let version = packet.ip_version();
    let headers = usize::from(version.header_length()) + tcp::LENGTH + options;
    if usize::from(packet.header_length) != prefix + headers {
        return Err(EncodeError::HeaderLength {
            recorded: packet.header_length,
            encoded: prefix + headers,
        });
    }
    let length = headers + usize::from(packet.payload_length);
    if length > longest(version) || prefix > 0 && prefix + length > usize::from(u16::MAX) {
        return Err(EncodeError::TooLong { length });
    }
    Ok(length)
}

/// Returns the maximum packet length: an IPv4 total length includes the header (RFC 791 section
/// 3.1), an IPv6 payload length does not (RFC 8200 section 3).
const fn longest(version: IpVersion) -> usize {
    match version {
        IpVersion::V4 => u16::MAX as usize,
        IpVersion::V6 => u16::MAX as usize + ipv6::LENGTH,
    }
}
