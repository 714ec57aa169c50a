//! The machine's monotonic clock, as a [`Time`] that starts at zero.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bentpipe_types::{Span, Time};

/// A clock that counts from its creation, by the machine's monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// Creates a clock that starts now.
    #[must_use]
    #[allow(
        clippy::disallowed_methods,
        reason = "this is where the time comes from"
    )]
    pub fn start() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    /// Creates a clock that starts after `span`, and reads zero until then.
    #[must_use]
    pub fn starting_in(span: Span) -> Self {
        let now = Self::start().start;
        Self {
            start: now + Duration::from_nanos(span.as_nanos()),
        }
    }

    /// Returns the current time.
    #[must_use]
    pub fn now(&self) -> Time {
        let elapsed = self.start.elapsed().as_nanos();
        Time::from_nanos(u64::try_from(elapsed).unwrap_or(u64::MAX))
    }

    /// Returns the wall-clock time of the clock's zero, in nanoseconds since the Unix epoch.
    /// Adjustments of the wall clock after this call do not change times counted from that zero.
    #[must_use]
    #[allow(clippy::disallowed_methods, reason = "a capture says when it was made")]
    pub fn start_unix_ns(&self) -> u64 {
        let date = SystemTime::now().duration_since(UNIX_EPOCH);
        let since = date.map_or(0, |since| since.as_nanos());
        let began = since.saturating_sub(self.start.elapsed().as_nanos());
        u64::try_from(began).unwrap_or(0)
    }

    /// Returns the time left until `deadline`; zero if it has passed.
    #[must_use]
    pub fn until(&self, deadline: Time) -> Span {
        deadline.since(self.now())
    }
}
