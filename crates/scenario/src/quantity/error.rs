//! The error for a string that is not a valid quantity.

use std::fmt;

use super::meant::meant;
use crate::error::quoted;

/// A string that is not a valid quantity of the expected kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QuantityError {
    expected: String,
    got: String,
    /// Suggested spelling, as a file would have it.
    meant: Option<String>,
}

impl QuantityError {
    pub(super) fn new(expected: impl Into<String>, got: &str) -> Self {
        let expected = expected.into();
        let meant = meant(&expected, got).map(|meant| quoted(&meant));
        Self {
            expected,
            got: got.to_owned(),
            meant,
        }
    }

    /// Creates an error with a suggested spelling.
    pub(super) fn meaning(expected: impl Into<String>, got: &str, meant: String) -> Self {
        Self {
            expected: expected.into(),
            got: got.to_owned(),
            meant: Some(meant),
        }
    }
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}, got {}", self.expected, quoted(&self.got))?;
        match &self.meant {
            Some(meant) => write!(f, "; did you mean {meant}?"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for QuantityError {}
