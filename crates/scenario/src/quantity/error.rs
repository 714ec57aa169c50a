//! The error for a string that is not a valid quantity.

use std::fmt;

use crate::error::quoted;
use crate::quantity::unit_suggestion::suggestion;

/// A string that is not a valid quantity of the expected kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QuantityError {
    expected: String,
    got: String,
    /// Suggested spelling, as a file would have it.
    suggestion: Option<String>,
}

impl QuantityError {
    pub(crate) fn new(expected: impl Into<String>, got: &str) -> Self {
        let expected = expected.into();
        let suggestion = suggestion(&expected, got).map(|text| quoted(&text));
        Self {
            expected,
            got: got.to_owned(),
            suggestion,
        }
    }

    /// Creates an error with a suggested spelling.
    pub(crate) fn with_suggestion(
        expected: impl Into<String>,
        got: &str,
        suggestion: String,
    ) -> Self {
        Self {
            expected: expected.into(),
            got: got.to_owned(),
            suggestion: Some(suggestion),
        }
    }
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}, got {}", self.expected, quoted(&self.got))?;
        match &self.suggestion {
            Some(suggestion) => write!(f, "; did you mean {suggestion}?"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for QuantityError {}
