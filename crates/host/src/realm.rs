//! What differs between a simulated host and a real one, besides where payload lives: how connections
//! are told apart.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::net::IpAddr;

use bentpipe_tcp::{Payload, Ranges, Rings};
use bentpipe_types::{Address, Endpoint, PacketRef, PacketStore};
use rustc_hash::FxHashMap;

/// From the key of a connection to its place.
pub trait Table<K>: Debug + Default + Send {
    /// The place.
    fn get(&self, key: &K) -> Option<u32>;
    /// A connection more.
    fn insert(&mut self, key: K, place: u32);
    /// A connection less.
    fn remove(&mut self, key: &K);
    /// The places of the connections to a destination.
    fn towards(&self, destination: &K) -> Vec<u32>;
}

/// A payload, and how its connections are told apart.
pub trait Realm: Payload + 'static {
    /// What a packet says of whose it is.
    type Key: Copy + Ord + Debug + Send;
    /// Where that is looked up.
    type Table: Table<Self::Key>;

    /// The connection that a packet which has come here is for.
    fn key(packets: &PacketStore, packet: PacketRef) -> Self::Key;

    /// The key of a connection of `local_port`. `ip`: real addresses, ours first.
    fn key_of(local_port: u16, remote: Endpoint, ip: Option<(IpAddr, IpAddr)>) -> Self::Key;

    /// What is common to the keys of all connections to the same host.
    #[must_use]
    fn destination(host: Address, ip: Option<(IpAddr, IpAddr)>) -> Self::Key {
        let end = Endpoint {
            address: host,
            port: 0,
        };
        Self::key_of(0, end, ip)
    }
}

impl Realm for Ranges {
    // One word, for it is looked at per packet.
    type Key = u64;
    type Table = FxHashMap<u64, u32>;

    #[inline]
    fn key(packets: &PacketStore, packet: PacketRef) -> u64 {
        let record = packets.get(packet);
        Self::key_of(record.destination.port, record.source, None)
    }

    #[inline]
    fn key_of(local_port: u16, remote: Endpoint, _ip: Option<(IpAddr, IpAddr)>) -> u64 {
        u64::from(local_port) << 32 | u64::from(remote.address.0) << 16 | u64::from(remote.port)
    }
}

impl Table<u64> for FxHashMap<u64, u32> {
    #[inline]
    fn get(&self, key: &u64) -> Option<u32> {
        FxHashMap::get(self, key).copied()
    }

    fn insert(&mut self, key: u64, place: u32) {
        FxHashMap::insert(self, key, place);
    }

    fn remove(&mut self, key: &u64) {
        FxHashMap::remove(self, key);
    }

    fn towards(&self, destination: &u64) -> Vec<u32> {
        const ADDRESS: u64 = 0xffff << 16;
        let there = self
            .iter()
            .filter(|(key, _)| *key & ADDRESS == *destination);
        there.map(|(_, place)| *place).collect()
    }
}

/// What tells a real connection from another. (In this order, those to the same host are neighbours.)
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RealKey {
    ip: Option<(IpAddr, IpAddr)>,
    remote: Endpoint,
    local_port: u16,
}

impl Realm for Rings {
    type Key = RealKey;
    // A tree: the keys are chosen by whoever sends packets, and it cannot be flooded.
    type Table = BTreeMap<RealKey, u32>;

    fn key(packets: &PacketStore, packet: PacketRef) -> RealKey {
        let record = packets.get(packet);
        let ip = packets.ip(packet).map(|(theirs, ours)| (ours, theirs));
        Self::key_of(record.destination.port, record.source, ip)
    }

    fn key_of(local_port: u16, remote: Endpoint, ip: Option<(IpAddr, IpAddr)>) -> RealKey {
        RealKey {
            // Real addresses say who it is, whichever node is in front of them.
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
