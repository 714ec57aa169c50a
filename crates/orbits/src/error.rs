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

/// Longest message in characters: libraries quote what they could not read.
const LONGEST: usize = 400;

impl OrbitError {
    pub(crate) fn new(message: impl AsRef<str>) -> Self {
        Self {
            line: None,
            message: one_line(message.as_ref()),
        }
    }

    pub(crate) fn at(line: usize, message: impl AsRef<str>) -> Self {
        Self {
            line: Some(line),
            ..Self::new(message)
        }
    }
}

/// Returns a message without control characters, and shortened if it is long.
fn one_line(message: &str) -> String {
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    let mut line: String = message.chars().take(LONGEST).map(printable).collect();
    if line.len() < message.len() {
        line.push_str(" ...");
    }
    line
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
