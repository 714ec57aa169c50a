//! TCP/IP header compression: RFC 1144, "Compressing TCP/IP Headers for Low-Speed Serial Links".
//!
//! [`Compressor`] replaces the headers of TCP/IPv4 packets by the changes since the previous packet
//! of the connection; [`Decompressor`] undoes that at the other end of a link that preserves order.
//! Neither reads payloads. After a lost frame the decompressor is out of step: until an
//! uncompressed packet arrives, its output has wrong TCP checksums, which the receiver detects. If
//! the link *reports* the loss, the decompressor discards frames instead (section 4.1).
//!
//! Fields that change with every packet but are not in the format (timestamps, SACK blocks, other
//! TCP options) make a packet travel uncompressed, as in the RFC (appendix A.2).

mod compress;
mod decompress;
mod format;

pub use compress::Compressor;
pub use decompress::{DecompressError, Decompressor};
pub use format::{LinkFraming, PacketType, SlotsError};

#[cfg(test)]
mod tests;
