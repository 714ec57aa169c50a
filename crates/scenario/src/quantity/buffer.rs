//! How large a buffer is, and which acknowledgments are not delayed.

use std::fmt;
use std::str::FromStr;

use super::{QuantityError, Size, number, string_quantity};

/// A buffer: `"64 KiB"`, or `"auto"`, which grows as Linux's does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Buffer {
    /// As Linux grows it.
    Auto,
    /// This large, always.
    Of(Size),
}

impl FromStr for Buffer {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        if text.trim() == "auto" {
            return Ok(Self::Auto);
        }
        Size::read(text).map_or_else(
            || {
                let expected = r#""auto", or a size such as "64 KiB""#;
                Err(QuantityError::new(expected, text))
            },
            |size| size.map(Self::Of),
        )
    }
}

impl fmt::Display for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Of(size) => size.fmt(f),
        }
    }
}

string_quantity!(
    Buffer,
    r#""auto", or a size such as "64 KiB""#,
    pattern: concat!("^(auto|", number!(), " *(B|kB|KB|KiB|MB|MiB|GB|GiB))$"),
    examples: ["auto", "64 KiB", "6 MiB"]
);

/// Acknowledgments that are not delayed: a number of them, or `"auto"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QuickAcks {
    /// As Linux has it.
    Auto,
    /// The first so many of a connection.
    First(u32),
}

/// More than a connection of a simulation ever sends.
const MOST: u64 = 1_000_000_000;

impl From<QuickAcks> for bentpipe_tcp::QuickAcks {
    fn from(acks: QuickAcks) -> Self {
        match acks {
            QuickAcks::Auto => Self::Linux,
            QuickAcks::First(count) => Self::First(count),
        }
    }
}

impl fmt::Display for QuickAcks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::First(count) => count.fmt(f),
        }
    }
}

impl serde::Serialize for QuickAcks {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::First(count) => serializer.serialize_u32(*count),
        }
    }
}

impl<'de> serde::Deserialize<'de> for QuickAcks {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Quantity;
        impl serde::de::Visitor<'_> for Quantity {
            type Value = QuickAcks;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "\"auto\", or a whole number from 0 to {MOST}")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<QuickAcks, E> {
                match text.trim() {
                    "auto" => Ok(QuickAcks::Auto),
                    other => Err(E::invalid_value(serde::de::Unexpected::Str(other), &self)),
                }
            }

            fn visit_u64<E: serde::de::Error>(self, count: u64) -> Result<QuickAcks, E> {
                match u32::try_from(count) {
                    Ok(whole) if count <= MOST => Ok(QuickAcks::First(whole)),
                    _ => Err(E::invalid_value(
                        serde::de::Unexpected::Unsigned(count),
                        &self,
                    )),
                }
            }

            fn visit_i64<E: serde::de::Error>(self, count: i64) -> Result<QuickAcks, E> {
                match u64::try_from(count) {
                    Ok(count) => self.visit_u64(count),
                    Err(_) => Err(E::invalid_value(
                        serde::de::Unexpected::Signed(count),
                        &self,
                    )),
                }
            }
        }
        deserializer.deserialize_any(Quantity)
    }
}

impl schemars::JsonSchema for QuickAcks {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "QuickAcks".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "anyOf": [
                { "type": "string", "enum": ["auto"] },
                { "type": "integer", "minimum": 0, "maximum": MOST },
            ],
            "examples": ["auto", 16],
        })
    }
}
