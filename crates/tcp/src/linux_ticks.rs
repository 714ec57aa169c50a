//! Granularity of Linux's timers: ticks of the kernel's clock, and coarser for longer times,
//! because of its timer wheel (`calc_wheel_index` in `kernel/time/timer.c`).

use bentpipe_types::{Span, Time};
use serde::{Deserialize, Serialize};

/// CONFIG_HZ, ticks per second: the kernel's default, also of the kernel measured
/// (docs/validation/linux.md).
pub(crate) const HZ: u64 = 250;

/// Length of a tick in nanoseconds.
const TICK: u64 = 1_000_000_000 / HZ;

/// LVL_SIZE - 1: number of slots of a level within which a timer must expire to be placed in that
/// level.
const SLOTS: u64 = 63;

/// LVL_CLK_SHIFT: base-2 logarithm of the ratio between the slots of adjacent levels.
const COARSER: u32 = 3;

/// LVL_DEPTH - 1: the highest level.
const LEVELS: u32 = 8;

/// TCP_TIMEOUT_MIN_US: added to the delay of a sender's timer.
pub(crate) const TIMER_SLACK: Span = Span::from_millis(2);

/// A host's clock, which counts milliseconds in timestamps and ticks in timers.
///
/// It is ahead of the simulation's clock by less than a tick. Ticks and milliseconds begin
/// together: Linux aligns the tick with the monotonic clock (`tick_setup_device`, since 6.4), whose
/// milliseconds are the timestamps (`tcp_clock_ms`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct HostClock {
    ahead_us: u16,
}

impl HostClock {
    /// Length of a tick. Clocks that differ by whole ticks give the same results.
    pub const TICK: Span = Span::from_nanos(TICK);

    /// Creates a clock that is ahead of the simulation's by `span`, in whole microseconds, less
    /// whole ticks.
    #[must_use]
    pub const fn ahead_by(span: Span) -> Self {
        Self {
            ahead_us: (span.as_nanos() % TICK / 1_000) as u16,
        }
    }

    const fn ahead_ns(self) -> u64 {
        self.ahead_us as u64 * 1_000
    }

    /// Nanoseconds that the clock shows.
    #[inline]
    const fn reading(self, now: Time) -> u64 {
        now.as_nanos() + self.ahead_ns()
    }

    /// Time at which the clock shows this tick.
    fn time_of(self, tick: u64) -> Time {
        let reading = tick.saturating_mul(TICK);
        Time::from_nanos(reading.saturating_sub(self.ahead_ns()))
    }

    /// Value of the timestamp clock: milliseconds of real time (RFC 7323 section 4.1,
    /// RFC 7323 section 5.4), starting at 1, because many implementations treat 0 as absent.
    #[inline]
    pub(crate) const fn timestamp(self, now: Time) -> u32 {
        ((self.reading(now) / 1_000_000) as u32).wrapping_add(1)
    }

    /// Number of ticks counted (jiffies).
    #[inline]
    pub(crate) const fn ticks(self, now: Time) -> u64 {
        self.reading(now) / TICK
    }

    /// Expiry of a timer set now, with this delay.
    #[inline(never)]
    pub(crate) fn expiry(self, now: Time, wait: Span) -> Time {
        let ticks = wait.as_nanos().div_ceil(TICK);
        // Never early: counted from the next tick.
        let due = self.reading(now).div_ceil(TICK) + ticks;
        self.time_of(expires_with(due, ticks))
    }

    /// Expiry of a timer that was set with a delay of `wait`, in [whole] ticks, and is due
    /// at `at`.
    #[inline(never)]
    pub(crate) fn later_expiry(self, at: Time, wait: Span) -> Time {
        let due = self.reading(at).div_ceil(TICK);
        self.time_of(expires_with(due, wait.as_nanos().div_ceil(TICK)))
    }

    /// Number of the last tick, without its upper bits: it wraps after 198 days.
    pub(crate) const fn number(self, at: Time) -> u32 {
        self.ticks(at) as u32
    }

    /// Time of the tick with this [number](Self::number) that is nearest to the present one
    /// (time_after).
    pub(crate) fn nearest(self, number: u32, now: Time) -> Time {
        let present = self.ticks(now);
        let further = number.wrapping_sub(present as u32) as i32;
        self.time_of(present.saturating_add_signed(i64::from(further)))
    }
}

/// Tick at which a timer with a delay of `ticks` expires that is due at tick `due`.
#[inline]
fn expires_with(due: u64, ticks: u64) -> u64 {
    let level = (0..LEVELS)
        .find(|level| ticks < SLOTS << (COARSER * level))
        .unwrap_or(LEVELS);
    let slot = 1 << (COARSER * level);
    due.div_ceil(slot).saturating_mul(slot)
}

/// Rounds down to whole ticks.
#[inline]
pub(crate) const fn whole_below(span: Span) -> Span {
    Span::from_nanos(span.as_nanos() / TICK * TICK)
}

/// Rounds up to whole ticks (usecs_to_jiffies).
#[inline]
pub(crate) const fn whole(nanoseconds: u64) -> u64 {
    nanoseconds.div_ceil(TICK).saturating_mul(TICK)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK: HostClock = HostClock { ahead_us: 0 };

    fn after(now_us: u64, wait_us: u64) -> u64 {
        let now = Time::from_nanos(now_us * 1_000);
        CLOCK.expiry(now, Span::from_micros(wait_us)).as_nanos() / 1_000
    }

    #[test]
    fn ticks_are_identified_by_their_lower_bits() {
        let year = Time::ZERO + Span::from_secs(365 * 24 * 3600);
        for early in [Time::ZERO, year] {
            let now = early + Span::from_secs(100);
            for there in [early, now, now + Span::from_secs(7_200)] {
                assert_eq!(CLOCK.nearest(CLOCK.number(there), now), there);
            }
        }
    }

    #[test]
    fn expiry_is_rounded_up_from_the_next_tick() {
        assert_eq!(after(0, 1), 4_000);
        assert_eq!(after(0, 4_000), 4_000);
        assert_eq!(after(1, 4_000), 8_000);
        assert_eq!(after(3_999, 4_001), 12_000);
        assert_eq!(after(8_000, 62 * 4_000), 8_000 + 62 * 4_000);
    }

    /// The rounding at expiry gives the same result as at the time of setting.
    #[test]
    fn rounding_at_expiry_equals_rounding_when_set() {
        for now_us in [0, 1, 3_999, 4_000, 4_001, 123_457, 1_000_000] {
            for ticks in [1, 50, 62, 63, 64, 100, 503, 504, 2_000, 30_000] {
                let now = Time::from_nanos(now_us * 1_000);
                let wait = Span::from_nanos(ticks * TICK);
                for ahead_us in [0, 1, 1_234, 3_999] {
                    let clock = HostClock::ahead_by(Span::from_micros(ahead_us));
                    let later = clock.later_expiry(now + wait, wait);
                    assert_eq!(later, clock.expiry(now, wait));
                }
            }
        }
    }

    #[test]
    fn longer_timers_are_coarser() {
        // Steps of 32 ms from 252 ms on, and of 256 ms from 2,016 ms on.
        assert_eq!(after(0, 252_000), 256_000);
        assert_eq!(after(0, 300_000), 320_000);
        assert_eq!(after(0, 320_000), 320_000);
        assert_eq!(after(1, 320_000), 352_000);
        assert_eq!(after(24_000, 300_000), 352_000);
        assert_eq!(after(0, 2_016_000), 2_048_000);
        assert_eq!(after(1, 2_048_000), 2_304_000);
    }

    /// A clock that is ahead gives the results of a start that is later by as much.
    #[test]
    fn a_clock_ahead_is_a_later_start() {
        let ahead = Span::from_micros(1_234);
        let clock = HostClock::ahead_by(ahead + HostClock::TICK * 3);
        for now_us in [0, 765, 766, 2_765, 2_766, 1_000_000] {
            let now = Time::from_nanos(now_us * 1_000);
            assert_eq!(clock.timestamp(now), CLOCK.timestamp(now + ahead));
            assert_eq!(clock.ticks(now), CLOCK.ticks(now + ahead));
            for wait in [1, 4_000, 300_000, 2_048_000].map(Span::from_micros) {
                let expiry = clock.expiry(now, wait);
                assert!(expiry >= now + wait);
                assert_eq!(expiry + ahead, CLOCK.expiry(now + ahead, wait));
            }
        }
        let later = Time::ZERO + Span::from_secs(100);
        let tick = clock.nearest(clock.number(later), later);
        assert_eq!(tick + ahead, later);
    }
}
