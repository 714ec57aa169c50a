//! Nodes' addresses to IP addresses, and back.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bentpipe_types::{Address, IpVersion};

/// Knows the IP addresses of nodes.
pub trait Addressing {
    /// The node's address of this version, if it has one.
    fn ip_address(&self, address: Address, version: IpVersion) -> Option<IpAddr>;
}

/// The addresses of simulated nodes: counted from 10.0.0.1 and fd00::1, so that node 0 has a host's
/// address, too. Channels' are counted from 232.0.1.0 and ff3e::8000:1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NodeAddresses;

/// 10.0.0.1: private (RFC 1918 section 3).
const FIRST_V4: u32 = 0x0a00_0001;
/// fd00::1: unique local (RFC 4193 section 3.1).
const FIRST_V6: u128 = (0xfd00 << 112) + 1;

/// 232.0.1.0: source-specific multicast, beyond what is reserved (RFC 4607 section 1).
const FIRST_CHANNEL_V4: u32 = 0xe800_0100;
/// ff3e::8000:1: the same of IPv6, of global scope, to be given out by hosts (RFC 4607 section 1, RFC 3307
/// section 4.3).
const FIRST_CHANNEL_V6: u128 = (0xff3e << 112) + 0x8000_0001;

impl NodeAddresses {
    /// The node's IPv4 address.
    #[must_use]
    pub const fn ipv4(address: Address) -> Ipv4Addr {
        Ipv4Addr::from_bits(match address.channel() {
            Some(number) => FIRST_CHANNEL_V4 + number as u32,
            None => FIRST_V4 + address.0 as u32,
        })
    }

    /// The node's IPv6 address.
    #[must_use]
    pub const fn ipv6(address: Address) -> Ipv6Addr {
        Ipv6Addr::from_bits(match address.channel() {
            Some(number) => FIRST_CHANNEL_V6 + number as u128,
            None => FIRST_V6 + address.0 as u128,
        })
    }

    /// The node that has this IP address.
    #[must_use]
    pub fn node(ip: IpAddr) -> Option<Address> {
        let from = |first_v4: u32, first_v6: u128| match ip {
            IpAddr::V4(ip) => ip.to_bits().checked_sub(first_v4).map(u128::from),
            IpAddr::V6(ip) => ip.to_bits().checked_sub(first_v6),
        };
        if let Some(number) = from(FIRST_CHANNEL_V4, FIRST_CHANNEL_V6) {
            return usize::try_from(number).ok().and_then(Address::of_channel);
        }
        let number = u16::try_from(from(FIRST_V4, FIRST_V6)?).ok()?;
        Some(Address(number)).filter(|address| address.channel().is_none())
    }
}

impl Addressing for NodeAddresses {
    fn ip_address(&self, address: Address, version: IpVersion) -> Option<IpAddr> {
        Some(match version {
            IpVersion::V4 => IpAddr::V4(Self::ipv4(address)),
            IpVersion::V6 => IpAddr::V6(Self::ipv6(address)),
        })
    }
}

/// Gives each IP address that comes in from outside a node address, in order of arrival, up to a
/// number. An IP address keeps its node address for as long as the table lives.
// A tree, not a hash map: the keys are chosen by whoever sends packets, and it cannot be flooded.
#[derive(Clone, Debug)]
pub struct AddressTable {
    capacity: usize,
    nodes: BTreeMap<IpAddr, Address>,
    ip_addresses: Vec<IpAddr>,
}

/// An address table holds as many IP addresses as it may.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddressTableFull {
    /// The table's capacity.
    pub capacity: usize,
}

impl fmt::Display for AddressTableFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the table of {} IP addresses is full", self.capacity)
    }
}

impl std::error::Error for AddressTableFull {}

impl AddressTable {
    /// A table of at most `capacity` IP addresses, and never more than the 65,536 node addresses.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity: capacity.min(usize::from(u16::MAX) + 1),
            nodes: BTreeMap::new(),
            ip_addresses: Vec::new(),
        }
    }

    /// The IP address's node address, given now if it has none.
    ///
    /// # Errors
    /// When the address is new and the table is full.
    pub fn intern(&mut self, ip: IpAddr) -> Result<Address, AddressTableFull> {
        if let Some(&address) = self.nodes.get(&ip) {
            return Ok(address);
        }
        let full = AddressTableFull {
            capacity: self.capacity,
        };
        if self.ip_addresses.len() >= self.capacity {
            return Err(full);
        }
        let address = Address(u16::try_from(self.ip_addresses.len()).map_err(|_| full)?);
        self.nodes.insert(ip, address);
        self.ip_addresses.push(ip);
        Ok(address)
    }

    /// The IP address's node address, if it has one.
    #[must_use]
    pub fn node(&self, ip: IpAddr) -> Option<Address> {
        self.nodes.get(&ip).copied()
    }

    /// The IP address of this node.
    #[must_use]
    pub fn ip(&self, address: Address) -> Option<IpAddr> {
        self.ip_addresses.get(usize::from(address.0)).copied()
    }

    /// How many IP addresses it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ip_addresses.len()
    }

    /// Does it hold none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ip_addresses.is_empty()
    }
}

impl Addressing for AddressTable {
    fn ip_address(&self, address: Address, version: IpVersion) -> Option<IpAddr> {
        self.ip(address).filter(|ip| match version {
            IpVersion::V4 => ip.is_ipv4(),
            IpVersion::V6 => ip.is_ipv6(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_has_its_own_readable_addresses() {
        for node in 0..=u16::MAX {
            let address = Address(node);
            assert_eq!(
                NodeAddresses::node(NodeAddresses::ipv4(address).into()),
                Some(address)
            );
            assert_eq!(
                NodeAddresses::node(NodeAddresses::ipv6(address).into()),
                Some(address)
            );
        }
        assert_eq!(NodeAddresses::ipv4(Address(257)).to_string(), "10.0.1.2");
        assert_eq!(NodeAddresses::ipv6(Address(9)).to_string(), "fd00::a");
        let channel = |number| Address::of_channel(number).unwrap();
        assert_eq!(NodeAddresses::ipv4(channel(0)).to_string(), "232.0.1.0");
        assert_eq!(NodeAddresses::ipv6(channel(9)).to_string(), "ff3e::8000:a");
        let ips = [0, 1023].map(|number| NodeAddresses::ipv4(channel(number)));
        assert!(ips.iter().all(Ipv4Addr::is_multicast));
        assert!(NodeAddresses::ipv6(channel(1023)).is_multicast());
        assert_eq!(Address::of_channel(1024), None);
        assert_eq!(
            NodeAddresses::node(Ipv4Addr::new(10, 0, 255, 255).into()),
            None
        );
        assert_eq!(NodeAddresses::node(Ipv4Addr::new(10, 1, 0, 1).into()), None);
        assert_eq!(NodeAddresses::node(Ipv4Addr::new(10, 0, 0, 0).into()), None);
    }

    #[test]
    fn a_table_is_bounded_and_stable() {
        let mut table = AddressTable::new(2);
        let first = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
        let second = IpAddr::V6(Ipv6Addr::LOCALHOST);
        let third = IpAddr::V4(Ipv4Addr::LOCALHOST);
        assert!(table.is_empty());
        assert_eq!(table.intern(first), Ok(Address(0)));
        assert_eq!(table.intern(second), Ok(Address(1)));
        assert_eq!(table.intern(third), Err(AddressTableFull { capacity: 2 }));
        assert_eq!(table.intern(first), Ok(Address(0)));
        assert_eq!(table.node(third), None);
        assert_eq!(table.len(), 2);
        assert_eq!(table.ip_address(Address(0), IpVersion::V4), Some(first));
        assert_eq!(table.ip_address(Address(0), IpVersion::V6), None);
        assert_eq!(table.ip_address(Address(2), IpVersion::V4), None);
    }

    #[test]
    fn a_table_never_runs_out_of_node_addresses() {
        let mut table = AddressTable::new(usize::MAX);
        for i in 0..=u32::from(u16::MAX) {
            assert!(table.intern(Ipv4Addr::from_bits(i).into()).is_ok());
        }
        assert!(table.intern(Ipv4Addr::BROADCAST.into()).is_err());
    }
}
