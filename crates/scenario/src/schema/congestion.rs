//! Window rules, and what some of them are set up with.

use std::borrow::Cow;
use std::fmt;

use bentpipe_tcp::congestion::{
    AfterLoss, AfterTimeout, HyblaSettings, InitialThreshold, WestwoodAfterLoss, WestwoodSettings,
    WindowRule,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::hints;
use super::named::PATTERN;
use super::settings::settings;
use crate::quantity::Length;

/// A window rule by name: one that is built in, or one of your own that is registered in Python.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CongestionControlName {
    /// One that is built in.
    BuiltIn(WindowRule),
    /// Any other name.
    Custom(String),
}

impl fmt::Display for CongestionControlName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn(built) => built.fmt(f),
            Self::Custom(name) => f.write_str(name),
        }
    }
}

impl Serialize for CongestionControlName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CongestionControlName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Word;
        impl Visitor<'_> for Word {
            type Value = CongestionControlName;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let names: Vec<_> = WindowRule::ALL.iter().map(|c| c.name()).collect();
                f.write_str(&hints::one_of(&names))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<CongestionControlName, E> {
                let mut built = WindowRule::ALL.iter();
                Ok(match built.find(|built| built.name() == text) {
                    Some(built) => CongestionControlName::BuiltIn(*built),
                    None => CongestionControlName::Custom(text.to_owned()),
                })
            }
        }
        deserializer.deserialize_str(Word)
    }
}

impl JsonSchema for CongestionControlName {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "CongestionControlName".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let built = generator.subschema_for::<WindowRule>();
        json_schema!({
            "anyOf": [
                built,
                {
                    "description": "One of your own, by the name it is registered with in Python.",
                    "type": "string",
                    "pattern": PATTERN,
                },
            ],
        })
    }
}

settings! {
    /// How Hybla is set up.
    HyblaFile of HyblaSettings {
        /// RTT0: round-trip time of the connection whose sending rate it follows. From 1 ms to 10 s.
        reference_rtt: Length as "s" => reference_rtt,
        /// Where slow start first ends.
        initial_threshold: InitialThreshold => initial_threshold,
        /// What a lost segment does. Not for "enhanced-hybla".
        after_loss: AfterLoss => after_loss,
        /// What a timeout does. Not for "enhanced-hybla".
        after_timeout: AfterTimeout => after_timeout,
    }
}

settings! {
    /// How Westwood+ is set up.
    WestwoodFile of WestwoodSettings {
        /// What a loss leaves of the window.
        after_loss: WestwoodAfterLoss => after_loss,
    }
}
