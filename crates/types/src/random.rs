//! Random streams keyed by (seed, component, purpose).

use serde::{Deserialize, Serialize};

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Returns output `index` of splitmix64 seeded with zero.
///
/// Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators", section 3, with
/// Stafford's Mix13 constants: a hash of the counter, so any output costs the same.
#[must_use]
pub const fn splitmix64(index: u64) -> u64 {
    let mut z = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A stream of random numbers.
///
/// Each component draws from its own streams. Adding a link changes no other link's draws, and two
/// variants of a scenario use common random numbers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RandomStream(Xoshiro256PlusPlus);

impl RandomStream {
    /// Creates the stream of `component` ("satellite.forward") for `purpose` ("errors") under
    /// `seed`.
    #[must_use]
    pub fn new(seed: u64, component: &str, purpose: &str) -> Self {
        // FNV-1a over both names with a separator; `seed_from_u64` (splitmix64) spreads the 64 bits
        // over the generator's 256.
        let mut key = 0xcbf2_9ce4_8422_2325_u64 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for byte in component.bytes().chain([0xff]).chain(purpose.bytes()) {
            key = (key ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Self(Xoshiro256PlusPlus::seed_from_u64(key))
    }

    /// Returns 64 uniform bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a uniform number in [0, 1) with 53 bits.
    pub fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Returns true with this probability.
    pub fn happens(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// Returns an exponentially distributed number with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        // 1 - uniform is in (0, 1], so the logarithm is finite.
        -mean * libm::log(1.0 - self.uniform())
    }

    /// Returns the number of failures before the first success, or `u64::MAX` if none ever
    /// succeeds.
    pub fn failures_before_success(&mut self, trials: Trials) -> u64 {
        if trials.probability <= 0.0 {
            return u64::MAX;
        }
        if trials.probability >= 1.0 {
            return 0;
        }
        let failures = libm::log(1.0 - self.uniform()) / trials.log_of_failure;
        if failures >= u64::MAX as f64 {
            u64::MAX
        } else {
            failures as u64
        }
    }
}

/// Independent trials with the same probability of success.
#[derive(Clone, Copy, Debug)]
pub struct Trials {
    probability: f64,
    /// Logarithm of the probability of failure, precomputed: it costs as much as the rest of a
    /// draw.
    log_of_failure: f64,
}

impl Trials {
    /// Creates trials with this probability of success, in [0, 1].
    #[must_use]
    pub fn new(probability: f64) -> Self {
        Self {
            probability,
            log_of_failure: libm::log1p(-probability),
        }
    }

    /// Whether the probability of success is above zero.
    #[must_use]
    pub fn ever_succeed(&self) -> bool {
        self.probability > 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_equal_for_equal_keys_and_differ_otherwise() {
        let draw = |seed, component, purpose| RandomStream::new(seed, component, purpose).bits();
        assert_eq!(
            draw(1, "satellite.forward", "errors"),
            draw(1, "satellite.forward", "errors")
        );
        assert_ne!(
            draw(1, "satellite.forward", "errors"),
            draw(2, "satellite.forward", "errors")
        );
        assert_ne!(
            draw(1, "satellite.forward", "errors"),
            draw(1, "satellite.return", "errors")
        );
        assert_ne!(draw(1, "ab", "c"), draw(1, "a", "bc"));
    }

    #[test]
    fn geometric_draws_have_the_right_mean() {
        let mut stream = RandomStream::new(7, "test", "geometric");
        let probability = 0.01;
        let draws = 200_000;
        let total: u64 = (0..draws)
            .map(|_| stream.failures_before_success(Trials::new(probability)))
            .sum();
        let mean = total as f64 / f64::from(draws);
        // (1 - p) / p = 99; the standard error of the mean is 99.5 / sqrt(200000) = 0.22.
        assert!((mean - 99.0).abs() < 1.0, "mean {mean}");
    }
}
