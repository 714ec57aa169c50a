//! How the congestion window grows below the slow-start threshold.

use serde::{Deserialize, Serialize};

mod byte_counting;
mod hystart;
mod hystart_linux;
mod standard;

use crate::congestion::{AckSample, Congestion, Window};

pub use byte_counting::AppropriateByteCounting;
pub use hystart::HyStart;
pub use hystart_linux::LinuxHyStart;
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
    /// The same, until the round trips get longer (RFC 9406).
    HyStart {
        /// At most this many segments per acknowledgment: RFC 9406's L, 8 unless the sender paces.
        limit_segments: u32,
    },
    /// The same, until the round trips get longer or a round's acknowledgments are a long train: then
    /// it ends at once (Ha and Rhee 2008, as Linux's CUBIC has it).
    LinuxHyStart,
}

/// A way to grow below the slow-start threshold.
pub trait SlowStart {
    /// `acknowledged` bytes were newly acknowledged by one acknowledgment; `window` is below its
    /// threshold. Returns the bytes that it may grow by. May end slow start, by lowering the
    /// threshold.
    fn counts(&mut self, window: &mut Window, acknowledged: u64, sample: &AckSample) -> u64;

    /// May the window grow past the threshold by a part of what counts? Otherwise it stops there,
    /// and the rest counts in congestion avoidance.
    fn passes_the_threshold(&self) -> bool {
        false
    }

    /// A congestion event has given the threshold a meaning. A timeout is told of also when it follows
    /// another.
    fn on_congestion(&mut self, _event: Congestion) {}

    /// Does it want `on_delivery`?
    fn sees_every_ack(&self) -> bool {
        false
    }

    /// Every acknowledgment of something delivered, before `counts`: also where the window is not below
    /// its threshold, or is not what limited the sender. May end slow start, by lowering the threshold.
    fn on_delivery(&mut self, _window: &mut Window, _sample: &AckSample) {}
}

/// The slow start of one connection.
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
    /// The slow start of this kind.
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

/// Calls the rule, whichever it is.
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
    fn counts(&mut self, window: &mut Window, acknowledged: u64, sample: &AckSample) -> u64 {
        dispatch!(self, rule => rule.counts(window, acknowledged, sample))
    }

    fn passes_the_threshold(&self) -> bool {
        dispatch!(self, rule => rule.passes_the_threshold())
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
