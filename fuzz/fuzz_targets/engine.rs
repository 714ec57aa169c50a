//! Fuzzes the real-time engine: any packets from two in-memory devices pass through gateways,
//! return-link methods, queues and errors.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let _ = bentpipe_live::engine::hostile::play(input);
});
