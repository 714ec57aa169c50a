//! What went over the wire, as pcapng.

use std::io::{self, Write};

use bentpipe_types::{PacketRef, PacketStore, Time};
use bentpipe_wire::pcapng::{Interface, Writer};
use bentpipe_wire::{Encoder, NodeAddresses};

/// A capture of a case: what each end sent, and what arrived there.
pub struct Capture {
    writer: Writer<Box<dyn Write>>,
    interfaces: Vec<Interface>,
    encoder: Encoder<NodeAddresses>,
    bytes: Vec<u8>,
    /// Packets that contradicted themselves, and have no bytes.
    pub left_out: u64,
}

/// Where a packet was seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Seen {
    Leaving,
    Arriving,
}

impl Capture {
    /// A capture into `output`.
    ///
    /// # Errors
    /// Those of `output`.
    pub fn new(output: Box<dyn Write>) -> io::Result<Self> {
        let mut writer = Writer::new(output)?;
        let interfaces = ["left A", "arrived at A", "left B", "arrived at B"]
            .into_iter()
            .map(|name| writer.add_interface(name, None))
            .collect::<io::Result<_>>()?;
        Ok(Self {
            writer,
            interfaces,
            encoder: Encoder::new(NodeAddresses),
            bytes: Vec::new(),
            left_out: 0,
        })
    }

    pub(super) fn record(
        &mut self,
        packets: &PacketStore,
        packet: PacketRef,
        side: usize,
        seen: Seen,
        now: Time,
    ) {
        let interface = self.interfaces[2 * side + seen as usize];
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
