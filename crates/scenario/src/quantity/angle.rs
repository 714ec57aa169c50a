//! Angles.

use std::fmt;
use std::str::FromStr;

use crate::quantity::error::QuantityError;
use crate::quantity::notation::{number, split};
use crate::quantity::string_quantity::string_quantity;

/// An angle: `"52.5 deg"`, `"-33.9 deg"`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Angle(pub f64);

impl Angle {
    /// Returns the angle in degrees, or an error if it is not within these.
    pub(crate) fn within(self, least: f64, most: f64) -> Result<f64, String> {
        if (least..=most).contains(&self.0) {
            return Ok(self.0);
        }
        let [least, most] = [least, most].map(Self);
        Err(format!(r#"expected "{least}" to "{most}", got "{self}""#))
    }
}

impl FromStr for Angle {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let (sign, rest) = match text.trim().strip_prefix('-') {
            Some(rest) => (-1.0, rest),
            None => (1.0, text),
        };
        let in_degrees = split(rest).filter(|(_, unit)| *unit == "deg");
        let Some((number, _)) = in_degrees else {
            return Err(QuantityError::new(r#"an angle such as "52.5 deg""#, text));
        };
        if number > 360.0 {
            return Err(QuantityError::new(r#""-360 deg" to "360 deg""#, text));
        }
        Ok(Self(sign * number))
    }
}

impl fmt::Display for Angle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} deg", self.0)
    }
}

string_quantity!(
    Angle,
    r#"an angle such as "52.5 deg""#,
    pattern: concat!("^-?", number!(), " *deg$"),
    examples: ["52.5 deg", "-33.9 deg"]
);
