//! What a packet of a real network has beside its record: bytes, IP addresses, hops.
//!
//! The record of a packet that came off a wire says what the network's boxes look at; its bytes say
//! all that there is. They are never written again: whoever changes a packet changes its record, and
//! where it leaves, what record and bytes disagree on is patched (`bentpipe_wire`). So copies share
//! their bytes, and cannot see one another's changes.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::pool::BufferRef;
use crate::{Address, IpVersion, Packet, PacketRef, PacketStore, PoolFull};

/// Of few packets of a simulation, of all of a real network's.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Beside {
    pub(crate) ip: Option<(IpAddr, IpAddr)>,
    pub(crate) bytes: Option<Kept>,
    /// Routers that it has passed.
    pub(crate) hops: u8,
}

/// Bytes of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    pub(crate) buffer: BufferRef,
    /// Where the payload starts; at 0 it is alone.
    payload_at: u8,
    /// What it leaves with more hops than is that of a packet that goes no further.
    hop_limit: u8,
    /// Bytes at the beginning of the payload that are the packet's no more.
    cut: u16,
}

impl PacketStore {
    /// Stores a packet that came off a wire, with its bytes: `record.length()` of them, the payload
    /// behind `record.header_length`.
    ///
    /// # Errors
    /// When packets' bytes take as much memory as they may; nothing is stored then.
    pub fn insert_with_bytes(
        &mut self,
        record: Packet,
        bytes: &[u8],
    ) -> Result<PacketRef, PoolFull> {
        debug_assert_eq!(record.length().get(), bytes.len() as u64);
        let buffer = self.pool.copy(bytes)?;
        let payload_at = record.header_length;
        let hop_limit = hop_limit(bytes);
        let reference = self.insert(record);
        self.beside_mut(reference).bytes = Some(Kept {
            buffer,
            payload_at,
            hop_limit,
            cut: 0,
        });
        Ok(reference)
    }

    /// The bytes that the packet came with; `None` of one that was made inside the network. They
    /// are as they came, whatever has become of the record since.
    #[must_use]
    pub fn bytes(&self, reference: PacketRef) -> Option<&[u8]> {
        let kept = self.beside(reference)?.bytes?;
        (kept.payload_at > 0).then(|| self.pool.bytes(kept.buffer))
    }

    /// The payload, of a packet that has one of bytes: `payload_length` of them.
    #[must_use]
    pub fn payload(&self, reference: PacketRef) -> Option<&[u8]> {
        let kept = self.beside(reference)?.bytes?;
        let length = usize::from(self.get(reference).payload_length);
        let start = usize::from(kept.payload_at) + usize::from(kept.cut);
        self.pool.bytes(kept.buffer).get(start..start + length)
    }

    /// Makes a segment the part of it that begins so many bytes `behind` its first and has `length` of them. Bytes
    /// that it came with are as they came: [`cut_in_front`](Self::cut_in_front) says where in them the part begins.
    pub fn cut(&mut self, reference: PacketRef, behind: u16, length: u16) {
        let record = self.get_mut(reference);
        debug_assert!(record.is_tcp() && behind.saturating_add(length) <= record.payload_length);
        record.sequence += u32::from(behind);
        record.payload_offset += u64::from(behind);
        record.payload_length = length;
        if behind > 0
            && self
                .beside(reference)
                .is_some_and(|beside| beside.bytes.is_some())
            && let Some(kept) = &mut self.beside_mut(reference).bytes
        {
            kept.cut += behind;
        }
    }

    /// How much of the payload's beginning was cut off, of a packet that came with bytes.
    #[must_use]
    pub fn cut_in_front(&self, reference: PacketRef) -> u16 {
        let kept = self.beside(reference).and_then(|beside| beside.bytes);
        kept.map_or(0, |kept| kept.cut)
    }

    /// Gives a packet its payload: the record's `payload_length` bytes, which `write` makes of what
    /// is there. The bytes it came with, if any, are let go.
    pub fn set_payload(&mut self, reference: PacketRef, write: impl FnOnce(&mut [u8])) {
        let length = usize::from(self.get(reference).payload_length);
        let buffer = self.pool.fill(length, write);
        let kept = Kept {
            buffer,
            payload_at: 0,
            hop_limit: 0,
            cut: 0,
        };
        if let Some(before) = self.beside_mut(reference).bytes.replace(kept) {
            self.pool.release(before.buffer);
        }
    }

    /// Turns the last bit of the bytes that a packet came with; copies of it keep theirs.
    pub(crate) fn corrupt_bytes(&mut self, reference: PacketRef) {
        let kept = self.beside(reference).and_then(|beside| beside.bytes);
        let Some(kept) = kept.filter(|kept| kept.payload_at > 0) else {
            return;
        };
        let mut bytes = self.pool.bytes(kept.buffer).to_vec();
        if let Some(last) = bytes.last_mut() {
            *last ^= 1;
        }
        let buffer = self
            .pool
            .fill(bytes.len(), |copy| copy.copy_from_slice(&bytes));
        self.pool.release(kept.buffer);
        self.beside_mut(reference).bytes = Some(Kept { buffer, ..kept });
    }

    /// The real addresses, source first; `None` where there are only nodes.
    #[must_use]
    pub fn ip(&self, reference: PacketRef) -> Option<(IpAddr, IpAddr)> {
        self.beside(reference)?.ip
    }

    /// Gives a packet real addresses, source first: one that a gateway makes for a real flow, say.
    pub fn set_ip(&mut self, reference: PacketRef, ip: (IpAddr, IpAddr)) {
        self.beside_mut(reference).ip = Some(ip);
    }

    /// Routers that the packet has passed, of one of a real network.
    #[must_use]
    pub fn hops(&self, reference: PacketRef) -> u8 {
        self.beside(reference).map_or(0, |beside| beside.hops)
    }

    /// A router sends the packet on. False where that is one hop more than it may go (RFC 1812
    /// section 5.3.1); packets without bytes may go any number.
    #[inline]
    pub fn hop(&mut self, reference: PacketRef) -> bool {
        !self.counts_hops(reference) || self.hop_counted(reference)
    }

    /// Might the packet be one that may go so many hops? One that is its record alone may go any number.
    #[inline]
    #[must_use]
    pub fn counts_hops(&self, reference: PacketRef) -> bool {
        self.get(reference).extension().is_some()
    }

    #[inline(never)]
    fn hop_counted(&mut self, reference: PacketRef) -> bool {
        let Some(index) = self
            .extension_of(self.get(reference))
            .and_then(|e| e.beside)
        else {
            return true;
        };
        let beside = &mut self.besides[index as usize];
        beside.hops = beside.hops.saturating_add(1);
        beside
            .bytes
            .is_none_or(|kept| kept.payload_at == 0 || beside.hops < kept.hop_limit)
    }

    /// This holder's own packet to change: the packet itself where nobody else holds it, else a
    /// copy, of which this is the only holder.
    pub fn unshare(&mut self, reference: PacketRef) -> PacketRef {
        if self.get(reference).references == 1 {
            return reference;
        }
        let copy = self.duplicate(reference);
        self.release(reference);
        copy
    }

    /// The most memory that the bytes of packets from outside may take: 256 MiB, unless said
    /// otherwise. Payloads of packets made here are not refused: their makers have buffers that
    /// bound them.
    pub fn limit_bytes(&mut self, limit: usize) {
        self.pool.set_limit(limit);
    }

    /// Memory that packets' bytes have, in bytes, what is free to be used again included.
    #[must_use]
    pub fn bytes_allocated(&self) -> usize {
        self.pool.allocated()
    }

    fn beside(&self, reference: PacketRef) -> Option<&Beside> {
        let index = self.extension_of(self.get(reference))?.beside?;
        Some(&self.besides[index as usize])
    }

    fn beside_mut(&mut self, reference: PacketRef) -> &mut Beside {
        let index = match self.extend(reference).beside {
            Some(index) => index,
            None => {
                let index = self.new_beside(Beside::default());
                self.extend(reference).beside = Some(index);
                index
            }
        };
        &mut self.besides[index as usize]
    }

    fn new_beside(&mut self, beside: Beside) -> u32 {
        if let Some(index) = self.free_besides.pop() {
            self.besides[index as usize] = beside;
            return index;
        }
        self.besides.push(beside);
        (self.besides.len() - 1) as u32
    }

    /// Another packet's own, with the same bytes.
    pub(crate) fn copy_beside(&mut self, index: u32) -> u32 {
        let beside = self.besides[index as usize];
        if let Some(kept) = beside.bytes {
            self.pool.retain(kept.buffer);
        }
        self.new_beside(beside)
    }

    pub(crate) fn release_beside(&mut self, index: u32) {
        if let Some(kept) = self.besides[index as usize].bytes.take() {
            self.pool.release(kept.buffer);
        }
        self.free_besides.push(index);
    }
}

/// The hops that a packet's header lets it go: time to live, or hop limit.
fn hop_limit(bytes: &[u8]) -> u8 {
    let at = match bytes.first().map(|first| first >> 4) {
        Some(6) => 7,
        _ => 8,
    };
    bytes.get(at).copied().unwrap_or(0)
}

/// One end of a flow: a node of the network, or, of a real flow, an IP address; and the port.
///
/// One attached node can stand for many addresses, and they all keep their own flows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Party {
    /// Who.
    pub host: HostAddress,
    /// The port; 0 of a protocol without ports.
    pub port: u16,
}

/// Who is at one end of a flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum HostAddress {
    /// A node of the network.
    Node(Address),
    /// A real address.
    Ip(IpAddr),
}

/// What tells one flow from another: who sends, who is to get it, the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct FlowKey {
    /// Who sends.
    pub source: Party,
    /// Who is to get it.
    pub destination: Party,
    /// IANA protocol number.
    pub protocol: u8,
}

impl FlowKey {
    /// The flow that a packet belongs to.
    #[must_use]
    pub fn of(packets: &PacketStore, reference: PacketRef) -> Self {
        let packet = packets.get(reference);
        let (source, destination) = match packets.ip(reference) {
            Some((source, destination)) => (HostAddress::Ip(source), HostAddress::Ip(destination)),
            None => (
                HostAddress::Node(packet.source.address),
                HostAddress::Node(packet.destination.address),
            ),
        };
        Self {
            source: Party {
                host: source,
                port: packet.source.port,
            },
            destination: Party {
                host: destination,
                port: packet.destination.port,
            },
            protocol: packet.protocol(),
        }
    }

    /// The version of IP, where its ends have real addresses.
    #[must_use]
    pub fn ip_version(&self) -> Option<IpVersion> {
        match self.destination.host {
            HostAddress::Node(_) => None,
            HostAddress::Ip(IpAddr::V4(_)) => Some(IpVersion::V4),
            HostAddress::Ip(IpAddr::V6(_)) => Some(IpVersion::V6),
        }
    }

    /// The flow of the packets that go the other way.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
            protocol: self.protocol,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bytes, Endpoint, IpVersion, SackBlock, SackBlocks, Seq};

    fn off_a_wire(store: &mut PacketStore, bytes: &[u8]) -> PacketRef {
        let mut record = Packet::new(Endpoint::default(), Endpoint::default(), IpVersion::V4);
        record.payload_length = bytes.len() as u16 - 40;
        store.insert_with_bytes(record, bytes).expect("room")
    }

    fn datagram(hop_limit: u8) -> Vec<u8> {
        let mut bytes = vec![0; 50];
        bytes[0] = 0x45;
        bytes[8] = hop_limit;
        bytes[40..].copy_from_slice(b"0123456789");
        bytes
    }

    #[test]
    fn copies_share_bytes_and_nothing_else() {
        let mut store = PacketStore::default();
        let bytes = datagram(64);
        let first = off_a_wire(&mut store, &bytes);
        let ip = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        store.set_ip(first, ip);
        store.retain(first);
        let own = store.unshare(first);
        assert_ne!(own, first);
        let used = store.bytes_allocated();
        store.get_mut(own).acknowledgment = Seq::new(7);
        store.set_ip(own, (ip.1, ip.0));
        let block = SackBlock::default();
        store.set_sack_blocks(own, &SackBlocks::from_iter([block]));
        assert_eq!(store.ip(first), Some(ip));
        assert_eq!(store.get(first).acknowledgment, Seq::new(0));
        assert_eq!(store.bytes(own), Some(&bytes[..]));
        assert_eq!(store.payload(own), Some(&b"0123456789"[..]));
        store.set_payload(own, |payload| payload.fill(b'x'));
        assert_eq!(store.bytes(own), None);
        assert_eq!(store.payload(own), Some(&b"xxxxxxxxxx"[..]));
        assert_eq!(store.payload(first), Some(&b"0123456789"[..]));
        assert!(used < store.bytes_allocated());
        let bare = store.duplicate_bare(first);
        assert_eq!(store.bytes(bare), Some(&bytes[..]));
        assert_eq!(store.ip(bare), Some(ip));
        for packet in [first, own, bare] {
            store.release(packet);
        }
        assert_eq!(store.held(), 0);
        // All of it is free: the next two packets take no new memory.
        let used = store.bytes_allocated();
        let again = [
            off_a_wire(&mut store, &bytes),
            off_a_wire(&mut store, &bytes),
        ];
        assert_eq!(store.ip(again[0]), None);
        assert_eq!(store.unshare(again[0]), again[0]);
        assert!(store.bytes_allocated() <= used + 50);
    }

    #[test]
    fn parts_of_a_segment_have_their_part_of_its_bytes() {
        let mut store = PacketStore::default();
        let bytes = datagram(64);
        let whole = off_a_wire(&mut store, &bytes);
        let first = store.duplicate(whole);
        store.cut(first, 0, 4);
        let rest = store.duplicate(whole);
        store.cut(rest, 4, 6);
        let last = store.duplicate(rest);
        store.cut(last, 5, 1);
        for (part, payload, at) in [
            (whole, "0123456789", 0),
            (first, "0123", 0),
            (rest, "456789", 4),
            (last, "9", 9),
        ] {
            assert_eq!(store.payload(part), Some(payload.as_bytes()));
            assert_eq!(store.bytes(part), Some(&bytes[..]));
            assert_eq!(store.get(part).sequence, Seq::new(at));
            assert_eq!(store.get(part).payload_offset, u64::from(at));
            assert_eq!(u32::from(store.cut_in_front(part)), at);
        }
        // One that was made here, with a payload of its own, and one without bytes.
        let mut record = Packet::new(Endpoint::default(), Endpoint::default(), IpVersion::V6);
        record.payload_length = 5;
        let made = store.insert(record);
        let bare = store.insert(record);
        store.set_payload(made, |payload| payload.copy_from_slice(b"abcde"));
        store.cut(made, 3, 2);
        store.cut(bare, 3, 2);
        assert_eq!(store.payload(made), Some(&b"de"[..]));
        assert_eq!(store.payload(bare), None);
        assert_eq!((store.cut_in_front(made), store.cut_in_front(bare)), (3, 0));
    }

    #[test]
    fn a_packet_goes_as_many_hops_as_it_may() {
        let mut store = PacketStore::default();
        let packet = off_a_wire(&mut store, &datagram(3));
        assert!(store.hop(packet));
        assert!(store.hop(packet));
        assert!(!store.hop(packet));
        assert_eq!(store.hops(packet), 3);
        let record = Packet::new(Endpoint::default(), Endpoint::default(), IpVersion::V6);
        let made = store.insert(record);
        assert!((0..300).all(|_| store.hop(made)));
        store.set_ip(made, ([0; 16].into(), [1; 16].into()));
        assert!((0..300).all(|_| store.hop(made)));
    }

    #[test]
    fn a_full_pool_stores_nothing() {
        let mut store = PacketStore::default();
        store.limit_bytes(300);
        let first = off_a_wire(&mut store, &datagram(1));
        let record = *store.get(first);
        let mut long = Packet::new(Endpoint::default(), Endpoint::default(), IpVersion::V4);
        long.payload_length = 1000;
        assert!(store.insert_with_bytes(long, &[0; 1040]).is_err());
        assert_eq!(store.held(), 1);
        assert_eq!(record.length(), Bytes::new(50));
    }

    #[test]
    fn two_real_flows_between_the_same_nodes_are_two() {
        let mut store = PacketStore::default();
        let first = off_a_wire(&mut store, &datagram(1));
        let second = off_a_wire(&mut store, &datagram(1));
        assert_eq!(FlowKey::of(&store, first), FlowKey::of(&store, second));
        store.set_ip(first, ([192, 0, 2, 1].into(), [192, 0, 2, 9].into()));
        store.set_ip(second, ([192, 0, 2, 2].into(), [192, 0, 2, 9].into()));
        let key = FlowKey::of(&store, first);
        assert_ne!(key, FlowKey::of(&store, second));
        assert_eq!(key.reversed().reversed(), key);
        assert_ne!(key.reversed(), key);
    }
}
