//! Tables whose keys the author chooses: `[hosts.server]`, `[links.lan]`.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::quantity::error::QuantityError;
use crate::quantity::scalar::{Scalar, inline_schema, scalar};

/// Most characters of a name.
const LONGEST: usize = 64;

pub(crate) const PATTERN: &str = "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$";

/// A name: letters, digits, "-" and "_", beginning with a letter or digit, at most 64 in all.
///
/// Dots are excluded because they separate the parts of a series (`download.goodput`); so are
/// characters that a file name cannot have.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Name(String);

impl Name {
    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Scalar for Name {
    fn expected() -> Cow<'static, str> {
        format!(r#"a name of letters, digits, "-" and "_" (at most {LONGEST})"#).into()
    }

    fn from_text(text: &str) -> Option<Result<Self, QuantityError>> {
        let valid = text.len() <= LONGEST
            && text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        valid.then(|| Ok(Self(text.to_owned())))
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": PATTERN })
    }
}

scalar!(Name);

/// Named entries in the order of the file.
#[derive(Clone, Debug)]
pub struct Named<T>(pub Vec<(Name, T)>);

impl<T> Named<T> {
    /// Returns names and entries in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(name, thing)| (name.as_str(), thing))
    }
}

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Tables<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Tables<T> {
            type Value = Named<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of names")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Named<T>, A::Error> {
                let mut named = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    named.push(entry);
                }
                Ok(Named(named))
            }
        }
        deserializer.deserialize_map(Tables(PhantomData))
    }
}

inline_schema!(Named<T>, |generator| {
    let of = generator.subschema_for::<T>();
    json_schema!({
        "type": "object",
        "propertyNames": { "pattern": PATTERN },
        "additionalProperties": of,
    })
});
