//! How long a receiver holds packets of a call back.

use std::fmt;
use std::str::FromStr;

use bentpipe_types::Span;

use super::{Length, QuantityError, number, string_quantity};

/// A jitter buffer: `"adaptive"`, or a length of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JitterBuffer {
    /// As long as the delays of the packets so far ask for.
    Adaptive,
    /// This long.
    Fixed(Span),
}

impl FromStr for JitterBuffer {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        if text.trim() == "adaptive" {
            return Ok(Self::Adaptive);
        }
        match text.parse() {
            Ok(Length(length)) => Ok(Self::Fixed(length)),
            // A number with a unit is wrong for a reason of its own.
            Err(error) if super::split(text).is_some() => Err(error),
            Err(_) => {
                let expected = r#""adaptive", or a length of time such as "60 ms""#;
                Err(QuantityError::new(expected, text))
            }
        }
    }
}

impl fmt::Display for JitterBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Adaptive => f.write_str("adaptive"),
            Self::Fixed(length) => Length(*length).fmt(f),
        }
    }
}

string_quantity!(
    JitterBuffer,
    r#""adaptive", or a length of time such as "60 ms""#,
    pattern: concat!("^(adaptive|", number!(), " *(ns|us|ms|s|min|h))$"),
    examples: ["adaptive", "60 ms"]
);
