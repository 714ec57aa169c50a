//! Addresses for a node inside the network whose own connections lead to a peer outside.

use std::net::IpAddr;

use bentpipe_sim::NodeId;
use bentpipe_types::{Address, IpVersion, PacketRef, PacketStore};
use bentpipe_wire::{Addressing, NodeAddresses, ParseError};

/// A node inside the network and its peer outside, for which another node stands, with the real
/// address of each. Packets between the two have no real addresses within the network; the
/// [`Engine`](crate::Engine) adds and removes them at the edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OwnAddresses {
    /// The node, and its address outside.
    pub node: (NodeId, IpAddr),
    /// The node that stands for the peer, and the peer's address.
    pub peer: (NodeId, IpAddr),
}

impl OwnAddresses {
    /// Whether a packet is from the peer to the node. Called for every packet that enters, so that
    /// it compares only the address bytes.
    fn is_from_peer(&self, bytes: &[u8]) -> bool {
        let (source, destination) = (self.peer.1, self.node.1);
        let has_address = |at: usize, ip: IpAddr| match ip {
            IpAddr::V4(ip) => bytes.get(at..at + 4) == Some(&ip.octets()),
            IpAddr::V6(ip) => bytes.get(at..at + 16) == Some(&ip.octets()),
        };
        let (version, at) = match source {
            IpAddr::V4(_) => (4, [12, 16]),
            IpAddr::V6(_) => (6, [8, 24]),
        };
        bytes.first().is_some_and(|first| first >> 4 == version)
            && has_address(at[0], source)
            && has_address(at[1], destination)
    }

    /// Inserts a segment from the peer to the node into the store. Returns `None` for any other
    /// packet.
    ///
    /// # Errors
    /// If a packet between the two is not a complete TCP segment with correct checksums.
    pub(super) fn insert(
        &self,
        bytes: &[u8],
        packets: &mut PacketStore,
    ) -> Option<Result<PacketRef, ParseError>> {
        self.is_from_peer(bytes).then(|| {
            let segment = bentpipe_wire::parse(bytes)?;
            let node = |ip: IpAddr| -> Result<Address, ParseError> {
                let (node, _) = if ip == self.peer.1 {
                    self.peer
                } else {
                    self.node
                };
                Ok(node.address())
            };
            let packet = segment.insert(packets, node)?;
            if !segment.payload.is_empty() {
                packets.set_payload(packet, |out| out.copy_from_slice(segment.payload));
            }
            Ok(packet)
        })
    }
}

/// Real addresses for packets that leave the network.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EdgeAddresses(pub(super) Option<OwnAddresses>);

impl Addressing for EdgeAddresses {
    fn ip_address(&self, address: Address, version: IpVersion) -> Option<IpAddr> {
        let own = self.0.and_then(|own| {
            let ends = [own.node, own.peer].into_iter();
            let mut ends = ends.filter(|(node, _)| node.address() == address);
            ends.next().map(|(_, ip)| ip)
        });
        let is_of = |ip: &IpAddr| ip.is_ipv4() == (version == IpVersion::V4);
        own.filter(is_of)
            .or_else(|| NodeAddresses.ip_address(address, version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_sim::NetworkBuilder;
    use bentpipe_types::{Endpoint, Flags, Packet};
    use bentpipe_wire::Encoder;
    use proptest::prelude::*;

    fn both_ends(own: &str, peer: &str) -> [OwnAddresses; 2] {
        let mut builder = NetworkBuilder::new(1);
        let [one, other] = ["one", "other"].map(|name| builder.attached(name));
        let [own, peer] = [own, peer].map(|ip| ip.parse().expect("an address"));
        let here = OwnAddresses {
            node: (one, own),
            peer: (other, peer),
        };
        // At the other end, the two nodes have the opposite roles.
        let there = OwnAddresses {
            node: (one, peer),
            peer: (other, own),
        };
        [here, there]
    }

    fn sent(own: &OwnAddresses, version: IpVersion, payload: &[u8]) -> Vec<u8> {
        let [source, destination] = [own.node, own.peer].map(|(node, _)| Endpoint {
            address: node.address(),
            port: 3135,
        });
        let mut packets = PacketStore::default();
        let mut packet = Packet::new(source, destination, version);
        packet.flags = Flags::ACK;
        packet.payload_length = payload.len() as u16;
        let packet = packets.insert(packet);
        packets.set_payload(packet, |out| out.copy_from_slice(payload));
        let mut bytes = Vec::new();
        Encoder::new(EdgeAddresses(Some(*own)))
            .encode(&packets, packet, &mut bytes)
            .expect("it has addresses");
        bytes
    }

    #[test]
    fn segments_between_gateways_arrive_as_their_own() {
        for (addresses, version) in [
            (["192.0.2.250", "198.51.100.250"], IpVersion::V4),
            (["2001:db8::fa", "2001:db8:1::fa"], IpVersion::V6),
        ] {
            let [here, there] = both_ends(addresses[0], addresses[1]);
            let bytes = sent(&here, version, b"said");
            let mut packets = PacketStore::default();
            let packet = there
                .insert(&bytes, &mut packets)
                .expect("for it")
                .expect("a segment");
            let record = packets.get(packet);
            assert_eq!(record.source.address, there.peer.0.address());
            assert_eq!(record.destination.address, there.node.0.address());
            assert_eq!(packets.payload(packet), Some(&b"said"[..]));
            // As for the gateway's own connections: no real addresses within the network.
            assert_eq!(packets.ip(packet), None);
            // The sender's end does not accept its own packet.
            assert!(here.insert(&bytes, &mut packets).is_none());
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_a_segment_or_refused(
            mut bytes in prop::collection::vec(any::<u8>(), 0..80),
            at in 0..60_usize,
            bit in 0..8_u32,
        ) {
            let [here, there] = both_ends("192.0.2.250", "198.51.100.250");
            let mut packets = PacketStore::default();
            let _ = there.insert(&bytes, &mut packets);
            bytes = sent(&here, IpVersion::V4, b"some text");
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << bit;
            }
            // A flipped bit is detected: not a segment between the two, or an invalid one.
            let taken = matches!(there.insert(&bytes, &mut packets), Some(Ok(_)));
            prop_assert_eq!(taken, at >= bytes.len());
        }
    }
}
