//! Fuzzes [`bentpipe_fuzzing::orbits`].
#![no_main]

use bentpipe_fuzzing::orbits;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| orbits::run(text));
