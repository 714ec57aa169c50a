//! Prefetching of connections.

use bentpipe_types::{PacketRef, PacketStore};

use super::Host;
use crate::ConnectionKeys;
use crate::fetch_step::Step;
use crate::table::Timer;

/// With fewer connections, all their state is in the cache.
const MANY: u32 = 256;

impl<P: ConnectionKeys> Host<P> {
    /// Whether it has so many connections that they leave the cache.
    #[inline]
    #[must_use]
    pub fn has_many_connections(&self) -> bool {
        self.sockets.places() > MANY
    }

    /// Returns the place of the connection of a packet, if there is one.
    #[inline]
    #[must_use]
    pub fn place_of(&self, packet: PacketRef, packets: &PacketStore) -> Option<u32> {
        self.sockets.place_of(P::key(packets, packet))
    }

    /// Prefetches the connection in this place, one step.
    #[inline(always)]
    pub fn fetch(&self, place: u32, step: Step) {
        self.sockets.fetch(place, step);
    }

    /// Prefetches the connections with the next deadlines.
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
