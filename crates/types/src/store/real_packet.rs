//! Data that a real packet has beside its record: bytes, IP addresses, hops.
//!
//! The record contains what nodes look at; the bytes contain everything. Bytes are never rewritten:
//! a node that changes a packet changes its record, and on output `bentpipe_wire` patches the
//! differences into a copy of the bytes. Copies of a packet therefore share their bytes and cannot
//! see each other's changes.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::pool::BufferRef;
use crate::{Address, IpFields, IpVersion, Packet, PacketRef, PacketStore, PoolFull};

/// Extension of a packet: few simulated packets have one, all real packets do.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct RealPacket {
    pub(crate) ip: Option<(IpAddr, IpAddr)>,
    pub(crate) bytes: Option<PacketBytes>,
    /// IP header fields of a packet created in the network, unless they are the default.
    fields: Option<IpFields>,
    /// Number of routers that the packet has passed.
    pub(crate) hops: u8,
}

/// The bytes of a packet in the pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketBytes {
    pub(crate) buffer: BufferRef,
    /// Offset of the payload. Zero if the buffer contains the payload alone.
    payload_at: u8,
    /// Hop limit of the packet when it arrived. A packet with as many hops goes no further.
    hop_limit: u8,
    /// Bytes cut off the beginning of the payload.
    cut: u16,
}

/// A real packet's data on its way from one store to another.
#[derive(Clone, Debug)]
pub(crate) struct MovedRealPacket {
    real_packet: RealPacket,
    /// Contents of its buffer.
    bytes: Vec<u8>,
}

impl PacketStore {
    /// Stores a packet received from a wire with its bytes: `record.length()` bytes, with the
    /// payload behind `record.header_length`.
    ///
    /// # Errors
    /// Returns an error, and stores nothing, if the bytes would exceed the memory limit.
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
        self.real_packet_mut(reference).bytes = Some(PacketBytes {
            buffer,
            payload_at,
            hop_limit,
            cut: 0,
        });
        Ok(reference)
    }

    /// Returns the bytes with which the packet arrived, unchanged, or `None` for a packet created
    /// inside the network.
    #[must_use]
    pub fn bytes(&self, reference: PacketRef) -> Option<&[u8]> {
        let stored = self.real_packet(reference)?.bytes?;
        (stored.payload_at > 0).then(|| self.pool.bytes(stored.buffer))
    }

    /// Returns the payload of a packet with bytes: `payload_length` of them.
    #[must_use]
    pub fn payload(&self, reference: PacketRef) -> Option<&[u8]> {
        let stored = self.real_packet(reference)?.bytes?;
        let length = usize::from(self.get(reference).payload_length);
        let start = usize::from(stored.payload_at) + usize::from(stored.cut);
        self.pool.bytes(stored.buffer).get(start..start + length)
    }

    /// Reduces a segment to the part that begins `behind` bytes after its first byte and has
    /// `length` bytes. Its original bytes stay unchanged; [`cut_in_front`](Self::cut_in_front)
    /// returns the offset of the part in them.
    pub fn cut(&mut self, reference: PacketRef, behind: u16, length: u16) {
        let record = self.get_mut(reference);
        debug_assert!(record.is_tcp() && behind.saturating_add(length) <= record.payload_length);
        record.sequence += u32::from(behind);
        record.payload_offset += u64::from(behind);
        record.payload_length = length;
        if behind > 0
            && self
                .real_packet(reference)
                .is_some_and(|real_packet| real_packet.bytes.is_some())
            && let Some(stored) = &mut self.real_packet_mut(reference).bytes
        {
            stored.cut += behind;
        }
    }

    /// Returns the number of payload bytes cut off in front, for a packet with bytes.
    #[must_use]
    pub fn cut_in_front(&self, reference: PacketRef) -> u16 {
        let stored = self
            .real_packet(reference)
            .and_then(|real_packet| real_packet.bytes);
        stored.map_or(0, |stored| stored.cut)
    }

    /// Replaces a packet's payload by the record's `payload_length` bytes, which `write` fills.
    /// Releases the previous bytes.
    pub fn set_payload(&mut self, reference: PacketRef, write: impl FnOnce(&mut [u8])) {
        let length = usize::from(self.get(reference).payload_length);
        let buffer = self.pool.fill(length, write);
        let stored = PacketBytes {
            buffer,
            payload_at: 0,
            hop_limit: 0,
            cut: 0,
        };
        if let Some(before) = self.real_packet_mut(reference).bytes.replace(stored) {
            self.pool.release(before.buffer);
        }
    }

    /// Inverts the last bit of a packet's bytes. Copies keep theirs.
    pub(crate) fn corrupt_bytes(&mut self, reference: PacketRef) {
        let stored = self
            .real_packet(reference)
            .and_then(|real_packet| real_packet.bytes);
        let Some(stored) = stored.filter(|stored| stored.payload_at > 0) else {
            return;
        };
        let mut bytes = self.pool.bytes(stored.buffer).to_vec();
        if let Some(last) = bytes.last_mut() {
            *last ^= 1;
        }
        let buffer = self
            .pool
            .fill(bytes.len(), |copy| copy.copy_from_slice(&bytes));
        self.pool.release(stored.buffer);
        self.real_packet_mut(reference).bytes = Some(PacketBytes { buffer, ..stored });
    }

    /// Returns the real addresses, source first, or `None` for a packet between nodes.
    #[must_use]
    pub fn ip(&self, reference: PacketRef) -> Option<(IpAddr, IpAddr)> {
        self.real_packet(reference)?.ip
    }

    /// Sets a packet's real addresses, source first, for example for a gateway's own packets.
    pub fn set_ip(&mut self, reference: PacketRef, ip: (IpAddr, IpAddr)) {
        self.real_packet_mut(reference).ip = Some(ip);
    }

    /// Returns the IP header fields of a packet: those that it arrived with, with the hop limit
    /// that is left, or those set by [`set_ip_fields`](Self::set_ip_fields).
    #[must_use]
    pub fn ip_fields(&self, reference: PacketRef) -> Option<IpFields> {
        let real_packet = self.real_packet(reference)?;
        match self.bytes(reference) {
            Some(bytes) => IpFields::read(bytes, real_packet.hops),
            None => real_packet.fields,
        }
    }

    /// Sets the IP header fields of a packet created in the network.
    pub fn set_ip_fields(&mut self, reference: PacketRef, fields: IpFields) {
        self.real_packet_mut(reference).fields = Some(fields);
    }

    /// Returns the number of routers that a real packet has passed.
    #[must_use]
    pub fn hops(&self, reference: PacketRef) -> u8 {
        self.real_packet(reference)
            .map_or(0, |real_packet| real_packet.hops)
    }

    /// Counts one hop. Returns false if the hop limit is exceeded (RFC 1812 section 5.3.1). Packets
    /// without bytes have no limit.
    #[inline]
    pub fn hop(&mut self, reference: PacketRef) -> bool {
        !self.counts_hops(reference) || self.hop_counted(reference)
    }

    /// Whether the packet may have a hop limit. A packet without an extension has none.
    #[inline]
    #[must_use]
    pub fn counts_hops(&self, reference: PacketRef) -> bool {
        self.get(reference).extension().is_some()
    }

    #[inline(never)]
    fn hop_counted(&mut self, reference: PacketRef) -> bool {
        let Some(index) = self
            .extension_of(self.get(reference))
            .and_then(|e| e.real_packet)
        else {
            return true;
        };
        let real_packet = &mut self.real_packets[index as usize];
        real_packet.hops = real_packet.hops.saturating_add(1);
        real_packet
            .bytes
            .is_none_or(|stored| stored.payload_at == 0 || real_packet.hops < stored.hop_limit)
    }

    /// Returns a packet that only this holder references: the packet itself if nobody else holds
    /// it, or a copy.
    pub fn unshare(&mut self, reference: PacketRef) -> PacketRef {
        if self.get(reference).references == 1 {
            return reference;
        }
        let copy = self.duplicate(reference);
        self.release(reference);
        copy
    }

    /// Sets the memory limit for the bytes of received packets; the default is 256 MiB. Payloads of
    /// packets created here are not limited: the buffers of their senders bound them.
    pub fn limit_bytes(&mut self, limit: usize) {
        self.pool.set_limit(limit);
    }

    /// Returns the memory allocated for packet bytes, including free buffers.
    #[must_use]
    pub fn bytes_allocated(&self) -> usize {
        self.pool.allocated()
    }

    fn real_packet(&self, reference: PacketRef) -> Option<&RealPacket> {
        let index = self.extension_of(self.get(reference))?.real_packet?;
        Some(&self.real_packets[index as usize])
    }

    fn real_packet_mut(&mut self, reference: PacketRef) -> &mut RealPacket {
        let index = match self.extend(reference).real_packet {
            Some(index) => index,
            None => {
                let index = self.new_real_packet(RealPacket::default());
                self.extend(reference).real_packet = Some(index);
                index
            }
        };
        &mut self.real_packets[index as usize]
    }

    fn new_real_packet(&mut self, real_packet: RealPacket) -> u32 {
        if let Some(index) = self.free_real_packets.pop() {
            self.real_packets[index as usize] = real_packet;
            return index;
        }
        self.real_packets.push(real_packet);
        (self.real_packets.len() - 1) as u32
    }

    /// Copies the extension of another packet, sharing its bytes.
    pub(crate) fn copy_real_packet(&mut self, index: u32) -> u32 {
        let real_packet = self.real_packets[index as usize];
        if let Some(stored) = real_packet.bytes {
            self.pool.retain(stored.buffer);
        }
        self.new_real_packet(real_packet)
    }

    /// Returns a copy for another store.
    pub(crate) fn moved_real_packet(&self, index: u32) -> MovedRealPacket {
        let real_packet = self.real_packets[index as usize];
        let bytes = real_packet
            .bytes
            .map(|stored| self.pool.bytes(stored.buffer));
        MovedRealPacket {
            real_packet,
            bytes: bytes.map(<[u8]>::to_vec).unwrap_or_default(),
        }
    }

    /// Stores one from another store, and returns its index.
    pub(crate) fn insert_real_packet(&mut self, moved: MovedRealPacket) -> u32 {
        let MovedRealPacket {
            mut real_packet,
            bytes,
        } = moved;
        if let Some(stored) = &mut real_packet.bytes {
            let copy = |to: &mut [u8]| to.copy_from_slice(&bytes);
            stored.buffer = self.pool.fill(bytes.len(), copy);
        }
        self.new_real_packet(real_packet)
    }

    pub(crate) fn release_real_packet(&mut self, index: u32) {
        if let Some(stored) = self.real_packets[index as usize].bytes.take() {
            self.pool.release(stored.buffer);
        }
        self.free_real_packets.push(index);
    }
}

/// Returns the hop limit in an IP header: time to live (IPv4) or hop limit (IPv6).
fn hop_limit(bytes: &[u8]) -> u8 {
    let at = match bytes.first().map(|first| first >> 4) {
        Some(6) => 7,
        _ => 8,
    };
    bytes.get(at).copied().unwrap_or(0)
}

/// One end of a flow: a node, or the IP address of a real host, with a port.
///
/// One attached node can stand for many IP addresses, each with its own flows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Party {
    /// Host of this end.
    pub host: HostAddress,
    /// Port; 0 for protocols without ports.
    pub port: u16,
}

impl std::fmt::Display for Party {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.host {
            HostAddress::Ip(ip) => std::net::SocketAddr::new(ip, self.port).fmt(f),
            HostAddress::Node(node) => write!(f, "node {}:{}", node.0, self.port),
        }
    }
}

/// Address of a host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum HostAddress {
    /// A node of the network.
    Node(Address),
    /// A real address.
    Ip(IpAddr),
}

/// Identifies a flow by its two ends and its protocol.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct FlowKey {
    /// Sender.
    pub source: Party,
    /// Receiver.
    pub destination: Party,
    /// IANA protocol number.
    pub protocol: u8,
}

impl FlowKey {
    /// Returns the flow of a packet.
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

    /// Returns the IP version if the flow's ends have real addresses.
    #[must_use]
    pub fn ip_version(&self) -> Option<IpVersion> {
        match self.destination.host {
            HostAddress::Node(_) => None,
            HostAddress::Ip(IpAddr::V4(_)) => Some(IpVersion::V4),
            HostAddress::Ip(IpAddr::V6(_)) => Some(IpVersion::V6),
        }
    }

    /// Returns the flow of the opposite direction.
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
    fn copies_share_only_their_bytes() {
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
        // All buffers are free: the next two packets allocate no memory.
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
    fn parts_of_a_segment_have_the_matching_bytes() {
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
        // One packet created here with its own payload, and one without bytes.
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
    fn packets_are_forwarded_up_to_their_hop_limit() {
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
    fn a_full_pool_refuses_packets() {
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
    fn real_flows_between_the_same_nodes_are_distinguished() {
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
