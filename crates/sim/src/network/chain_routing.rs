//! Routing cache of link chains.

use std::collections::VecDeque;

use bentpipe_types::{Address, ByAddress, PacketRef, Port, Time};

use crate::router::Refusal;

/// A packet that leaves a chain before its end.
#[derive(Debug)]
pub(super) struct Exit {
    pub(super) at: Time,
    pub(super) packet: PacketRef,
    pub(super) fate: Fate,
}

/// Fate of such a packet at the router.
#[derive(Debug)]
pub(super) enum Fate {
    /// It is sent out of this port, whose direction is not in the chain.
    Forwarded(Port),
    /// It is refused by the router.
    Refused(Refusal),
    /// It is dropped by this direction, whose queue is full.
    Dropped(u16),
}

/// Routing cache of a direction in a chain: the next direction, or where packets leave.
#[derive(Debug, Default)]
pub(super) struct ChainRouting {
    /// Destination of the previous packet, and the direction that it took.
    pub(super) last: Option<(Address, u16)>,
    /// Directions of all earlier destinations, and whether they lead further in the chain.
    pub(super) known: ByAddress<(u16, bool)>,
    /// Packets that leave the chain here, in order. The first one is in the schedule.
    pub(super) exits: VecDeque<Exit>,
}

impl ChainRouting {
    /// Returns the cached direction towards a destination.
    #[inline(always)]
    pub(super) fn towards(&mut self, destination: Address) -> Option<u16> {
        if let Some((last, next)) = self.last
            && last == destination
        {
            return Some(next);
        }
        let (next, _) = self.known.get(destination)?;
        self.last = Some((destination, next));
        Some(next)
    }

    /// Returns the number of packets that leave the chain here up to `now`.
    pub(super) fn exits_due(&self, now: Time) -> usize {
        self.exits.iter().take_while(|exit| exit.at <= now).count()
    }
}
