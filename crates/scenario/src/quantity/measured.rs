//! Quantities in results: numbers in the unit that their name ends with.

use serde_json::{Value, json};

use crate::quantity::buffer::Buffer;
use crate::quantity::count::{Segments, Window};
use crate::quantity::rate::Rate;
use crate::quantity::size::Size;
use crate::quantity::time::{DelayedAck, Length};

/// A quantity that results give as a number in its base unit.
pub(crate) trait Measured {
    /// Returns the number, or null if there is none.
    fn measured(&self) -> Value;
}

impl<T: Measured> Measured for Option<T> {
    fn measured(&self) -> Value {
        self.as_ref().map_or(Value::Null, Measured::measured)
    }
}

impl Measured for Length {
    /// Returns seconds.
    fn measured(&self) -> Value {
        json!(self.0.as_secs_f64())
    }
}

impl Measured for DelayedAck {
    /// Returns seconds.
    fn measured(&self) -> Value {
        match self {
            Self::After(span) => Length(*span).measured(),
            Self::Off => Value::Null,
        }
    }
}

impl Measured for Rate {
    /// Returns bits per second.
    fn measured(&self) -> Value {
        json!(self.0.bits_per_second())
    }
}

impl Measured for Segments {
    fn measured(&self) -> Value {
        json!(self.0)
    }
}

impl Measured for Size {
    /// Returns bytes.
    fn measured(&self) -> Value {
        json!(self.0.get())
    }
}

impl Measured for Buffer {
    /// Returns bytes, or null for an autotuned buffer, whose limits `resolve` sets.
    fn measured(&self) -> Value {
        match self {
            Self::Auto => Value::Null,
            Self::Of(size) => size.measured(),
        }
    }
}

impl Measured for Window {
    /// Returns bytes, or null for a number of segments, whose size only `resolve` knows.
    fn measured(&self) -> Value {
        match self {
            Self::Bytes(bytes) => Size(*bytes).measured(),
            Self::Segments(_) => Value::Null,
        }
    }
}
