//! The whole driver: any packets from two devices in memory, through gateways, return-link methods,
//! queues and errors, and out again.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let _ = bentpipe_live::engine::hostile::play(input);
});
