//! IP fragments (RFC 791 section 3.2).
//!
//! A fragment is a packet of its own: a datagram with its own length and fate. The original packet
//! stays in the store until its last fragment is gone. Fragments therefore need no bytes, and
//! reassembly returns the original packet.

use crate::{Address, Endpoint, IpVersion, Packet, PacketRef, PacketStore};

/// Position of a fragment in its datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fragment {
    /// Distinguishes the datagram from others between the same hosts with the same protocol.
    pub identification: u16,
    /// Offset in the datagram without its header, in bytes; a multiple of 8.
    pub offset: u16,
    /// Whether more fragments follow.
    pub more: bool,
    whole: u32,
}

impl Fragment {
    /// Whether both fragments belong to the same packet, which a checksum would show.
    #[must_use]
    pub fn is_of_same(&self, other: &Self) -> bool {
        self.whole == other.whole
    }
}

/// A fragmented packet and the number of packets that refer to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FragmentedPacket {
    packet: PacketRef,
    pieces: u32,
}

/// Length of an IPv4 header without options. Packets with options are not fragmented here.
const HEADER: u32 = 20;
/// Length of the longest IPv4 packet.
const LONGEST: u32 = 65_535;
/// Protocol number of IPv4 in IPv4 (RFC 2003).
const TUNNELLED: u8 = 4;

impl PacketStore {
    /// Returns the position of a fragment, or `None` for a complete packet.
    #[must_use]
    pub fn fragment(&self, reference: PacketRef) -> Option<Fragment> {
        self.extension_of(self.get(reference))?.fragment
    }

    /// Returns the original packet of a fragment.
    #[must_use]
    pub fn whole_of(&self, reference: PacketRef) -> Option<PacketRef> {
        let whole = self.fragment(reference)?.whole;
        Some(self.fragmented[whole as usize].packet)
    }

    /// Whether routers may fragment the packet. Excluded are IPv6 outside an IPv4 tunnel (RFC 8200
    /// section 4.5), and real packets with don't-fragment set or with IP options.
    #[must_use]
    pub fn may_be_divided(&self, reference: PacketRef) -> bool {
        const DONT_FRAGMENT: u8 = 0x40;
        const NO_OPTIONS: u8 = 0x45;
        self.tunnel(reference).is_some()
            || self.get(reference).ip_version() == IpVersion::V4
                && self.bytes(reference).is_none_or(|bytes| {
                    bytes.first() == Some(&NO_OPTIONS)
                        && (bytes.get(6)).is_some_and(|flags| flags & DONT_FRAGMENT == 0)
                })
    }

    /// Fragments a packet that is longer than `mtu` bytes (at least 28) and appends the fragments
    /// to `pieces` in order. A packet that fits, or must not be fragmented, is appended unchanged.
    /// The fragments take over the caller's reference.
    ///
    /// A packet in a tunnel is fragmented with its outer header, a fragment into fragments of the
    /// same datagram.
    pub fn divide(&mut self, reference: PacketRef, mtu: u32, pieces: &mut Vec<PacketRef>) {
        let record = *self.get(reference);
        let length = record.length().get() as u32;
        if length <= mtu || length > LONGEST || !self.may_be_divided(reference) {
            pieces.push(reference);
            return;
        }
        let tunnel = self.tunnel(reference);
        let known = self.fragment(reference).filter(|_| tunnel.is_none());
        let (source, destination, protocol) = match tunnel {
            Some(outer) => (outer.source, outer.destination, TUNNELLED),
            None => (
                record.source.address,
                record.destination.address,
                record.protocol(),
            ),
        };
        let base = known.unwrap_or_else(|| Fragment {
            identification: self.next_identification(source),
            offset: 0,
            more: false,
            whole: self.keep_whole(reference),
        });
        let ip = self.ip(reference).filter(|_| tunnel.is_none());
        let carried = length - HEADER;
        let room = (mtu.saturating_sub(HEADER) & !7).max(8);
        let mut at = 0;
        while at < carried {
            let bytes = room.min(carried - at);
            // Later fragments have no ports, so none has.
            let end = |address| Endpoint { address, port: 0 };
            let mut piece =
                Packet::datagram(end(source), end(destination), IpVersion::V4, protocol);
            piece.header_length = HEADER as u8;
            piece.payload_length = bytes as u16;
            piece.set_ecn(record.ecn());
            let piece = self.insert(piece);
            self.fragmented[base.whole as usize].pieces += 1;
            self.extend(piece).fragment = Some(Fragment {
                offset: base.offset + at as u16,
                more: base.more || at + bytes < carried,
                ..base
            });
            if let Some(ip) = ip {
                self.set_ip(piece, ip);
            }
            pieces.push(piece);
            at += bytes;
        }
        if known.is_some() {
            if record.is_corrupt()
                && let Some(last) = pieces.last()
            {
                // The wrong bit is in the last fragment.
                self.corrupt(*last);
            }
            self.release(reference);
        }
    }

    /// Reassembles the packet of these fragments, all of one datagram, and releases them. If one is
    /// corrupt, so is the packet: the IP header checksum does not cover a fragment's content, so
    /// only the receiver of the packet detects it (RFC 791 section 3.2, RFC 9293 section 3.1).
    pub fn join(&mut self, pieces: impl IntoIterator<Item = PacketRef>) -> Option<PacketRef> {
        let mut whole = None;
        let mut corrupt = false;
        for piece in pieces {
            corrupt |= self.get(piece).is_corrupt();
            if whole.is_none() {
                whole = self.whole_of(piece);
                if let Some(whole) = whole {
                    self.retain(whole);
                    self.inserted += 1;
                }
            }
            self.release(piece);
        }
        // RFC 3168 section 5.3: the packet has the ECN field that it had before fragmentation.
        // Marks of fragments are lost.
        // Copies of the fragments may still refer to the packet, which must not change for them.
        let whole = self.unshare(whole?);
        if corrupt {
            self.corrupt(whole);
        }
        Some(whole)
    }

    /// Returns the number of packets that exist only as fragments.
    pub(crate) fn in_pieces(&self) -> usize {
        self.fragmented.len() - self.free_fragmented.len()
    }

    /// Returns the next identification of a host, which numbers its datagrams (RFC 791 section
    /// 3.2).
    fn next_identification(&mut self, source: Address) -> u16 {
        let index = usize::from(source.0);
        if self.identifications.len() <= index {
            self.identifications.resize(index + 1, 0);
        }
        let next = &mut self.identifications[index];
        *next = next.wrapping_add(1);
        *next
    }

    fn keep_whole(&mut self, packet: PacketRef) -> u32 {
        let whole = FragmentedPacket { packet, pieces: 0 };
        match self.free_fragmented.pop() {
            Some(index) => {
                self.fragmented[index as usize] = whole;
                index
            }
            None => {
                self.fragmented.push(whole);
                (self.fragmented.len() - 1) as u32
            }
        }
    }

    /// Adds a fragment to the original packet's count.
    pub(crate) fn retain_fragmented(&mut self, fragment: Fragment) {
        self.fragmented[fragment.whole as usize].pieces += 1;
    }

    /// Removes a fragment from the count. The last one releases the original packet.
    pub(crate) fn release_fragmented(&mut self, fragment: Fragment) {
        let whole = &mut self.fragmented[fragment.whole as usize];
        whole.pieces -= 1;
        if whole.pieces == 0 {
            let packet = whole.packet;
            self.free_fragmented.push(fragment.whole);
            self.release(packet);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tunnel;

    fn segment(store: &mut PacketStore, payload: u16) -> PacketRef {
        let end = |address| Endpoint {
            address: Address(address),
            port: 80,
        };
        let mut record = Packet::new(end(1), end(2), IpVersion::V4);
        record.payload_length = payload;
        record.payload_offset = 77;
        store.insert(record)
    }

    fn layout(store: &PacketStore, pieces: &[PacketRef]) -> Vec<(u16, u16, bool)> {
        let of = |piece: &PacketRef| {
            let fragment = store.fragment(*piece).expect("a piece");
            let length = store.get(*piece).payload_length;
            (fragment.offset, length, fragment.more)
        };
        pieces.iter().map(of).collect()
    }

    #[test]
    fn fragments_have_rfc791_offsets_and_reassemble_to_the_original() {
        let mut store = PacketStore::default();
        let whole = segment(&mut store, 1460);
        let before = *store.get(whole);
        let mut pieces = Vec::new();
        store.divide(whole, 576, &mut pieces);
        // 1480 bytes behind the header, in fragments of 552: the procedure of RFC 791 section 3.2.
        assert_eq!(
            layout(&store, &pieces),
            [(0, 552, true), (552, 552, true), (1104, 376, false)]
        );
        assert_eq!((store.held(), store.references()), (3, 3));
        for piece in &pieces {
            assert!(store.get(*piece).length().get() <= 576);
            assert!(!store.get(*piece).is_tcp());
        }
        let joined = store.join(pieces).expect("all are there");
        assert_eq!(*store.get(joined), before);
        assert_eq!(store.held(), 1);
        store.release(joined);
        assert_eq!((store.held(), store.in_pieces()), (0, 0));
    }

    #[test]
    fn fragments_of_fragments_belong_to_the_same_datagram() {
        let mut store = PacketStore::default();
        let whole = segment(&mut store, 1460);
        let (mut pieces, mut smaller) = (Vec::new(), Vec::new());
        store.divide(whole, 1006, &mut pieces);
        for piece in pieces {
            store.divide(piece, 296, &mut smaller);
        }
        let mut next = 0;
        for (offset, length, more) in layout(&store, &smaller) {
            assert_eq!(offset, next);
            assert_eq!(offset % 8, 0);
            next = offset + length;
            assert_eq!(more, next < 1480);
        }
        assert_eq!(next, 1480);
        let identification =
            |piece: &PacketRef| store.fragment(*piece).expect("one").identification;
        let first = identification(&smaller[0]);
        assert!(smaller.iter().all(|piece| identification(piece) == first));
        // One fragment is lost; the others keep the original packet until they are gone.
        for piece in smaller {
            store.release(piece);
        }
        assert_eq!(
            (store.held(), store.references(), store.in_pieces()),
            (0, 0, 0)
        );
    }

    #[test]
    fn a_corrupt_fragment_corrupts_only_the_datagram_reassembled_from_it() {
        let mut store = PacketStore::default();
        let whole = segment(&mut store, 1460);
        let (mut pieces, mut copies) = (Vec::new(), Vec::new());
        store.divide(whole, 1000, &mut pieces);
        for piece in &pieces {
            copies.push(store.duplicate(*piece));
        }
        store.corrupt(pieces[0]);
        // Fragmented again, it stays corrupt.
        let mut smaller = Vec::new();
        store.divide(pieces[0], 576, &mut smaller);
        assert!(smaller.len() > 1);
        smaller.push(pieces[1]);
        let spoilt = store.join(smaller).expect("all are there");
        assert!(store.get(spoilt).is_corrupt());
        assert_eq!(store.get(spoilt).length().get(), 1500);
        let sound = store.join(copies).expect("all are there");
        assert!(store.get(sound).is_tcp());
        assert_eq!(store.get(sound).payload_length, 1460);
        store.release(spoilt);
        store.release(sound);
        assert_eq!((store.held(), store.in_pieces()), (0, 0));
    }

    #[test]
    fn a_tunnelled_packet_is_fragmented_with_its_outer_header() {
        let mut store = PacketStore::default();
        let whole = segment(&mut store, 536);
        store.set_tunnel(
            whole,
            Some(Tunnel {
                source: Address(7),
                destination: Address(9),
            }),
        );
        store.get_mut(whole).header_length += 20;
        let mut pieces = Vec::new();
        store.divide(whole, 576, &mut pieces);
        assert_eq!(layout(&store, &pieces), [(0, 552, true), (552, 24, false)]);
        for piece in &pieces {
            let record = store.get(*piece);
            assert_eq!(record.protocol(), TUNNELLED);
            assert_eq!(record.destination.address, Address(9));
        }
        let joined = store.join(pieces).expect("all are there");
        assert!(store.tunnel(joined).is_some());
        store.release(joined);
        assert_eq!(store.references(), 0);
    }

    #[test]
    fn a_copy_of_a_fragment_keeps_the_original_datagram() {
        let mut store = PacketStore::default();
        let whole = segment(&mut store, 1460);
        let mut pieces = Vec::new();
        store.divide(whole, 1000, &mut pieces);
        let copy = store.duplicate(pieces[1]);
        let joined = store.join(pieces).expect("all are there");
        store.get_mut(joined).payload_length = 1;
        let kept = store.whole_of(copy).expect("kept");
        assert_eq!(store.get(kept).payload_length, 1460);
        store.release(copy);
        store.release(joined);
        assert_eq!((store.held(), store.references()), (0, 0));
    }
}
