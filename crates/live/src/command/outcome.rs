//! Outcome of a command.

/// Whether the command succeeded, or the reason why it could not run.
pub(super) type Outcome = Result<bool, Box<dyn std::error::Error>>;
