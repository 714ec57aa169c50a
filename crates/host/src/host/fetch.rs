//! Connections that packets will come to are asked for from memory.

use bentpipe_types::{PacketRef, PacketStore};

use super::Host;
use crate::Realm;

/// In which steps a connection [is asked for](Host::fetch).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Its place, which says where it is.
    Place,
    /// The connection, which says where the rest is.
    Connection,
    /// What hangs from it.
    More,
}

impl<P: Realm> Host<P> {
    /// The place of the connection that a packet will come to, if there is one.
    #[inline]
    #[must_use]
    pub fn place_of(&self, packet: PacketRef, packets: &PacketStore) -> Option<u32> {
        self.sockets.place_of(P::key(packets, packet))
    }

    /// A packet will come to the connection in this place: asks for it from memory, step after step, since each is known
    /// once the one before is there.
    #[inline(always)]
    pub fn fetch(&self, place: u32, step: Step) {
        self.sockets.fetch(place, step);
    }
}
