//! Power ratios in decibels.

use std::fmt;
use std::str::FromStr;

use crate::quantity::error::QuantityError;
use crate::quantity::notation::{number, split};
use crate::quantity::string_quantity::string_quantity;

/// A power ratio: `"12.5 dB"`, `"-1 dB"`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Decibels(pub f64);

/// Upper limit, beyond the ratios of any link budget.
pub(crate) const MOST_DECIBELS: f64 = 200.0;

impl Decibels {
    /// Returns the ratio, or an error if it is negative.
    pub(crate) fn not_negative(self) -> Result<f64, String> {
        if self.0 < 0.0 {
            return Err(format!(r#"expected "0 dB" or more, got "{self}""#));
        }
        Ok(self.0)
    }
}

impl FromStr for Decibels {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let (sign, rest) = match text.trim().strip_prefix('-') {
            Some(rest) => (-1.0, rest),
            None => (1.0, text),
        };
        let in_db = split(rest).filter(|(_, unit)| unit.eq_ignore_ascii_case("dB"));
        let Some((number, _)) = in_db else {
            return Err(QuantityError::new(r#"decibels such as "12.5 dB""#, text));
        };
        if number > MOST_DECIBELS {
            return Err(QuantityError::new(r#""-200 dB" to "200 dB""#, text));
        }
        Ok(Self(sign * number))
    }
}

impl fmt::Display for Decibels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} dB", self.0)
    }
}

string_quantity!(
    Decibels,
    r#"decibels such as "12.5 dB""#,
    pattern: concat!("^-?", number!(), " *[dD][bB]$"),
    examples: ["12.5 dB", "-1 dB"]
);
