//! Packets on their way from one store to another.

use super::real_packet::MovedRealPacket;
use super::{Extension, PacketStore};
use crate::{Packet, PacketRef};

/// A packet outside any store, with its options.
#[derive(Clone, Debug)]
pub struct MovedPacket {
    packet: Packet,
    /// Few packets have one.
    extension: Option<Box<Extension>>,
    /// Addresses and bytes, of a packet that has some.
    real_packet: Option<Box<MovedRealPacket>>,
}

impl PacketStore {
    /// Releases a packet and returns its contents, for another store. The packet must not be a
    /// fragment, which shares data with others of its store. Bytes are copied.
    pub fn move_out(&mut self, reference: PacketRef) -> MovedPacket {
        let mut packet = *self.get(reference);
        let extension = self.extension_of(&packet).copied();
        debug_assert!(
            extension.is_none_or(|each| each.fragment.is_none()),
            "fragments share data"
        );
        let real_packet = extension
            .and_then(|extension| extension.real_packet)
            .map(|index| Box::new(self.moved_real_packet(index)));
        if extension.is_some() {
            packet.clear_extension();
        }
        self.release(reference);
        MovedPacket {
            packet,
            extension: extension.map(Box::new),
            real_packet,
        }
    }

    /// Stores a packet from another store.
    pub fn move_in(&mut self, moved: MovedPacket) -> PacketRef {
        let reference = self.insert(moved.packet);
        if let Some(mut extension) = moved.extension {
            extension.real_packet = moved
                .real_packet
                .map(|moved| self.insert_real_packet(*moved));
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
    #[test]
    fn a_moved_packet_keeps_its_payload_and_addresses() {
        let mut first = PacketStore::default();
        let mut second = PacketStore::default();
        let mut record = Packet::new(Endpoint::default(), Endpoint::default(), IpVersion::V6);
        record.payload_length = 5;
        let packet = first.insert(record);
        first.set_payload(packet, |payload| payload.copy_from_slice(b"abcde"));
        let ip = ([192, 0, 2, 1].into(), [192, 0, 2, 9].into());
        first.set_ip(packet, ip);
        // A copy shares its bytes.
        let copy = first.duplicate(packet);
        first.set_tunnel(packet, None);
        let moved = first.move_out(packet);
        assert_eq!(first.payload(copy), Some(&b"abcde"[..]));
        first.release(copy);
        assert_eq!(first.held(), 0);
        let packet = second.move_in(moved);
        assert_eq!(second.payload(packet), Some(&b"abcde"[..]));
        assert_eq!(second.ip(packet), Some(ip));
        // The buffers of released packets are used again.
        let used = second.bytes_allocated();
        for _ in 0..100 {
            let moved = second.move_out(packet);
            assert_eq!(second.held(), 0);
            assert_eq!(second.move_in(moved), packet);
        }
        assert_eq!(second.bytes_allocated(), used);
        second.release(packet);
        assert_eq!(second.held(), 0);
    }
}
