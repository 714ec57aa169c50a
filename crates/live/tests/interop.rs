//! Runs the quick subset of the interoperability matrix, with tshark as a check of our packets.
//!
//! `bentpipe-live interop --full` runs the whole matrix; its results are in
//! docs/validation/interoperability.md.
#![cfg(target_os = "linux")]

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;

use bentpipe_live::interop::{self, Cell, Dissection, dissect, play};
use bentpipe_types::Span;

/// Packets of each cell that tshark examines.
const CAPTURED: u64 = 3000;

/// A directory that is removed at the end of the test, passed or not.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn our_tcp_and_the_kernel_interoperate() {
    judge(&interop::quick());
}

#[test]
#[ignore = "many minutes: make test-slow"]
fn our_tcp_and_the_kernel_interoperate_for_random_options_paths_and_sizes() {
    judge(&interop::full(10_000_000));
}

fn judge(cells: &[Cell]) {
    if let Some(obstacle) = interop::obstacle() {
        skipped(&obstacle);
        return;
    }
    let name = format!("bentpipe-interop-{}-{}", std::process::id(), cells.len());
    let scratch = Scratch(std::env::temp_dir().join(name));
    std::fs::create_dir_all(&scratch.0).expect("a temporary directory");
    let mut failures = Vec::new();
    let mut dissections = Vec::new();
    for (n, cell) in cells.iter().enumerate() {
        let capture = scratch.0.join(format!("{n}.pcapng"));
        match play(cell, Span::from_secs(60), Some((&capture, CAPTURED))) {
            Err(failure) => failures.push(format!("{cell}: {failure}")),
            // tshark starts slowly, so that it runs in parallel with the next cell.
            Ok(_) => dissections.push((cell, thread::spawn(move || judged(&capture)))),
        }
    }
    let mut judged = 0;
    for (cell, dissection) in dissections {
        match dissection.join().expect("no panic").expect("tshark reads") {
            None => skipped(&format!(
                "tshark is not installed: {cell} is not checked by it"
            )),
            Some(dissection) => {
                judged += dissection.good_checksums;
                if dissection.bad_checksums + dissection.malformed > 0 {
                    failures.push(format!("{cell}: {dissection:?}"));
                }
                if dissection.good_checksums != dissection.frames {
                    failures.push(format!("{cell}: other packets than TCP: {dissection:?}"));
                }
            }
        }
    }
    eprintln!("tshark found {judged} of our segments valid");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn judged(capture: &Path) -> io::Result<Option<Dissection>> {
    let dissection = dissect(capture);
    let _ = std::fs::remove_file(capture);
    dissection
}

/// Reports a missing tool. This is a failure if `BENTPIPE_WITNESSES=required`, as in continuous
/// integration.
fn skipped(reason: &str) {
    let required = std::env::var("BENTPIPE_WITNESSES").is_ok_and(|value| value == "required");
    assert!(!required, "{reason}; BENTPIPE_WITNESSES=required");
    // Not eprintln!, since its output is hidden for a passing test.
    writeln!(io::stderr(), "skipped: {reason}").expect("standard error");
}
