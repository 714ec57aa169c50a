//! Whether tshark is there to judge.

use std::io::{self, Write};
use std::process::Command;

pub(crate) fn tshark_is_missing() -> bool {
    let run = Command::new("tshark").arg("--version").output();
    let missing = !run.is_ok_and(|output| output.status.success());
    if missing {
        skipped("tshark is not installed (apt-get install tshark)");
    }
    missing
}

/// Says that a witness is missing: a failure where none may be (`BENTPIPE_WITNESSES=required`, as
/// continuous integration has it).
fn skipped(reason: &str) {
    let required = std::env::var("BENTPIPE_WITNESSES").is_ok_and(|value| value == "required");
    assert!(!required, "{reason}; BENTPIPE_WITNESSES=required");
    // Not eprintln!, which a test that passes does not show.
    writeln!(io::stderr(), "skipped: {reason}").expect("standard error");
}
