//! ICMP errors and echo messages.

use serde::{Deserialize, Serialize};

use crate::{Address, Endpoint, IpVersion, Packet, Seq};

/// IANA protocol numbers.
const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;

/// An ICMP error (RFC 792, RFC 4443) about a packet that was sent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum IcmpError {
    /// No route to the destination's network.
    NetworkUnreachable,
    /// The destination's network is reachable, the destination is not.
    HostUnreachable,
    /// The destination does not support the protocol.
    ProtocolUnreachable,
    /// No listener at the port.
    PortUnreachable,
    /// The packet exceeds the MTU of a link of the path and must not be fragmented.
    TooBig {
        /// MTU of the link in bytes (RFC 1191 section 4); 0 if an old router does not state it.
        mtu: u32,
    },
    /// Rejected by a filter (RFC 1812 section 5.2.7.1).
    Prohibited,
    /// The hop limit was exceeded.
    TimeExceeded,
    /// The header is invalid.
    ParameterProblem,
}

impl IcmpError {
    /// Whether the error is hard: it will not disappear by itself (RFC 1122 section 4.2.3.9). With
    /// path MTU discovery "too big" is not hard.
    #[must_use]
    pub const fn is_hard(self) -> bool {
        matches!(self, Self::ProtocolUnreachable | Self::PortUnreachable)
    }
}

/// Content of an ICMP error message: the error and the beginning of the packet that it is about
/// (RFC 792: the IP header and 64 bits).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IcmpQuote {
    /// The error.
    pub error: IcmpError,
    /// Sender of the quoted packet.
    pub source: Endpoint,
    /// Destination of the quoted packet.
    pub destination: Endpoint,
    /// Sequence number of the quoted packet.
    pub sequence: Seq,
    /// Length of the quoted packet as an IP packet, in bytes.
    pub length: u32,
}

/// Length of an ICMP error about an IPv4 packet behind the IP header: ICMP header and quotation.
const QUOTE_V4: u16 = 8 + 20 + 8;
/// The same for IPv6.
const QUOTE_V6: u16 = 8 + 40 + 8;

/// An ICMP echo message (RFC 792, RFC 4443 section 4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Echo {
    /// Asks for a reply.
    Request,
    /// Answers a request.
    Reply,
}

/// Length of an echo message's header: type, code, checksum, identifier, sequence number.
pub const ECHO_HEADER: u16 = 8;

/// Kinds of echo messages, above the numbers of [`kind_of`].
const ECHO_REQUEST: u32 = 64;
const ECHO_REPLY: u32 = 65;

impl Packet {
    /// Creates an ICMP echo message. Its identifier is the port of the requesting end; the other
    /// end has no port. The caller sets the payload length.
    #[must_use]
    pub fn echo(source: Endpoint, destination: Endpoint, version: IpVersion, echo: Echo) -> Self {
        let protocol = match version {
            IpVersion::V4 => ICMP,
            IpVersion::V6 => ICMP_V6,
        };
        let mut packet = Self::datagram(source, destination, version, protocol);
        packet.payload_length = ECHO_HEADER;
        let kind = match echo {
            Echo::Request => ECHO_REQUEST,
            Echo::Reply => ECHO_REPLY,
        };
        packet.set_numbers(kind, 0);
        packet
    }

    /// Returns the kind of an echo message created by [`echo`](Self::echo), and `None` for any
    /// other packet.
    #[must_use]
    pub fn echo_kind(&self) -> Option<Echo> {
        if self.is_tcp() || !matches!(self.protocol(), ICMP | ICMP_V6) {
            return None;
        }
        match self.numbers().0 {
            ECHO_REQUEST => Some(Echo::Request),
            ECHO_REPLY => Some(Echo::Reply),
            _ => None,
        }
    }

    /// Returns the identifier of an echo message: the port of the requesting end.
    #[must_use]
    pub fn echo_identifier(&self) -> u16 {
        match self.echo_kind() {
            Some(Echo::Reply) => self.destination.port,
            _ => self.source.port,
        }
    }

    /// Creates an ICMP error from `router` about a segment, addressed to its sender. Returns `None`
    /// for anything that is not a segment (RFC 1122 section 3.2.2: no errors about ICMP errors).
    #[must_use]
    pub fn icmp_error(router: Address, segment: &Self, error: IcmpError) -> Option<Self> {
        if !segment.is_tcp() {
            return None;
        }
        let version = segment.ip_version();
        let (protocol, quote) = match version {
            IpVersion::V4 => (ICMP, QUOTE_V4),
            IpVersion::V6 => (ICMP_V6, QUOTE_V6),
        };
        let source = Endpoint {
            address: router,
            port: 0,
        };
        let mut packet = Self::datagram(source, segment.source, version, protocol);
        packet.payload_length = quote;
        packet.sequence = segment.sequence;
        let to = segment.destination;
        packet.acknowledgment = Seq::new(u32::from(to.address.0) << 16 | u32::from(to.port));
        packet.payload_offset = segment.length().get();
        let (kind, mtu) = kind_of(error);
        packet.set_numbers(kind, mtu);
        Some(packet)
    }

    /// Returns the content of an ICMP error that was created in the network.
    #[must_use]
    pub fn icmp_quote(&self) -> Option<IcmpQuote> {
        if !matches!(self.protocol(), ICMP | ICMP_V6) || self.is_tcp() || self.is_corrupt() {
            return None;
        }
        let (kind, mtu) = self.numbers();
        let packed = self.acknowledgment.get();
        Some(IcmpQuote {
            error: error_of(kind, mtu)?,
            source: self.destination,
            destination: Endpoint {
                address: Address((packed >> 16) as u16),
                port: packed as u16,
            },
            sequence: self.sequence,
            length: self.payload_offset as u32,
        })
    }
}

/// Returns the number of an error and its MTU.
const fn kind_of(error: IcmpError) -> (u32, u32) {
    match error {
        IcmpError::NetworkUnreachable => (1, 0),
        IcmpError::HostUnreachable => (2, 0),
        IcmpError::ProtocolUnreachable => (3, 0),
        IcmpError::PortUnreachable => (4, 0),
        IcmpError::TooBig { mtu } => (5, mtu),
        IcmpError::Prohibited => (6, 0),
        IcmpError::TimeExceeded => (7, 0),
        IcmpError::ParameterProblem => (8, 0),
    }
}

const fn error_of(kind: u32, mtu: u32) -> Option<IcmpError> {
    Some(match kind {
        1 => IcmpError::NetworkUnreachable,
        2 => IcmpError::HostUnreachable,
        3 => IcmpError::ProtocolUnreachable,
        4 => IcmpError::PortUnreachable,
        5 => IcmpError::TooBig { mtu },
        6 => IcmpError::Prohibited,
        7 => IcmpError::TimeExceeded,
        8 => IcmpError::ParameterProblem,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn echoes_and_errors_are_distinguished() {
        let end = |address, port| Endpoint {
            address: Address(address),
            port,
        };
        for version in [IpVersion::V4, IpVersion::V6] {
            let request = Packet::echo(end(1, 77), end(2, 0), version, Echo::Request);
            let reply = Packet::echo(end(2, 0), end(1, 77), version, Echo::Reply);
            for (packet, kind) in [(request, Echo::Request), (reply, Echo::Reply)] {
                assert_eq!(packet.echo_kind(), Some(kind));
                assert_eq!(packet.echo_identifier(), 77);
                assert_eq!(packet.icmp_quote(), None);
                assert!(!packet.is_tcp());
            }
            let segment = Packet::new(end(7, 40_000), end(8, 80), version);
            let error = Packet::icmp_error(Address(3), &segment, IcmpError::TimeExceeded);
            assert_eq!(error.and_then(|error| error.echo_kind()), None);
            assert_eq!(segment.echo_kind(), None);
        }
    }

    #[test]
    fn icmp_errors_quote_the_segment_and_go_to_its_source() {
        let end = |address, port| Endpoint {
            address: Address(address),
            port,
        };
        for version in [IpVersion::V4, IpVersion::V6] {
            let mut segment = Packet::new(end(7, 40_000), end(u16::MAX, 80), version);
            segment.sequence = Seq::new(0xffff_fff0);
            segment.payload_length = 1448;
            for kind in 1..=8 {
                let error = error_of(kind, 1400).expect("an error");
                let packet = Packet::icmp_error(Address(3), &segment, error).expect("about TCP");
                assert_eq!(packet.source.address, Address(3));
                assert_eq!(packet.destination, segment.source);
                let quote = packet.icmp_quote().expect("it is one");
                assert_eq!(quote.error, error);
                assert_eq!(quote.source, segment.source);
                assert_eq!(quote.destination, segment.destination);
                assert_eq!(quote.sequence, segment.sequence);
                assert_eq!(u64::from(quote.length), segment.length().get());
                // No error about an error, and no quotation in other messages.
                assert_eq!(Packet::icmp_error(Address(3), &packet, error), None);
                assert_eq!(segment.icmp_quote(), None);
            }
            let ping = Packet::datagram(end(1, 0), end(2, 0), version, ICMP);
            assert_eq!(ping.icmp_quote(), None);
        }
    }
}
