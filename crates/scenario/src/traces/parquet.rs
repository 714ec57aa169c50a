//! Parquet files: tables as those of CSV, units in the names of their columns.
//!
//! Reading the format is left to whoever has a library for it: in the Python package that is pyarrow, which is
//! there anyway. What comes of it is the table as text, so that everything else is said once, by [`csv`].

use std::sync::OnceLock;

use bentpipe_types::Span;

use super::{Trace, Wrong, csv};

/// Makes of a file's bytes the same table as comma-separated values: a line of names, a line for each row,
/// nothing quoted. Or says in a line what is wrong with it.
pub type ParquetReader = fn(&[u8]) -> Result<String, String>;

static READER: OnceLock<ParquetReader> = OnceLock::new();

/// Has Parquet files read by this, from now on; the first that is set stays.
pub fn read_parquet_with(reader: ParquetReader) {
    let _ = READER.set(reader);
}

/// The table as text.
pub(super) fn text_of(bytes: &[u8]) -> Result<String, String> {
    let reader = READER.get().ok_or_else(|| {
        "Parquet is read in the Python package only: write the table as CSV for this program"
            .to_owned()
    })?;
    reader(bytes)
}

pub(super) fn parse(text: &str, every: Option<Span>) -> Result<Trace, Wrong> {
    csv::parse(text, every).map_err(|wrong| {
        // It has no lines: its rows are counted from 1, and names are no row.
        let message = match wrong.line {
            Some(line) if line > 1 => format!("row {}: {}", line - 1, wrong.message),
            _ => wrong.message,
        };
        Wrong::file(message)
    })
}
