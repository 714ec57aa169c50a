//! ICMP errors about segments that a gateway has sent.
//!
//! A gateway's segments carry the addresses of the hosts, so an ICMP error about one is addressed
//! to a host. The gateway intercepts it on the way, because only the gateway knows what is
//! outstanding.

use bentpipe_types::{
    Endpoint, FlowKey, HostAddress, IcmpError, IpVersion, PacketRef, PacketStore, Party, Seq,
};
use bentpipe_wire::{Addressing, NodeAddresses, SegmentError};

/// TCP's protocol number.
const TCP: u8 = 6;

/// An ICMP error about a TCP segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IcmpReport {
    pub(crate) error: IcmpError,
    pub(crate) sequence: Seq,
    /// Keys of packets in the opposite direction to the reported segment, between nodes and between
    /// real hosts.
    keys: [Option<FlowKey>; 2],
}

impl IcmpReport {
    /// Reads the packet, if it is an ICMP error about a TCP segment, either simulated or from a
    /// real network.
    pub(crate) fn read(packets: &PacketStore, packet: PacketRef) -> Option<Self> {
        if let Some(bytes) = packets.bytes(packet) {
            let quoted = SegmentError::read(bytes)?;
            let party = |end: std::net::SocketAddr| Party {
                host: HostAddress::Ip(end.ip()),
                port: end.port(),
            };
            let key = key(party(quoted.destination), party(quoted.source));
            return Some(Self {
                error: quoted.error,
                sequence: quoted.sequence,
                keys: [Some(key), None],
            });
        }
        let record = packets.get(packet);
        let quote = record.icmp_quote()?;
        let node = |end: Endpoint| Party {
            host: HostAddress::Node(end.address),
            port: end.port,
        };
        // A simulated router reports node addresses, also where the nodes stand for real hosts.
        let version = record.ip_version();
        let real = real(quote.destination, version).zip(real(quote.source, version));
        Some(Self {
            error: quote.error,
            sequence: quote.sequence,
            keys: [
                Some(key(node(quote.destination), node(quote.source))),
                real.map(|(destination, source)| key(destination, source)),
            ],
        })
    }

    /// Returns the keys that packets in the opposite direction may have.
    pub(crate) fn keys(&self) -> impl Iterator<Item = FlowKey> + use<> {
        self.keys.into_iter().flatten()
    }

    /// Returns the TCP port, if the segment was sent from `here` to the same port at `there`.
    pub(crate) fn port_between(&self, here: HostAddress, there: HostAddress) -> Option<u16> {
        self.keys().find_map(|key| {
            let (back, forth) = (key.source, key.destination);
            (back.host == there && forth.host == here && back.port == forth.port)
                .then_some(forth.port)
        })
    }
}

fn key(source: Party, destination: Party) -> FlowKey {
    FlowKey {
        source,
        destination,
        protocol: TCP,
    }
}

fn real(end: Endpoint, version: IpVersion) -> Option<Party> {
    let ip = NodeAddresses.ip_address(end.address, version)?;
    Some(Party {
        host: HostAddress::Ip(ip),
        port: end.port,
    })
}
