//! Linux's timers go in ticks of the kernel's clock, and coarser ones the further off they are: its timer wheel
//! (`kernel/time/timer.c`, `calc_wheel_index`).

use bentpipe_types::{Span, Time};

/// CONFIG_HZ = 250, the kernel's default, and that of the kernel that was measured (docs/linux.md).
const TICK: u64 = 1_000_000_000 / 250;

/// LVL_SIZE - 1: a timer no further off than so many slots of a level stands in that level.
const SLOTS: u64 = 63;

/// LVL_CLK_SHIFT: a slot of a level is as long as so many of the level below, as a power of two.
const COARSER: u32 = 3;

/// LVL_DEPTH - 1
const LEVELS: u32 = 8;

/// TCP_TIMEOUT_MIN_US: what a timer of the sender's waits for longer than it must.
pub(crate) const LEAST: Span = Span::from_millis(2);

/// When a timer expires that is set now, for so long.
#[inline(never)]
pub(crate) fn expiry(now: Time, wait: Span) -> Time {
    let ticks = wait.as_nanos().div_ceil(TICK);
    // Never early, counted from the tick that comes.
    expires_with(now.as_nanos().div_ceil(TICK) + ticks, ticks)
}

/// When a timer expires that was set for so many [whole](whole) ticks, until `at`.
#[inline(never)]
pub(crate) fn later_expiry(at: Time, wait: Span) -> Time {
    expires_with(at.as_nanos().div_ceil(TICK), wait.as_nanos().div_ceil(TICK))
}

/// With which tick a timer expires that waits for `ticks`, until tick `due`.
#[inline]
fn expires_with(due: u64, ticks: u64) -> Time {
    let level = (0..LEVELS)
        .find(|level| ticks < SLOTS << (COARSER * level))
        .unwrap_or(LEVELS);
    let slot = 1 << (COARSER * level);
    let at = due.div_ceil(slot).saturating_mul(slot);
    Time::from_nanos(at.saturating_mul(TICK))
}

/// The time of the tick that has come by then (jiffies).
#[inline]
pub(crate) fn last_before(at: Time) -> Time {
    Time::from_nanos(at.as_nanos() / TICK * TICK)
}

/// The number of the tick that has come by then, without its upper bits: after 198 days they are the same again.
pub(crate) fn number(at: Time) -> u32 {
    (at.as_nanos() / TICK) as u32
}

/// When the tick of this [number](number) comes that is nearest to the present one (time_after).
pub(crate) fn nearest(number: u32, now: Time) -> Time {
    let present = now.as_nanos() / TICK;
    let further = number.wrapping_sub(present as u32) as i32;
    let tick = present.saturating_add_signed(i64::from(further));
    Time::from_nanos(tick.saturating_mul(TICK))
}

/// So long, in whole ticks (usecs_to_jiffies).
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
    fn a_tick_is_known_by_its_lower_bits() {
        let year = Time::ZERO + Span::from_secs(365 * 24 * 3600);
        for early in [Time::ZERO, year] {
            let now = early + Span::from_secs(100);
            for there in [early, now, now + Span::from_secs(7_200)] {
                assert_eq!(nearest(number(there), now), there);
            }
        }
    }

    #[test]
    fn rounded_up_from_the_next_tick() {
        assert_eq!(after(0, 1), 4_000);
        assert_eq!(after(0, 4_000), 4_000);
        assert_eq!(after(1, 4_000), 8_000);
        assert_eq!(after(3_999, 4_001), 12_000);
        assert_eq!(after(8_000, 62 * 4_000), 8_000 + 62 * 4_000);
    }

    /// What is looked up when a timer is due is what would have been, had it been when the timer was set.
    #[test]
    fn later_is_the_same() {
        for now_us in [0, 1, 3_999, 4_000, 4_001, 123_457, 1_000_000] {
            for ticks in [1, 50, 62, 63, 64, 100, 503, 504, 2_000, 30_000] {
                let now = Time::from_nanos(now_us * 1_000);
                let wait = Span::from_nanos(ticks * TICK);
                assert_eq!(later_expiry(now + wait, wait), expiry(now, wait));
            }
        }
    }

    #[test]
    fn the_further_off_the_coarser() {
        // From 252 ms on in steps of 32 ms, from 2,016 ms on of 256 ms.
        assert_eq!(after(0, 252_000), 256_000);
        assert_eq!(after(0, 300_000), 320_000);
        assert_eq!(after(0, 320_000), 320_000);
        assert_eq!(after(1, 320_000), 352_000);
        assert_eq!(after(24_000, 300_000), 352_000);
        assert_eq!(after(0, 2_016_000), 2_048_000);
        assert_eq!(after(1, 2_048_000), 2_304_000);
    }
}
