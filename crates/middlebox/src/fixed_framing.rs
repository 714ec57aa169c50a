//! Framing with the same number of bytes for each packet, such as PPP.

use bentpipe_link::Framing;
use bentpipe_types::{Bytes, PacketRef, PacketStore};

/// Framing that adds a fixed number of bytes to each packet.
#[derive(Clone, Copy, Debug)]
pub struct FixedFraming {
    bytes: u64,
}

impl FixedFraming {
    /// PPP in HDLC-like framing (RFC 1662 section 3.1): one flag that closes a frame and opens the
    /// next, address, control, two bytes of protocol, and a check sequence of two bytes. Escaped
    /// bytes depend on the content and are not included.
    pub const PPP: Self = Self::new(1 + 1 + 1 + 2 + 2);

    /// PPP with compressed address, control and protocol fields (RFC 1661 sections 6.5 and 6.6): a
    /// flag, one byte of protocol, and a check sequence of two bytes.
    pub const PPP_COMPRESSED: Self = Self::new(1 + 1 + 2);

    /// Creates a framing of this many bytes per packet.
    #[must_use]
    pub const fn new(bytes: u64) -> Self {
        Self { bytes }
    }
}

impl Framing for FixedFraming {
    fn transmit(&mut self, _packet: PacketRef, length: Bytes, _packets: &mut PacketStore) -> Bytes {
        length + Bytes::new(self.bytes)
    }

    fn adds(&self) -> Bytes {
        Bytes::new(self.bytes)
    }
}
