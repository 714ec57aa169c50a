//! Instants and time spans in whole nanoseconds.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub};

use serde::{Deserialize, Serialize};

/// An instant: nanoseconds since the start of the simulation or of the live process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Time(u64);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Span(u64);

impl Time {
    /// The start.
    pub const ZERO: Self = Self(0);
    /// The last instant of a simulation: its schedule has 48 bits of nanoseconds, 3.26 days.
    /// External clocks are not limited.
    pub const LAST: Self = Self((1 << 48) - 1);
    /// Later than any instant: the deadline of a timer that is not set. Smaller than an `Option`,
    /// and the earliest of several deadlines is their minimum.
    pub const NEVER: Self = Self(u64::MAX);

    /// Creates the instant `nanoseconds` after the start.
    #[must_use]
    pub const fn from_nanos(nanoseconds: u64) -> Self {
        Self(nanoseconds)
    }

    /// Returns the nanoseconds since the start.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the seconds since the start.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns the time since `earlier`, or zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// Creates a span of `nanoseconds`.
    #[must_use]
    pub const fn from_nanos(nanoseconds: u64) -> Self {
        Self(nanoseconds)
    }

    /// Creates a span of `microseconds`.
    #[must_use]
    pub const fn from_micros(microseconds: u64) -> Self {
        Self(microseconds.saturating_mul(1_000))
    }

    /// Creates a span of `milliseconds`.
    #[must_use]
    pub const fn from_millis(milliseconds: u64) -> Self {
        Self(milliseconds.saturating_mul(1_000_000))
    }

    /// Creates a span of `seconds`.
    #[must_use]
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000_000_000))
    }

    /// Creates a span of `seconds`, rounded to nanoseconds; negative numbers and NaN give zero.
    #[must_use]
    pub fn from_secs_f64(seconds: f64) -> Self {
        Self((seconds * 1e9 + 0.5) as u64)
    }

    /// Returns the length in nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the length in seconds.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns the length in milliseconds.
    #[must_use]
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Returns this span minus `other`, or zero if `other` is longer.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Returns the absolute difference of two spans.
    #[must_use]
    pub const fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }
}

impl Add<Span> for Time {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Span {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        debug_assert!(self.0 >= other.0, "a span cannot be negative");
        Self(self.0.saturating_sub(other.0))
    }
}

impl Mul<u64> for Span {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Div<u64> for Span {
    type Output = Self;
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.9}s", self.as_secs_f64())
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.9}s", self.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_rounds_to_the_nearest_nanosecond() {
        assert_eq!(Span::from_secs_f64(0.25), Span::from_millis(250));
        assert_eq!(Span::from_secs_f64(1.4e-9), Span::from_nanos(1));
        assert_eq!(Span::from_secs_f64(-1.0), Span::ZERO);
        assert_eq!(Span::from_secs_f64(f64::NAN), Span::ZERO);
    }

    #[test]
    fn time_never_wraps() {
        assert_eq!(Time::NEVER + Span::from_secs(1), Time::NEVER);
        assert_eq!(Time::ZERO.since(Time::from_nanos(5)), Span::ZERO);
    }
}
