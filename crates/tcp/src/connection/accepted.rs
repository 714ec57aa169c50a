//! Result of receiving data.

/// Part of an arriving segment's payload that lies in the receive window. A host that keeps real
/// bytes copies `payload[skip..skip + length]` to `offset`; bytes received before are overwritten
/// with equal ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Accepted {
    /// Offset in the peer's stream of the first accepted byte.
    pub offset: u64,
    /// Bytes accepted.
    pub length: u32,
    /// Bytes of the segment's payload before the first accepted one.
    pub skip: u32,
}
