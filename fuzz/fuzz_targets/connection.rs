//! Fuzzes [`bentpipe_fuzzing::connection`].
#![no_main]

use bentpipe_fuzzing::connection;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: connection::Input| connection::run(&input));
