//! Fuzzes the real-time engine: any packets from two in-memory devices pass through gateways,
//! return-link methods, queues and errors.

/// Sends packets made from `input` through the network.
///
/// # Panics
/// If the engine breaks a rule of [`bentpipe_live::engine::hostile::play`].
pub fn run(input: &[u8]) {
    let _ = bentpipe_live::engine::hostile::play(input);
}
