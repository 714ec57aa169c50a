//! Congestion control algorithms and their settings.

use std::borrow::Cow;
use std::fmt;

use bentpipe_tcp::congestion::{
    AfterLoss, AfterTimeout, ChannelCapacity, HyblaSettings, InitialThreshold, WestwoodAfterLoss,
    WestwoodSettings, WindowRule,
};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

use crate::hints;
use crate::named::PATTERN;
use crate::quantity::error::QuantityError;
use crate::quantity::scalar::{Scalar, scalar};
use crate::quantity::time::Length;
use crate::settings_table::settings;

/// Congestion control by name: a built-in algorithm, or one of your own that is registered in
/// Python.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CongestionControlName {
    /// A built-in algorithm.
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

impl Scalar for CongestionControlName {
    fn expected() -> Cow<'static, str> {
        let names: Vec<_> = WindowRule::ALL.iter().map(|c| c.name()).collect();
        hints::one_of(&names).into()
    }

    fn from_text(text: &str) -> Option<Result<Self, QuantityError>> {
        let mut built = WindowRule::ALL.iter();
        Some(Ok(match built.find(|built| built.name() == text) {
            Some(built) => Self::BuiltIn(*built),
            None => Self::Custom(text.to_owned()),
        }))
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        let built = generator.subschema_for::<WindowRule>();
        json_schema!({
            "anyOf": [
                built,
                {
                    "description": "An algorithm of your own, by the name with which it is registered in Python.",
                    "type": "string",
                    "pattern": PATTERN,
                },
            ],
        })
    }
}

scalar!(CongestionControlName);

settings! {
    /// Settings of Hybla.
    HyblaFile of HyblaSettings {
        /// RTT0: round-trip time of the reference connection whose sending rate Hybla matches. From
        /// 1 ms to 10 s.
        reference_rtt: Length as "s" => reference_rtt,
        /// Initial slow-start threshold.
        initial_threshold: InitialThreshold => initial_threshold,
        /// Capacity of the bottleneck for "enhanced-hybla".
        channel_capacity: ChannelCapacity => channel_capacity,
        /// Response to a lost segment. Not for "enhanced-hybla".
        after_loss: AfterLoss => after_loss,
        /// Response to a retransmission timeout. Not for "enhanced-hybla".
        after_timeout: AfterTimeout => after_timeout,
    }
}

settings! {
    /// Settings of Westwood+ and of Westwood of 2001.
    WestwoodFile of WestwoodSettings {
        /// Congestion window after a loss.
        after_loss: WestwoodAfterLoss => after_loss,
        /// Time constant of the bandwidth filter of "westwood-2001". Its paper leaves it open. From
        /// 1 ms to 100 s.
        time_constant: Length as "s" => time_constant,
    }
}
