//! Fuzzes the trace readers: any text is a trace of each format, or gets an error of one line.
#![no_main]

use bentpipe_scenario::check_trace;
use bentpipe_scenario::schema::TraceFormat;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, &str)| {
    let (format, text) = input;
    let format = TraceFormat::ALL[usize::from(format) % TraceFormat::ALL.len()];
    if let Err(line) = check_trace(format, text) {
        assert!(!line.contains(|c: char| c.is_control()), "{line:?}");
        assert!(line.len() < 2_000, "{line}");
    }
});
