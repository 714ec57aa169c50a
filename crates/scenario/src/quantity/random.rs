//! Random sizes and times: a quantity, or a distribution of quantities.

use std::fmt;
use std::str::FromStr;

use bentpipe_sim::Distribution;

use crate::quantity::error::QuantityError;
use crate::quantity::notation::number;
use crate::quantity::size::Size;
use crate::quantity::string_quantity::string_quantity;
use crate::quantity::time::Length;

/// A size, or a distribution of sizes: `"exponential(1000 B)"`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RandomSize(pub Distribution);

/// A length of time, or a distribution of lengths: `"exponential(30 s)"`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RandomLength(pub Distribution);

const SHAPES: (f64, f64) = (1.01, 100.0);

/// Parses a distribution with parameters in base units, or returns `None` if the text is not one.
fn read(
    text: &str,
    quantity: impl Fn(&str) -> Result<f64, QuantityError>,
) -> Option<Result<Distribution, QuantityError>> {
    let (name, rest) = text.trim().split_once('(')?;
    let parts: Vec<&str> = rest.strip_suffix(')')?.split(',').map(str::trim).collect();
    let read = || {
        Ok(match (name.trim(), &parts[..]) {
            ("exponential", [mean]) => Distribution::Exponential(quantity(mean)?),
            ("uniform", [low, high]) => {
                let (low, high) = (quantity(low)?, quantity(high)?);
                if low > high {
                    let expected = "the lower end of uniform(...) first";
                    return Err(QuantityError::new(expected, text));
                }
                Distribution::Uniform(low, high)
            }
            ("pareto", [mean, shape]) => {
                let shape = shape.parse().ok();
                let Some(shape) = shape.filter(|shape| (SHAPES.0..=SHAPES.1).contains(shape))
                else {
                    let expected = "pareto(MEAN, SHAPE) with a shape of 1.01 to 100";
                    return Err(QuantityError::new(expected, text));
                };
                let mean = quantity(mean)?;
                Distribution::Pareto { mean, shape }
            }
            _ => {
                let expected = "exponential(MEAN), uniform(LOW, HIGH) or pareto(MEAN, SHAPE)";
                return Err(QuantityError::new(expected, text));
            }
        })
    };
    Some(read())
}

fn write(
    f: &mut fmt::Formatter<'_>,
    distribution: Distribution,
    quantity: impl Fn(f64) -> String,
) -> fmt::Result {
    match distribution {
        Distribution::Constant(value) => f.write_str(&quantity(value)),
        Distribution::Exponential(mean) => write!(f, "exponential({})", quantity(mean)),
        Distribution::Uniform(low, high) => {
            write!(f, "uniform({}, {})", quantity(low), quantity(high))
        }
        Distribution::Pareto { mean, shape } => write!(f, "pareto({}, {shape})", quantity(mean)),
    }
}

impl RandomSize {
    /// Returns the size if it is constant.
    #[must_use]
    pub fn constant(self) -> Option<Size> {
        match self.0 {
            Distribution::Constant(bytes) => Some(Size(bentpipe_types::Bytes::new(bytes as u64))),
            _ => None,
        }
    }
}

impl FromStr for RandomSize {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let bytes = |text: &str| Ok(text.parse::<Size>()?.0.get() as f64);
        match read(text, bytes) {
            Some(distribution) => distribution.map(Self),
            None => Ok(Self(Distribution::Constant(bytes(text)?))),
        }
    }
}

impl fmt::Display for RandomSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = |bytes: f64| Size(bentpipe_types::Bytes::new(bytes as u64)).to_string();
        write(f, self.0, size)
    }
}

string_quantity!(
    RandomSize,
    r#"a size such as "64 KiB""#,
    pattern: concat!(
        "^((exponential|uniform|pareto)\\(.*\\)|",
        number!(),
        " *(B|kB|KB|KiB|MB|MiB|GB|GiB))$"
    ),
    examples: ["64 KiB", "exponential(1000 B)", "uniform(100 B, 2 kB)", "pareto(10 kB, 1.2)"]
);

impl RandomLength {
    /// Returns the length if it is constant.
    #[must_use]
    pub fn constant(self) -> Option<Length> {
        match self.0 {
            Distribution::Constant(seconds) => Some(length(seconds)),
            _ => None,
        }
    }
}

fn length(seconds: f64) -> Length {
    Length(bentpipe_types::Span::from_nanos(
        (seconds * 1e9 + 0.5) as u64,
    ))
}

impl FromStr for RandomLength {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let seconds = |text: &str| Ok(text.parse::<Length>()?.0.as_secs_f64());
        match read(text, seconds) {
            Some(distribution) => distribution.map(Self),
            None => Ok(Self(Distribution::Constant(seconds(text)?))),
        }
    }
}

impl fmt::Display for RandomLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, self.0, |seconds| length(seconds).to_string())
    }
}

string_quantity!(
    RandomLength,
    r#"a length of time such as "250 ms""#,
    pattern: concat!("^((exponential|uniform|pareto)\\(.*\\)|", number!(), " *(ns|us|ms|s|min|h))$"),
    examples: ["250 ms", "exponential(30 s)", "uniform(1 s, 3 s)", "pareto(2 s, 1.5)"]
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_are_written_as_they_were_read() {
        for text in [
            "1 kB",
            "exponential(1500 B)",
            "uniform(100 B, 2 kB)",
            "pareto(10 kB, 1.2)",
        ] {
            let size: RandomSize = text.parse().expect(text);
            assert_eq!(size.to_string(), text);
        }
        for text in ["0 s", "250 ms", "exponential(30 s)", "pareto(2 s, 1.5)"] {
            let length: RandomLength = text.parse().expect(text);
            assert_eq!(length.to_string(), text);
        }
    }

    #[test]
    fn invalid_distributions_are_refused_with_an_example() {
        for (text, expected) in [
            (
                "gauss(1 kB)",
                "expected exponential(MEAN), uniform(LOW, HIGH)",
            ),
            (
                "exponential(1 kB, 2)",
                "expected exponential(MEAN), uniform",
            ),
            (
                "pareto(1 kB, 1)",
                "expected pareto(MEAN, SHAPE) with a shape of 1.01",
            ),
            (
                "uniform(2 kB, 1 kB)",
                "expected the lower end of uniform(...) first",
            ),
            ("exponential(3 s)", "expected a size such as"),
            ("3", "expected a size such as"),
        ] {
            let error = text.parse::<RandomSize>().expect_err(text).to_string();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }
}
