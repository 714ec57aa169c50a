//! The slab that holds every packet of a network.

use crate::beside::Beside;
use crate::fragment::{Fragment, Whole};
use crate::pool::Pool;
use crate::{Address, IpVersion, Packet, SackBlock, SackBlocks, SynOptions};

/// A packet in a [`PacketStore`]. Cheap to pass; good until the packet is taken or released.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PacketRef(u32);

/// What few packets carry, kept out of the 64-byte record.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Extension {
    /// A SYN's options.
    pub syn: SynOptions,
    /// The outer header of a packet in a tunnel.
    pub tunnel: Option<Tunnel>,
    /// What a compactor wrote in front of an acknowledgment.
    pub compaction: Option<Compaction>,
    /// SACK blocks, where the record has no room for them.
    sack: SackBlocks,
    /// What a packet of a real network has beside its record.
    pub(crate) beside: Option<u32>,
    /// Where a piece of a packet belongs.
    pub(crate) fragment: Option<Fragment>,
}

/// An outer IPv4 header: the packet travels from one end of a tunnel to the other (RFC 2003).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tunnel {
    /// Where it was put into the tunnel.
    pub source: Address,
    /// Where it is to be taken out.
    pub destination: Address,
}

/// What a compacted acknowledgment says of those that were deleted in its favour: three bytes
/// (samaraweera1999, section 6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Compaction {
    /// Acknowledgments deleted.
    pub count: u8,
    /// Bytes that they acknowledged, all together.
    pub bytes: u16,
}

/// All packets of a network, in a slab: no allocation per packet once it has grown to the number in
/// flight.
#[derive(Debug, Default)]
pub struct PacketStore {
    packets: Vec<Packet>,
    free: Vec<u32>,
    extensions: Vec<Extension>,
    free_extensions: Vec<u32>,
    pub(crate) inserted: u64,
    pub(crate) besides: Vec<Beside>,
    pub(crate) free_besides: Vec<u32>,
    pub(crate) pool: Pool,
    pub(crate) wholes: Vec<Whole>,
    pub(crate) free_wholes: Vec<u32>,
    /// By source: that of its latest datagram that was cut.
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

    /// Stores a copy of a packet that has no extension, for the caller to fill in where it lies.
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

    /// The same, where no slot is free.
    #[cold]
    #[inline(never)]
    fn insert_first_copy(&mut self, template: &Packet) -> (PacketRef, &mut Packet) {
        let reference = self.insert(*template);
        (reference, self.get_mut(reference))
    }

    /// Releases a packet, and stores a copy of another, which has no extension, for the caller to fill in: in
    /// its place, if nobody else holds it.
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

    /// The packet.
    #[must_use]
    pub fn get(&self, reference: PacketRef) -> &Packet {
        debug_assert!(
            self.packets[reference.0 as usize].references > 0,
            "released already"
        );
        &self.packets[reference.0 as usize]
    }

    /// The packet, to change it.
    pub fn get_mut(&mut self, reference: PacketRef) -> &mut Packet {
        debug_assert!(
            self.packets[reference.0 as usize].references > 0,
            "released already"
        );
        &mut self.packets[reference.0 as usize]
    }

    /// Says that the packet will be looked at soon: a packet that has crossed a long link has left the
    /// cache meanwhile, and waiting for it was a quarter of the time of a large window.
    #[inline]
    pub fn prefetch(&self, reference: PacketRef) {
        prefetch_index::prefetch_index(&self.packets, reference.0 as usize);
    }

    /// The options of a SYN; the default for any other packet.
    #[must_use]
    pub fn syn_options(&self, reference: PacketRef) -> SynOptions {
        self.extension_of(self.get(reference))
            .map_or_else(SynOptions::default, |e| e.syn)
    }

    /// Gives a SYN its options. The caller counts their bytes in `header_length`.
    pub fn set_syn_options(&mut self, reference: PacketRef, options: SynOptions) {
        self.extend(reference).syn = options;
    }

    /// The SACK blocks, most recent first.
    #[must_use]
    pub fn sack_blocks(&self, reference: PacketRef) -> SackBlocks {
        self.sack_block_slice(reference).iter().copied().collect()
    }

    /// The same, where they lie.
    #[inline]
    #[must_use]
    pub fn sack_block_slice(&self, reference: PacketRef) -> &[SackBlock] {
        let packet = self.get(reference);
        match self.extension_of(packet) {
            None => packet.inline_sack_blocks(),
            Some(extension) => extension.sack.as_slice(),
        }
    }

    /// Replaces the SACK blocks. The caller counts their bytes in `header_length`.
    #[inline]
    pub fn set_sack_blocks(&mut self, reference: PacketRef, blocks: &SackBlocks) {
        let count = blocks.as_slice().len();
        if !self.get_mut(reference).set_few_sack_blocks(blocks, count) {
            self.extend(reference).sack = *blocks;
            self.get_mut(reference).set_sack_count(count);
        }
    }

    /// The outer header, if the packet is in a tunnel.
    #[must_use]
    pub fn tunnel(&self, reference: PacketRef) -> Option<Tunnel> {
        self.extension_of(self.get(reference))
            .and_then(|e| e.tunnel)
    }

    /// Puts the packet into a tunnel, or takes it out. The caller counts the bytes in
    /// `header_length`.
    pub fn set_tunnel(&mut self, reference: PacketRef, tunnel: Option<Tunnel>) {
        if tunnel.is_some() || self.get(reference).extension().is_some() {
            self.extend(reference).tunnel = tunnel;
        }
    }

    /// What a compactor wrote in front of this acknowledgment, if it is a compacted one.
    #[must_use]
    pub fn compaction(&self, reference: PacketRef) -> Option<Compaction> {
        self.extension_of(self.get(reference))
            .and_then(|e| e.compaction)
    }

    /// Writes what a compactor puts in front, or takes it away. The caller counts the bytes in
    /// `header_length`.
    pub fn set_compaction(&mut self, reference: PacketRef, compaction: Option<Compaction>) {
        if compaction.is_some() || self.get(reference).extension().is_some() {
            self.extend(reference).compaction = compaction;
        }
    }

    /// One more holder of this packet (a segment store, say): it stays until each has released it.
    pub fn retain(&mut self, reference: PacketRef) {
        let packet = self.get_mut(reference);
        debug_assert!(
            packet.references < u8::MAX,
            "too many holders of one packet"
        );
        packet.references += 1;
    }

    /// One holder less; the last one frees the slot.
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
        let (beside, fragment) = (extension.beside, extension.fragment);
        if let Some(beside) = beside {
            self.release_beside(beside);
        }
        if let Some(fragment) = fragment {
            self.release_whole(fragment);
        }
    }

    /// Packets now held; of one that is in pieces, the pieces.
    #[must_use]
    pub fn held(&self) -> usize {
        self.packets.len() - self.free.len() - self.in_pieces()
    }

    /// References to packets now held, by all holders together; those that pieces have to what they are
    /// pieces of aside.
    #[must_use]
    pub fn references(&self) -> u64 {
        let all: u64 = self.packets.iter().map(|p| u64::from(p.references)).sum();
        all - self.in_pieces() as u64
    }

    /// Packets ever inserted.
    #[must_use]
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    pub(crate) fn extension_of(&self, packet: &Packet) -> Option<&Extension> {
        packet
            .extension()
            .map(|index| &self.extensions[index as usize])
    }

    /// The packet's extension, made (with the SACK blocks moved into it) if there was none.
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

    /// A stored copy of a packet's record alone: without SACK blocks, a SYN's options, tunnel or
    /// compaction, but between the same real addresses, if it has any, and with the same bytes.
    /// `header_length` is as it was; the caller takes off what the copy has no more.
    pub fn duplicate_bare(&mut self, reference: PacketRef) -> PacketRef {
        let mut packet = *self.get(reference);
        let beside = self.extension_of(&packet).and_then(|e| e.beside);
        packet.clear_extension();
        packet.clear_sack_blocks();
        let copy = self.insert(packet);
        if let Some(beside) = beside {
            self.extend(copy).beside = Some(self.copy_beside(beside));
        }
        copy
    }

    /// A packet's checksum has gone wrong on the way: it is a datagram from now on, of the same length
    /// between the same ends. If it came with bytes, the last bit of them is the other way round.
    pub fn corrupt(&mut self, reference: PacketRef) {
        let outer = if self.tunnel(reference).is_some() {
            IpVersion::V4.header_length()
        } else {
            0
        };
        self.get_mut(reference).corrupt(outer);
        self.corrupt_bytes(reference);
    }

    /// A stored copy of a packet, with an extension of its own (a duplicating link, say). Bytes are
    /// shared.
    pub fn duplicate(&mut self, reference: PacketRef) -> PacketRef {
        let mut packet = *self.get(reference);
        let extension = self.extension_of(&packet).copied();
        packet.clear_extension();
        let copy = self.insert(packet);
        if let Some(mut extension) = extension {
            extension.beside = extension.beside.map(|index| self.copy_beside(index));
            if let Some(fragment) = extension.fragment {
                self.retain_whole(fragment);
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
    fn slots_are_used_again_only_when_every_holder_has_let_go() {
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
    fn a_packet_is_replaced_in_its_place_unless_somebody_else_holds_it() {
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
    fn a_bare_copy_shares_nothing_with_its_original() {
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
    fn sack_blocks_survive_wherever_they_are_kept() {
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
            // Options that come later move the blocks, and lose none.
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
