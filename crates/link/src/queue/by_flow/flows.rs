//! Assignment of flows to queues.

use std::net::IpAddr;

use bentpipe_types::{Address, Endpoint, Packet};
use rustc_hash::FxHashMap;

/// Where renumbered addresses of gateways begin.
const GATEWAYS: u16 = 1 << 15;

/// Sender and receiver of a packet, by nodes and ports.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub(in super::super) struct Ends(u64);

impl Ends {
    #[inline]
    pub(in super::super) fn of(packet: &Packet) -> Self {
        let end = |end: Endpoint| u64::from(end.address.0) << 16 | u64::from(end.port);
        Self(end(packet.destination) << 32 | end(packet.source))
    }

    /// Returns ends that are the same however many nodes precede `first_gateway`: the addresses of
    /// gateways are counted from there, above those of hosts.
    pub(in super::super) fn numbered_from(self, first_gateway: u16) -> Self {
        let renumbered = |address: u16| match address.checked_sub(first_gateway) {
            Some(number) if Address(address).channel().is_none() => GATEWAYS | number,
            _ => address,
        };
        let [destination, source] = [48, 16].map(|shift| {
            let address = renumbered((self.0 >> shift) as u16);
            u64::from(address) << shift
        });
        Self(self.0 & 0x0000_ffff_0000_ffff | destination | source)
    }

    /// Returns a hash.
    pub(in super::super) fn mixed(self) -> u64 {
        self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
    }
}

type Addresses = (IpAddr, IpAddr);

/// Assignment of flows to queues.
///
/// A simulated packet's ends fit into one word. Real packets are also distinguished by the
/// addresses beside the record.
#[derive(Debug, Default)]
pub(in super::super) struct Flows {
    simulated: FxHashMap<Ends, u32>,
    real: FxHashMap<(Ends, Addresses), u32>,
    /// Real flows by queue.
    owners: FxHashMap<u32, (Ends, Addresses)>,
}

impl Flows {
    /// Creates a table for this many simulated flows.
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

    /// Assigns a queue to a flow.
    pub(in super::super) fn insert(&mut self, ends: Ends, ip: Option<Addresses>, queue: u32) {
        match ip {
            None => self.simulated.insert(ends, queue),
            Some(ip) => {
                self.owners.insert(queue, (ends, ip));
                self.real.insert((ends, ip), queue)
            }
        };
    }

    /// Removes the assignment of the flow between these ends.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(source: u16, destination: u16) -> Ends {
        let end = |address: u16, port: u64| u64::from(address) << 16 | port;
        Ends(end(destination, 80) << 32 | end(source, 40_000))
    }

    #[test]
    fn another_host_renumbers_no_gateway() {
        let channel = u16::MAX;
        for hosts in [2, 5] {
            let gateways = ends(hosts, hosts + 1).numbered_from(hosts);
            assert_eq!(gateways, ends(GATEWAYS, GATEWAYS | 1));
            assert_eq!(ends(0, 1).numbered_from(hosts), ends(0, 1));
            assert_eq!(ends(1, channel).numbered_from(hosts), ends(1, channel));
        }
    }
}
