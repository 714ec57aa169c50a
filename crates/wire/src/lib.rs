//! Headers to bytes and back, at the edge of a network. Inside it, packets are records.
//!
//! * [`Encoder`]: a stored packet as the bytes of an IP packet, with real checksums; one that came off
//!   a wire with the bytes it came with, patched where a box has changed it.
//! * [`insert`]: bytes off a wire as a stored packet, whatever protocol they are of.
//! * [`parse`]: bytes as a [`Parsed`] segment, or a [`ParseError`] that says what is wrong and where;
//!   never a panic, whatever the bytes. [`Parsed::insert`] stores it as a packet.
//! * [`parse_tunnelled`]: the same for a packet inside another, as an [`Encoder`] writes one that is in
//!   a tunnel.
//! * [`SegmentError`]: an ICMP error off a wire, and the segment that it is about.
//! * [`NodeAddresses`]: nodes' addresses to IP addresses and back.
//! * [`payload`]: the bytes of a simulated stream, any offset at random.
//! * [`checksum`]: the Internet checksum, in full and incrementally.
//! * [`vj`]: headers compressed, by RFC 1144.
//! * [`pcapng`]: captures that Wireshark reads, with nanosecond time.
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
//! let mut bytes = Vec::new(); // used again for every packet
//! encoder.encode(&packets, syn, &mut bytes)?;
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
pub use tcp::TcpHeader;
pub use tunnel::{COMPACTION_PROTOCOL, Tunnelled, parse_tunnelled};
