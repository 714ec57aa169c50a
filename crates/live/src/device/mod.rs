//! What packets come out of and go into: the places where a network meets the world.

mod memory;
mod replay;

use std::io;
use std::os::fd::BorrowedFd;

use bentpipe_types::Time;

pub use memory::{Memory, memory_pair};
pub use replay::{Recorder, Replay};

/// A device: packets one at a time, IP header first.
///
/// It never waits. A device with a descriptor can be read when that is readable; one without says
/// when there is something to read.
pub trait Device: Send {
    /// Reads a packet into `buffer`, which any packet fits into. `None`: there is none now.
    ///
    /// # Errors
    /// When the device is gone.
    fn receive(&mut self, now: Time, buffer: &mut [u8]) -> io::Result<Option<usize>>;

    /// Writes a packet. False: the device has no room for it, or takes it for malformed. It is lost,
    /// as on a link.
    ///
    /// # Errors
    /// When the device is gone.
    fn send(&mut self, now: Time, packet: &[u8]) -> io::Result<bool>;

    /// What can be polled for something to read.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// When there is next something to read, of a device without descriptor.
    fn next_arrival(&self) -> Option<Time> {
        None
    }
}
