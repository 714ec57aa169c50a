//! Captures in pcapng for Wireshark and tcpdump: draft-ietf-opsawg-pcapng, sections 4.1 (section
//! header), 4.2 (interface description) and 4.3 (enhanced packet).
//!
//! Always little-endian, so that a run writes the same file on every machine.

use std::io::{self, Write};

use bentpipe_types::Time;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;

const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const MAJOR_VERSION: u16 = 1;
const MINOR_VERSION: u16 = 0;
const LENGTH_UNKNOWN: u64 = u64::MAX;

/// Packets that begin with an IPv4 or IPv6 header.
const LINKTYPE_RAW: u16 = 101;

// Option codes.
const END_OF_OPTIONS: u16 = 0;
const SECTION_USER_APPLICATION: u16 = 4;
const INTERFACE_NAME: u16 = 2;
const INTERFACE_TIMESTAMP_RESOLUTION: u16 = 9;
/// 10^-9 s.
const NANOSECONDS: u8 = 9;

/// An interface of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interface(u32);

/// Writes a capture packet by packet. For files, wrap them in a [`BufWriter`](std::io::BufWriter).
#[derive(Debug)]
pub struct Writer<W> {
    output: W,
    epoch_ns: u64,
    snap_lengths: Vec<u32>,
    block: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Starts a capture whose simulated time begins at the Unix epoch.
    ///
    /// # Errors
    /// Those of `output`.
    pub fn new(output: W) -> io::Result<Self> {
        Self::with_epoch(output, 0)
    }

    /// Starts a capture whose simulated time begins `epoch_ns` nanoseconds after the Unix epoch.
    ///
    /// # Errors
    /// Those of `output`.
    pub fn with_epoch(output: W, epoch_ns: u64) -> io::Result<Self> {
        let mut writer = Self {
            output,
            epoch_ns,
            snap_lengths: Vec::new(),
            block: Vec::new(),
        };
        writer.begin(SECTION_HEADER);
        writer.put(&BYTE_ORDER_MAGIC.to_le_bytes());
        writer.put(&MAJOR_VERSION.to_le_bytes());
        writer.put(&MINOR_VERSION.to_le_bytes());
        writer.put(&LENGTH_UNKNOWN.to_le_bytes());
        writer.put_option(SECTION_USER_APPLICATION, b"bentpipe")?;
        writer.put_option(END_OF_OPTIONS, &[])?;
        writer.end()?;
        Ok(writer)
    }

    /// Adds an interface, for example one direction of a link. At most `snap_length` bytes of each
    /// packet are kept, or all with `None`.
    ///
    /// # Errors
    /// Those of the output, or a name above 65,535 bytes.
    pub fn add_interface(&mut self, name: &str, snap_length: Option<u32>) -> io::Result<Interface> {
        let index = u32::try_from(self.snap_lengths.len()).map_err(io::Error::other)?;
        self.begin(INTERFACE_DESCRIPTION);
        self.put(&LINKTYPE_RAW.to_le_bytes());
        self.put(&[0; 2]);
        self.put(&snap_length.unwrap_or(0).to_le_bytes()); // 0: no limit
        self.put_option(INTERFACE_NAME, name.as_bytes())?;
        self.put_option(INTERFACE_TIMESTAMP_RESOLUTION, &[NANOSECONDS])?;
        self.put_option(END_OF_OPTIONS, &[])?;
        self.end()?;
        self.snap_lengths.push(snap_length.unwrap_or(u32::MAX));
        Ok(Interface(index))
    }

    /// Writes a packet that passed the interface at `time`.
    ///
    /// # Errors
    /// Those of the output, or an interface of another capture.
    pub fn write(&mut self, interface: Interface, time: Time, packet: &[u8]) -> io::Result<()> {
        let Some(&snap_length) = self.snap_lengths.get(interface.0 as usize) else {
            let message = "an interface of another capture";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        };
        let length = u32::try_from(packet.len())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let captured = length.min(snap_length);
        let time = self.epoch_ns.saturating_add(time.as_nanos());
        self.begin(ENHANCED_PACKET);
        self.put(&interface.0.to_le_bytes());
        self.put(&((time >> 32) as u32).to_le_bytes());
        self.put(&(time as u32).to_le_bytes());
        self.put(&captured.to_le_bytes());
        self.put(&length.to_le_bytes());
        self.put_padded(&packet[..captured as usize]);
        self.end()
    }

    /// Flushes buffered data.
    ///
    /// # Errors
    /// Those of the output.
    pub fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }

    /// Ends the capture and flushes it.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(mut self) -> io::Result<W> {
        self.output.flush()?;
        Ok(self.output)
    }

    // Section 3.1: block type, total length, body padded to 32 bits, total length.
    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.put(&kind.to_le_bytes());
        self.put(&[0; 4]);
    }

    fn put(&mut self, bytes: &[u8]) {
        self.block.extend_from_slice(bytes);
    }

    fn put_padded(&mut self, bytes: &[u8]) {
        self.put(bytes);
        let padded = self.block.len().next_multiple_of(4);
        self.block.resize(padded, 0);
    }

    // Section 3.5: code, length without padding, value.
    fn put_option(&mut self, code: u16, value: &[u8]) -> io::Result<()> {
        let length = u16::try_from(value.len())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        self.put(&code.to_le_bytes());
        self.put(&length.to_le_bytes());
        self.put_padded(value);
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        let length = u32::try_from(self.block.len() + 4)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?
            .to_le_bytes();
        self.block[4..8].copy_from_slice(&length);
        self.put(&length);
        self.output.write_all(&self.block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(bytes: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
    }

    #[test]
    fn a_capture_is_a_chain_of_blocks() {
        let mut writer = Writer::with_epoch(Vec::new(), 7 << 32).unwrap();
        let whole = writer.add_interface("satellite.forward", None).unwrap();
        let cut = writer.add_interface("x", Some(3)).unwrap();
        writer
            .write(whole, Time::from_nanos(5), &[1, 2, 3, 4, 5])
            .unwrap();
        writer
            .write(cut, Time::from_nanos(6), &[1, 2, 3, 4, 5])
            .unwrap();
        assert!(writer.write(Interface(2), Time::ZERO, &[]).is_err());
        let bytes = writer.finish().unwrap();

        let mut blocks = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let length = word(&bytes, at + 4) as usize;
            assert_eq!(word(&bytes, at + length - 4) as usize, length);
            assert_eq!(length % 4, 0);
            blocks.push(&bytes[at..at + length]);
            at += length;
        }
        let kinds: Vec<u32> = blocks.iter().map(|block| word(block, 0)).collect();
        assert_eq!(
            kinds,
            [
                SECTION_HEADER,
                INTERFACE_DESCRIPTION,
                INTERFACE_DESCRIPTION,
                ENHANCED_PACKET,
                ENHANCED_PACKET
            ]
        );
        assert_eq!(word(blocks[1], 12), 0, "no limit");
        assert_eq!(word(blocks[2], 12), 3, "the limit");
        // Interface, time, captured length, original length, bytes, padding.
        assert_eq!(
            blocks[3][8..36],
            [
                0, 0, 0, 0, 7, 0, 0, 0, 5, 0, 0, 0, 5, 0, 0, 0, 5, 0, 0, 0, 1, 2, 3, 4, 5, 0, 0, 0
            ]
        );
        assert_eq!(
            blocks[4][8..32],
            [
                1, 0, 0, 0, 7, 0, 0, 0, 6, 0, 0, 0, 3, 0, 0, 0, 5, 0, 0, 0, 1, 2, 3, 0
            ]
        );
    }
}
