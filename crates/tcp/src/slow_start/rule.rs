//! The slow-start rule of one connection.

use serde::{Deserialize, Serialize};

use super::{AppropriateByteCounting, HyStart, LinuxHyStart, SlowStart, Standard};
use crate::congestion_control::{AckSample, Congestion, Window};

/// Kind of slow start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlowStartKind {
    /// At most one segment per acknowledgment (RFC 5681).
    Standard,
    /// The acknowledged bytes (RFC 3465).
    AppropriateByteCounting {
        /// Maximum number of segments per acknowledgment: L in RFC 3465. Linux has no limit.
        limit_segments: u32,
    },
    /// Byte counting that ends when the round-trip time increases (RFC 9406).
    HyStart {
        /// Maximum number of segments per acknowledgment: L in RFC 9406, 8 unless the sender paces.
        limit_segments: u32,
    },
    /// Byte counting that ends immediately when the round-trip time increases, or when the
    /// acknowledgments of a round form a long train (Ha and Rhee 2008, as in Linux's CUBIC).
    LinuxHyStart,
}

/// Slow-start rule of one connection.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum SlowStartRule {
    /// RFC 5681.
    Standard(Standard),
    /// RFC 3465.
    AppropriateByteCounting(AppropriateByteCounting),
    /// RFC 9406.
    HyStart(HyStart),
    /// Linux's HyStart.
    LinuxHyStart(LinuxHyStart),
}

impl SlowStartRule {
    /// Creates a rule of this kind.
    #[must_use]
    pub fn new(kind: SlowStartKind) -> Self {
        match kind {
            SlowStartKind::Standard => Self::Standard(Standard),
            SlowStartKind::AppropriateByteCounting { limit_segments } => {
                Self::AppropriateByteCounting(AppropriateByteCounting::new(limit_segments))
            }
            SlowStartKind::HyStart { limit_segments } => {
                Self::HyStart(HyStart::new(limit_segments))
            }
            SlowStartKind::LinuxHyStart => Self::LinuxHyStart(LinuxHyStart::default()),
        }
    }
}

/// Calls a method of the rule of any type.
macro_rules! dispatch {
    ($rule:expr, $inner:ident => $call:expr) => {
        match $rule {
            SlowStartRule::Standard($inner) => $call,
            SlowStartRule::AppropriateByteCounting($inner) => $call,
            SlowStartRule::HyStart($inner) => $call,
            SlowStartRule::LinuxHyStart($inner) => $call,
        }
    };
}

impl SlowStart for SlowStartRule {
    fn growth(&mut self, window: &mut Window, acknowledged: u64, sample: &AckSample) -> u64 {
        dispatch!(self, rule => rule.growth(window, acknowledged, sample))
    }

    fn may_exceed_threshold(&self) -> bool {
        dispatch!(self, rule => rule.may_exceed_threshold())
    }

    fn on_congestion(&mut self, event: Congestion) {
        dispatch!(self, rule => rule.on_congestion(event));
    }

    fn sees_every_ack(&self) -> bool {
        dispatch!(self, rule => rule.sees_every_ack())
    }

    fn on_delivery(&mut self, window: &mut Window, sample: &AckSample) {
        dispatch!(self, rule => rule.on_delivery(window, sample));
    }
}
