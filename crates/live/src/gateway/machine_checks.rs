//! Requirements on a machine that runs a gateway.

use std::fs;
use std::net::{IpAddr, UdpSocket};

use super::connection_zones;
use crate::netlink::forwarding::Interface;

/// Returns an error message if this process cannot run a gateway on this machine.
#[must_use]
pub fn obstacle() -> Option<String> {
    crate::tun::obstacle("run as root").or_else(|| {
        let rightless =
            "this process cannot change routes and rules: run as root, or with CAP_NET_ADMIN";
        (!has_net_admin()).then(|| rightless.to_owned())
    })
}

/// Whether this process has CAP_NET_ADMIN, capability number 12 (capabilities(7)).
fn has_net_admin() -> bool {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    bits.is_some_and(|bits| bits & 1 << 12 != 0)
}

/// Whether an address is the machine's own. Unknown, and so false, if sockets may bind to any
/// address.
pub(super) fn is_own_address(address: IpAddr) -> bool {
    let version = if address.is_ipv4() { "ipv4" } else { "ipv6" };
    let any = fs::read_to_string(format!("/proc/sys/net/{version}/ip_nonlocal_bind"));
    any.is_ok_and(|any| any.trim() == "0") && UdpSocket::bind((address, 0)).is_ok()
}

/// Returns a message with advice for each missing or conflicting setting. The settings are not
/// changed here; that is up to the machine's owner.
pub(super) fn setting_notes<'i>(interfaces: impl Iterator<Item = &'i Interface>) -> Vec<String> {
    let mut lines = Vec::new();
    let sysctl = |name: &str| {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        fs::read_to_string(path)
            .ok()
            .map(|text| text.trim().to_owned())
    };
    for (version, name) in [
        ("IPv4", "net.ipv4.ip_forward"),
        ("IPv6", "net.ipv6.conf.all.forwarding"),
    ] {
        if sysctl(name).is_some_and(|value| value == "0") {
            lines.push(format!(
                "the kernel does not forward {version}: `sysctl -w {name}=1` enables it"
            ));
        }
    }
    for interface in interfaces.filter(|interface| !interface.up) {
        let name = &interface.name;
        lines.push(format!(
            "{name} is down: `ip link set {name} up` brings it up"
        ));
    }
    if sysctl("net.netfilter.nf_conntrack_count").is_some_and(|count| count != "0")
        && !connection_zones::is_available()
    {
        lines.push("the kernel tracks connections (nf_conntrack), and `nft` is missing, which makes a zone for diverted packets: install nftables".to_owned());
    }
    lines
}
