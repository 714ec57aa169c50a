//! Slow start: growth of the congestion window below the slow-start threshold.

use serde::{Deserialize, Serialize};

mod byte_counting;
mod hystart;
mod hystart_linux;
mod standard;

use crate::congestion_control::{AckSample, Congestion, Window};

pub use byte_counting::AppropriateByteCounting;
pub use hystart::HyStart;
pub use hystart_linux::LinuxHyStart;
pub use standard::Standard;

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

/// A rule for growth below the slow-start threshold.
pub trait SlowStart {
    /// Processes an acknowledgment of `acknowledged` new bytes while `window` is below its
    /// threshold. Returns the bytes that the window may grow by. May end slow start by lowering the
    /// threshold.
    fn growth(&mut self, window: &mut Window, acknowledged: u64, sample: &AckSample) -> u64;

    /// Whether the growth for one acknowledgment may exceed the threshold. Otherwise the window
    /// stops at the threshold, and the remaining bytes count in congestion avoidance.
    fn may_exceed_threshold(&self) -> bool {
        false
    }

    /// A congestion event has set the threshold. Called for every timeout, also repeated ones.
    fn on_congestion(&mut self, _event: Congestion) {}

    /// Whether `on_delivery` is to be called.
    fn sees_every_ack(&self) -> bool {
        false
    }

    /// Something was delivered. Called for every acknowledgment, before `growth`, also if the
    /// window is not below its threshold or did not limit the sender. May end slow start by
    /// lowering the threshold.
    fn on_delivery(&mut self, _window: &mut Window, _sample: &AckSample) {}
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
