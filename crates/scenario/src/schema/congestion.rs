//! Window rules, and what some of them are set up with.

use std::borrow::Cow;
use std::fmt;

use bentpipe_types::Span;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::hints;
use super::named::PATTERN;
use super::words::words;
use crate::quantity::Length;

words! {
    /// A window rule.
    CongestionControl {
        /// One segment more a round trip, half on a loss (RFC 5681).
        Reno = "reno",
        /// Grows like Reno; a loss leaves what the path was seen to deliver (Westwood+).
        Westwood = "westwood",
        /// Grows as fast as Reno does on a path of 25 ms, however long its own (Caini and
        /// Firrincieli 2004).
        Hybla = "hybla",
        /// Hybla, which takes a loss for no congestion while it uses less than half of
        /// `channel_capacity` (vanzara2014).
        EnhancedHybla = "enhanced-hybla",
        /// A cubic function of the time since the last loss (RFC 9438).
        Cubic = "cubic",
        /// BBR version 1: a model of the path's bandwidth and round-trip time instead of a window
        /// that grows until something is lost. What Linux calls "bbr".
        Bbr = "bbr",
        /// BBR version 1, by the name that tells it from version 3.
        Bbr1 = "bbr1",
        /// BBR version 3: heeds losses, too, and leaves others room (draft-ietf-ccwg-bbr).
        Bbr3 = "bbr3",
    }
}

/// A window rule by name: one that is built in, or one of your own that is registered in Python.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CongestionControlName {
    /// One that is built in.
    BuiltIn(CongestionControl),
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
                let names: Vec<_> = CongestionControl::ALL.iter().map(|c| c.name()).collect();
                f.write_str(&hints::one_of(&names))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<CongestionControlName, E> {
                let mut built = CongestionControl::ALL.iter();
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
        let built = generator.subschema_for::<CongestionControl>();
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

/// How Hybla is set up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HyblaFile {
    /// RTT0: round-trip time of the connection whose sending rate it follows. From 1 ms to 10 s.
    pub reference_rtt: Length,
    /// Where slow start first ends.
    pub initial_threshold: InitialThreshold,
    /// What a lost segment does. Not for "enhanced-hybla".
    pub after_loss: AfterLoss,
    /// What a timeout does. Not for "enhanced-hybla".
    pub after_timeout: AfterTimeout,
}

impl Default for HyblaFile {
    fn default() -> Self {
        Self {
            reference_rtt: Length(Span::from_millis(25)),
            initial_threshold: InitialThreshold::Configured,
            after_loss: AfterLoss::Half,
            after_timeout: AfterTimeout::OneSegment,
        }
    }
}

/// How Westwood+ is set up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WestwoodFile {
    /// What a loss leaves of the window.
    pub after_loss: WestwoodAfterLoss,
}

words! {
    /// What a loss leaves of Westwood+'s window.
    WestwoodAfterLoss {
        /// What the path was seen to deliver in the shortest round trip, however little (Grieco and
        /// Mascolo 2004, and Linux).
        Pipe = "pipe",
        /// The same, but never less than half of what was in flight, which is also the threshold (ns-2's
        /// TCP-Linux, with Linux 2.6.22's module).
        AtLeastHalf = "at-least-half",
    }
}

impl Default for WestwoodFile {
    fn default() -> Self {
        Self {
            after_loss: WestwoodAfterLoss::Pipe,
        }
    }
}

words! {
    /// Where Hybla's slow start first ends.
    InitialThreshold {
        /// Where `initial_slow_start_threshold` says.
        Configured = "configured",
        /// At the shortest round-trip time times the bandwidth, which is estimated from how far
        /// apart the first acknowledgments arrive (Hoe 1996); or at `initial_slow_start_threshold`,
        /// if that is lower.
        BandwidthEstimate = "bandwidth-estimate",
    }
}

words! {
    /// What a lost segment does to Hybla's window.
    AfterLoss {
        /// It is halved, as in NewReno (the Hybla paper, and Linux).
        Half = "half",
        /// The threshold is half of it, and the window a quarter (vanzara2014, section III.B).
        Quarter = "quarter",
    }
}

words! {
    /// What a timeout does to Hybla's window.
    AfterTimeout {
        /// It is one segment (RFC 5681, and Linux).
        OneSegment = "one-segment",
        /// It is rho segments (vanzara2014, section III.B).
        Rho = "rho",
    }
}

words! {
    /// What becomes of bandwidth samples.
    BandwidthFilter {
        /// The last one is the estimate.
        LastSample = "last-sample",
        /// Two low-pass filters in a row, each of which keeps 7/8: Westwood+ in Linux.
        Westwood = "westwood",
    }
}
