//! Middleboxes: processing of packets on their path, sans-IO.
//!
//! * [`ack`]: queues that remove acknowledgments, and far ends that restore and space them.
//! * [`HeaderCompression`] and [`DataCompression`]: compression on a modem link.
//! * [`TunnelEntry`] and [`TunnelExit`]: IP in IP.
//! * [`Ethernet`]: Ethernet framing.
//! * [`Fragmenter`] and [`Reassembler`]: IP fragmentation.
//! * [`Stages`]: several far ends in sequence.

pub mod ack;
mod data_compression;
mod ethernet;
mod flows;
mod fragments;
mod header_compression;
mod held_packets;
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
