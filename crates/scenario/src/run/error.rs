//! The error of a run, in one line.

use std::path::Path;
use std::{fmt, io};

/// Why a run failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RunError {
    /// The request names something that does not exist, or is inconsistent.
    Request(String),
    /// The request was valid, and failed.
    Failed(String),
}

impl RunError {
    pub(crate) fn capture_place(place: &str, message: &str) -> Self {
        Self::Request(format!("--pcap {place}: {message}"))
    }

    pub(crate) fn unwritable(path: &Path, error: &io::Error) -> Self {
        Self::Failed(format!("{}: cannot be written: {error}", path.display()))
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Request(message) | Self::Failed(message)) = self;
        f.write_str(message)
    }
}

impl std::error::Error for RunError {}
