//! Reads a trace in any format.

use crate::changes::schema::{IrttColumn, TraceFormat};
use crate::traces::trace::{Reading, Trace, TraceError};
use crate::traces::{csv, irtt, leoreplayer, mahimahi, opensand, parquet};

/// Reads the text of a file.
pub(crate) fn parse(text: &str, reading: Reading) -> Result<Trace, TraceError> {
    // Some programs write a byte-order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match reading.format {
        TraceFormat::Csv => csv::parse(text, reading.every),
        TraceFormat::Parquet => parquet::parse(text, reading.every),
        TraceFormat::Mahimahi => mahimahi::parse(text),
        TraceFormat::LeoReplayer => leoreplayer::parse(text),
        TraceFormat::OpenSand => opensand::parse(text),
        TraceFormat::Irtt => irtt::parse(text, reading.column),
    }
}

/// Reads a text as a file of this format; for Parquet, as the text that its reader returns. For
/// fuzzing.
///
/// # Errors
/// The error in the text, as one line.
#[doc(hidden)]
pub fn check_trace(format: TraceFormat, text: &str) -> Result<(), String> {
    let reading = Reading {
        format,
        column: (format == TraceFormat::Irtt).then_some(IrttColumn::Uplink),
        every: None,
    };
    let read = parse(text, reading);
    read.map(drop).map_err(|wrong| match wrong.line {
        Some(line) => format!("{line}: {}", wrong.message),
        None => wrong.message,
    })
}
