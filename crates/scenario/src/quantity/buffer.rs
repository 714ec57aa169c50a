//! Buffer sizes, and the number of acknowledgments sent without delay.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{Schema, SchemaGenerator, json_schema};

use crate::quantity::error::QuantityError;
use crate::quantity::notation::number;
use crate::quantity::scalar::{Scalar, scalar};
use crate::quantity::size::Size;
use crate::quantity::string_quantity::string_quantity;

/// Buffer size: `"64 KiB"`, or `"auto"` for Linux's autotuning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Buffer {
    /// Autotuned as on Linux.
    Auto,
    /// Fixed size.
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

/// Acknowledgments sent without delay: a number, or `"auto"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QuickAcks {
    /// As many as Linux sends.
    Auto,
    /// This number of acknowledgments at the start of a connection.
    First(u32),
}

/// Upper limit, above what any simulated connection sends.
const MOST: u32 = 1_000_000_000;

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

impl Scalar for QuickAcks {
    fn expected() -> Cow<'static, str> {
        format!("\"auto\", or a whole number from 0 to {MOST}").into()
    }

    fn from_integer(count: i64) -> Option<Self> {
        let count = u32::try_from(count).ok()?;
        (count <= MOST).then_some(Self::First(count))
    }

    fn from_text(text: &str) -> Option<Result<Self, QuantityError>> {
        (text.trim() == "auto").then_some(Ok(Self::Auto))
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "string", "enum": ["auto"] },
                { "type": "integer", "minimum": 0, "maximum": MOST },
            ],
            "examples": ["auto", 16],
        })
    }
}

scalar!(QuickAcks);
