//! Classes of traffic: which connections a gateway is to handle.

use std::net::IpAddr;

use bentpipe_types::{Address, FlowKey, HostAddress};

/// Connections, by who takes part. Where both are given, both must fit.
#[derive(Clone, Debug, Default)]
pub struct Class {
    /// Ports that connections are opened to, from one to another, both included. `None`: all.
    pub ports: Option<Vec<(u16, u16)>>,
    /// Hosts at either end. `None`: all.
    pub hosts: Option<Vec<Hosts>>,
}

/// One host, or those of a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hosts {
    /// A node of the network.
    Node(Address),
    /// Real addresses that begin with as many bits of this one.
    Prefix(IpAddr, u8),
}

impl From<Address> for Hosts {
    fn from(address: Address) -> Self {
        Self::Node(address)
    }
}

impl Hosts {
    /// Is this one of them?
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

/// Have two numbers of `width` bits the first `bits` in common?
fn begins_alike(a: u128, b: u128, width: u8, bits: u8) -> bool {
    let rest = u32::from(width.saturating_sub(bits));
    a.checked_shr(rest).unwrap_or(0) == b.checked_shr(rest).unwrap_or(0)
}

impl Class {
    /// Does a connection belong to it whose first packet has this key?
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
    fn ports_and_hosts_must_both_fit() {
        let class = Class {
            ports: Some(vec![(80, 80), (8000, 8999)]),
            hosts: Some(vec![Address(3).into()]),
        };
        let node = |n| HostAddress::Node(Address(n));
        assert!(class.contains(&flow(node(3), node(4), 80)));
        assert!(class.contains(&flow(node(4), node(3), 8999)));
        assert!(!class.contains(&flow(node(4), node(5), 80)));
        assert!(!class.contains(&flow(node(3), node(4), 81)));
        assert!(Class::default().contains(&flow(node(1), node(2), 1)));
    }

    #[test]
    fn a_prefix_is_as_long_as_it_says() {
        let hosts = Hosts::Prefix(ip("10.1.0.0"), 16);
        assert!(hosts.contains(HostAddress::Ip(ip("10.1.255.3"))));
        assert!(!hosts.contains(HostAddress::Ip(ip("10.2.0.1"))));
        assert!(!hosts.contains(HostAddress::Ip(ip("::1"))));
        assert!(Hosts::Prefix(ip("::"), 0).contains(HostAddress::Ip(ip("2001:db8::1"))));
        assert!(Hosts::Prefix(ip("2001:db8::1"), 128).contains(HostAddress::Ip(ip("2001:db8::1"))));
        assert!(!Hosts::Prefix(ip("0.0.0.0"), 0).contains(HostAddress::Node(Address(0))));
    }
}
