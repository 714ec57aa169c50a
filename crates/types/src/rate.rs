//! Bit rates.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Bytes, Span};

/// Bits per second; never zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BitRate(u64);

impl BitRate {
    /// Creates a rate, or returns `None` for zero.
    #[must_use]
    pub const fn new(bits_per_second: u64) -> Option<Self> {
        if bits_per_second == 0 {
            None
        } else {
            Some(Self(bits_per_second))
        }
    }

    /// Returns the rate in bits per second.
    #[must_use]
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// Returns the transmission time of `bytes`, rounded to the nearest nanosecond.
    #[must_use]
    pub const fn transmission_time(self, bytes: Bytes) -> Span {
        // 64-bit arithmetic suffices up to 2 GB.
        let half = self.0 / 2;
        if bytes.get() < 1 << 31 {
            return Span::from_nanos((bytes.get() * 8_000_000_000 + half) / self.0);
        }
        let exact = (bytes.get() as u128 * 8_000_000_000 + half as u128) / self.0 as u128;
        Span::from_nanos(if exact > u64::MAX as u128 {
            u64::MAX
        } else {
            exact as u64
        })
    }

    /// Returns the bytes transmitted in `span`, rounded down: a bandwidth-delay product.
    #[must_use]
    pub const fn bytes_in(self, span: Span) -> Bytes {
        const PER_BYTE: u64 = 8_000_000_000;
        if let Some(product) = self.0.checked_mul(span.as_nanos()) {
            return Bytes::new(product / PER_BYTE);
        }
        let exact = self.0 as u128 * span.as_nanos() as u128 / PER_BYTE as u128;
        Bytes::new(if exact > u64::MAX as u128 {
            u64::MAX
        } else {
            exact as u64
        })
    }
}

impl fmt::Debug for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bit/s", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(bits_per_second: u64) -> BitRate {
        BitRate::new(bits_per_second).expect("not zero")
    }

    #[test]
    fn transmission_times_are_exact_to_the_nanosecond() {
        assert_eq!(
            rate(100_000_000).transmission_time(Bytes::new(1500)),
            Span::from_micros(120)
        );
        assert_eq!(
            rate(4_000).transmission_time(Bytes::new(52)),
            Span::from_millis(104)
        );
        assert_eq!(
            rate(3).transmission_time(Bytes::new(1)),
            Span::from_nanos(2_666_666_667)
        );
        assert_eq!(
            rate(8).transmission_time(Bytes::new(1 << 33)),
            Span::from_secs(1 << 33)
        );
    }

    #[test]
    fn a_bandwidth_delay_product() {
        assert_eq!(
            rate(100_000_000).bytes_in(Span::from_millis(600)),
            Bytes::new(7_500_000)
        );
        // An intermediate product and a result above 64 bits.
        assert_eq!(
            rate(8_000_000_000_000).bytes_in(Span::from_secs(1000)),
            Bytes::new(1_000_000_000_000_000)
        );
        assert_eq!(
            rate(u64::MAX).bytes_in(Span::from_secs(1000)),
            Bytes::new(u64::MAX)
        );
    }
}
