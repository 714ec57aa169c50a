//! Conversion between node addresses and IP addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bentpipe_types::{Address, IpVersion};

/// Provides the IP addresses of nodes.
pub trait Addressing {
    /// Returns the node's address of this IP version, if it has one.
    fn ip_address(&self, address: Address, version: IpVersion) -> Option<IpAddr>;
}

/// Addresses of simulated nodes, counted from 10.0.0.1 and fd00::1, so that node 0 also has a valid
/// host address. Channels are counted from 232.0.1.0 and ff3e::8000:1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NodeAddresses;

/// 10.0.0.1: private (RFC 1918 section 3).
const FIRST_V4: u32 = 0x0a00_0001;
/// fd00::1: unique local (RFC 4193 section 3.1).
const FIRST_V6: u128 = (0xfd00 << 112) + 1;

/// 232.0.1.0: source-specific multicast above the reserved range (RFC 4607 section 1).
const FIRST_CHANNEL_V4: u32 = 0xe800_0100;
/// ff3e::8000:1: the same in IPv6, global scope, assigned by hosts (RFC 4607 section 1, RFC 3307
/// section 4.3).
const FIRST_CHANNEL_V6: u128 = (0xff3e << 112) + 0x8000_0001;

impl NodeAddresses {
    /// Returns the node's IPv4 address.
    #[must_use]
    pub const fn ipv4(address: Address) -> Ipv4Addr {
        Ipv4Addr::from_bits(match address.channel() {
            Some(number) => FIRST_CHANNEL_V4 + number as u32,
            None => FIRST_V4 + address.0 as u32,
        })
    }

    /// Returns the node's IPv6 address.
    #[must_use]
    pub const fn ipv6(address: Address) -> Ipv6Addr {
        Ipv6Addr::from_bits(match address.channel() {
            Some(number) => FIRST_CHANNEL_V6 + number as u128,
            None => FIRST_V6 + address.0 as u128,
        })
    }

    /// Returns the node with this IP address.
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
}
