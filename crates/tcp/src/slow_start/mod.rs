//! How the congestion window grows below the slow-start threshold.

mod byte_counting;
mod standard;

use crate::congestion::Window;

pub use byte_counting::AppropriateByteCounting;
pub use standard::Standard;

/// Which slow start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlowStartKind {
    /// One segment per acknowledgment (RFC 5681).
    Standard,
    /// As many bytes as were acknowledged (RFC 3465).
    AppropriateByteCounting {
        /// At most this many segments per acknowledgment: RFC 3465's L. Linux has no limit.
        limit_segments: u32,
    },
}

/// A way to grow below the slow-start threshold.
pub trait SlowStart {
    /// `acknowledged` bytes were newly acknowledged by one acknowledgment; `window` is below its
    /// threshold. Grows it, and returns the bytes that are left for congestion avoidance.
    fn on_ack(&mut self, window: &mut Window, acknowledged: u64) -> u64;
}

/// The slow start of one connection.
#[derive(Clone, Debug)]
pub enum SlowStartRule {
    /// RFC 5681.
    Standard(Standard),
    /// RFC 3465.
    AppropriateByteCounting(AppropriateByteCounting),
}

impl SlowStartRule {
    /// The slow start of this kind.
    #[must_use]
    pub fn new(kind: SlowStartKind) -> Self {
        match kind {
            SlowStartKind::Standard => Self::Standard(Standard),
            SlowStartKind::AppropriateByteCounting { limit_segments } => {
                Self::AppropriateByteCounting(AppropriateByteCounting::new(limit_segments))
            }
        }
    }
}

impl SlowStart for SlowStartRule {
    fn on_ack(&mut self, window: &mut Window, acknowledged: u64) -> u64 {
        match self {
            Self::Standard(rule) => rule.on_ack(window, acknowledged),
            Self::AppropriateByteCounting(rule) => rule.on_ack(window, acknowledged),
        }
    }
}
