//! Fuzzes [`bentpipe_fuzzing::quic_datagrams`].
#![no_main]

use bentpipe_fuzzing::quic_datagrams;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: quic_datagrams::Input| quic_datagrams::run(&input));
