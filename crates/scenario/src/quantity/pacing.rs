//! Pacing settings.

use std::fmt;
use std::str::FromStr;

use bentpipe_tcp::PacingKind;
use bentpipe_types::BitRate;

use crate::quantity::error::QuantityError;
use crate::quantity::notation::number;
use crate::quantity::rate::Rate;
use crate::quantity::string_quantity::string_quantity;

/// Pacing: a word, or a maximum rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pacing {
    /// Pace if the congestion control asks for it.
    Auto,
    /// Never pace.
    Off,
    /// Always pace.
    On,
    /// Always pace, at no more than this rate.
    AtMost(BitRate),
}

impl FromStr for Pacing {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        match text.trim() {
            "auto" => Ok(Self::Auto),
            "off" => Ok(Self::Off),
            "on" => Ok(Self::On),
            rate => rate
                .parse()
                .map(|Rate(rate)| Self::AtMost(rate))
                .map_err(|_| {
                    let expected = r#""auto", "off", "on", or a rate such as "10 Mbit/s""#;
                    QuantityError::new(expected, text)
                }),
        }
    }
}

impl fmt::Display for Pacing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Off => f.write_str("off"),
            Self::On => f.write_str("on"),
            Self::AtMost(rate) => Rate(*rate).fmt(f),
        }
    }
}

string_quantity!(
    Pacing,
    r#""auto", "off", "on", or a rate such as "10 Mbit/s""#,
    pattern: concat!("^(auto|off|on|", number!(), " *(bit/s|kbit/s|Mbit/s|Gbit/s))$"),
    examples: ["auto", "off", "on", "10 Mbit/s"]
);

impl From<PacingKind> for Pacing {
    fn from(kind: PacingKind) -> Self {
        match kind {
            PacingKind::AsRule => Self::Auto,
            PacingKind::Off => Self::Off,
            PacingKind::On => Self::On,
            PacingKind::AtMost(rate) => Self::AtMost(rate),
        }
    }
}

impl From<Pacing> for PacingKind {
    fn from(pacing: Pacing) -> Self {
        match pacing {
            Pacing::Auto => Self::AsRule,
            Pacing::Off => Self::Off,
            Pacing::On => Self::On,
            Pacing::AtMost(rate) => Self::AtMost(rate),
        }
    }
}
