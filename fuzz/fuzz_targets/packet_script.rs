//! Fuzzes the packet script reader: any text is parsed, run if valid, and gets a verdict.
#![no_main]

use bentpipe_testkit::{Defines, Verdict, check, script};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
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
});
