//! Values that a file writes as one word, number or truth value, and that `serde` cannot derive.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{Schema, SchemaGenerator};
use serde::de::{self, Deserializer, Unexpected, Visitor};

use crate::quantity::error::QuantityError;

/// A value written as one word, number or truth value. [`scalar!`] implements `serde` and the
/// schema for it.
pub(crate) trait Scalar: Sized {
    /// Describes valid values, for error messages.
    fn expected() -> Cow<'static, str>;

    /// Returns its JSON Schema.
    fn schema(generator: &mut SchemaGenerator) -> Schema;

    /// Converts `true` or `false`.
    fn from_bool(_: bool) -> Option<Self> {
        None
    }

    /// Converts a whole number.
    fn from_integer(value: i64) -> Option<Self> {
        Self::from_number(value as f64)
    }

    /// Converts a number with decimals.
    fn from_number(_: f64) -> Option<Self> {
        None
    }

    /// Converts a string. For `None` the error message is [`Scalar::expected`]; an error has its
    /// own message.
    fn from_text(_: &str) -> Option<Result<Self, QuantityError>> {
        None
    }
}

/// Reads a [`Scalar`] from any kind of value.
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

/// Implements the traits of `serde` and `schemars` for a [`Scalar`].
macro_rules! scalar {
    ($type:ident) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::quantity::scalar::read(deserializer)
            }
        }

        $crate::quantity::scalar::inline_schema!($type, |generator| {
            <$type as $crate::quantity::scalar::Scalar>::schema(generator)
        });
    };
}

pub(crate) use scalar;

/// Implements an inline JSON Schema that is written by hand.
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
