//! `compression` of a link or a direction.

use bentpipe_types::words;

words! {
    /// Header or data compression on a link.
    Compression {
        /// No compression.
        None = "none",
        /// TCP/IP header compression (RFC 1144) on SLIP, whose framing adds one byte per packet.
        /// Headers are really compressed, and after a lost packet the decompressor loses its state.
        /// A capture shows the packets before compression.
        Rfc1144 = "rfc1144",
        /// A modem's data compression, as a ratio: a header of 40 bytes takes 16 (samaraweera1999,
        /// section 3.3); payload is not compressed.
        V42bis = "v42bis",
    }
}
