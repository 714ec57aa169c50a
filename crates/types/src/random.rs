//! Random streams keyed by (seed, component, purpose).

use serde::{Deserialize, Serialize};

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Output `index` of splitmix64 seeded with zero: a number that looks as if it were drawn, another for each index.
///
/// Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators", section 3, with Stafford's Mix13
/// constants: a hash of the counter, so any output is as cheap as the next.
#[must_use]
pub const fn splitmix64(index: u64) -> u64 {
    let mut z = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// One stream of random numbers.
///
/// Each component draws from its own streams, so that adding a link to a scenario changes no other
/// link's draws, and two variants of one scenario meet the same luck (common random numbers).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RandomStream(Xoshiro256PlusPlus);

impl RandomStream {
    /// The stream of `component` ("satellite.forward") for `purpose` ("errors") under `seed`.
    #[must_use]
    pub fn new(seed: u64, component: &str, purpose: &str) -> Self {
        // FNV-1a over the two names, a separator between them; SplitMix64 (inside
        // `seed_from_u64`) then spreads the 64 bits over the generator's 256.
        let mut key = 0xcbf2_9ce4_8422_2325_u64 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for byte in component.bytes().chain([0xff]).chain(purpose.bytes()) {
            key = (key ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Self(Xoshiro256PlusPlus::seed_from_u64(key))
    }

    /// 64 uniform bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in [0, 1), with 53 bits.
    pub fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// True with this probability.
    pub fn happens(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// Exponentially distributed with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        // 1 - uniform is in (0, 1], so the logarithm is finite.
        -mean * libm::log(1.0 - self.uniform())
    }

    /// The number of failures before the first success of such trials; `u64::MAX` when none ever succeeds.
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

/// Independent trials that each succeed with the same probability.
#[derive(Clone, Copy, Debug)]
pub struct Trials {
    probability: f64,
    /// Of the probability that one fails: it takes as long as all the rest of a draw.
    log_of_failure: f64,
}

impl Trials {
    /// Trials that succeed with this probability, in [0, 1].
    #[must_use]
    pub fn new(probability: f64) -> Self {
        Self {
            probability,
            log_of_failure: libm::log1p(-probability),
        }
    }

    /// Does one ever succeed?
    #[must_use]
    pub fn ever_succeed(&self) -> bool {
        self.probability > 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_key_gives_the_same_stream_and_another_key_another() {
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
