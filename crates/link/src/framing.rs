//! What both ends of a direction do to a packet between queue and wire.

use std::fmt::Debug;

use bentpipe_types::{Bytes, PacketRef, PacketStore, Time};

use crate::Tally;

/// A tunnel's entry, a header compressor and its decompressor, a modem's data compression: both ends
/// of one direction, which share nothing but what the link carries.
///
/// Framings compose: the transmitter calls [`transmit`](Self::transmit) of each in order, handing on
/// the length; the receiving end calls [`receive`](Self::receive), or [`lose`](Self::lose), of each in
/// the opposite order, and only what comes out of all of them goes to the far end. Every packet
/// transmitted is received or lost exactly once, in the order of transmission.
pub trait Framing: Debug + Send {
    /// A packet leaves the queue for the transmitter, and takes `length` bytes so far. Returns how
    /// many it takes with this framing.
    ///
    /// The packet itself may change (an outer header); it never ends here.
    fn transmit(
        &mut self,
        now: Time,
        packet: PacketRef,
        length: Bytes,
        packets: &mut PacketStore,
    ) -> Bytes;

    /// The packet has come to the end of the link, intact. `None`: it cannot be made out (a
    /// decompressor that has lost step), and has been released and counted. Without a memory of what
    /// was sent there is nothing to make out.
    fn receive(
        &mut self,
        _now: Time,
        packet: PacketRef,
        _packets: &mut PacketStore,
    ) -> Option<PacketRef> {
        Some(packet)
    }

    /// The packet was corrupted on the way, or a framing further out could not make it out. It stays
    /// the caller's, and may be gone: it is not to be looked up.
    fn lose(&mut self, _now: Time, _packet: PacketRef, _packets: &mut PacketStore) {}

    /// The most that a packet grows by: what a terminal asks for besides what waits, where capacity is on demand.
    fn adds(&self) -> Bytes {
        Bytes::ZERO
    }

    /// Tells what it has done, by name: for results and probes.
    fn tally(&self, _each: &mut Tally<'_>) {}
}
