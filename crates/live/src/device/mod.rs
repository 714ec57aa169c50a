//! Devices: where packets enter and leave a network that runs in real time.

mod batch;
mod memory;
mod replay;

use std::io;
use std::os::fd::BorrowedFd;

use bentpipe_types::Time;

pub use batch::Batch;
pub(crate) use batch::BatchBuffers;
pub use memory::{Memory, memory_pair};
pub use replay::{Recorder, Replay};

/// Result of writing a packet to a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sent {
    /// The device accepted the packet.
    Taken,
    /// The device has no room, or rejects the packet as malformed. The packet is lost, as on a
    /// link.
    Refused,
    /// The device is down. The packet is lost, as with an unplugged cable.
    Down,
}

/// Numbers of packets that a device accepted, and that are lost all the same.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Lost {
    /// The device had no room for them.
    pub refused: u64,
    /// The device was down.
    pub down: u64,
}

/// A source and sink of packets that begin with the IP header.
///
/// Calls never block. A device with a descriptor can be read when the descriptor is readable; one
/// without states the time of its next packet.
pub trait Device: Send {
    /// Reads the next packets into `batch`. Returns false if there are none at the moment. A device
    /// that is down has none.
    ///
    /// # Errors
    /// If the device no longer exists.
    fn receive(&mut self, now: Time, batch: &mut Batch) -> io::Result<bool>;

    /// Writes a packet, at once or with the next [`flush`](Self::flush).
    ///
    /// # Errors
    /// If the device no longer exists.
    fn send(&mut self, now: Time, packet: &[u8]) -> io::Result<Sent>;

    /// Writes the packets that were accepted and not written yet. Called after each series of
    /// packets.
    ///
    /// # Errors
    /// If the device no longer exists.
    fn flush(&mut self, _now: Time) -> io::Result<Lost> {
        Ok(Lost::default())
    }

    /// Returns the descriptor to poll for readable packets.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Returns the time of the next readable packet, for a device without a descriptor.
    fn next_arrival(&self) -> Option<Time> {
        None
    }
}
