//! Why a string is no quantity.

use std::fmt;

/// A string that is no such quantity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QuantityError {
    expected: String,
    got: String,
}

impl QuantityError {
    pub(super) fn new(expected: impl Into<String>, got: &str) -> Self {
        Self {
            expected: expected.into(),
            got: got.to_owned(),
        }
    }
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let got = crate::error::quoted(&self.got);
        write!(f, "expected {}, got {got}", self.expected)
    }
}

impl std::error::Error for QuantityError {}
