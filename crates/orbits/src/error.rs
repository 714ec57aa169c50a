//! Errors.

use std::fmt;

/// An error in a description of orbits: one line, with the line of the file if there is one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OrbitError {
    /// Line in the file, from 1.
    pub line: Option<usize>,
    /// The expectation and the finding.
    pub message: String,
}

impl OrbitError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            line: None,
            message: message.into(),
        }
    }

    pub(crate) fn at(line: usize, message: impl Into<String>) -> Self {
        Self {
            line: Some(line),
            message: message.into(),
        }
    }
}

impl fmt::Display for OrbitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for OrbitError {}
