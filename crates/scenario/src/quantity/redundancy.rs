//! Overhead of coding and framing on the air.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

use crate::quantity::error::QuantityError;
use crate::quantity::scalar::{Scalar, scalar};

/// Bits on the air per bit of packet: `"16/15"`, or the number 1.0667. At least 1, at most 100.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Redundancy {
    numerator: u32,
    denominator: u32,
}

const EXPECTED: &str = r#"a fraction from 1 to 100 such as "16/15" or 1.0667"#;

/// Denominator of a redundancy that is written as a decimal number.
const RESOLUTION: u32 = 1_000_000;

impl Redundancy {
    /// No overhead: one bit on the air per bit of packet.
    pub const NONE: Self = Self {
        numerator: 1,
        denominator: 1,
    };

    /// Creates `numerator / denominator` in lowest terms, or returns `None` outside 1 to 100.
    #[must_use]
    pub fn new(numerator: u32, denominator: u32) -> Option<Self> {
        let (n, d) = (u64::from(numerator), u64::from(denominator));
        if d == 0 || n < d || n > 100 * d {
            return None;
        }
        let divisor = greatest_common_divisor(numerator, denominator);
        Some(Self {
            numerator: numerator / divisor,
            denominator: denominator / divisor,
        })
    }

    /// Returns the numerator.
    #[must_use]
    pub fn numerator(self) -> u32 {
        self.numerator
    }

    /// Returns the denominator.
    #[must_use]
    pub fn denominator(self) -> u32 {
        self.denominator
    }

    /// Returns the factor as a floating-point number.
    #[must_use]
    pub fn get(self) -> f64 {
        f64::from(self.numerator) / f64::from(self.denominator)
    }
}

fn greatest_common_divisor(mut a: u32, mut b: u32) -> u32 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl FromStr for Redundancy {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let whole = |part: &str| {
            let part = part.trim();
            let digits = part.bytes().all(|byte| byte.is_ascii_digit());
            part.parse().ok().filter(|_| digits)
        };
        text.split_once('/')
            .and_then(|(upper, lower)| Self::new(whole(upper)?, whole(lower)?))
            .ok_or_else(|| QuantityError::new(EXPECTED, text))
    }
}

impl fmt::Display for Redundancy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.numerator, self.denominator)
    }
}

impl Serialize for Redundancy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Scalar for Redundancy {
    fn expected() -> Cow<'static, str> {
        EXPECTED.into()
    }

    /// Rounds to a millionth.
    fn from_number(value: f64) -> Option<Self> {
        if !(1.0..=100.0).contains(&value) {
            return None;
        }
        Self::new((value * f64::from(RESOLUTION) + 0.5) as u32, RESOLUTION)
    }

    fn from_text(text: &str) -> Option<Result<Self, QuantityError>> {
        Some(text.parse())
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "string", "pattern": "^[0-9]+ */ *[0-9]+$" },
                { "type": "number", "minimum": 1, "maximum": 100 },
            ],
            "examples": ["16/15", 1.0667],
        })
    }
}

scalar!(Redundancy);
