//! A terminal's requests and grants.

use bentpipe_types::{BitRate, Span};

use super::capacity::Capacity;

/// A terminal's request at a frame's beginning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Request {
    pub(super) by_rate: Capacity,
    pub(super) by_volume: Capacity,
}

/// A terminal's grant in a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Grant {
    pub(super) constant: Capacity,
    pub(super) by_rate: Capacity,
    pub(super) by_volume: Capacity,
    pub(super) free: Capacity,
    /// Start of its burst, relative to the frame.
    pub(super) begins: Span,
    /// Transmission rate, or `None` if the path carries nothing or the plan has no mode for it.
    pub(super) rate: Option<BitRate>,
    /// Whether its path carries anything.
    pub(super) reaches: bool,
    /// Capacity planned in a mode that the path no longer supports.
    pub(super) faded: Capacity,
    /// Carrier time taken by the rate-based and volume-based parts.
    pub(super) on_air: Capacity,
}

impl Grant {
    pub(super) fn all(&self) -> Capacity {
        self.constant + self.by_rate + self.by_volume + self.free
    }
}
