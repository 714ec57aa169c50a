//! Reader of Parquet files: tables as in CSV, with units in the column names.
//!
//! The application supplies a function that decodes the format: in the Python package this is
//! pyarrow. It returns the table as text, which [`csv`] reads.

use std::sync::OnceLock;

use bentpipe_types::Span;

use crate::traces::csv;
use crate::traces::trace::{Trace, TraceError};

/// Converts a file's bytes to comma-separated values without quotes: a line of names, then a line
/// for each row. The error is one line.
pub type ParquetReader = fn(&[u8]) -> Result<String, String>;

static READER: OnceLock<ParquetReader> = OnceLock::new();

/// Sets the function that decodes Parquet files; only the first call has an effect.
pub fn read_parquet_with(reader: ParquetReader) {
    let _ = READER.set(reader);
}

/// Returns the table as text.
pub(crate) fn text_of(bytes: &[u8]) -> Result<String, String> {
    let reader = READER.get().ok_or_else(|| {
        "Parquet is read in the Python package only: write the table as CSV for this program"
            .to_owned()
    })?;
    reader(bytes)
}

pub(crate) fn parse(text: &str, every: Option<Span>) -> Result<Trace, TraceError> {
    csv::parse(text, every).map_err(|wrong| {
        // A table has no lines: its rows are counted from 1, after the names.
        let message = match wrong.line {
            Some(line) if line > 1 => format!("row {}: {}", line - 1, wrong.message),
            _ => wrong.message,
        };
        TraceError::file(message)
    })
}
