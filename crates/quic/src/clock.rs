//! The time of a run as instants of quinn.

use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime};

use bentpipe_types::{Span, Time};

/// The instant of time zero. Only differences of instants have an effect.
#[expect(clippy::disallowed_methods, reason = "an origin, read once")]
static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Returns the instant of a time, for calls of quinn's interfaces.
#[must_use]
pub fn instant(time: Time) -> Instant {
    *ORIGIN + Duration::from_nanos(time.as_nanos())
}

/// Returns the time of an instant.
pub(crate) fn time(instant: Instant) -> Time {
    let nanoseconds = instant.saturating_duration_since(*ORIGIN).as_nanos();
    Time::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}

/// Returns a length of time in quinn's type.
pub(crate) const fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.as_nanos())
}

/// Returns a length of time of quinn.
pub(crate) fn span(duration: Duration) -> Span {
    Span::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

/// Time of day for the lifetime of tokens: the same in every run.
#[derive(Debug, Default)]
pub(crate) struct FixedTimeOfDay;

impl quinn_proto::TimeSource for FixedTimeOfDay {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 30)
    }
}
