//! The wall clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bentpipe_types::{Span, Time};

/// Time since it was made, from the machine's monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// A clock that starts now.
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

    /// A clock that starts in a while, and says zero until then.
    #[must_use]
    pub fn starting_in(span: Span) -> Self {
        let now = Self::start().start;
        Self {
            start: now + Duration::from_nanos(span.as_nanos()),
        }
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Time {
        let elapsed = self.start.elapsed().as_nanos();
        Time::from_nanos(u64::try_from(elapsed).unwrap_or(u64::MAX))
    }

    /// Which date it began at, in nanoseconds since the Unix epoch, as the machine has it now: what it is set to later changes
    /// nothing of what was counted from here.
    #[must_use]
    #[allow(clippy::disallowed_methods, reason = "a capture says when it was made")]
    pub fn began_at_ns(&self) -> u64 {
        let date = SystemTime::now().duration_since(UNIX_EPOCH);
        let since = date.map_or(0, |since| since.as_nanos());
        let began = since.saturating_sub(self.start.elapsed().as_nanos());
        u64::try_from(began).unwrap_or(0)
    }

    /// How long it is until `deadline`; zero if it has passed.
    #[must_use]
    pub fn until(&self, deadline: Time) -> Span {
        deadline.since(self.now())
    }
}
