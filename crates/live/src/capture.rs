//! A capture of what passes a device.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use bentpipe_types::Time;
use bentpipe_wire::pcapng::{Interface, Writer};

/// A pcapng file of two interfaces, one a direction, with so many packets, of each so many bytes, at
/// most.
#[derive(Debug)]
pub struct Capture {
    writer: Writer<BufWriter<File>>,
    received: Interface,
    sent: Interface,
    left: u64,
}

impl Capture {
    /// Begins a capture of at most `packets` packets, and of each `snap_length` bytes (none: all).
    /// `names` are those of the interfaces: what is received, what is sent. Time 0 is now.
    ///
    /// # Errors
    /// When the file cannot be written.
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

    /// A packet that came out of the device.
    ///
    /// # Errors
    /// Those of the file.
    pub fn received(&mut self, now: Time, packet: &[u8]) -> io::Result<()> {
        self.write(self.received, now, packet)
    }

    /// A packet that went into the device.
    ///
    /// # Errors
    /// Those of the file.
    pub fn sent(&mut self, now: Time, packet: &[u8]) -> io::Result<()> {
        self.write(self.sent, now, packet)
    }

    /// Ends the capture.
    ///
    /// # Errors
    /// Those of the file.
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
