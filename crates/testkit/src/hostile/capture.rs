//! Captures of cases as pcapng.

use std::io::{self, Write};

use bentpipe_types::{PacketRef, PacketStore, Time};
use bentpipe_wire::pcapng::{Interface, Writer};
use bentpipe_wire::{Encoder, NodeAddresses};

/// A capture of a case: packets that each end and gateway sent, and those that arrived.
pub struct Capture {
    writer: Writer<Box<dyn Write>>,
    interfaces: Vec<Interface>,
    encoder: Encoder<NodeAddresses>,
    bytes: Vec<u8>,
    /// Packets without an encoding because they contradict themselves.
    pub left_out: u64,
}

/// Point of capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Seen {
    Leaving,
    Arriving,
}

impl Capture {
    /// Starts a capture between A and B, written to `output`.
    ///
    /// # Errors
    /// Those of `output`.
    pub fn new(output: Box<dyn Write>) -> io::Result<Self> {
        let mut capture = Self {
            writer: Writer::new(output)?,
            interfaces: Vec::new(),
            encoder: Encoder::new(NodeAddresses),
            bytes: Vec::new(),
            left_out: 0,
        };
        capture.name(&["A", "B"])?;
        Ok(capture)
    }

    /// Sets the names of the nodes.
    pub(super) fn name(&mut self, nodes: &[&str]) -> io::Result<()> {
        self.interfaces = (nodes.iter())
            .flat_map(|node| [format!("left {node}"), format!("arrived at {node}")])
            .map(|name| self.writer.add_interface(&name, None))
            .collect::<io::Result<_>>()?;
        Ok(())
    }

    pub(super) fn record(
        &mut self,
        packets: &PacketStore,
        packet: PacketRef,
        side: usize,
        seen: Seen,
        now: Time,
    ) {
        let Some(&interface) = self.interfaces.get(2 * side + seen as usize) else {
            self.left_out += 1;
            return;
        };
        let encoded = self.encoder.encode(packets, packet, &mut self.bytes);
        if encoded.is_err() || self.writer.write(interface, now, &self.bytes).is_err() {
            self.left_out += 1;
        }
    }

    /// Ends the capture.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(self) -> io::Result<()> {
        self.writer.finish().map(drop)
    }
}
