//! Probabilities.

use std::borrow::Cow;

use schemars::{Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use crate::quantity::error::QuantityError;
use crate::quantity::scalar::{Scalar, scalar};

/// A number from 0 to 1.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Serialize)]
pub struct Probability(f64);

impl Probability {
    /// Creates a probability, or returns `None` below 0, above 1, and for NaN.
    #[must_use]
    pub fn new(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Self(value))
    }

    /// Returns the number.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

impl Scalar for Probability {
    fn expected() -> Cow<'static, str> {
        "a probability from 0 to 1 such as 1e-6".into()
    }

    fn from_number(value: f64) -> Option<Self> {
        Self::new(value)
    }

    /// Refuses every string; for "5%" and "0.05" the error suggests the number.
    fn from_text(text: &str) -> Option<Result<Self, QuantityError>> {
        let plain = text.trim();
        let percent = plain.strip_suffix('%');
        let number: f64 = percent.unwrap_or(plain).trim_end().parse().ok()?;
        let worth = if percent.is_some() {
            number / 100.0
        } else {
            number
        };
        Self::new(worth)?;
        // Limits the digits, so that the rounding error of the division by 100 is not shown.
        let digits = format!("{worth:.15}");
        let meant = digits
            .trim_end_matches('0')
            .trim_end_matches('.')
            .to_owned();
        Some(Err(QuantityError::with_suggestion(
            Self::expected(),
            text,
            meant,
        )))
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0, "maximum": 1, "examples": [1e-7, 0.01] })
    }
}

scalar!(Probability);
