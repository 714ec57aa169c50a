//! TCP sequence numbers: 32 bits with wrap-around.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

/// A TCP sequence number, compared modulo 2^32 (RFC 9293 section 3.4).
///
/// No `Ord`: the comparison is not transitive, so a sequence number must not be sorted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Seq(u32);

impl Seq {
    /// Creates a sequence number.
    #[must_use]
    pub const fn new(value: u32) -> Self {
        Self(value)
    }

    /// Returns the value on the wire.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Whether this number is before `other`.
    #[must_use]
    pub const fn before(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }

    /// Whether this number is equal to `other` or before it.
    #[must_use]
    pub const fn at_or_before(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) as i32) <= 0
    }

    /// Whether this number is after `other`.
    #[must_use]
    pub const fn after(self, other: Self) -> bool {
        other.before(self)
    }

    /// Whether this number is equal to `other` or after it.
    #[must_use]
    pub const fn at_or_after(self, other: Self) -> bool {
        other.at_or_before(self)
    }

    /// Returns the signed distance from `other`: positive if this number is after it.
    #[must_use]
    pub const fn distance_from(self, other: Self) -> i32 {
        self.0.wrapping_sub(other.0) as i32
    }

    /// Returns the later of two numbers.
    #[must_use]
    pub const fn latest(self, other: Self) -> Self {
        if self.before(other) { other } else { self }
    }
}

impl Add<u32> for Seq {
    type Output = Self;
    fn add(self, length: u32) -> Self {
        Self(self.0.wrapping_add(length))
    }
}

impl AddAssign<u32> for Seq {
    fn add_assign(&mut self, length: u32) {
        *self = *self + length;
    }
}

impl Sub<u32> for Seq {
    type Output = Self;
    fn sub(self, length: u32) -> Self {
        Self(self.0.wrapping_sub(length))
    }
}

/// Returns the distance from `earlier` to this number, modulo 2^32.
impl Sub for Seq {
    type Output = u32;
    fn sub(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }
}

impl fmt::Debug for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_wrap() {
        let last = Seq::new(u32::MAX);
        let first = last + 1;
        assert_eq!(first, Seq::new(0));
        assert!(last.before(first) && first.after(last));
        assert!(last.at_or_before(last) && last.at_or_after(last));
        assert_eq!(first - last, 1);
        assert_eq!(last.distance_from(first), -1);
        assert_eq!(last.latest(first), first);
    }
}
