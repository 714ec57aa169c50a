//! Captures: what one end of a link sends and receives, as pcapng.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::{Arc, Mutex};

use bentpipe_sim::Tap;
use bentpipe_types::{PacketRef, PacketStore, Time};
use bentpipe_wire::pcapng::{Interface, Writer};
use bentpipe_wire::{Encoder, NodeAddresses};

/// A capture that writes as the run goes on.
///
/// The engine tells of a packet to be sent when it enters the queue; here it waits for the time at
/// which its transmission starts, so that the file is in order of time. What waits is bounded by
/// what the link's queue holds.
pub(super) struct Capture {
    encoder: Encoder<NodeAddresses>,
    writer: Writer<BufWriter<File>>,
    interface: Interface,
    waiting: VecDeque<(Time, Vec<u8>)>,
    /// Buffers used before.
    spare: Vec<Vec<u8>>,
    failure: CaptureFailure,
}

/// Where a capture leaves the error that ended it.
pub(super) type CaptureFailure = Arc<Mutex<Option<io::Error>>>;

impl Capture {
    /// Starts a capture at `path`; the interface has the end's name.
    pub(super) fn create(path: &Path, name: &str) -> io::Result<(Self, CaptureFailure)> {
        let mut writer = Writer::new(BufWriter::new(File::create(path)?))?;
        let interface = writer.add_interface(name, None)?;
        let failure = CaptureFailure::default();
        let capture = Self {
            encoder: Encoder::new(NodeAddresses),
            writer,
            interface,
            waiting: VecDeque::new(),
            spare: Vec::new(),
            failure: Arc::clone(&failure),
        };
        Ok((capture, failure))
    }

    fn encode(&mut self, packet: PacketRef, packets: &PacketStore) -> Vec<u8> {
        let mut bytes = self.spare.pop().unwrap_or_default();
        if let Err(error) = self.encoder.encode(packets, packet, &mut bytes) {
            self.fail(io::Error::other(error.to_string()));
        }
        bytes
    }

    fn write(&mut self, at: Time, bytes: Vec<u8>) {
        if let Err(error) = self.writer.write(self.interface, at, &bytes) {
            self.fail(error);
        }
        self.spare.push(bytes);
    }

    fn write_sent_before(&mut self, now: Time) {
        while self.waiting.front().is_some_and(|(at, _)| *at <= now) {
            if let Some((at, bytes)) = self.waiting.pop_front() {
                self.write(at, bytes);
            }
        }
    }

    /// Keeps the first error; a run is not stopped by its capture.
    fn fail(&self, error: io::Error) {
        if let Ok(mut failure) = self.failure.lock() {
            failure.get_or_insert(error);
        }
    }
}

impl Tap for Capture {
    fn sent(&mut self, at: Time, packet: PacketRef, packets: &PacketStore) {
        // A capture is of IP packets.
        if packets.get(packet).resolves().is_some() {
            return;
        }
        let bytes = self.encode(packet, packets);
        self.waiting.push_back((at, bytes));
    }

    fn received(&mut self, at: Time, packet: PacketRef, packets: &PacketStore) {
        self.write_sent_before(at);
        if packets.get(packet).resolves().is_some() {
            return;
        }
        let bytes = self.encode(packet, packets);
        self.write(at, bytes);
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.write_sent_before(Time::LAST);
        if let Err(error) = self.writer.flush() {
            self.fail(error);
        }
    }
}
