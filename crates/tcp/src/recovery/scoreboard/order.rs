//! Send order of transmissions.

use serde::{Deserialize, Serialize};

/// Rank of a transmission in send order, modulo 2^32.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Order(pub(super) u32);

impl Order {
    /// Rank of the following transmission.
    #[inline]
    pub(super) const fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }

    /// Whether this transmission was sent before `other`.
    #[inline]
    #[must_use]
    pub fn is_before(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) as i32).is_negative()
    }
}
