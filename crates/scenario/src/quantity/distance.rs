//! Distances.

use std::fmt;
use std::str::FromStr;

use crate::quantity::error::QuantityError;
use crate::quantity::notation::{number, split};
use crate::quantity::string_quantity::string_quantity;

/// A distance in metres: `"550 km"`, `"35 m"`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Distance(pub f64);

/// Upper limit: beyond the Moon.
const FARTHEST: f64 = 1e9;

impl FromStr for Distance {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let expected = r#"a distance such as "550 km" (units: m, km)"#;
        let metres = split(text).and_then(|(number, unit)| match unit {
            "m" => Some(number),
            "km" => Some(number * 1e3),
            _ => None,
        });
        match metres {
            Some(metres) if metres <= FARTHEST => Ok(Self(metres)),
            Some(_) => Err(QuantityError::new("a distance up to 1000000 km", text)),
            None => Err(QuantityError::new(expected, text)),
        }
    }
}

impl fmt::Display for Distance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 >= 1e3 {
            write!(f, "{} km", self.0 / 1e3)
        } else {
            write!(f, "{} m", self.0)
        }
    }
}

string_quantity!(
    Distance,
    r#"a distance such as "550 km""#,
    pattern: concat!("^", number!(), " *(m|km)$"),
    examples: ["550 km", "35 m"]
);
