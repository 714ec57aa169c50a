//! Reads a [`Scenario`] from a file or its text.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::application::schema::foreign_key;
use crate::custom::CustomControls;
use crate::document::parsed::Document;
use crate::error::{Position, ScenarioError};
use crate::limits::MAX_FILE_BYTES;
use crate::scenario::resolve::resolve;
use crate::scenario::schema::ScenarioFile;
use crate::scenario::settings::Scenario;
use crate::traces::files::{FileReader, Files, from_disk};

const TOO_LONG: &str = "longer than 1 MiB: not a scenario file";

impl Scenario {
    /// Reads a scenario file, with `--set KEY=VALUE` overrides.
    ///
    /// # Errors
    ///
    /// One line with the position, if the file cannot be read or is not valid.
    pub fn load(path: impl AsRef<Path>, overrides: &[(&str, &str)]) -> Result<Self, ScenarioError> {
        Self::load_with(path, overrides, &CustomControls::default())
    }

    /// As [`load`](Self::load), with further congestion control algorithms.
    ///
    /// # Errors
    ///
    /// One line with the position, if the file cannot be read or is not valid.
    pub fn load_with(
        path: impl AsRef<Path>,
        overrides: &[(&str, &str)],
        custom: &CustomControls,
    ) -> Result<Self, ScenarioError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let unreadable = |error: std::io::Error| {
            let message = match error.kind() {
                std::io::ErrorKind::NotFound => "no such file".to_owned(),
                std::io::ErrorKind::IsADirectory => "a directory, not a scenario file".to_owned(),
                _ => format!("cannot be read: {error}"),
            };
            ScenarioError::in_file(&name, None, "", &message)
        };
        let mut content = Vec::new();
        // One byte more than allowed, to detect a file that is too long.
        File::open(path)
            .map_err(unreadable)?
            .take(MAX_FILE_BYTES + 1)
            .read_to_end(&mut content)
            .map_err(unreadable)?;
        // Checked before decoding, because the cut may be within a character.
        if content.len() as u64 > MAX_FILE_BYTES {
            return Err(ScenarioError::in_file(&name, None, "", TOO_LONG));
        }
        let text = String::from_utf8(content).map_err(|error| {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
            let position = Position { line, column: 1 };
            ScenarioError::in_file(&name, Some(position), "", "not UTF-8 text")
        })?;
        Self::parse_with(&text, &name, overrides, custom)
    }

    /// Reads the text of a scenario file. `file` is its name in errors, and the folder of trace
    /// files is relative to it.
    ///
    /// An override is a dotted key and a value, which is read as TOML if possible and else as a
    /// string.
    ///
    /// # Errors
    ///
    /// One line with the position, if the text is not valid.
    pub fn parse(
        text: &str,
        file: &str,
        overrides: &[(&str, &str)],
    ) -> Result<Self, ScenarioError> {
        Self::parse_with(text, file, overrides, &CustomControls::default())
    }

    /// As [`parse`](Self::parse), with further congestion control algorithms.
    ///
    /// # Errors
    ///
    /// One line with the position, if the text is not valid.
    pub fn parse_with(
        text: &str,
        file: &str,
        overrides: &[(&str, &str)],
        custom: &CustomControls,
    ) -> Result<Self, ScenarioError> {
        Self::parse_with_files(text, file, overrides, custom, &from_disk)
    }

    /// As [`parse_with`](Self::parse_with), with a reader of trace files in place of the file
    /// system's.
    ///
    /// # Errors
    ///
    /// One line with the position, if the text is not valid.
    pub fn parse_with_files(
        text: &str,
        file: &str,
        overrides: &[(&str, &str)],
        custom: &CustomControls,
        reader: &FileReader<'_>,
    ) -> Result<Self, ScenarioError> {
        if text.len() as u64 > MAX_FILE_BYTES {
            return Err(ScenarioError::in_file(file, None, "", TOO_LONG));
        }
        let document = Document::parse(text, file, overrides, foreign_key)?;
        let scenario: ScenarioFile = document.read()?;
        resolve(&scenario, custom, &Files::for_scenario(file, reader))
            .map_err(|fault| document.explain(fault))
    }
}
