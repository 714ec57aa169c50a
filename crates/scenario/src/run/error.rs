//! Why a run could not be made or finished, in one line.

use std::fmt;
use std::io;
use std::path::Path;

/// What stopped a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RunError {
    /// What was asked for does not exist or does not fit together.
    Request(String),
    /// It was asked for rightly, and failed.
    Failed(String),
}

impl RunError {
    pub(super) fn capture_place(place: &str, message: &str) -> Self {
        Self::Request(format!("--pcap {place}: {message}"))
    }

    pub(super) fn unwritable(path: &Path, error: &io::Error) -> Self {
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
