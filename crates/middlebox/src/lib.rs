//! What stands in the path of packets and changes them, sans-IO.
//!
//! * [`ack`]: queues that remove acknowledgments, and far ends that restore and space them.
//! * [`TunnelEntry`] and [`TunnelExit`]: IP in IP.

pub mod ack;
mod flows;
mod held;
#[cfg(test)]
mod testing;
mod tunnel;

pub use tunnel::{Gate, OUTER_HEADER, Terminal, TunnelEntry, TunnelExit, TunnelRefusal};
