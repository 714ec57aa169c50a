//! TCP/IP header compression: RFC 1144, "Compressing TCP/IP Headers for Low-Speed Serial Links".
//!
//! [`Compressor`] turns the headers of TCP/IPv4 packets into what has changed since the packet of the
//! same connection before; [`Decompressor`] undoes that at the other end of a link that keeps packets
//! in order. Neither looks at payloads. A lost frame leaves the decompressor out of step: what it then
//! decodes has a wrong TCP checksum, which the packet's receiver finds, until an uncompressed packet
//! comes; a frame error that the link *reports* makes it toss packets instead (section 4.1).
//!
//! What changes with every packet but has no place in the format (timestamps, SACK blocks, any other
//! TCP option) makes a packet travel uncompressed, as the RFC has it (appendix A.2).

mod compress;
mod decompress;
mod format;

pub use compress::Compressor;
pub use decompress::{DecompressError, Decompressor};
pub use format::{LinkFraming, PacketType, SlotsError};

#[cfg(test)]
mod tests;
