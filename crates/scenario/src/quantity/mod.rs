//! Quantities in a scenario file: strings of a number and a unit.
//!
//! A number may have decimals and an exponent (`"1.536 Mbit/s"`, `"1e-3 s"`) and is rounded to the
//! base unit: bit/s, nanosecond, byte. The space before the unit is optional.

pub(crate) mod angle;
pub(crate) mod buffer;
pub(crate) mod count;
pub(crate) mod decibels;
pub(crate) mod distance;
pub(crate) mod error;
pub(crate) mod jitter_buffer;
pub(crate) mod measured;
pub(crate) mod mtu;
pub(crate) mod notation;
pub(crate) mod pacing;
pub(crate) mod port;
pub(crate) mod probability;
pub(crate) mod random;
pub(crate) mod rate;
pub(crate) mod redundancy;
pub(crate) mod scalar;
pub(crate) mod scheduled;
pub(crate) mod size;
pub(crate) mod string_quantity;
pub(crate) mod symbol_rate;
pub(crate) mod time;
pub(crate) mod unit_suggestion;
pub(crate) mod units;

pub use angle::Angle;
pub use buffer::{Buffer, QuickAcks};
pub use count::{LinkQueueLimit, QueueLimit, Segments, Window};
pub use decibels::Decibels;
pub use distance::Distance;
pub use error::QuantityError;
pub use jitter_buffer::JitterBuffer;
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
pub use units::{UnitOf, number_and_unit, units};

#[cfg(test)]
mod tests;
