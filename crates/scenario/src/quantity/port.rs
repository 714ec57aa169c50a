//! Ports and port ranges.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{Schema, SchemaGenerator, json_schema};

use crate::quantity::error::QuantityError;
use crate::quantity::scalar::{Scalar, scalar};

/// A port, or a range of ports: `80`, `"8000-8999"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortRange {
    /// First port.
    pub first: u16,
    /// Last port, included.
    pub last: u16,
}

impl FromStr for PortRange {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let port = |digits: &str| -> Result<u16, ()> {
            let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
            let port = digits.parse().map_err(|_| ())?;
            if plain && port > 0 { Ok(port) } else { Err(()) }
        };
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last) = (port(first)?, port(last)?);
        if first <= last {
            Ok(Self { first, last })
        } else {
            Err(())
        }
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

impl Scalar for PortRange {
    fn expected() -> Cow<'static, str> {
        r#"a port such as 80, or ports such as "8000-8999""#.into()
    }

    fn from_integer(value: i64) -> Option<Self> {
        let port = u16::try_from(value).ok().filter(|port| *port > 0)?;
        Some(Self {
            first: port,
            last: port,
        })
    }

    fn from_text(text: &str) -> Option<Result<Self, QuantityError>> {
        text.parse().ok().map(Ok)
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "integer", "minimum": 1, "maximum": 65_535 },
                { "type": "string", "pattern": "^[0-9]{1,5}(-[0-9]{1,5})?$" },
            ],
            "examples": [80, "8000-8999"],
        })
    }
}

scalar!(PortRange);
