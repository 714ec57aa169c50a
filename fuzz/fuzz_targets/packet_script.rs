//! Fuzzes [`bentpipe_fuzzing::packet_script`].
#![no_main]

use bentpipe_fuzzing::packet_script;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| packet_script::run(text));
