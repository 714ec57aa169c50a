//! Which flow has which of the queues.

use std::net::IpAddr;

use bentpipe_types::{Endpoint, Packet};
use rustc_hash::FxHashMap;

/// Who sends to whom, by nodes and ports.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub(in super::super) struct Ends(u64);

impl Ends {
    #[inline]
    pub(in super::super) fn of(packet: &Packet) -> Self {
        let end = |end: Endpoint| u64::from(end.address.0) << 16 | u64::from(end.port);
        Self(end(packet.destination) << 32 | end(packet.source))
    }

    /// A number that looks as if it were drawn.
    pub(in super::super) fn mixed(self) -> u64 {
        self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
    }
}

type Addresses = (IpAddr, IpAddr);

/// Which flow has which queue.
///
/// A simulated packet's ends say all, in one word. Real packets are told apart by whose addresses they have
/// beside the record, too.
#[derive(Debug, Default)]
pub(in super::super) struct Flows {
    simulated: FxHashMap<Ends, u32>,
    real: FxHashMap<(Ends, Addresses), u32>,
    /// By queue: which of the real flows has it.
    owners: FxHashMap<u32, (Ends, Addresses)>,
}

impl Flows {
    /// With room for so many flows of a simulation.
    pub(in super::super) fn with_capacity(flows: usize) -> Self {
        let mut all = Self::default();
        all.simulated.reserve(flows);
        all
    }

    #[inline]
    pub(in super::super) fn get(&self, ends: Ends, ip: Option<Addresses>) -> Option<u32> {
        match ip {
            None => self.simulated.get(&ends),
            Some(ip) => self.real.get(&(ends, ip)),
        }
        .copied()
    }

    /// This flow has this queue from now on.
    pub(in super::super) fn insert(&mut self, ends: Ends, ip: Option<Addresses>, queue: u32) {
        match ip {
            None => self.simulated.insert(ends, queue),
            Some(ip) => {
                self.owners.insert(queue, (ends, ip));
                self.real.insert((ends, ip), queue)
            }
        };
    }

    /// The flow between these ends has this queue no longer.
    pub(in super::super) fn remove(&mut self, ends: Ends, queue: u32) {
        if !self.owners.is_empty()
            && let Some(owner) = self.owners.remove(&queue)
        {
            self.real.remove(&owner);
        } else {
            self.simulated.remove(&ends);
        }
    }

    #[cfg(test)]
    pub(in super::super) fn len(&self) -> usize {
        self.simulated.len() + self.real.len()
    }
}
