//! Connections' peers as node addresses: the number of a connection's place in the table stands for
//! whoever is at its other end.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bentpipe_types::{Address, IpVersion};
use bentpipe_wire::Addressing;

/// This host.
pub(super) const LOCAL: Address = Address(u16::MAX);
/// Whoever sent the segment that is being answered and belongs to no connection.
pub(super) const STRAY: Address = Address(u16::MAX - 1);
/// Connections that there can be.
pub(super) const MOST: usize = u16::MAX as usize - 1;

/// The IP addresses of this host and of its connections' peers. As large as the table of
/// connections, whoever sends what.
#[derive(Clone, Debug)]
pub(super) struct Peers {
    ipv4: Option<Ipv4Addr>,
    ipv6: Option<Ipv6Addr>,
    stray: Option<IpAddr>,
    remote: Vec<Option<IpAddr>>,
}

impl Peers {
    pub(super) fn new(ipv4: Option<Ipv4Addr>, ipv6: Option<Ipv6Addr>) -> Self {
        Self {
            ipv4,
            ipv6,
            stray: None,
            remote: Vec::new(),
        }
    }

    /// This host's address of the version.
    pub(super) fn local(&self, version: IpVersion) -> Option<IpAddr> {
        match version {
            IpVersion::V4 => self.ipv4.map(IpAddr::V4),
            IpVersion::V6 => self.ipv6.map(IpAddr::V6),
        }
    }

    pub(super) fn set_stray(&mut self, ip: IpAddr) {
        self.stray = Some(ip);
    }

    pub(super) fn set(&mut self, slot: u16, ip: IpAddr) {
        let slot = usize::from(slot);
        if self.remote.len() <= slot {
            self.remote.resize(slot + 1, None);
        }
        self.remote[slot] = Some(ip);
    }
}

impl Addressing for Peers {
    fn ip_address(&self, address: Address, version: IpVersion) -> Option<IpAddr> {
        let ip = match address {
            LOCAL => self.local(version),
            STRAY => self.stray,
            Address(slot) => self.remote.get(usize::from(slot)).copied().flatten(),
        };
        ip.filter(|ip| ip.is_ipv4() == (version == IpVersion::V4))
    }
}
