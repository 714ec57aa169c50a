//! Connections that packets will come to are asked for from memory.

use bentpipe_types::{PacketRef, PacketStore};

use super::Host;
use crate::Realm;
use crate::table::Timer;

/// With fewer connections, all that they need is in the cache.
const MANY: u32 = 256;

/// In which steps a connection [is asked for](Host::fetch): each is known once the one before is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Its place, which says where it is.
    Place,
    /// Of the connection, its timers alone.
    Timers,
    /// What nearly every segment needs of the connection itself.
    Connection,
    /// The rest of it, or what hangs from it, as its half needs that sends or is sent something.
    More,
    /// What hangs from the half that sends.
    Senders,
    /// What hangs from that.
    Last,
}

impl<P: Realm> Host<P> {
    /// Has it so many connections that they have left the cache when something comes to them?
    #[inline]
    #[must_use]
    pub fn has_many_connections(&self) -> bool {
        self.sockets.places() > MANY
    }

    /// The place of the connection that a packet will come to, if there is one.
    #[inline]
    #[must_use]
    pub fn place_of(&self, packet: PacketRef, packets: &PacketStore) -> Option<u32> {
        self.sockets.place_of(P::key(packets, packet))
    }

    /// A packet will come to the connection in this place: asks for it from memory, step after step.
    #[inline(always)]
    pub fn fetch(&self, place: u32, step: Step) {
        self.sockets.fetch(place, step);
    }

    /// A deadline is met, and others are before long: asks for the connections whose deadlines come next.
    #[inline]
    pub(super) fn fetch_next_due(&self) {
        if !self.has_many_connections() {
            return;
        }
        let after = |others| {
            let number = self.sockets.deadlines.upcoming(others)?;
            match Timer::of(number) {
                Timer::Socket(place) => Some((number, place)),
                Timer::Application(_) => None,
            }
        };
        if let Some((number, place)) = after(3) {
            self.sockets.deadlines.fetch_armed(number);
            self.sockets.fetch(place, Step::Place);
        }
        if let Some((_, place)) = after(1) {
            self.sockets.fetch(place, Step::Timers);
        }
    }
}
