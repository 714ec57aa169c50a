//! Classes of connections, which select the ones that a gateway handles.

use std::net::IpAddr;

use bentpipe_types::{Address, FlowKey, HostAddress};
use rustc_hash::FxHashSet;

/// A class of connections, by server port and by host. If both are given, both must match.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ConnectionClass {
    /// Ranges of server ports, both ends included; `None` for all ports.
    pub ports: Option<Vec<(u16, u16)>>,
    /// Hosts at either end; `None` for all hosts.
    pub hosts: Option<Vec<HostMatch>>,
    /// Real addresses at either end; `None` for all addresses.
    pub prefixes: Option<PrefixSet>,
}

/// Prefixes of real addresses. A search takes a step for each length that occurs, however many
/// prefixes there are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PrefixSet {
    /// Lengths that occur, by IP version: 4 and 6.
    lengths: [Vec<u8>; 2],
    /// Version, length, and leading bits.
    prefixes: FxHashSet<(bool, u8, u128)>,
}

impl FromIterator<(IpAddr, u8)> for PrefixSet {
    fn from_iter<I: IntoIterator<Item = (IpAddr, u8)>>(prefixes: I) -> Self {
        let mut set = Self::default();
        for (address, length) in prefixes {
            let lengths = &mut set.lengths[usize::from(address.is_ipv6())];
            if !lengths.contains(&length) {
                lengths.push(length);
            }
            set.prefixes.insert(leading(address, length));
        }
        set
    }
}

impl PrefixSet {
    /// Returns true if the address has one of the prefixes.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let mut lengths = self.lengths[usize::from(address.is_ipv6())].iter();
        lengths.any(|length| self.prefixes.contains(&leading(address, *length)))
    }
}

/// Returns the version, the length and the leading bits of a prefix of this length.
fn leading(address: IpAddr, length: u8) -> (bool, u8, u128) {
    let (bits, width) = match address {
        IpAddr::V4(ip) => (ip.to_bits().into(), 32),
        IpAddr::V6(ip) => (ip.to_bits(), 128),
    };
    let rest = u32::from(u8::saturating_sub(width, length));
    let leading = bits.checked_shr(rest).unwrap_or(0);
    (address.is_ipv6(), length, leading)
}

/// One host, or all hosts of a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostMatch {
    /// A node of the simulated network.
    Node(Address),
    /// All real addresses that share this many leading bits with the address.
    Prefix(IpAddr, u8),
}

impl From<Address> for HostMatch {
    fn from(address: Address) -> Self {
        Self::Node(address)
    }
}

impl HostMatch {
    /// Returns true if the host matches.
    #[must_use]
    pub fn contains(self, host: HostAddress) -> bool {
        match (self, host) {
            (Self::Node(node), HostAddress::Node(address)) => node == address,
            (Self::Prefix(IpAddr::V4(prefix), bits), HostAddress::Ip(IpAddr::V4(ip))) => {
                begins_alike(prefix.to_bits().into(), ip.to_bits().into(), 32, bits)
            }
            (Self::Prefix(IpAddr::V6(prefix), bits), HostAddress::Ip(IpAddr::V6(ip))) => {
                begins_alike(prefix.to_bits(), ip.to_bits(), 128, bits)
            }
            _ => false,
        }
    }
}

/// Returns true if the first `bits` bits of two numbers of `width` bits are equal.
fn begins_alike(a: u128, b: u128, width: u8, bits: u8) -> bool {
    let rest = u32::from(width.saturating_sub(bits));
    a.checked_shr(rest).unwrap_or(0) == b.checked_shr(rest).unwrap_or(0)
}

impl ConnectionClass {
    /// Returns true if a connection whose first packet has this key belongs to the class.
    #[must_use]
    pub fn contains(&self, flow: &FlowKey) -> bool {
        let port = flow.destination.port;
        let ports = self.ports.as_ref().is_none_or(|ports| {
            ports
                .iter()
                .any(|&(first, last)| (first..=last).contains(&port))
        });
        let ends = [flow.source.host, flow.destination.host];
        ports
            && self.hosts.as_ref().is_none_or(|hosts| {
                ends.iter()
                    .any(|end| hosts.iter().any(|hosts| hosts.contains(*end)))
            })
            && self.prefixes.as_ref().is_none_or(|prefixes| {
                ends.iter().any(|end| match end {
                    HostAddress::Ip(ip) => prefixes.contains(*ip),
                    HostAddress::Node(_) => false,
                })
            })
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_types::Party;

    use super::*;

    fn flow(source: HostAddress, destination: HostAddress, port: u16) -> FlowKey {
        FlowKey {
            source: Party {
                host: source,
                port: 40_000,
            },
            destination: Party {
                host: destination,
                port,
            },
            protocol: 6,
        }
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn ports_and_hosts_must_both_match() {
        let class = ConnectionClass {
            ports: Some(vec![(80, 80), (8000, 8999)]),
            hosts: Some(vec![Address(3).into()]),
            prefixes: None,
        };
        let node = |n| HostAddress::Node(Address(n));
        assert!(class.contains(&flow(node(3), node(4), 80)));
        assert!(class.contains(&flow(node(4), node(3), 8999)));
        assert!(!class.contains(&flow(node(4), node(5), 80)));
        assert!(!class.contains(&flow(node(3), node(4), 81)));
        assert!(ConnectionClass::default().contains(&flow(node(1), node(2), 1)));
    }

    #[test]
    fn sets_of_prefixes_have_every_length() {
        let prefixes = [("10.1.0.0", 16), ("192.0.2.7", 32), ("2001:db8::", 32)];
        let set: PrefixSet = prefixes
            .map(|(text, length)| (ip(text), length))
            .into_iter()
            .collect();
        for inside in ["10.1.0.0", "10.1.255.255", "192.0.2.7", "2001:db8:ffff::1"] {
            assert!(set.contains(ip(inside)), "{inside}");
        }
        for outside in ["10.2.0.0", "192.0.2.6", "2001:db9::1", "::"] {
            assert!(!set.contains(ip(outside)), "{outside}");
        }
        let all: PrefixSet = [(ip("0.0.0.0"), 0)].into_iter().collect();
        assert!(all.contains(ip("203.0.113.9")));
        assert!(!all.contains(ip("::1")));
        assert!(!PrefixSet::default().contains(ip("203.0.113.9")));
        let class = ConnectionClass {
            prefixes: Some(set),
            ..ConnectionClass::default()
        };
        let end = |text: &str| HostAddress::Ip(ip(text));
        assert!(class.contains(&flow(end("198.51.100.1"), end("10.1.2.3"), 80)));
        assert!(class.contains(&flow(end("10.1.2.3"), end("198.51.100.1"), 80)));
        assert!(!class.contains(&flow(end("10.3.2.3"), end("198.51.100.1"), 80)));
    }

    #[test]
    fn prefixes_match_by_their_length() {
        let hosts = HostMatch::Prefix(ip("10.1.0.0"), 16);
        assert!(hosts.contains(HostAddress::Ip(ip("10.1.255.3"))));
        assert!(!hosts.contains(HostAddress::Ip(ip("10.2.0.1"))));
        assert!(!hosts.contains(HostAddress::Ip(ip("::1"))));
        assert!(HostMatch::Prefix(ip("::"), 0).contains(HostAddress::Ip(ip("2001:db8::1"))));
        assert!(
            HostMatch::Prefix(ip("2001:db8::1"), 128).contains(HostAddress::Ip(ip("2001:db8::1")))
        );
        assert!(!HostMatch::Prefix(ip("0.0.0.0"), 0).contains(HostAddress::Node(Address(0))));
    }
}
