//! Trace files with the changes of a direction over time: one reader for each format.
//!
//! A reader converts text to a trace, or returns an error with a line number. Readers access only
//! the text; only [`files`] opens files.

pub(crate) mod csv;
pub(crate) mod files;
pub(crate) mod formats;
pub(crate) mod irtt;
pub(crate) mod leoreplayer;
pub(crate) mod mahimahi;
pub(crate) mod opensand;
pub(crate) mod parquet;
#[cfg(test)]
mod tests;
pub(crate) mod trace;
