//! Capacity as an exact number.

use std::ops::{Add, AddAssign, Mul, Sub};

use bentpipe_types::{BitRate, Bytes, Span};

/// One byte, in bit/s times nanoseconds.
const BYTE: u128 = 8_000_000_000;

/// A rate times a duration, in bit/s times nanoseconds: a whole number for every rate and frame
/// length, so that the shares of many frames add up to the rate exactly.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Capacity(u128);

impl Capacity {
    pub(crate) const ZERO: Self = Self(0);
    /// One bit/s times one nanosecond.
    pub(crate) const LEAST: Self = Self(1);

    /// Returns the capacity of `rate` in `span`.
    pub(crate) fn of(rate: BitRate, span: Span) -> Self {
        Self(u128::from(rate.bits_per_second()) * u128::from(span.as_nanos()))
    }

    /// Returns the capacity for a byte, with `redundancy` transmitted bits per bit. Byte counts are
    /// multiples of it, so a queue's capacity is the sum of its packets'.
    pub(crate) fn of_byte(redundancy: f64) -> Self {
        Self(libm::round(redundancy * BYTE as f64) as u128)
    }

    /// Returns the number of whole bytes.
    pub(crate) fn bytes(self) -> Bytes {
        Bytes::new(u64::try_from(self.0 / BYTE).unwrap_or(u64::MAX))
    }

    /// Returns the number of bits, for series and shares.
    pub(crate) fn bits(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns the duration at `rate`, to the nearest nanosecond.
    pub(crate) fn time_at(self, rate: BitRate) -> Span {
        let rate = u128::from(rate.bits_per_second());
        let nanoseconds = (self.0 + rate / 2) / rate;
        Span::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }

    pub(crate) fn is_zero(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn less(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Returns one of `parts` equal parts, rounded down.
    pub(crate) fn share_of(self, parts: usize) -> Self {
        Self(self.0 / parts.max(1) as u128)
    }

    /// Returns the remainder of the division into equal parts: how many parts would be larger by
    /// one.
    pub(crate) fn remainder_of(self, parts: usize) -> usize {
        (self.0 % parts.max(1) as u128) as usize
    }

    /// Returns this times `part / whole`, rounded down. Requires `part <= whole` and `whole > 0`.
    pub(crate) fn scaled(self, part: u64, whole: u64) -> Self {
        if part == whole {
            return self;
        }
        let (part, whole) = (u128::from(part), u128::from(whole));
        // In two steps, neither of which overflows.
        Self(self.0 / whole * part + self.0 % whole * part / whole)
    }

    /// Returns this times `whole / part`, rounded up. Requires `0 < part <= whole`.
    pub(crate) fn scaled_up(self, whole: u64, part: u64) -> Self {
        if part == whole {
            return self;
        }
        let (part, whole) = (u128::from(part), u128::from(whole));
        let rest = (self.0 % part * whole).div_ceil(part);
        Self((self.0 / part).saturating_mul(whole).saturating_add(rest))
    }

    /// Returns this times `part / whole`, rounded down. Requires `whole > 0`.
    pub(crate) fn in_proportion(self, part: Self, whole: Self) -> Self {
        self.0.checked_mul(part.0).map_or_else(
            || {
                // The product overflows for the largest rates and frames: four bytes are dropped.
                let coarse = |of: Self| of.0 >> 32;
                Self((coarse(self) * coarse(part) / (coarse(whole) + 1)) << 32)
            },
            |product| Self(product / whole.0),
        )
    }
}

impl Add for Capacity {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Capacity {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Capacity {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        debug_assert!(other <= self, "nothing takes more than there is");
        self.less(other)
    }
}

impl Mul<u64> for Capacity {
    type Output = Self;

    fn mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(u128::from(times)))
    }
}
