//! Fuzzes [`bentpipe_fuzzing::engine`].
#![no_main]

use bentpipe_fuzzing::engine;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| engine::run(input));
