//! Ports.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{self, Deserializer, Unexpected, Visitor};

/// A port, or all from one to another: `80`, `"8000-8999"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortRange {
    /// The first.
    pub first: u16,
    /// The last.
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

impl<'de> Deserialize<'de> for PortRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Ports;
        impl Visitor<'_> for Ports {
            type Value = PortRange;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(r#"a port such as 80, or ports such as "8000-8999""#)
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<PortRange, E> {
                match u16::try_from(value) {
                    Ok(port) if port > 0 => Ok(PortRange {
                        first: port,
                        last: port,
                    }),
                    _ => Err(E::invalid_value(Unexpected::Signed(value), &self)),
                }
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<PortRange, E> {
                text.parse()
                    .map_err(|()| E::invalid_value(Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(Ports)
    }
}

impl JsonSchema for PortRange {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PortRange".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "integer", "minimum": 1, "maximum": 65_535 },
                { "type": "string", "pattern": "^[0-9]{1,5}(-[0-9]{1,5})?$" },
            ],
            "examples": [80, "8000-8999"],
        })
    }
}
