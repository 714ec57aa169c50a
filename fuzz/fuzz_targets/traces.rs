//! Fuzzes [`bentpipe_fuzzing::traces`].
#![no_main]

use bentpipe_fuzzing::traces;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, &str)| traces::run(input.0, input.1));
