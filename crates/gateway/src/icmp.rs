//! ICMP errors: of whose segments they speak.
//!
//! A gateway's segments have the addresses of the hosts, so what a router, or a host, says of one goes to
//! the host in whose name it was sent. It passes the gateway on its way, which is the one to hear it: only
//! who has sent the segment knows what is outstanding.

use bentpipe_types::{
    Endpoint, FlowKey, HostAddress, IcmpError, IpVersion, PacketRef, PacketStore, Party, Seq,
};
use bentpipe_wire::{Addressing, NodeAddresses, SegmentError};

/// TCP's protocol number.
const TCP: u8 = 6;

/// What an ICMP error says of a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Complaint {
    pub(crate) error: IcmpError,
    pub(crate) sequence: Seq,
    /// The keys that packets have that come from where it was going, of simulated hosts or of real ones.
    keys: [Option<FlowKey>; 2],
}

impl Complaint {
    /// What this packet says, if it is an ICMP error about a segment of TCP, made in the network or off a
    /// wire.
    pub(crate) fn read(packets: &PacketStore, packet: PacketRef) -> Option<Self> {
        if let Some(bytes) = packets.bytes(packet) {
            let said = SegmentError::read(bytes)?;
            let party = |end: std::net::SocketAddr| Party {
                host: HostAddress::Ip(end.ip()),
                port: end.port(),
            };
            let key = key(party(said.destination), party(said.source));
            return Some(Self {
                error: said.error,
                sequence: said.sequence,
                keys: [Some(key), None],
            });
        }
        let record = packets.get(packet);
        let quote = record.icmp_quote()?;
        let node = |end: Endpoint| Party {
            host: HostAddress::Node(end.address),
            port: end.port,
        };
        // A router of the network speaks of nodes, also where real hosts are behind them.
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

    /// The keys that packets may have which come back from where it was going.
    pub(crate) fn keys(&self) -> impl Iterator<Item = FlowKey> + use<> {
        self.keys.into_iter().flatten()
    }

    /// The port of the one at `here` that has sent the segment to the same port of the one at `there`.
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
