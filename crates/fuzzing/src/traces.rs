//! Fuzzes the trace readers: any text is a trace of each format, or gets an error of one line.

use bentpipe_scenario::check_trace;
use bentpipe_scenario::schema::TraceFormat;

/// Reads `text` as a trace of the format with this number.
///
/// # Panics
/// If an error is not one short line.
pub fn run(format: u8, text: &str) {
    let format = TraceFormat::ALL[usize::from(format) % TraceFormat::ALL.len()];
    if let Err(line) = check_trace(format, text) {
        assert!(!line.contains(|c: char| c.is_control()), "{line:?}");
        assert!(line.len() < 2_000, "{line}");
    }
}
