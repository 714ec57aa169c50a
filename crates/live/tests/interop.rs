//! The kernel's TCP judges ours, and tshark what ours sends: the quick subset of the matrix.
//!
//! The whole matrix is `bentpipe-live interop --full`; docs/interoperability.md has its table.
#![cfg(target_os = "linux")]

use std::path::PathBuf;

use bentpipe_live::interop::{self, Cell, dissect, play};
use bentpipe_types::Span;

const CAPTURED: u64 = 3000;

/// A directory that is gone when the test is over, passed or not.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_kernel_and_ours_understand_one_another() {
    judge(&interop::quick());
}

#[test]
#[ignore = "many minutes: make test-slow"]
fn whatever_the_options_the_path_and_the_size_of_packets() {
    judge(&interop::full(10_000_000));
}

fn judge(cells: &[Cell]) {
    if let Some(obstacle) = interop::obstacle() {
        eprintln!("skipped: {obstacle}");
        return;
    }
    let name = format!("bentpipe-interop-{}-{}", std::process::id(), cells.len());
    let scratch = Scratch(std::env::temp_dir().join(name));
    std::fs::create_dir_all(&scratch.0).expect("a temporary directory");
    let capture = scratch.0.join("cell.pcapng");
    let mut failures = Vec::new();
    let mut judged = 0;
    for cell in cells {
        match play(cell, Span::from_secs(60), Some((&capture, CAPTURED))) {
            Err(failure) => failures.push(format!("{cell}: {failure}")),
            Ok(_) => match dissect(&capture).expect("tshark reads a capture") {
                None => eprintln!("tshark is not installed: {cell} is not judged by it"),
                Some(dissection) => {
                    judged += dissection.good_checksums;
                    if dissection.bad_checksums + dissection.malformed > 0 {
                        failures.push(format!("{cell}: {dissection:?}"));
                    }
                    if dissection.good_checksums != dissection.frames {
                        failures.push(format!("{cell}: not all is TCP: {dissection:?}"));
                    }
                }
            },
        }
    }
    eprintln!("tshark found {judged} of our segments good");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
