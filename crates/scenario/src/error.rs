//! The error for an invalid scenario, in one line.

use std::fmt;

/// A place of a file: line and column, both counted from 1, the column in characters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Position {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// Why a scenario was refused: one line with the position, the key, and what was expected.
///
/// ```text
/// geo.toml:14: links.satellite.forward.rate: expected a rate such as "10 Mbit/s", got 10
/// --set hosts.server.tcp.mss=fast: expected a size such as "64 KiB", got "fast"
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScenarioError {
    place: String,
    position: Option<Position>,
    key: String,
    message: String,
}

impl ScenarioError {
    pub(crate) fn in_file(
        file: &str,
        position: Option<Position>,
        key: &str,
        message: &str,
    ) -> Self {
        Self {
            place: one_line(file),
            position,
            key: key.to_owned(),
            message: one_line(message),
        }
    }

    /// Creates an error in a `--set` option; `setting` is `KEY=VALUE`.
    pub(crate) fn in_override(setting: &str, key: &str, message: &str) -> Self {
        // The key is omitted if it is the one that was set.
        let set = setting.split('=').next().unwrap_or_default();
        let key = if set == key { "" } else { key };
        Self {
            place: format!("--set {}", shortened(&one_line(setting))),
            position: None,
            key: key.to_owned(),
            message: one_line(message),
        }
    }

    /// Returns the name of the file as given, or `--set KEY=VALUE`.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Returns the line of the file, counted from 1, or `None` for a `--set` option or an
    /// unreadable file.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        Some(self.position?.line)
    }

    /// Returns the column of the key or the error in its line, counted in characters from 1, or
    /// `None` where [`line`](Self::line) is.
    #[must_use]
    pub fn column(&self) -> Option<usize> {
        Some(self.position?.column)
    }

    /// Returns the dotted path of the key, or an empty string if the place is sufficient.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns what was expected, and what was found.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.place)?;
        if let Some(line) = self.line() {
            write!(f, ":{line}")?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for ScenarioError {}

/// Longest quotation of input in a message, in characters.
const LONGEST_QUOTE: usize = 80;

/// Returns input in quotes, on one line, cut if it is long.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", shortened(&one_line(text)))
}

/// Replaces line breaks and other control characters.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST_QUOTE) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
