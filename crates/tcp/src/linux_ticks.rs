//! Granularity of Linux's timers: ticks of the kernel's clock, and coarser for longer times,
//! because of its timer wheel (`calc_wheel_index` in `kernel/time/timer.c`).

use bentpipe_types::{Span, Time};

/// CONFIG_HZ = 250, the kernel's default, also of the kernel measured (docs/linux.md).
const TICK: u64 = 1_000_000_000 / 250;

/// LVL_SIZE - 1: number of slots of a level within which a timer must expire to be placed in that
/// level.
const SLOTS: u64 = 63;

/// LVL_CLK_SHIFT: base-2 logarithm of the ratio between the slots of adjacent levels.
const COARSER: u32 = 3;

/// LVL_DEPTH - 1: the highest level.
const LEVELS: u32 = 8;

/// TCP_TIMEOUT_MIN_US: added to the delay of a sender's timer.
pub(crate) const TIMER_SLACK: Span = Span::from_millis(2);

/// Expiry of a timer set now, with this delay.
#[inline(never)]
pub(crate) fn expiry(now: Time, wait: Span) -> Time {
    let ticks = wait.as_nanos().div_ceil(TICK);
    // Never early: counted from the next tick.
    expires_with(now.as_nanos().div_ceil(TICK) + ticks, ticks)
}

/// Expiry of a timer that was set with a delay of `wait`, in [whole] ticks, and is due at
/// `at`.
#[inline(never)]
pub(crate) fn later_expiry(at: Time, wait: Span) -> Time {
    expires_with(at.as_nanos().div_ceil(TICK), wait.as_nanos().div_ceil(TICK))
}

/// Expiry of a timer with a delay of `linux_ticks` that is due at tick `due`.
#[inline]
fn expires_with(due: u64, ticks: u64) -> Time {
    let level = (0..LEVELS)
        .find(|level| ticks < SLOTS << (COARSER * level))
        .unwrap_or(LEVELS);
    let slot = 1 << (COARSER * level);
    let at = due.div_ceil(slot).saturating_mul(slot);
    Time::from_nanos(at.saturating_mul(TICK))
}

/// Time of the last tick (jiffies).
#[inline]
pub(crate) fn last_before(at: Time) -> Time {
    Time::from_nanos(at.as_nanos() / TICK * TICK)
}

/// Number of the last tick, without its upper bits: it wraps after 198 days.
pub(crate) fn number(at: Time) -> u32 {
    (at.as_nanos() / TICK) as u32
}

/// Time of the tick with this [number] that is nearest to the present one (time_after).
pub(crate) fn nearest(number: u32, now: Time) -> Time {
    let present = now.as_nanos() / TICK;
    let further = number.wrapping_sub(present as u32) as i32;
    let tick = present.saturating_add_signed(i64::from(further));
    Time::from_nanos(tick.saturating_mul(TICK))
}

/// Rounds up to whole ticks (usecs_to_jiffies).
#[inline]
pub(crate) const fn whole(nanoseconds: u64) -> u64 {
    nanoseconds.div_ceil(TICK).saturating_mul(TICK)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(now_us: u64, wait_us: u64) -> u64 {
        let now = Time::from_nanos(now_us * 1_000);
        expiry(now, Span::from_micros(wait_us)).as_nanos() / 1_000
    }

    #[test]
    fn ticks_are_identified_by_their_lower_bits() {
        let year = Time::ZERO + Span::from_secs(365 * 24 * 3600);
        for early in [Time::ZERO, year] {
            let now = early + Span::from_secs(100);
            for there in [early, now, now + Span::from_secs(7_200)] {
                assert_eq!(nearest(number(there), now), there);
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
                assert_eq!(later_expiry(now + wait, wait), expiry(now, wait));
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
}
