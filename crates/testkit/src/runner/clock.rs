//! Limits of the simulated clock.

use bentpipe_types::{Span, Time};

/// Start of the clock, not zero, where many values would coincide.
pub(super) const BEGINNING: Time = Time::from_nanos(100_000_000_000);

/// `*`: any time. A connection that is silent for this long stays silent.
pub(super) const EVER: Span = Span::from_secs(10_000);
