//! Parsing of TCP segments, and storing them as packets.

use std::net::IpAddr;

use bentpipe_types::{Address, Ecn, Endpoint, IpVersion, Packet, PacketRef, PacketStore};

use crate::error::{Layer, ParseError};
use crate::{Ipv4Header, Ipv6Header, TcpHeader};

/// An IP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IpHeader {
    /// IPv4.
    V4(Ipv4Header),
    /// IPv6.
    V6(Ipv6Header),
}

impl IpHeader {
    /// Returns the version.
    #[must_use]
    pub fn version(&self) -> IpVersion {
        match self {
            Self::V4(_) => IpVersion::V4,
            Self::V6(_) => IpVersion::V6,
        }
    }

    /// Returns the source address.
    #[must_use]
    pub fn source(&self) -> IpAddr {
        match self {
            Self::V4(header) => header.source.into(),
            Self::V6(header) => header.source.into(),
        }
    }

    /// Returns the destination address.
    #[must_use]
    pub fn destination(&self) -> IpAddr {
        match self {
            Self::V4(header) => header.destination.into(),
            Self::V6(header) => header.destination.into(),
        }
    }

    /// Returns the ECN field.
    #[must_use]
    pub fn ecn(&self) -> Ecn {
        match self {
            Self::V4(header) => header.ecn,
            Self::V6(header) => header.ecn,
        }
    }
}

/// A parsed TCP segment in an IP packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parsed<'a> {
    /// The IP header.
    pub ip: IpHeader,
    /// The TCP header.
    pub tcp: TcpHeader,
    /// Length of both headers in the packet, all options included: the offset of the payload.
    pub header_length: usize,
    /// The payload.
    pub payload: &'a [u8],
}

/// Parses an IPv4 or IPv6 packet that contains a TCP segment, and verifies its checksums. Bytes
/// behind the packet's end, as in short Ethernet frames, are ignored.
///
/// # Errors
/// Returns an error for anything else. Never panics.
pub fn parse(bytes: &[u8]) -> Result<Parsed<'_>, ParseError> {
    read(bytes, true)
}

/// [`parse`] without verifying checksums, for packets whose checksums the network interface fills
/// in.
///
/// # Errors
/// As [`parse`], except for checksums.
pub fn parse_ignoring_checksums(bytes: &[u8]) -> Result<Parsed<'_>, ParseError> {
    read(bytes, false)
}

pub(crate) fn read(bytes: &[u8], verify: bool) -> Result<Parsed<'_>, ParseError> {
    let version = bytes.first().ok_or(ParseError::Truncated {
        layer: Layer::Ip,
        needed: 1,
        available: 0,
    })? >> 4;
    let (ip, range) = match version {
        4 => {
            let (header, range) = Ipv4Header::read(bytes, verify)?;
            (IpHeader::V4(header), range)
        }
        6 => {
            let (header, range) = Ipv6Header::read(bytes)?;
            (IpHeader::V6(header), range)
        }
        version => return Err(ParseError::Version { version }),
    };
    let at = range.start;
    let segment = &bytes[range];
    let addresses = verify.then(|| (ip.source(), ip.destination()));
    let (tcp, length) = TcpHeader::read(segment, at, addresses)?;
    Ok(Parsed {
        ip,
        tcp,
        header_length: at + length,
        payload: &segment[length..],
    })
}

impl Parsed<'_> {
    /// Stores the segment as a packet between nodes that `node_of` looks up by IP address.
    ///
    /// The packet's `header_length` is that of the headers that an [`Encoder`](crate::Encoder)
    /// writes for it. Data that a packet does not contain (IPv4 options, unknown TCP options, DSCP,
    /// urgent pointer) are lost. `payload_offset` is 0, since the bytes do not contain it.
    ///
    /// # Errors
    /// Those of `node_of`.
    pub fn insert<E>(
        &self,
        packets: &mut PacketStore,
        mut node_of: impl FnMut(IpAddr) -> Result<Address, E>,
    ) -> Result<PacketRef, E> {
        let source = Endpoint {
            address: node_of(self.ip.source())?,
            port: self.tcp.source_port,
        };
        let destination = Endpoint {
            address: node_of(self.ip.destination())?,
            port: self.tcp.destination_port,
        };
        let reference = packets.insert(self.record(source, destination));
        self.add_options(packets, reference);
        Ok(reference)
    }

    /// Returns the record without extension data.
    pub(crate) fn record(&self, source: Endpoint, destination: Endpoint) -> Packet {
        let options = &self.tcp.options;
        let mut packet = Packet::new(source, destination, self.ip.version());
        packet.sequence = self.tcp.sequence;
        packet.acknowledgment = self.tcp.acknowledgment;
        packet.flags = self.tcp.flags;
        packet.window = self.tcp.window;
        // Both fit: a packet's length fields have 16 bits, and a header's options at most 40 bytes.
        packet.payload_length = self.payload.len() as u16;
        packet.header_length += options.length() as u8;
        packet.set_ecn(self.ip.ecn());
        if let Some((value, echo)) = options.timestamps {
            packet.set_timestamps(value, echo);
        }
        packet
    }

    /// Stores the extension data.
    pub(crate) fn add_options(&self, packets: &mut PacketStore, reference: PacketRef) {
        let options = &self.tcp.options;
        if options.syn != Default::default() {
            packets.set_syn_options(reference, options.syn);
        }
        if !options.sack_blocks.as_slice().is_empty() {
            packets.set_sack_blocks(reference, &options.sack_blocks);
        }
    }
}
