//! What stands in the path of packets and changes them, sans-IO.
//!
//! * [`ack`]: queues that remove acknowledgments, and far ends that restore and space them.
//! * [`HeaderCompression`] and [`DataCompression`]: what a modem link does to make packets shorter.
//! * [`TunnelEntry`] and [`TunnelExit`]: IP in IP.
//! * [`Ethernet`] frames.
//! * [`Fragmenter`] and [`Reassembler`]: packets in pieces, where a link is too narrow for them.
//! * [`Stages`]: far ends one behind the other.

pub mod ack;
mod data_compression;
mod ethernet;
mod flows;
mod fragments;
mod header_compression;
mod held;
mod stages;
#[cfg(test)]
mod testing;
mod tunnel;

pub use data_compression::DataCompression;
pub use ethernet::Ethernet;
pub use fragments::{Fragmenter, Reassembler, ReassemblySettings};
pub use header_compression::{
    HeaderCompression, HeaderCompressionCounters, HeaderCompressionSettings,
};
pub use stages::Stages;
pub use tunnel::{Gate, OUTER_HEADER, Terminal, TunnelEntry, TunnelExit, TunnelRefusal};
