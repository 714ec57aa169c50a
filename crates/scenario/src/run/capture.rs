//! Captures: what one end of a link sends and receives, as pcapng.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bentpipe_sim::Tap;
use bentpipe_types::{PacketRef, PacketStore, Time};
use bentpipe_wire::pcapng::{Interface, Writer};
use bentpipe_wire::{Encoder, NodeAddresses};

use super::{CaptureRequest, RunError, RunOptions};

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
    failure: Failure,
    /// It could not be written any further.
    cut: bool,
}

/// Where a capture leaves the error that ended it.
type Failure = Arc<Mutex<Option<io::Error>>>;

/// When a capture's file has its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Named {
    /// When it is whole: a simulation that was given up can be had again.
    Whole,
    /// From the beginning: what real packets did, nobody can have again, and somebody may be looking.
    AtOnce,
}

/// A capture's file, for who ends the run. Dropped before it is [kept](Self::keep), a part of a file is
/// removed.
pub(super) struct CaptureFile {
    path: PathBuf,
    /// What it is called until it is whole, and then.
    part: Option<[PathBuf; 2]>,
    failure: Failure,
}

impl CaptureFile {
    /// Has all been written so far?
    pub(super) fn check(&self) -> Result<(), RunError> {
        let failure = self.failure.lock().ok();
        match failure.and_then(|mut failure| failure.take()) {
            Some(error) => Err(RunError::unwritable(&self.path, &error)),
            None => Ok(()),
        }
    }

    /// Gives the file, which is whole, its name.
    pub(super) fn keep(&mut self) -> Result<(), RunError> {
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
            // Nothing can be done about one that stays.
            let _ = fs::remove_file(part);
        }
    }
}

/// What a file at `path` is called until it is whole, and then: where a link leads, if it is one.
fn part_of(path: &Path) -> Option<[PathBuf; 2]> {
    let whole = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut name = std::ffi::OsString::from(".");
    name.push(whole.file_name()?);
    name.push(".part");
    Some([whole.with_file_name(name), whole])
}

impl Capture {
    /// Starts a capture; the interface is named after the link's end.
    pub(super) fn create(
        request: &CaptureRequest,
        named: Named,
        options: &RunOptions,
    ) -> Result<(Self, CaptureFile), RunError> {
        let path = request.path.as_path();
        // A pipe or a device is nothing that another file could take the place of.
        let plain = fs::metadata(path).map_or(true, |there| there.is_file());
        let part = part_of(path).filter(|_| plain && named == Named::Whole);
        let place = part.as_ref().map_or(path, |[part, _]| part);
        let unwritable = |error: io::Error| RunError::unwritable(path, &error);
        let output = File::create(place).map_err(unwritable)?;
        // From here on, what fails removes the file again.
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

    /// Keeps the first error, for who looks after the run. Nothing more is written: behind what was cut short it could not be
    /// read.
    fn fail(&mut self, error: io::Error) {
        self.cut = true;
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
        if !self.cut
            && let Err(error) = self.writer.flush()
        {
            self.fail(error);
        }
    }
}
