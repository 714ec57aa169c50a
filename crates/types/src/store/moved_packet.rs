//! Packets on their way from one store to another.

use super::{Extension, PacketStore};
use crate::{Packet, PacketRef};

/// A packet outside any store, with its options.
#[derive(Clone, Debug)]
pub struct MovedPacket {
    packet: Packet,
    /// Few packets have one.
    extension: Option<Box<Extension>>,
}

impl PacketStore {
    /// Releases a packet and returns its contents, for another store. The packet must be neither a
    /// real packet nor a fragment, which share data with others of their store.
    pub fn move_out(&mut self, reference: PacketRef) -> MovedPacket {
        let mut packet = *self.get(reference);
        let extension = self.extension_of(&packet).copied();
        debug_assert!(
            extension.is_none_or(|each| each.real_packet.is_none() && each.fragment.is_none()),
            "it shares no data"
        );
        if extension.is_some() {
            packet.clear_extension();
        }
        self.release(reference);
        MovedPacket {
            packet,
            extension: extension.map(Box::new),
        }
    }

    /// Stores a packet from another store.
    pub fn move_in(&mut self, moved: MovedPacket) -> PacketRef {
        let reference = self.insert(moved.packet);
        if let Some(extension) = moved.extension {
            *self.extend(reference) = *extension;
        }
        reference
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Address, Endpoint, IpVersion, SackBlock, SackBlocks, Seq, SynOptions, Tunnel};

    #[test]
    fn a_moved_packet_is_the_same() {
        let [source, destination] = [1, 2].map(|number| Endpoint {
            address: Address(number),
            port: number,
        });
        let blocks = |count: u32| -> SackBlocks {
            let block = |number| SackBlock {
                start: Seq::new(number * 100),
                end: Seq::new(number * 100 + 50),
            };
            (1..=count).map(block).collect()
        };
        for (count, with_syn, in_tunnel) in [
            (0, false, false),
            (1, false, false),
            (4, false, false),
            (2, true, true),
            (0, false, true),
        ] {
            let mut first = PacketStore::default();
            let mut second = PacketStore::default();
            // The other store's slots differ.
            let other = second.insert(Packet::new(destination, source, IpVersion::V4));
            let packet = first.insert(Packet::new(source, destination, IpVersion::V6));
            first.set_sack_blocks(packet, &blocks(count));
            let options = SynOptions {
                maximum_segment_size: Some(1_234),
                ..SynOptions::default()
            };
            if with_syn {
                first.set_syn_options(packet, options);
            }
            let tunnel = in_tunnel.then_some(Tunnel {
                source: Address(3),
                destination: Address(4),
            });
            first.set_tunnel(packet, tunnel);
            let moved = first.move_out(packet);
            assert_eq!(first.held(), 0);
            let packet = second.move_in(moved);
            assert_eq!(second.references(), 2);
            assert_eq!(second.sack_blocks(packet), blocks(count));
            assert_eq!(second.tunnel(packet), tunnel);
            let found = second.syn_options(packet);
            assert_eq!(
                found,
                if with_syn {
                    options
                } else {
                    SynOptions::default()
                }
            );
            assert_eq!(second.get(packet).source, source);
            assert_eq!(second.get(packet).ip_version(), IpVersion::V6);
            second.release(packet);
            second.release(other);
            assert_eq!(second.held(), 0);
        }
    }
}
