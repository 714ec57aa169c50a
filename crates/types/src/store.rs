//! The store of all packets of a network.

mod fragment;
mod moved_packet;
mod real_packet;

pub use fragment::Fragment;
pub use moved_packet::MovedPacket;
pub use real_packet::{FlowKey, HostAddress, Party};

use crate::pool::Pool;
use crate::{Address, IpVersion, Packet, PacketRef, SackBlock, SackBlocks, SynOptions};
use fragment::FragmentedPacket;
use real_packet::RealPacket;

/// Data that few packets have, outside the 64-byte record.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Extension {
    /// A SYN's options.
    pub syn: SynOptions,
    /// The outer header of a packet in a tunnel.
    pub tunnel: Option<Tunnel>,
    /// Data that a compactor added to an acknowledgment.
    pub compaction: Option<Compaction>,
    /// SACK blocks that do not fit into the record.
    sack: SackBlocks,
    /// Index of the data beside a real packet's record.
    pub(crate) real_packet: Option<u32>,
    /// Position of a fragment.
    pub(crate) fragment: Option<Fragment>,
}

/// Outer IPv4 header of a packet in a tunnel (RFC 2003).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tunnel {
    /// Entry of the tunnel.
    pub source: Address,
    /// Exit of the tunnel.
    pub destination: Address,
}

/// Data in a compacted acknowledgment about those that it replaces: three bytes (samaraweera1999,
/// section 6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Compaction {
    /// Number of removed acknowledgments.
    pub count: u8,
    /// Bytes acknowledged by the removed acknowledgments.
    pub bytes: u16,
}

/// All packets of a network in a slab: no allocation per packet once it has grown to the number in
/// flight.
#[derive(Debug, Default)]
pub struct PacketStore {
    packets: Vec<Packet>,
    free: Vec<u32>,
    extensions: Vec<Extension>,
    free_extensions: Vec<u32>,
    pub(crate) inserted: u64,
    pub(crate) real_packets: Vec<RealPacket>,
    pub(crate) free_real_packets: Vec<u32>,
    pub(crate) pool: Pool,
    pub(crate) fragmented: Vec<FragmentedPacket>,
    pub(crate) free_fragmented: Vec<u32>,
    /// Latest identification of a fragmented datagram, by source.
    pub(crate) identifications: Vec<u16>,
}

impl PacketStore {
    /// Stores a packet that has no extension.
    #[inline]
    pub fn insert(&mut self, mut packet: Packet) -> PacketRef {
        debug_assert!(
            packet.extension().is_none(),
            "an extension belongs to one stored packet"
        );
        packet.references = 1;
        self.inserted += 1;
        if let Some(index) = self.free.pop() {
            self.packets[index as usize] = packet;
            return PacketRef(index);
        }
        let index = self.packets.len() as u32;
        self.packets.push(packet);
        PacketRef(index)
    }

    /// Stores a copy of a packet that has no extension, and returns it for the caller to fill in.
    #[inline]
    pub fn insert_copy(&mut self, template: &Packet) -> (PacketRef, &mut Packet) {
        match self.free.pop() {
            Some(index) => {
                self.inserted += 1;
                let slot = &mut self.packets[index as usize];
                (PacketRef(index), slot.become_copy(template))
            }
            None => self.insert_first_copy(template),
        }
    }

    /// [`insert_copy`](Self::insert_copy) without a free slot.
    #[cold]
    #[inline(never)]
    fn insert_first_copy(&mut self, template: &Packet) -> (PacketRef, &mut Packet) {
        let reference = self.insert(*template);
        (reference, self.get_mut(reference))
    }

    /// Releases a packet and stores a copy of a template without extension, for the caller to fill
    /// in. The copy uses the same slot if nobody else holds the packet.
    #[inline]
    pub fn replace(&mut self, reference: PacketRef, template: &Packet) -> (PacketRef, &mut Packet) {
        let slot = &self.packets[reference.0 as usize];
        if slot.references != 1 || slot.extension().is_some() {
            self.release(reference);
            return self.insert_copy(template);
        }
        self.inserted += 1;
        let slot = &mut self.packets[reference.0 as usize];
        (reference, slot.become_copy(template))
    }

    /// Returns the packet.
    #[must_use]
    pub fn get(&self, reference: PacketRef) -> &Packet {
        debug_assert!(
            self.packets[reference.0 as usize].references > 0,
            "released already"
        );
        &self.packets[reference.0 as usize]
    }

    /// Returns the packet for modification.
    pub fn get_mut(&mut self, reference: PacketRef) -> &mut Packet {
        debug_assert!(
            self.packets[reference.0 as usize].references > 0,
            "released already"
        );
        &mut self.packets[reference.0 as usize]
    }

    /// Prefetches a packet. A packet that has crossed a long link has left the cache; waiting for
    /// it took a quarter of the time of a large window.
    #[inline]
    pub fn prefetch(&self, reference: PacketRef) {
        prefetch_index::prefetch_index(&self.packets, reference.0 as usize);
    }

    /// Returns the options of a SYN, or the default for other packets.
    #[must_use]
    pub fn syn_options(&self, reference: PacketRef) -> SynOptions {
        self.extension_of(self.get(reference))
            .map_or_else(SynOptions::default, |e| e.syn)
    }

    /// Sets the options of a SYN. The caller includes their length in `header_length`.
    pub fn set_syn_options(&mut self, reference: PacketRef, options: SynOptions) {
        self.extend(reference).syn = options;
    }

    /// Returns the SACK blocks, most recent first.
    #[must_use]
    pub fn sack_blocks(&self, reference: PacketRef) -> SackBlocks {
        self.sack_block_slice(reference).iter().copied().collect()
    }

    /// Returns the SACK blocks without copying, most recent first.
    #[inline]
    #[must_use]
    pub fn sack_block_slice(&self, reference: PacketRef) -> &[SackBlock] {
        let packet = self.get(reference);
        match self.extension_of(packet) {
            None => packet.inline_sack_blocks(),
            Some(extension) => extension.sack.as_slice(),
        }
    }

    /// Replaces the SACK blocks. The caller includes their length in `header_length`.
    #[inline]
    pub fn set_sack_blocks(&mut self, reference: PacketRef, blocks: &SackBlocks) {
        let count = blocks.as_slice().len();
        if !self.get_mut(reference).set_few_sack_blocks(blocks, count) {
            self.extend(reference).sack = *blocks;
            self.get_mut(reference).set_sack_count(count);
        }
    }

    /// Returns the outer header of a packet in a tunnel.
    #[must_use]
    pub fn tunnel(&self, reference: PacketRef) -> Option<Tunnel> {
        self.extension_of(self.get(reference))
            .and_then(|e| e.tunnel)
    }

    /// Sets or removes the outer header. The caller adjusts `header_length`.
    pub fn set_tunnel(&mut self, reference: PacketRef, tunnel: Option<Tunnel>) {
        if tunnel.is_some() || self.get(reference).extension().is_some() {
            self.extend(reference).tunnel = tunnel;
        }
    }

    /// Returns the compaction data of an acknowledgment, if it is compacted.
    #[must_use]
    pub fn compaction(&self, reference: PacketRef) -> Option<Compaction> {
        self.extension_of(self.get(reference))
            .and_then(|e| e.compaction)
    }

    /// Sets or removes compaction data. The caller adjusts `header_length`.
    pub fn set_compaction(&mut self, reference: PacketRef, compaction: Option<Compaction>) {
        if compaction.is_some() || self.get(reference).extension().is_some() {
            self.extend(reference).compaction = compaction;
        }
    }

    /// Adds a holder of the packet, for example a segment store.
    pub fn retain(&mut self, reference: PacketRef) {
        let packet = self.get_mut(reference);
        debug_assert!(
            packet.references < u8::MAX,
            "too many holders of one packet"
        );
        packet.references += 1;
    }

    /// Removes a holder. The last one frees the slot.
    #[inline]
    pub fn release(&mut self, reference: PacketRef) {
        let packet = &mut self.packets[reference.0 as usize];
        debug_assert!(packet.references > 0, "released twice");
        packet.references -= 1;
        if packet.references == 0 {
            let extension = packet.extension();
            self.free.push(reference.0);
            if let Some(index) = extension {
                self.release_extension(index);
            }
        }
    }

    #[inline(never)]
    fn release_extension(&mut self, index: u32) {
        self.free_extensions.push(index);
        let extension = &self.extensions[index as usize];
        let (real_packet, fragment) = (extension.real_packet, extension.fragment);
        if let Some(real_packet) = real_packet {
            self.release_real_packet(real_packet);
        }
        if let Some(fragment) = fragment {
            self.release_fragmented(fragment);
        }
    }

    /// Returns the number of stored packets; for a fragmented packet, its fragments are counted.
    #[must_use]
    pub fn held(&self) -> usize {
        self.packets.len() - self.free.len() - self.in_pieces()
    }

    /// Returns the number of references by all holders, without those of fragments to their
    /// packets.
    #[must_use]
    pub fn references(&self) -> u64 {
        let all: u64 = self.packets.iter().map(|p| u64::from(p.references)).sum();
        all - self.in_pieces() as u64
    }

    /// Returns the number of packets ever inserted.
    #[must_use]
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    pub(crate) fn extension_of(&self, packet: &Packet) -> Option<&Extension> {
        packet
            .extension()
            .map(|index| &self.extensions[index as usize])
    }

    /// Returns the packet's extension. Creates it if needed and moves the SACK blocks into it.
    pub(crate) fn extend(&mut self, reference: PacketRef) -> &mut Extension {
        let packet = self.get_mut(reference);
        if let Some(index) = packet.extension() {
            return &mut self.extensions[index as usize];
        }
        let extension = Extension {
            sack: packet.inline_sack_blocks().iter().copied().collect(),
            ..Extension::default()
        };
        let index = self.free_extensions.pop().unwrap_or_else(|| {
            self.extensions.push(Extension::default());
            (self.extensions.len() - 1) as u32
        });
        self.get_mut(reference).set_extension(index);
        let slot = &mut self.extensions[index as usize];
        *slot = extension;
        slot
    }

    /// Stores a copy of a packet's record without SACK blocks, SYN options, tunnel and compaction,
    /// with the same real addresses and shared bytes. `header_length` is unchanged; the caller
    /// subtracts what the copy lacks.
    pub fn duplicate_bare(&mut self, reference: PacketRef) -> PacketRef {
        let mut packet = *self.get(reference);
        let real_packet = self.extension_of(&packet).and_then(|e| e.real_packet);
        packet.clear_extension();
        packet.clear_sack_blocks();
        let copy = self.insert(packet);
        if let Some(real_packet) = real_packet {
            self.extend(copy).real_packet = Some(self.copy_real_packet(real_packet));
        }
        copy
    }

    /// Corrupts a packet: it becomes a datagram of the same length between the same ends. The last
    /// bit of its bytes, if any, is inverted.
    pub fn corrupt(&mut self, reference: PacketRef) {
        let outer = if self.tunnel(reference).is_some() {
            IpVersion::V4.header_length()
        } else {
            0
        };
        self.get_mut(reference).corrupt(outer);
        self.corrupt_bytes(reference);
    }

    /// Stores a copy of a packet with its own extension, for example on a duplicating link. Bytes
    /// are shared.
    pub fn duplicate(&mut self, reference: PacketRef) -> PacketRef {
        let mut packet = *self.get(reference);
        let extension = self.extension_of(&packet).copied();
        packet.clear_extension();
        let copy = self.insert(packet);
        if let Some(mut extension) = extension {
            extension.real_packet = extension
                .real_packet
                .map(|index| self.copy_real_packet(index));
            if let Some(fragment) = extension.fragment {
                self.retain_fragmented(fragment);
            }
            *self.extend(copy) = extension;
        }
        copy
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Endpoint, IpVersion, SackBlock, Seq};

    fn packet() -> Packet {
        Packet::new(Endpoint::default(), Endpoint::default(), IpVersion::V4)
    }

    fn blocks(count: u32) -> SackBlocks {
        let block = |i| SackBlock {
            start: Seq::new(10 * i),
            end: Seq::new(10 * i + 5),
        };
        (0..count).map(block).collect()
    }

    #[test]
    fn slots_are_reused_only_after_the_last_reference_is_released() {
        let mut store = PacketStore::default();
        let first = store.insert(packet());
        store.retain(first);
        store.release(first);
        assert_eq!(store.held(), 1);
        store.release(first);
        assert_eq!(store.held(), 0);
        assert_eq!(store.insert(packet()), first);
        assert_eq!(store.inserted(), 2);
    }

    #[test]
    fn a_packet_is_replaced_in_place_unless_it_is_shared() {
        let mut store = PacketStore::default();
        let mut other = packet();
        other.window = 7;
        let first = store.insert(packet());
        assert_eq!(store.replace(first, &other).0, first);
        assert_eq!((store.held(), store.get(first).window), (1, 7));
        store.retain(first);
        let (second, _) = store.replace(first, &packet());
        assert_ne!(second, first);
        assert_eq!((store.held(), store.get(first).window), (2, 7));
        store.set_syn_options(second, SynOptions::default());
        let (third, _) = store.replace(second, &other);
        assert!(store.get(third).extension().is_none());
        store.release(first);
        store.release(third);
        assert_eq!((store.held(), store.free_extensions.len()), (0, 1));
        assert_eq!(store.inserted(), 4);
    }

    #[test]
    fn a_bare_copy_has_no_sack_blocks_or_compaction_of_its_original() {
        let mut store = PacketStore::default();
        let reference = store.insert(packet());
        store.set_sack_blocks(reference, &blocks(3));
        let compaction = Compaction { count: 3, bytes: 9 };
        store.set_compaction(reference, Some(compaction));
        let copy = store.duplicate_bare(reference);
        assert_eq!(store.sack_blocks(copy), blocks(0));
        assert_eq!(store.compaction(copy), None);
        store.release(copy);
        assert_eq!(store.sack_blocks(reference), blocks(3));
        assert_eq!(store.compaction(reference), Some(compaction));
    }

    #[test]
    fn sack_blocks_are_preserved_in_either_storage() {
        let mut store = PacketStore::default();
        for count in 0..=4 {
            let reference = store.insert(packet());
            store.set_sack_blocks(reference, &blocks(count));
            assert_eq!(
                store.sack_blocks(reference),
                blocks(count),
                "{count} blocks"
            );
            assert_eq!(store.get(reference).has_sack_blocks(), count > 0);
            // Setting options later moves the blocks and keeps all of them.
            store.set_syn_options(
                reference,
                SynOptions {
                    sack_permitted: true,
                    ..SynOptions::default()
                },
            );
            assert_eq!(
                store.sack_blocks(reference),
                blocks(count),
                "{count} blocks, extended"
            );
            let copy = store.duplicate(reference);
            store.release(reference);
            assert_eq!(store.sack_blocks(copy), blocks(count));
            assert!(store.syn_options(copy).sack_permitted);
            store.release(copy);
        }
        assert_eq!(store.held(), 0);
        assert!(store.extensions.len() <= 2);
    }
}
