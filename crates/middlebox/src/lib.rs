//! Middleboxes: processing of packets on their path, sans-IO.
//!
//! * [`ack`]: queues that remove acknowledgments, and far ends that restore and space them.
//! * [`HeaderCompression`] and [`DataCompression`]: compression on a modem link.
//! * [`TunnelEntry`] and [`TunnelExit`]: IP in IP.
//! * [`Ethernet`], [`FixedFraming`], [`TransportStream`] and [`Gse`]: framing on a link.
//! * [`Fragmenter`] and [`Reassembler`]: IP fragmentation.
//! * [`Stages`]: several far ends in sequence.

pub mod ack;
mod data_compression;
mod ethernet;
mod fixed_framing;
mod flows;
mod fragments;
mod gse;
mod header_compression;
mod held_packets;
mod stages;
#[cfg(test)]
mod testing;
mod transport_stream;
mod tunnel;

pub use data_compression::DataCompression;
pub use ethernet::Ethernet;
pub use fixed_framing::FixedFraming;
pub use fragments::{Fragmenter, Reassembler, ReassemblySettings};
pub use gse::Gse;
pub use header_compression::{
    HeaderCompression, HeaderCompressionCounters, HeaderCompressionSettings,
};
pub use stages::Stages;
pub use transport_stream::{Encapsulation, TransportStream};
pub use tunnel::{Gate, OUTER_HEADER, Terminal, TunnelEntry, TunnelExit, TunnelRefusal};
