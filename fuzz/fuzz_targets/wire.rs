//! Fuzzes [`bentpipe_fuzzing::wire`].
#![no_main]

use bentpipe_fuzzing::wire;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| wire::run(bytes));
