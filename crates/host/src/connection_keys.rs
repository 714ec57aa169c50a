//! Connection keys: how connections of simulated and of real hosts are identified.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::net::IpAddr;
use std::num::NonZeroU32;

use bentpipe_tcp::{Payload, Ranges, Rings};
use bentpipe_types::{Address, ByAddress, Endpoint, PacketRef, PacketStore};
use rustc_hash::FxHashMap;

/// A map from connection keys to places.
pub trait Table<K>: Debug + Default + Send {
    /// Returns the place of a connection.
    fn get(&self, key: &K) -> Option<u32>;
    /// Adds a connection.
    fn insert(&mut self, key: K, place: u32);
    /// Removes a connection.
    fn remove(&mut self, key: &K);
    /// Returns the places of all connections to a destination.
    fn towards(&self, destination: &K) -> Vec<u32>;
}

/// A payload type with its connection keys.
pub trait ConnectionKeys: Payload + 'static {
    /// Identifies a connection.
    type Key: Copy + Ord + Debug + Send;
    /// Map from keys to places.
    type Table: Table<Self::Key>;

    /// Returns the key of the connection that a received packet is for.
    fn key(packets: &PacketStore, packet: PacketRef) -> Self::Key;

    /// Returns the key of a connection from `local_port`. `ip` contains real addresses, ours first.
    fn key_of(local_port: u16, remote: Endpoint, ip: Option<(IpAddr, IpAddr)>) -> Self::Key;

    /// Returns the part that the keys of all connections to a host have in common.
    #[must_use]
    fn destination(host: Address, ip: Option<(IpAddr, IpAddr)>) -> Self::Key {
        let end = Endpoint {
            address: host,
            port: 0,
        };
        Self::key_of(0, end, ip)
    }
}

impl ConnectionKeys for Ranges {
    // One word, since it is compared per packet, in the byte order of the packet record.
    type Key = u64;
    type Table = SimulatedTable;

    #[inline]
    fn key(packets: &PacketStore, packet: PacketRef) -> u64 {
        let record = packets.get(packet);
        Self::key_of(record.destination.port, record.source, None)
    }

    #[inline]
    fn key_of(local_port: u16, remote: Endpoint, _ip: Option<(IpAddr, IpAddr)>) -> u64 {
        u64::from(local_port) << 32 | u64::from(remote.port) << 16 | u64::from(remote.address.0)
    }
}

/// Connections of a simulated host, most of which have at most one with each other host.
#[derive(Default, Debug)]
pub struct SimulatedTable {
    /// First connection with each host: ports as in the key, and place plus one.
    first: ByAddress<(u32, NonZeroU32)>,
    /// Further connections.
    further: FxHashMap<u64, u32>,
}

impl SimulatedTable {
    /// Returns the other host, and both ports.
    #[inline]
    fn parts(key: u64) -> (Address, u32) {
        (Address(key as u16), (key >> 16) as u32)
    }
}

impl Table<u64> for SimulatedTable {
    #[inline]
    fn get(&self, key: &u64) -> Option<u32> {
        let (address, ports) = Self::parts(*key);
        match self.first.get(address) {
            Some((of, place)) if of == ports => Some(place.get() - 1),
            _ => self.further.get(key).copied(),
        }
    }

    fn insert(&mut self, key: u64, place: u32) {
        let (address, ports) = Self::parts(key);
        let is_further = (self.first.get(address)).is_some_and(|(of, _)| of != ports)
            || self.further.contains_key(&key);
        match NonZeroU32::new(place + 1).filter(|_| !is_further) {
            Some(number) => self.first.insert(address, (ports, number)),
            None => drop(self.further.insert(key, place)),
        }
    }

    fn remove(&mut self, key: &u64) {
        let (address, ports) = Self::parts(*key);
        if (self.first.get(address)).is_some_and(|(of, _)| of == ports) {
            self.first.remove(address);
        } else {
            self.further.remove(key);
        }
    }

    fn towards(&self, destination: &u64) -> Vec<u32> {
        let (there, _) = Self::parts(*destination);
        let further = (self.further.iter()).filter(|(key, _)| Self::parts(**key).0 == there);
        let first = self.first.get(there).map(|(_, place)| place.get() - 1);
        first
            .into_iter()
            .chain(further.map(|(_, place)| *place))
            .collect()
    }
}

/// Identifies a real connection. The field order makes connections to the same host adjacent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RealKey {
    ip: Option<(IpAddr, IpAddr)>,
    remote: Endpoint,
    local_port: u16,
}

impl ConnectionKeys for Rings {
    type Key = RealKey;
    // A tree, since remote hosts choose the keys: it has no hash collisions to exploit.
    type Table = BTreeMap<RealKey, u32>;

    fn key(packets: &PacketStore, packet: PacketRef) -> RealKey {
        let record = packets.get(packet);
        let ip = packets.ip(packet).map(|(theirs, ours)| (ours, theirs));
        Self::key_of(record.destination.port, record.source, ip)
    }

    fn key_of(local_port: u16, remote: Endpoint, ip: Option<(IpAddr, IpAddr)>) -> RealKey {
        RealKey {
            // Real addresses identify the host, whichever node is in front of it.
            remote: Endpoint {
                address: ip.map_or(remote.address, |_| Address::default()),
                ..remote
            },
            local_port,
            ip,
        }
    }
}

impl Table<RealKey> for BTreeMap<RealKey, u32> {
    fn get(&self, key: &RealKey) -> Option<u32> {
        BTreeMap::get(self, key).copied()
    }

    fn insert(&mut self, key: RealKey, place: u32) {
        BTreeMap::insert(self, key, place);
    }

    fn remove(&mut self, key: &RealKey) {
        BTreeMap::remove(self, key);
    }

    fn towards(&self, destination: &RealKey) -> Vec<u32> {
        let last = RealKey {
            remote: Endpoint {
                port: u16::MAX,
                ..destination.remote
            },
            local_port: u16::MAX,
            ..*destination
        };
        let there = self.range(destination..=&last);
        there.map(|(_, place)| *place).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_with_the_same_host_have_distinct_keys() {
        let key = |address, ours, theirs| {
            let remote = Endpoint {
                address: Address(address),
                port: theirs,
            };
            Ranges::key_of(ours, remote, None)
        };
        let keys = [key(7, 80, 1), key(7, 80, 2), key(7, 81, 1), key(9, 80, 1)];
        let mut table = SimulatedTable::default();
        let found = |table: &SimulatedTable| keys.map(|key| table.get(&key));
        for (key, place) in keys.iter().zip(0..) {
            table.insert(*key, place);
        }
        assert_eq!(found(&table), [Some(0), Some(1), Some(2), Some(3)]);
        // The first connection with that host is gone, and another takes its entry; the others do
        // not move.
        table.remove(&keys[0]);
        table.insert(keys[1], 11);
        assert_eq!(found(&table), [None, Some(11), Some(2), Some(3)]);
        table.insert(keys[0], 10);
        table.remove(&keys[1]);
        assert_eq!(found(&table), [Some(10), None, Some(2), Some(3)]);
        let there = Ranges::destination(Address(7), None);
        assert_eq!(table.towards(&there), [10, 2]);
    }
}
