//! Framings: changes to a packet between queue and wire, at both ends.

use std::fmt::Debug;

use bentpipe_types::{Bytes, PacketRef, PacketStore, Time};

use crate::Tally;

/// Both ends of a change to packets on a direction: a tunnel's entry, header compression, data
/// compression. They share nothing except what the link carries.
///
/// Framings compose. The transmitter calls [`transmit`](Self::transmit) of each in order, passing
/// on the length. The receiving end calls [`receive`](Self::receive) or [`lose`](Self::lose) of
/// each in reverse order, and only packets that pass all of them reach the far end. Every
/// transmitted packet is received or lost exactly once, in the order of transmission.
pub trait Framing: Debug + Send {
    /// Handles a packet that leaves the queue with a length of `length` bytes so far. Returns its
    /// length with this framing.
    ///
    /// The packet may be changed (an outer header), but not released.
    fn transmit(&mut self, packet: PacketRef, length: Bytes, packets: &mut PacketStore) -> Bytes;

    /// Handles a packet behind which nothing is queued, after [`transmit`](Self::transmit). Returns
    /// its length with padding, where a frame may hold several packets.
    fn complete(&mut self, length: Bytes) -> Bytes {
        length
    }

    /// Handles a packet that arrived intact. Returns `None` if it cannot be decoded, in which case
    /// it was released and counted. A stateless framing always decodes.
    fn receive(
        &mut self,
        _now: Time,
        packet: PacketRef,
        _packets: &mut PacketStore,
    ) -> Option<PacketRef> {
        Some(packet)
    }

    /// Handles a packet that was corrupted, or could not be decoded by an outer framing. It belongs
    /// to the caller and may be gone, so it must not be looked up.
    fn lose(&mut self, _now: Time, _packet: PacketRef, _packets: &mut PacketStore) {}

    /// Returns the maximum growth of a packet, which a terminal includes in capacity requests.
    fn adds(&self) -> Bytes {
        Bytes::ZERO
    }

    /// Returns the most bytes that these queued packets take with this framing.
    fn backlog(&self, packets: u64, bytes: Bytes) -> Bytes {
        bytes + Bytes::new(packets * self.adds().get())
    }

    /// Reports counters by name, for results and probes.
    fn tally(&self, _each: &mut Tally<'_>) {}
}
