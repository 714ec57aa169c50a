//! Quantities that a file writes as strings.

use crate::quantity::error::QuantityError;
use crate::quantity::notation::{Unit, split};

/// Returns the number of base units in `text`, rounded to the nearest and at most `u64::MAX`, or
/// `None` for other units. A number above zero that would be rounded to zero is an error.
pub(crate) fn in_base_units(text: &str, units: &[Unit]) -> Option<Result<u64, QuantityError>> {
    let (number, unit) = split(text)?;
    let (_, worth) = units.iter().find(|(name, _)| *name == unit)?;
    // Exact up to 2^52, and every limit is below.
    let rounded = (number * *worth as f64 + 0.5) as u64;
    if rounded > 0 || number == 0.0 {
        return Some(Ok(rounded));
    }
    let base = units.iter().find(|(_, worth)| *worth == 1);
    let expected = format!("0 or at least 1 {}", base.map_or("", |(name, _)| name));
    Some(Err(QuantityError::new(expected, text)))
}

/// Implements the traits of `serde` and `schemars` for a quantity that is a string in the file.
macro_rules! string_quantity {
    ($type:ident, $what:literal, pattern: $pattern:expr, examples: [$($example:literal),+]) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl $crate::quantity::scalar::Scalar for $type {
            fn expected() -> std::borrow::Cow<'static, str> {
                $what.into()
            }

            fn from_text(text: &str) -> Option<Result<Self, $crate::quantity::error::QuantityError>> {
                Some(text.parse())
            }

            fn schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "string",
                    "pattern": $pattern,
                    "examples": [$($example),+],
                })
            }
        }

        $crate::quantity::scalar::scalar!($type);
    };
}

pub(crate) use string_quantity;
