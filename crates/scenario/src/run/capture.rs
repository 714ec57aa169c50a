//! Captures of the packets at one end of a link, as pcapng.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bentpipe_sim::Tap;
use bentpipe_types::{PacketRef, PacketStore, Time};
use bentpipe_wire::pcapng::{Interface, Writer};
use bentpipe_wire::{Encoder, NodeAddresses};

use crate::run::error::RunError;
use crate::run::options::{CaptureRequest, RunOptions};

/// A capture that is written during the run.
///
/// The engine reports a packet when it enters the queue. The capture holds it until its
/// transmission starts, so that the file is in order of time. The number of packets that it holds
/// is limited by the capacity of the link's queue.
pub(crate) struct Capture {
    encoder: Encoder<NodeAddresses>,
    writer: Writer<BufWriter<File>>,
    interface: Interface,
    waiting: VecDeque<(Time, Vec<u8>)>,
    /// Buffers for reuse.
    spare: Vec<Vec<u8>>,
    failure: Failure,
    /// Whether writing has failed.
    cut: bool,
}

/// The error that ended a capture, shared with its file.
type Failure = Arc<Mutex<Option<io::Error>>>;

/// When the file of a capture gets its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FileNaming {
    /// When it is complete: an interrupted simulation can be repeated.
    Whole,
    /// From the beginning: a capture of real packets cannot be repeated, and may be read while it
    /// is written.
    AtOnce,
}

/// The file of a capture, held by the code that ends the run. If it is dropped before it is
/// [kept](Self::keep), a partial file is removed.
pub(crate) struct CaptureFile {
    path: PathBuf,
    /// Temporary path and final path.
    part: Option<[PathBuf; 2]>,
    failure: Failure,
}

impl CaptureFile {
    /// Returns the error of the capture, if there is one.
    pub(crate) fn check(&self) -> Result<(), RunError> {
        let failure = self.failure.lock().ok();
        match failure.and_then(|mut failure| failure.take()) {
            Some(error) => Err(RunError::unwritable(&self.path, &error)),
            None => Ok(()),
        }
    }

    /// Gives the complete file its name.
    pub(crate) fn keep(&mut self) -> Result<(), RunError> {
        if let Some([part, whole]) = &self.part {
            fs::rename(part, whole).map_err(|error| RunError::unwritable(&self.path, &error))?;
            self.part = None;
        }
        Ok(())
    }
}

impl Drop for CaptureFile {
    fn drop(&mut self) {
        if let Some([part, _]) = &self.part {
            // An error here is ignored: the file stays.
            let _ = fs::remove_file(part);
        }
    }
}

/// Returns the temporary and the final path for `path`. The final path is the target of a symbolic
/// link.
fn part_of(path: &Path) -> Option<[PathBuf; 2]> {
    let whole = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut name = std::ffi::OsString::from(".");
    name.push(whole.file_name()?);
    name.push(".part");
    Some([whole.with_file_name(name), whole])
}

impl Capture {
    /// Starts a capture; the interface is named after the end of the link.
    pub(crate) fn create(
        request: &CaptureRequest,
        named: FileNaming,
        options: &RunOptions,
    ) -> Result<(Self, CaptureFile), RunError> {
        let path = request.path.as_path();
        // A pipe or a device cannot be replaced by another file.
        let plain = fs::metadata(path).map_or(true, |there| there.is_file());
        let part = part_of(path).filter(|_| plain && named == FileNaming::Whole);
        let place = part.as_ref().map_or(path, |[part, _]| part);
        let unwritable = |error: io::Error| RunError::unwritable(path, &error);
        let output = File::create(place).map_err(unwritable)?;
        // From here on, an error removes the file again.
        let file = CaptureFile {
            path: path.to_owned(),
            part,
            failure: Failure::default(),
        };
        let mut writer = Writer::with_epoch(BufWriter::new(output), options.captures_begin_ns)
            .map_err(unwritable)?;
        let interface = writer
            .add_interface(&request.place, options.snap_length)
            .map_err(unwritable)?;
        let capture = Self {
            encoder: Encoder::new(NodeAddresses),
            writer,
            interface,
            waiting: VecDeque::new(),
            spare: Vec::new(),
            failure: Arc::clone(&file.failure),
            cut: false,
        };
        Ok((capture, file))
    }

    fn encode(&mut self, packet: PacketRef, packets: &PacketStore) -> Vec<u8> {
        let mut bytes = self.spare.pop().unwrap_or_default();
        if let Err(error) = self.encoder.encode(packets, packet, &mut bytes) {
            self.fail(io::Error::other(error.to_string()));
        }
        bytes
    }

    fn write(&mut self, at: Time, bytes: Vec<u8>) {
        if !self.cut
            && let Err(error) = self.writer.write(self.interface, at, &bytes)
        {
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

    /// Stores the first error. Nothing more is written, because a reader could not read beyond the
    /// truncated block.
    fn fail(&mut self, error: io::Error) {
        self.cut = true;
        if let Ok(mut failure) = self.failure.lock() {
            failure.get_or_insert(error);
        }
    }
}

impl Tap for Capture {
    fn sent(&mut self, at: Time, packet: PacketRef, packets: &PacketStore) {
        // A capture has IP packets only.
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
        if !self.cut
            && let Err(error) = self.writer.flush()
        {
            self.fail(error);
        }
    }
}
