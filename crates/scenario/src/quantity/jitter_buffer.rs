//! Jitter buffers of calls.

use std::fmt;
use std::str::FromStr;

use bentpipe_sim::applications;

use crate::quantity::error::QuantityError;
use crate::quantity::notation::{number, split};
use crate::quantity::string_quantity::string_quantity;
use crate::quantity::time::Length;

/// A jitter buffer: `"adaptive"`, or a length of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JitterBuffer(pub applications::JitterBuffer);

impl FromStr for JitterBuffer {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        if text.trim() == "adaptive" {
            return Ok(Self(applications::JitterBuffer::Adaptive));
        }
        match text.parse() {
            Ok(Length(length)) => Ok(Self(applications::JitterBuffer::Fixed(length))),
            // For a number with a unit, the error about the length of time is the right one.
            Err(error) if split(text).is_some() => Err(error),
            Err(_) => {
                let expected = r#""adaptive", or a length of time such as "60 ms""#;
                Err(QuantityError::new(expected, text))
            }
        }
    }
}

impl fmt::Display for JitterBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            applications::JitterBuffer::Adaptive => f.write_str("adaptive"),
            applications::JitterBuffer::Fixed(length) => Length(length).fmt(f),
        }
    }
}

string_quantity!(
    JitterBuffer,
    r#""adaptive", or a length of time such as "60 ms""#,
    pattern: concat!("^(adaptive|", number!(), " *(ns|us|ms|s|min|h))$"),
    examples: ["adaptive", "60 ms"]
);
