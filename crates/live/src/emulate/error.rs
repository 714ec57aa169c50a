//! Why there is no result.

use std::io;

/// Why there is no result, in one line.
#[derive(Debug)]
pub enum EmulateError {
    /// The request is invalid.
    Request(String),
    /// The run failed.
    Failed(String),
}

impl From<io::Error> for EmulateError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<bentpipe_scenario::RunError> for EmulateError {
    fn from(error: bentpipe_scenario::RunError) -> Self {
        match error {
            bentpipe_scenario::RunError::Request(message) => Self::Request(message),
            bentpipe_scenario::RunError::Failed(message) => Self::Failed(message),
        }
    }
}
