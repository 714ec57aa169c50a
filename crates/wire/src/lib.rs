//! Encoding and parsing of packets at the edge of a network. Inside it, packets are records.
//!
//! * [`Encoder`]: writes a stored packet as an IP packet with checksums. A received packet keeps
//!   its original bytes, patched where a node has changed the record.
//! * [`insert`]: stores received bytes of any protocol as a packet.
//! * [`parse`]: parses bytes as a [`Parsed`] segment, or returns a [`ParseError`] with cause and
//!   offset; never panics. [`Parsed::insert`] stores it as a packet.
//! * [`parse_tunnelled`]: parses a packet inside another, as an [`Encoder`] writes one in a tunnel.
//! * [`SegmentError`]: a received ICMP error and the segment that it is about.
//! * [`NodeAddresses`]: maps node addresses to IP addresses and back.
//! * [`payload`]: the bytes of a simulated stream at any offset.
//! * [`checksum`]: the Internet checksum, in full and incrementally.
//! * [`vj`]: header compression (RFC 1144).
//! * [`pcapng`]: captures for Wireshark with nanosecond timestamps.
//!
//! ```
//! use bentpipe_types::{Endpoint, Flags, IpVersion, Packet, PacketStore, Time};
//! use bentpipe_wire::{Encoder, NodeAddresses, pcapng};
//!
//! let mut packets = PacketStore::default();
//! let mut syn = Packet::new(Endpoint::default(), Endpoint::default(), IpVersion::V4);
//! syn.flags = Flags::SYN;
//! let syn = packets.insert(syn);
//!
//! let mut encoder = Encoder::new(NodeAddresses);
//! let mut bytes = Vec::new(); // reused for every packet
//! encoder.encode(&packets, syn, &mut bytes)?;
//! assert_eq!(bentpipe_wire::parse(&bytes)?.tcp.flags, Flags::SYN);
//!
//! let mut capture = pcapng::Writer::new(Vec::new())?;
//! let forward = capture.add_interface("satellite.forward", None)?;
//! capture.write(forward, Time::from_nanos(280_000_000), &bytes)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod address;
pub mod checksum;
mod encode;
mod error;
mod icmp;
mod icmp_read;
mod ip;
mod ipv4;
mod ipv6;
mod options;
mod parse;
pub mod pcapng;
mod protocol;
mod rewrite;
mod tcp;
mod tunnel;
pub mod vj;

pub use bentpipe_types::filler as payload;

pub use address::{Addressing, NodeAddresses};
pub use encode::Encoder;
pub use error::{EncodeError, Layer, ParseError};
pub use icmp_read::SegmentError;
pub use ip::{IpPacket, Refused, insert, is_multipath, parse_ip};
pub use ipv4::Ipv4Header;
pub use ipv6::Ipv6Header;
pub use options::{MAXIMUM_OPTIONS_LENGTH, TcpOptions, tcp_options_length};
pub use parse::{IpHeader, Parsed, parse, parse_ignoring_checksums};
pub use tcp::{TcpHeader, set_tcp_checksum};
pub use tunnel::{COMPACTION_PROTOCOL, Tunnelled, parse_tunnelled};
