//! From a file, or its text, to a [`Scenario`].

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::document::Document;
use crate::limits::MAX_FILE_BYTES;
use crate::resolve::resolve;
use crate::schema::ScenarioFile;
use crate::traces::Files;
use crate::{CustomControls, Scenario, ScenarioError};

const TOO_LONG: &str = "longer than 1 MiB: not a scenario file";

impl Scenario {
    /// Reads a scenario file, with `--set KEY=VALUE` overrides.
    ///
    /// # Errors
    ///
    /// One line: what cannot be read, or is not understood, and where.
    pub fn load(path: impl AsRef<Path>, overrides: &[(&str, &str)]) -> Result<Self, ScenarioError> {
        Self::load_with(path, overrides, &CustomControls::default())
    }

    /// The same, where `custom` names window rules besides those that are built in.
    ///
    /// # Errors
    ///
    /// One line: what cannot be read, or is not understood, and where.
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
        // One byte more than allowed, to tell too much from just enough.
        File::open(path)
            .map_err(unreadable)?
            .take(MAX_FILE_BYTES + 1)
            .read_to_end(&mut content)
            .map_err(unreadable)?;
        // Before decoding: the cut may be within a character.
        if content.len() as u64 > MAX_FILE_BYTES {
            return Err(ScenarioError::in_file(&name, None, "", TOO_LONG));
        }
        let text = String::from_utf8(content).map_err(|error| {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
            ScenarioError::in_file(&name, Some(line), "", "not UTF-8 text")
        })?;
        Self::parse_with(&text, &name, overrides, custom)
    }

    /// Reads the text of a scenario file; `file` is what errors call it, and trace files are looked for
    /// beside it.
    ///
    /// An override is a dotted key and a value: TOML if it reads as TOML, else a string.
    ///
    /// # Errors
    ///
    /// One line: what is not understood, and where.
    pub fn parse(
        text: &str,
        file: &str,
        overrides: &[(&str, &str)],
    ) -> Result<Self, ScenarioError> {
        Self::parse_with(text, file, overrides, &CustomControls::default())
    }

    /// The same, where `custom` names window rules besides those that are built in.
    ///
    /// # Errors
    ///
    /// One line: what is not understood, and where.
    pub fn parse_with(
        text: &str,
        file: &str,
        overrides: &[(&str, &str)],
        custom: &CustomControls,
    ) -> Result<Self, ScenarioError> {
        if text.len() as u64 > MAX_FILE_BYTES {
            return Err(ScenarioError::in_file(file, None, "", TOO_LONG));
        }
        let document = Document::parse(text, file, overrides)?;
        let scenario: ScenarioFile = document.read()?;
        resolve(&scenario, custom, &Files::beside(file)).map_err(|fault| document.explain(fault))
    }
}
