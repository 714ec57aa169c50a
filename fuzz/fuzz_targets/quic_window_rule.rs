//! Fuzzes [`bentpipe_fuzzing::quic_window_rule`].
#![no_main]

use bentpipe_fuzzing::quic_window_rule;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: quic_window_rule::Input| quic_window_rule::run(&input));
