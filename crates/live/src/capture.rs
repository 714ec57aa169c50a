//! Packet captures of a device.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use bentpipe_types::Time;
use bentpipe_wire::pcapng::{Interface, Writer};

/// A pcapng file with two interfaces, one per direction. The number of packets and the bytes kept
/// of each are limited.
#[derive(Debug)]
pub struct Capture {
    writer: Writer<BufWriter<File>>,
    received: Interface,
    sent: Interface,
    left: u64,
}

impl Capture {
    /// Creates a capture of at most `packets` packets, with at most `snap_length` bytes of each
    /// (`None`: no limit). `names` are the interfaces for received and sent packets. Time 0 is now.
    ///
    /// # Errors
    /// If the file cannot be written.
    #[allow(clippy::disallowed_methods, reason = "a capture says when it was made")]
    pub fn create(
        path: &Path,
        names: [&str; 2],
        packets: u64,
        snap_length: Option<u32>,
    ) -> io::Result<Self> {
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        let epoch = epoch.map_or(0, |since| since.as_nanos() as u64);
        let mut writer = Writer::with_epoch(BufWriter::new(File::create(path)?), epoch)?;
        let received = writer.add_interface(names[0], snap_length)?;
        let sent = writer.add_interface(names[1], snap_length)?;
        Ok(Self {
            writer,
            received,
            sent,
            left: packets,
        })
    }

    /// Records a packet that was read from the device.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn received(&mut self, now: Time, packet: &[u8]) -> io::Result<()> {
        self.write(self.received, now, packet)
    }

    /// Records a packet that was written to the device.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn sent(&mut self, now: Time, packet: &[u8]) -> io::Result<()> {
        self.write(self.sent, now, packet)
    }

    /// Completes and closes the capture.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(self) -> io::Result<()> {
        self.writer.finish().map(drop)
    }

    fn write(&mut self, interface: Interface, now: Time, packet: &[u8]) -> io::Result<()> {
        if self.left == 0 {
            return Ok(());
        }
        self.left -= 1;
        self.writer.write(interface, now, packet)
    }
}
