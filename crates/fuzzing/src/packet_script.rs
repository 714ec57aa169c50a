//! Fuzzes the packet script reader: any text is parsed, run if valid, and gets a verdict.

use bentpipe_testkit::{Defines, Verdict, check, script};

/// Parses and runs a script.
///
/// # Panics
/// If an error has no reason, or a line beyond the text.
pub fn run(text: &str) {
    let defines = Defines::new();
    if let Err(error) = script::parse(text, &defines) {
        assert!(!error.message.is_empty());
        assert!(
            error.line as usize <= text.lines().count() + 1,
            "line {}",
            error.line
        );
        return;
    }
    match check(text, &defines) {
        Verdict::Passed => {}
        verdict => assert!(!format!("{verdict:?}").is_empty()),
    }
}
