//! Random sizes and times.

use crate::{RandomStream, Span};

/// A distribution of non-negative numbers: bytes, or seconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Distribution {
    /// Always this.
    Constant(f64),
    /// Exponential with this mean.
    Exponential(f64),
    /// Uniform between these.
    Uniform(f64, f64),
    /// Pareto (type I) with this mean and shape; the shape is above 1, as there is no mean below.
    Pareto {
        /// The mean.
        mean: f64,
        /// The exponent of the tail: 1.2 is heavy, and has no variance.
        shape: f64,
    },
}

impl Distribution {
    /// The mean.
    #[must_use]
    pub fn mean(self) -> f64 {
        match self {
            Self::Constant(value) => value,
            Self::Exponential(mean) | Self::Pareto { mean, .. } => mean,
            Self::Uniform(low, high) => f64::midpoint(low, high),
        }
    }

    /// A draw. A constant draws nothing.
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

    /// A draw as a length of time, of a distribution of seconds.
    pub fn span(self, random: &mut RandomStream) -> Span {
        // Beyond the clock's end nothing happens.
        let nanoseconds = (self.draw(random).max(0.0) * 1e9).min(1e18);
        Span::from_nanos(nanoseconds as u64)
    }

    /// A draw as a number of bytes, at least one.
    pub fn bytes(self, random: &mut RandomStream) -> u64 {
        libm::round(self.draw(random)).clamp(1.0, 1e15) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_what_they_say() {
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
