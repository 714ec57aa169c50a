//! Fuzzes [`bentpipe_fuzzing::scenario`].
#![no_main]

use bentpipe_fuzzing::scenario;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| scenario::run(text));
