//! Fuzzes [`bentpipe_fuzzing::compression`].
#![no_main]

use bentpipe_fuzzing::compression;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: compression::Input| compression::run(&input));
