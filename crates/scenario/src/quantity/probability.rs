//! Probabilities.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Unexpected, Visitor};
use serde::{Deserialize, Serialize};

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

impl<'de> Deserialize<'de> for Probability {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = Probability;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a probability from 0 to 1 such as 1e-6")
            }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Probability, E> {
                Probability::new(value)
                    .ok_or_else(|| E::invalid_value(Unexpected::Float(value), &self))
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Probability, E> {
                Probability::new(value as f64)
                    .ok_or_else(|| E::invalid_value(Unexpected::Signed(value), &self))
            }
        }
        deserializer.deserialize_f64(Number)
    }
}

impl JsonSchema for Probability {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Probability".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0, "maximum": 1, "examples": [1e-7, 0.01] })
    }
}
