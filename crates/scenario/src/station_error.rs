//! The error for a part of a scenario that a machine cannot play.

use std::fmt;

use crate::document::parsed::key_lines;
use crate::error::{Position, ScenarioError};
use crate::fault::{KeyPath, Segment};

/// Why a machine cannot play a part of a scenario.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StationError {
    /// Dotted path of the key in the file, or empty if the request itself is wrong.
    pub key: String,
    /// The message.
    pub message: String,
}

impl StationError {
    pub(crate) fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            message: message.into(),
        }
    }

    /// Returns one line with the position of the key in the file: the line of the nearest enclosing
    /// table in the text.
    #[must_use]
    pub fn in_file(&self, file: &str, text: &str) -> String {
        if self.key.is_empty() {
            return self.message.clone();
        }
        let wanted: Vec<&str> = self.key.split('.').collect();
        let lines = key_lines(text).unwrap_or_default();
        let shared = |path: &KeyPath| {
            let is_key = |(segment, key): &(&Segment, &&str)| matches!(segment, Segment::Key(name) if name == *key);
            path.len() <= wanted.len() && path.iter().zip(&wanted).all(|pair| is_key(&pair))
        };
        let nearest = lines
            .iter()
            .filter(|(path, _)| shared(path))
            .max_by_key(|(path, _)| path.len());
        let position = nearest.map(|(_, line)| Position {
            line: *line,
            column: 1,
        });
        ScenarioError::in_file(file, position, &self.key, &self.message).to_string()
    }
}

impl fmt::Display for StationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for StationError {}
