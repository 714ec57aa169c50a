//! Taps: observation of the packets at one end of a link, for captures.

use bentpipe_types::{PacketRef, PacketStore, Time};

/// Observes every packet that one end of a link sends or receives.
///
/// Calls are in the order in which the engine learns of packets, not in order of `at`: a sent
/// packet is reported when it is queued, with `at` the later start of its transmission. Received
/// packets are in order of `at`, and so are sent ones.
pub trait Tap {
    /// Called for a packet sent by this end, whose transmission starts at `at`.
    fn sent(&mut self, at: Time, packet: PacketRef, packets: &PacketStore);
    /// Called for a packet received by this end at `at`. No later call has an earlier `at`.
    fn received(&mut self, at: Time, packet: PacketRef, packets: &PacketStore);
}
/// One end of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The first node of `between`: it sends `forward` and receives `return`.
    First,
    /// The second node.
    Second,
}
