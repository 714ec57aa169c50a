//! Probabilities.

use std::borrow::Cow;

use schemars::{Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use crate::scalar::{Scalar, scalar};

/// A number from 0 to 1.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Serialize)]
pub struct Probability(f64);

impl Probability {
    /// `None` below 0, above 1, and for NaN.
    #[must_use]
    pub fn new(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Self(value))
    }

    /// The number.
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

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0, "maximum": 1, "examples": [1e-7, 0.01] })
    }
}

scalar!(Probability);
