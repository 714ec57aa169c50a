//! Slow start: growth of the congestion window below the slow-start threshold.

mod byte_counting;
mod hystart;
mod hystart_linux;
mod rule;
mod standard;

use crate::congestion_control::{AckSample, Congestion, Window};

pub use byte_counting::AppropriateByteCounting;
pub use hystart::HyStart;
pub use hystart_linux::LinuxHyStart;
pub use rule::{SlowStartKind, SlowStartRule};
pub use standard::Standard;

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
