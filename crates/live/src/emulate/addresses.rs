//! IP addresses of nodes.

use std::net::IpAddr;

use bentpipe_scenario::{IpName, Scenario};
use bentpipe_types::Address;
use bentpipe_wire::NodeAddresses;

/// Returns the IP address of a node.
pub(super) fn ip_of(scenario: &Scenario, node: usize) -> IpAddr {
    ip(scenario.ip == IpName::V6, Address(node as u16))
}

/// Returns the IP address that stands for an address of the network.
pub(super) fn ip(is_v6: bool, node: Address) -> IpAddr {
    if is_v6 {
        NodeAddresses::ipv6(node).into()
    } else {
        NodeAddresses::ipv4(node).into()
    }
}
