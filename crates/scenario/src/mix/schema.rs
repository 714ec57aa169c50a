//! `[mixes.NAME]`.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};

use crate::application::schema::AppFile;
use crate::named::{Name, PATTERN};
use crate::quantity::random::RandomLength;
use crate::quantity::scalar::inline_schema;

/// A sequence of a user's activities: applications, each with its share.
#[derive(Clone, Debug, Default)]
pub struct MixFile {
    /// Time from the end of one activity to the start of the next.
    pub pause: Option<RandomLength>,
    /// Shares by name of application.
    pub shares: Vec<(Name, ShareFile)>,
}

/// A share of a mix, and its application if the name alone does not define it.
#[derive(Clone, Debug)]
pub struct ShareFile {
    /// Weight relative to the other shares, such as 0.7.
    pub share: f64,
    /// The application, or `None` for the one of that name with its defaults.
    pub app: Option<AppFile>,
}

/// A share as a table.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ShareTable {
    /// Weight relative to the other shares, such as 0.7.
    share: f64,
    /// The application. Default: the one of that name with its defaults, once: a page, a mail, a
    /// file, a call of three minutes, a request, ten echoes, two minutes of video.
    app: Option<AppFile>,
}

impl<'de> Deserialize<'de> for MixFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Table;
        impl<'de> Visitor<'de> for Table {
            type Value = MixFile;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of applications and their shares")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<MixFile, A::Error> {
                let mut mix = MixFile::default();
                while let Some(name) = map.next_key::<Name>()? {
                    if name.as_str() == "pause" {
                        mix.pause = Some(map.next_value()?);
                    } else {
                        mix.shares.push((name, map.next_value()?));
                    }
                }
                Ok(mix)
            }
        }
        deserializer.deserialize_map(Table)
    }
}

impl<'de> Deserialize<'de> for ShareFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberOrTable;
        impl<'de> Visitor<'de> for NumberOrTable {
            type Value = ShareFile;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a share such as 0.7, or { share = 0.7, app = { ... } }")
            }

            fn visit_f64<E: de::Error>(self, share: f64) -> Result<ShareFile, E> {
                Ok(ShareFile { share, app: None })
            }

            fn visit_i64<E: de::Error>(self, share: i64) -> Result<ShareFile, E> {
                self.visit_f64(share as f64)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ShareFile, A::Error> {
                let table = ShareTable::deserialize(MapAccessDeserializer::new(map))?;
                Ok(ShareFile {
                    share: table.share,
                    app: table.app,
                })
            }
        }
        deserializer.deserialize_any(NumberOrTable)
    }
}

inline_schema!(ShareFile, |generator| {
    let table = generator.subschema_for::<ShareTable>();
    json_schema!({ "anyOf": [{ "type": "number", "exclusiveMinimum": 0 }, table] })
});

impl JsonSchema for MixFile {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "MixFile".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let share = generator.subschema_for::<ShareFile>();
        let pause = generator.subschema_for::<Option<RandomLength>>();
        json_schema!({
            "description": "A sequence of activities of a user, each drawn at random: the share of every application by its name, and the pause between two. For an application with other settings than its defaults, write { share = 0.7, app = { kind = ... } }; it must end by itself.",
            "type": "object",
            "properties": {
                "pause": {
                    "description": "Time from the end of one activity to the start of the next; may be random. Default: \"exponential(30 s)\".",
                    "allOf": [pause],
                },
            },
            "propertyNames": { "pattern": PATTERN },
            "additionalProperties": share,
            "examples": [{ "web": 0.7, "mail": 0.2, "voice": 0.1 }],
        })
    }
}
