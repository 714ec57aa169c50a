//! What packets come out of and go into: the places where a network meets the world.

mod batch;
mod memory;
mod replay;

use std::io;
use std::os::fd::BorrowedFd;

use bentpipe_types::Time;

pub use batch::Batch;
pub use memory::{Memory, memory_pair};
pub use replay::{Recorder, Replay};

/// What became of a packet that was given to a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sent {
    /// It took it.
    Taken,
    /// It has no room for it, or takes it for malformed. It is lost, as on a link.
    Refused,
    /// It is down. It is lost, as with a cable that is out.
    Down,
}

/// A device: packets in and out, IP header first.
///
/// It never waits. A device with a descriptor can be read when that is readable; one without says
/// when there is something to read.
pub trait Device: Send {
    /// Reads what comes next into `batch`. False: there is nothing now. A device that is down has
    /// nothing.
    ///
    /// # Errors
    /// When the device is gone.
    fn receive(&mut self, now: Time, batch: &mut Batch) -> io::Result<bool>;

    /// Writes a packet.
    ///
    /// # Errors
    /// When the device is gone.
    fn send(&mut self, now: Time, packet: &[u8]) -> io::Result<Sent>;

    /// What can be polled for something to read.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// When there is next something to read, of a device without descriptor.
    fn next_arrival(&self) -> Option<Time> {
        None
    }
}
