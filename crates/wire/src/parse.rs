//! Bytes as a TCP segment, and a TCP segment as a stored packet.

use std::net::IpAddr;

use bentpipe_types::{Address, Ecn, Endpoint, IpVersion, Packet, PacketRef, PacketStore};

use crate::error::{Layer, ParseError};
use crate::{Ipv4Header, Ipv6Header, TcpHeader};

/// An IP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IpHeader {
    /// Of version 4.
    V4(Ipv4Header),
    /// Of version 6.
    V6(Ipv6Header),
}

impl IpHeader {
    /// The version.
    #[must_use]
    pub fn version(&self) -> IpVersion {
        match self {
            Self::V4(_) => IpVersion::V4,
            Self::V6(_) => IpVersion::V6,
        }
    }

    /// Who sent it.
    #[must_use]
    pub fn source(&self) -> IpAddr {
        match self {
            Self::V4(header) => header.source.into(),
            Self::V6(header) => header.source.into(),
        }
    }

    /// Who is to get it.
    #[must_use]
    pub fn destination(&self) -> IpAddr {
        match self {
            Self::V4(header) => header.destination.into(),
            Self::V6(header) => header.destination.into(),
        }
    }

    /// The ECN field.
    #[must_use]
    pub fn ecn(&self) -> Ecn {
        match self {
            Self::V4(header) => header.ecn,
            Self::V6(header) => header.ecn,
        }
    }
}

/// A TCP segment in an IP packet, as its bytes say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parsed<'a> {
    /// The IP header.
    pub ip: IpHeader,
    /// The TCP header.
    pub tcp: TcpHeader,
    /// Bytes of both headers as they stand in the packet, all options included: the payload starts
    /// here.
    pub header_length: usize,
    /// The payload.
    pub payload: &'a [u8],
}

/// Reads an IPv4 or IPv6 packet that holds a TCP segment, and verifies its checksums. Bytes after
/// the packet's end, as short Ethernet frames have, are left alone.
///
/// # Errors
/// When the bytes are anything else. Never a panic, whatever they are.
pub fn parse(bytes: &[u8]) -> Result<Parsed<'_>, ParseError> {
    read(bytes, true)
}

/// [`parse`], believing any checksum: for packets whose checksums the network interface fills in.
///
/// # Errors
/// As [`parse`], checksums aside.
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
    /// Stores the segment as a packet between the nodes that `node_of` knows by IP address.
    ///
    /// The packet's `header_length` is that of the headers an [`Encoder`](crate::Encoder) writes for
    /// it; what a packet cannot hold (IPv4 options, unknown TCP options, DSCP, urgent pointer) is not
    /// in it. Bytes say nothing about `payload_offset`: it is 0.
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

    /// The record, without what is kept out of it.
    pub(crate) fn record(&self, source: Endpoint, destination: Endpoint) -> Packet {
        let options = &self.tcp.options;
        let mut packet = Packet::new(source, destination, self.ip.version());
        packet.sequence = self.tcp.sequence;
        packet.acknowledgment = self.tcp.acknowledgment;
        packet.flags = self.tcp.flags;
        packet.window = self.tcp.window;
        // Both fit: a packet's length fields are 16 bits, and a header's options are at most 40.
        packet.payload_length = self.payload.len() as u16;
        packet.header_length += options.length() as u8;
        packet.set_ecn(self.ip.ecn());
        if let Some((value, echo)) = options.timestamps {
            packet.set_timestamps(value, echo);
        }
        packet
    }

    /// What is kept out of the record.
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
