//! Fuzzes [`bentpipe_fuzzing::host`].
#![no_main]

use bentpipe_fuzzing::host;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: host::Input| host::run(&input));
