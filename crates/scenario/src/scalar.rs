//! Values that a file writes as one word, number or truth value, and not as what `serde` would derive.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{Schema, SchemaGenerator};
use serde::de::{self, Deserializer, Unexpected, Visitor};

use crate::quantity::QuantityError;

/// Something written as one value. [`scalar!`] makes it readable, and gives it its place in the schema.
pub(crate) trait Scalar: Sized {
    /// What one looks like, for who wrote something else.
    fn expected() -> Cow<'static, str>;

    /// Its JSON Schema.
    fn schema(generator: &mut SchemaGenerator) -> Schema;

    /// From `true` or `false`.
    fn from_bool(_: bool) -> Option<Self> {
        None
    }

    /// From a whole number.
    fn from_integer(value: i64) -> Option<Self> {
        Self::from_number(value as f64)
    }

    /// From a number with decimals.
    fn from_number(_: f64) -> Option<Self> {
        None
    }

    /// From a string. `None` is refused with [`Scalar::expected`], an error in its own words.
    fn from_text(_: &str) -> Option<Result<Self, QuantityError>> {
        None
    }
}

/// Reads a [`Scalar`] of whatever kind the file has.
pub(crate) fn read<'de, T: Scalar, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_any(Written(PhantomData))
}

struct Written<T>(PhantomData<T>);

impl<T: Scalar> Visitor<'_> for Written<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&T::expected())
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<T, E> {
        T::from_bool(value).ok_or_else(|| E::invalid_value(Unexpected::Bool(value), &self))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<T, E> {
        T::from_integer(value).ok_or_else(|| E::invalid_value(Unexpected::Signed(value), &self))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<T, E> {
        T::from_number(value).ok_or_else(|| E::invalid_value(Unexpected::Float(value), &self))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        match T::from_text(text) {
            Some(read) => read.map_err(E::custom),
            None => Err(E::invalid_value(Unexpected::Str(text), &self)),
        }
    }
}

/// What `serde` and `schemars` need of a [`Scalar`].
macro_rules! scalar {
    ($type:ident) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::scalar::read(deserializer)
            }
        }

        $crate::scalar::inline_schema!($type, |generator| {
            <$type as $crate::scalar::Scalar>::schema(generator)
        });
    };
}
pub(crate) use scalar;

/// A JSON Schema written out by hand, which stands wherever the type does.
macro_rules! inline_schema {
    ($type:ident $(<$of:ident>)?, |$generator:ident| $schema:expr) => {
        impl $(<$of: schemars::JsonSchema>)? schemars::JsonSchema for $type $(<$of>)? {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                concat!(stringify!($type) $(, "_of_", stringify!($of))?).into()
            }

            fn json_schema($generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $schema
            }
        }
    };
}
pub(crate) use inline_schema;
