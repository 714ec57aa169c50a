//! Availability of tshark.

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

/// Reports a missing witness: a failure where all are required (`BENTPIPE_WITNESSES=required`, as
/// in continuous integration).
fn skipped(reason: &str) {
    let required = std::env::var("BENTPIPE_WITNESSES").is_ok_and(|value| value == "required");
    assert!(!required, "{reason}; BENTPIPE_WITNESSES=required");
    // Not eprintln!, whose output is hidden in passing tests.
    writeln!(io::stderr(), "skipped: {reason}").expect("standard error");
}
