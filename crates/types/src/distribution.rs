//! Distributions of random sizes and times.

use crate::{RandomStream, Span};

/// A distribution of non-negative numbers: bytes, or seconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Distribution {
    /// This value, always.
    Constant(f64),
    /// Exponential distribution with this mean.
    Exponential(f64),
    /// Uniform distribution between these values.
    Uniform(f64, f64),
    /// Pareto distribution (type I). The shape is above 1, since otherwise there is no mean.
    Pareto {
        /// The mean.
        mean: f64,
        /// Exponent of the tail. A tail of 1.2 is heavy and has no variance.
        shape: f64,
    },
}

impl Distribution {
    /// Returns the mean.
    #[must_use]
    pub fn mean(self) -> f64 {
        match self {
            Self::Constant(value) => value,
            Self::Exponential(mean) | Self::Pareto { mean, .. } => mean,
            Self::Uniform(low, high) => f64::midpoint(low, high),
        }
    }

    /// Draws a value. A constant uses no randomness.
    pub fn draw(self, random: &mut RandomStream) -> f64 {
        match self {
            Self::Constant(value) => value,
            Self::Exponential(mean) => random.exponential(mean),
            Self::Uniform(low, high) => low + (high - low) * random.uniform(),
            Self::Pareto { mean, shape } => {
                let scale = mean * (shape - 1.0) / shape;
                // 1 - uniform is in (0, 1].
                scale / libm::pow(1.0 - random.uniform(), 1.0 / shape)
            }
        }
    }

    /// Draws a length of time from a distribution of seconds.
    pub fn span(self, random: &mut RandomStream) -> Span {
        // Limited to the range of the clock.
        let nanoseconds = (self.draw(random).max(0.0) * 1e9).min(1e18);
        Span::from_nanos(nanoseconds as u64)
    }

    /// Draws a number of bytes, at least one.
    pub fn bytes(self, random: &mut RandomStream) -> u64 {
        libm::round(self.draw(random)).clamp(1.0, 1e15) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_means_match_the_stated_means() {
        let mut random = RandomStream::new(1, "test", "draws");
        for distribution in [
            Distribution::Constant(7.0),
            Distribution::Exponential(7.0),
            Distribution::Uniform(2.0, 12.0),
            Distribution::Pareto {
                mean: 7.0,
                shape: 3.0,
            },
        ] {
            let draws = 400_000;
            let sum: f64 = (0..draws).map(|_| distribution.draw(&mut random)).sum();
            let mean = sum / f64::from(draws);
            // The largest standard error, of the exponential: 7 / sqrt(400000) = 0.011.
            assert!((mean - 7.0).abs() < 0.05, "{distribution:?}: {mean}");
            assert_eq!(distribution.mean(), 7.0);
        }
    }
}
