//! Phases of the ProbeBW cycle (section 5.3.3).

use serde::{Deserialize, Serialize};

use super::parameters::WINDOW_GAIN;

/// Phase of the cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Phase {
    /// Sends below the delivery rate, until the queue is empty and there is headroom.
    Down,
    /// Sends at the delivery rate.
    Cruise,
    /// Sends at the delivery rate for one round trip without short-term bounds, to fill the pipe
    /// before Up.
    Refill,
    /// Sends above the delivery rate.
    Up,
}

impl Phase {
    pub(super) const fn pacing_gain(self) -> f64 {
        match self {
            Self::Down => 0.9,
            Self::Cruise | Self::Refill => 1.0,
            Self::Up => 1.25,
        }
    }

    pub(super) const fn window_gain(self) -> f64 {
        match self {
            Self::Up => 2.25,
            _ => WINDOW_GAIN,
        }
    }
}
