//! Capacity, without rounding.

use std::ops::{Add, AddAssign, Mul, Sub};

use bentpipe_types::{BitRate, Bytes, Span};

/// A byte, in bit/s times nanoseconds.
const BYTE: u128 = 8_000_000_000;

/// What a rate carries in a time, in bit/s times nanoseconds: a whole number for every rate and every length of
/// frame, so that a rate's shares of many frames add up to the rate, exactly.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Capacity(u128);

impl Capacity {
    pub(crate) const ZERO: Self = Self(0);
    /// A bit/s times a nanosecond.
    pub(crate) const LEAST: Self = Self(1);

    /// What `rate` carries in `span`.
    pub(crate) fn of(rate: BitRate, span: Span) -> Self {
        Self(u128::from(rate.bits_per_second()) * u128::from(span.as_nanos()))
    }

    /// What a byte takes with so many bits on the air per bit. Bytes are multiples of it, so that what a queue
    /// takes is what its packets take together.
    pub(crate) fn of_byte(redundancy: f64) -> Self {
        Self(libm::round(redundancy * BYTE as f64) as u128)
    }

    /// Whole bytes.
    pub(crate) fn bytes(self) -> Bytes {
        Bytes::new(u64::try_from(self.0 / BYTE).unwrap_or(u64::MAX))
    }

    /// Bits; of a series, or a share.
    pub(crate) fn bits(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// How long it takes at `rate`, to the nearest nanosecond.
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

    /// One of so many equal parts, rounded down.
    pub(crate) fn share_of(self, parts: usize) -> Self {
        Self(self.0 / parts.max(1) as u128)
    }

    /// How many of so many equal parts would be larger, had what is rounded down been given to them.
    pub(crate) fn remainder_of(self, parts: usize) -> usize {
        (self.0 % parts.max(1) as u128) as usize
    }

    /// This, times `part / whole`, rounded down. The part is at most the whole, which is above zero.
    pub(crate) fn scaled(self, part: u64, whole: u64) -> Self {
        if part == whole {
            return self;
        }
        let (part, whole) = (u128::from(part), u128::from(whole));
        // In two steps, of which none overflows.
        Self(self.0 / whole * part + self.0 % whole * part / whole)
    }

    /// This, times `whole / part`, rounded up. The part is at most the whole, and above zero.
    pub(crate) fn scaled_up(self, whole: u64, part: u64) -> Self {
        if part == whole {
            return self;
        }
        let (part, whole) = (u128::from(part), u128::from(whole));
        let rest = (self.0 % part * whole).div_ceil(part);
        Self((self.0 / part).saturating_mul(whole).saturating_add(rest))
    }

    /// Its part in proportion: this, times `part / whole`, rounded down. The whole is above zero.
    pub(crate) fn in_proportion(self, part: Self, whole: Self) -> Self {
        self.0.checked_mul(part.0).map_or_else(
            || {
                // Of the largest rates and the longest frames the product does not fit: to four bytes, rounded down.
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
