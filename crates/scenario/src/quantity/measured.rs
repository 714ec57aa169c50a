//! Quantities as results have them: numbers, in the unit that is part of their name.

use serde_json::{Value, json};

use super::{Buffer, DelayedAck, Length, Rate, Segments, Size, Window};

/// A quantity that results say in its base unit.
pub(crate) trait Measured {
    /// The number; null where there is none.
    fn measured(&self) -> Value;
}

impl<T: Measured> Measured for Option<T> {
    fn measured(&self) -> Value {
        self.as_ref().map_or(Value::Null, Measured::measured)
    }
}

impl Measured for Length {
    /// In seconds.
    fn measured(&self) -> Value {
        json!(self.0.as_secs_f64())
    }
}

impl Measured for DelayedAck {
    /// In seconds.
    fn measured(&self) -> Value {
        match self {
            Self::After(span) => Length(*span).measured(),
            Self::Off => Value::Null,
        }
    }
}

impl Measured for Rate {
    /// In bits per second.
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
    /// In bytes.
    fn measured(&self) -> Value {
        json!(self.0.get())
    }
}

impl Measured for Buffer {
    /// In bytes. One that grows has no number of its own: `resolve` says how far it may.
    fn measured(&self) -> Value {
        match self {
            Self::Auto => Value::Null,
            Self::Of(size) => size.measured(),
        }
    }
}

impl Measured for Window {
    /// In bytes. Segments are of a size that only `resolve` knows.
    fn measured(&self) -> Value {
        match self {
            Self::Bytes(bytes) => Size(*bytes).measured(),
            Self::Segments(_) => Value::Null,
        }
    }
}
