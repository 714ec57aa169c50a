//! Where packets can be watched: one end of a link.

use bentpipe_types::{PacketRef, PacketStore, Time};

/// Sees every packet that one end of a link sends or receives, as a capture there would.
///
/// Calls are in order of the time at which the engine learns of a packet, not in order of `at`: a
/// packet sent is told of when it enters the queue, with `at` the later start of its transmission.
/// The packets received come in order of `at`, and so do those sent.
pub trait Tap {
    /// The end sends this packet; its transmission starts at `at`.
    fn sent(&mut self, at: Time, packet: PacketRef, packets: &PacketStore);
    /// The end has received this packet at `at`; no packet will be told of with an earlier `at`.
    fn received(&mut self, at: Time, packet: PacketRef, packets: &PacketStore);
}
/// One end of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The first node of `between`: it sends `forward` and receives `return`.
    First,
    /// The second.
    Second,
}
