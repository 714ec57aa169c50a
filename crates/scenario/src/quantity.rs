//! Quantities in a scenario file: strings of a number and a unit.
//!
//! A number may have decimals and an exponent (`"1.536 Mbit/s"`, `"1e-3 s"`) and is rounded to the
//! base unit: bit/s, nanosecond, byte. The space before the unit is optional.

mod buffer;
mod count;
mod decibels;
mod error;
mod jitter_buffer;
mod measured;
mod mtu;
mod pacing;
mod port;
mod probability;
mod random;
mod rate;
mod redundancy;
mod scheduled;
mod size;
mod symbol_rate;
mod time;
mod unit_suggestion;
mod units;

pub use buffer::{Buffer, QuickAcks};
pub use count::{LinkQueueLimit, QueueLimit, Segments, Window};
pub use decibels::Decibels;
pub(crate) use decibels::MOST_DECIBELS;
pub use error::QuantityError;
pub use jitter_buffer::JitterBuffer;
pub(crate) use measured::Measured;
pub use mtu::Mtu;
pub use pacing::Pacing;
pub use port::PortRange;
pub use probability::Probability;
pub use random::{RandomLength, RandomSize};
pub use rate::Rate;
pub use redundancy::Redundancy;
pub use scheduled::ScheduledRate;
pub use size::Size;
pub use symbol_rate::SymbolRate;
pub use time::{Delay, DelayedAck, Interval, Length};
pub(crate) use time::{LONGEST, LONGEST_DELAY, SHORTEST_INTERVAL, length_within};
pub use units::{UnitOf, number_and_unit, units};

use std::fmt;

/// Regular expression of the number at the start of a quantity, for the JSON Schema.
macro_rules! number {
    () => {
        r"[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?"
    };
}
pub(crate) use number;

/// A unit and its value in base units.
type Unit = (&'static str, u64);

/// Splits `"1.536 Mbit/s"` into number and unit. It accepts no sign: quantities are not negative.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let digits = |from: usize| {
        let rest = &text.as_bytes()[from..];
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let byte = |at: usize| text.as_bytes().get(at).copied();
    let mut end = digits(0);
    if end == 0 {
        return None;
    }
    if byte(end) == Some(b'.') && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
    }
    if matches!(byte(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(byte(end + 1), Some(b'-' | b'+')));
        let exponent = digits(end + 1 + sign);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    let number = text[..end].parse().ok()?;
    Some((number, text[end..].trim_start()))
}

/// Returns the number of base units in `text`, rounded to the nearest and at most `u64::MAX`, or
/// `None` for other units. A number above zero that would be rounded to zero is an error.
fn in_base_units(text: &str, units: &[Unit]) -> Option<Result<u64, QuantityError>> {
    let (number, unit) = split(text)?;
    let (_, worth) = units.iter().find(|(name, _)| *name == unit)?;
    // Exact up to 2^52, and every limit is below.
    let rounded = (number * *worth as f64 + 0.5) as u64;
    if rounded > 0 || number == 0.0 {
        return Some(Ok(rounded));
    }
    let base = units.iter().find(|(_, worth)| *worth == 1);
    let expected = format!("0 or at least 1 {}", base.map_or("", |(name, _)| name));
    Some(Err(QuantityError::new(expected, text)))
}

/// Writes a value in the largest unit that holds it without a fraction.
fn write_in(f: &mut fmt::Formatter<'_>, value: u64, units: &[Unit]) -> fmt::Result {
    let mut best = ("", 1);
    for (name, worth) in units {
        if value.is_multiple_of(*worth) && *worth >= best.1 && (value > 0 || *worth == 1) {
            best = (name, *worth);
        }
    }
    write!(f, "{} {}", value / best.1, best.0)
}

/// Implements the traits of `serde` and `schemars` for a quantity that is a string in the file.
macro_rules! string_quantity {
    ($type:ident, $what:literal, pattern: $pattern:expr, examples: [$($example:literal),+]) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl $crate::scalar::Scalar for $type {
            fn expected() -> std::borrow::Cow<'static, str> {
                $what.into()
            }

            fn from_text(text: &str) -> Option<Result<Self, $crate::quantity::QuantityError>> {
                Some(text.parse())
            }

            fn schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "string",
                    "pattern": $pattern,
                    "examples": [$($example),+],
                })
            }
        }

        $crate::scalar::scalar!($type);
    };
}
use string_quantity;

#[cfg(test)]
mod tests;
