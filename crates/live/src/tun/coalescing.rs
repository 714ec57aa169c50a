//! Joins consecutive segments or datagrams of a flow, so that one write to a TUN device carries up
//! to 64 KiB.
//!
//! The kernel takes such a packet through its network code once, and divides it into the original
//! segments where a device needs that (segmentation offload, virtio 1.2 section 5.1.6.2). Segments
//! are joined under the conditions of the kernel's own receive offload (`tcp_gro_receive`): only
//! sequence number, length and PSH differ. UDP datagrams are joined if they have the same length
//! (`udp_gro_receive`) and consecutive identifications, and the kernel takes them (from Linux 6.2).
//!
//! The kernel calculates the checksums anew. So packets with a wrong one, which a receiver would
//! drop, are not joined.
//!
//! Only new data is joined. A retransmission that new data is appended to would be a segment that
//! overlaps received data in part, which no sender has made. Linux 6.18 loses track of the stream
//! when such a segment arrives on a Multipath TCP connection that has fallen back to TCP.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bentpipe_wire::checksum::{Sum, checksum};
use tun_rs::VIRTIO_NET_HDR_LEN;

use super::sent_sequences::SentSequences;

/// Longest packet in bytes.
const MAX_LENGTH: usize = 65_535;

/// Number of latest packets that are searched for the flow of a new one.
const SEARCHED: usize = 32;

// IANA protocol numbers.
const TCP: u8 = 6;
const UDP: u8 = 17;

// TCP's flags.
const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;

// Fields of the virtio header (virtio_net.h).
const NEEDS_CHECKSUM: u8 = 1;
const SEGMENTS_V4: u8 = 1;
const SEGMENTS_V6: u8 = 4;
const DATAGRAMS: u8 = 5;

/// Headers of a segment or datagram that may be joined with others.
#[derive(Clone, Copy, Debug)]
struct Segment {
    is_datagram: bool,
    ip_length: usize,
    headers: usize,
    payload: usize,
    sequence: u32,
    flags: u8,
}

/// A packet to be written: one, or several joined segments.
#[derive(Debug, Default)]
struct Joined {
    bytes: Vec<u8>,
    /// The first segment, if it may be joined with others.
    first: Option<Segment>,
    /// Number of segments.
    count: usize,
    next_sequence: u32,
    /// Whether another segment may follow.
    is_open: bool,
}

/// Packets to be written to a device, in order, joined where possible.
#[derive(Debug, Default)]
pub(super) struct Coalescer {
    packets: Vec<Joined>,
    /// Number of entries in use; further ones keep their buffers.
    used: usize,
    sent: SentSequences,
    /// Whether the kernel takes joined datagrams.
    joins_datagrams: bool,
}

/// Position of the transport header, if a packet has this protocol, no IP options and is no
/// fragment.
fn transport_start(packet: &[u8], protocol: u8) -> Option<usize> {
    match packet.first()? >> 4 {
        4 if packet[0] & 15 == 5
            && *packet.get(9)? == protocol
            // Neither more fragments nor an offset.
            && packet.get(6)? & 0x3f == 0
            && packet[7] == 0 =>
        {
            Some(20)
        }
        6 if *packet.get(6)? == protocol => Some(40),
        _ => None,
    }
}

/// Source and destination address of an IP packet with a complete header.
fn addresses(packet: &[u8]) -> (IpAddr, IpAddr) {
    if packet[0] >> 4 == 4 {
        let at = |at: usize| -> IpAddr {
            Ipv4Addr::from([packet[at], packet[at + 1], packet[at + 2], packet[at + 3]]).into()
        };
        (at(12), at(16))
    } else {
        let at = |at: usize| -> IpAddr {
            let mut octets = [0; 16];
            octets.copy_from_slice(&packet[at..at + 16]);
            Ipv6Addr::from(octets).into()
        };
        (at(8), at(24))
    }
}

/// Sum of the pseudo-header of a segment or datagram whose header begins at `start`.
fn pseudo_header(packet: &[u8], start: usize, is_datagram: bool) -> Sum {
    let (source, destination) = addresses(packet);
    let protocol = if is_datagram { UDP } else { TCP };
    Sum::default().pseudo_header_of(protocol, source, destination, packet.len() - start)
}

/// Whether the checksum of a segment or datagram is right.
fn has_valid_checksum(packet: &[u8], headers: &Segment) -> bool {
    let start = headers.ip_length;
    let sum = pseudo_header(packet, start, headers.is_datagram);
    sum.bytes(&packet[start..]).finish() == 0
}

/// IPv4's identification.
fn identification(packet: &[u8]) -> u16 {
    u16::from_be_bytes([packet[4], packet[5]])
}

/// Returns the headers of a TCP segment without IP options or fragmentation, with data and no flags
/// but ACK, PSH and FIN.
fn segment(packet: &[u8]) -> Option<Segment> {
    let ip_length = transport_start(packet, TCP)?;
    let header = packet.get(ip_length..)?.first_chunk::<20>()?;
    let headers = ip_length + usize::from(header[12] >> 4) * 4;
    let flags = header[13];
    let payload = packet.len().checked_sub(headers)?;
    (payload > 0 && flags & !(FIN | PSH) == ACK).then_some(Segment {
        is_datagram: false,
        ip_length,
        headers,
        payload,
        sequence: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
        flags,
    })
}

/// Returns the headers of a UDP datagram without IP options or fragmentation, with data and a
/// checksum.
fn datagram(packet: &[u8]) -> Option<Segment> {
    let ip_length = transport_start(packet, UDP)?;
    let header = packet.get(ip_length..)?.first_chunk::<8>()?;
    let headers = ip_length + 8;
    let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let is_complete = length == packet.len() - ip_length && length > 8;
    (is_complete && header[6..8] != [0, 0]).then_some(Segment {
        is_datagram: true,
        ip_length,
        headers,
        payload: length - 8,
        sequence: 0,
        flags: 0,
    })
}

impl Joined {
    /// Makes this a single packet. `first` has the headers of a segment that may be joined.
    fn set(&mut self, packet: &[u8], first: Option<Segment>) {
        self.bytes.clear();
        self.bytes.extend_from_slice(packet);
        self.first = first;
        self.count = 1;
        if let Some(first) = self.first {
            self.next_sequence = first.sequence.wrapping_add(first.payload as u32);
            self.is_open = first.flags & (FIN | PSH) == 0;
        }
    }

    /// Whether a segment belongs to the same flow: protocol, addresses and ports.
    fn is_same_flow(&self, first: &Segment, next: &Segment, other: &[u8]) -> bool {
        let addresses = if first.ip_length == 20 { 12..20 } else { 8..40 };
        let ports = first.ip_length..first.ip_length + 4;
        self.bytes[0] >> 4 == other[0] >> 4
            && first.is_datagram == next.is_datagram
            && self.bytes[addresses.clone()] == other[addresses]
            && self.bytes[ports.clone()] == other[ports]
    }

    /// Appends a segment of the same flow if it continues this one. Returns false if it does not.
    fn append(&mut self, first: &Segment, next: &Segment, packet: &[u8]) -> bool {
        let own = &self.bytes;
        let ip = first.ip_length;
        let same = |range: std::ops::Range<usize>| own[range.clone()] == packet[range];
        let same_ip = if ip == 20 {
            // All but the length, the identification, the checksum and the addresses. The kernel
            // increments the identification, which is without a meaning only if DF is set
            // (RFC 6864 section 4.1).
            let following = identification(own).wrapping_add(self.count as u16);
            let is_atomic = !first.is_datagram && own[6] & 0x40 != 0;
            same(0..2) && same(6..10) && (is_atomic || identification(packet) == following)
        } else {
            same(0..4) && same(6..8)
        };
        let continues = self.is_open
            && next.ip_length == ip
            && next.headers == first.headers
            && (first.is_datagram || next.sequence == self.next_sequence)
            && next.payload <= first.payload
            && own.len() + next.payload <= MAX_LENGTH
            && same_ip
            // Acknowledgment and data offset, window, urgent pointer and options.
            && (first.is_datagram
                || same(ip + 8..ip + 13)
                    && same(ip + 14..ip + 16)
                    && same(ip + 18..first.headers));
        if continues {
            self.bytes.extend_from_slice(&packet[next.headers..]);
            if !first.is_datagram {
                self.bytes[ip + 13] |= next.flags;
            }
            self.count += 1;
            self.next_sequence = self.next_sequence.wrapping_add(next.payload as u32);
            // Only the last segment may be shorter, or have FIN or PSH.
            self.is_open = next.payload == first.payload && next.flags & (FIN | PSH) == 0;
        }
        continues
    }

    /// Completes the headers of joined segments, and returns the virtio header.
    fn seal(&mut self) -> [u8; VIRTIO_NET_HDR_LEN] {
        let mut offload = [0; VIRTIO_NET_HDR_LEN];
        let Some(first) = self.first.filter(|_| self.count > 1) else {
            return offload;
        };
        let (ip, length) = (first.ip_length, self.bytes.len());
        let bytes = &mut self.bytes;
        let segments = if ip == 20 {
            bytes[2..4].copy_from_slice(&(length as u16).to_be_bytes());
            bytes[10..12].fill(0);
            let sum = checksum(&bytes[..20]);
            bytes[10..12].copy_from_slice(&sum.to_be_bytes());
            SEGMENTS_V4
        } else {
            bytes[4..6].copy_from_slice(&((length - ip) as u16).to_be_bytes());
            SEGMENTS_V6
        };
        let (kind, checksum_offset) = if first.is_datagram {
            bytes[ip + 4..ip + 6].copy_from_slice(&((length - ip) as u16).to_be_bytes());
            (DATAGRAMS, 6)
        } else {
            (segments, 16)
        };
        // The kernel continues the sum of the pseudo-header.
        let sum = !pseudo_header(bytes, ip, first.is_datagram).finish();
        let at = ip + checksum_offset;
        bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        offload[0] = NEEDS_CHECKSUM;
        offload[1] = kind;
        for (at, value) in [
            (2, first.headers),
            (4, first.payload),
            (6, ip),
            (8, checksum_offset),
        ] {
            offload[at..at + 2].copy_from_slice(&(value as u16).to_ne_bytes());
        }
        offload
    }
}

impl Coalescer {
    /// Creates a coalescer for a kernel that takes joined datagrams or does not.
    pub(super) fn new(joins_datagrams: bool) -> Self {
        Self {
            joins_datagrams,
            ..Self::default()
        }
    }

    /// Adds a packet behind those before, or joins it with the latest one of its flow.
    pub(super) fn add(&mut self, packet: &[u8]) {
        let next = self.joinable(packet);
        if let Some(next) = next {
            let start = self.used.saturating_sub(SEARCHED);
            for joined in self.packets[start..self.used].iter_mut().rev() {
                let Some(first) = joined.first else {
                    // It may be an acknowledgment of the same flow, which must not be overtaken.
                    if is_flow_of(&joined.bytes, packet) {
                        break;
                    }
                    continue;
                };
                if joined.is_same_flow(&first, &next, packet) {
                    if joined.append(&first, &next, packet) {
                        return;
                    }
                    break;
                }
            }
        }
        if self.used == self.packets.len() {
            self.packets.push(Joined::default());
        }
        self.packets[self.used].set(packet, next);
        self.used += 1;
    }

    /// Records the sequence numbers of a segment. Returns its headers if it has only new data, or
    /// those of a datagram, if it may be joined.
    fn joinable(&mut self, packet: &[u8]) -> Option<Segment> {
        let headers = if let Some(next) = segment(packet) {
            let sequences = next.sequence..next.sequence.wrapping_add(next.payload as u32);
            let key = flow_key(packet, next.ip_length);
            self.sent.record(key, sequences, false).then_some(next)?
        } else if let Some(start) = transport_start(packet, TCP) {
            let header = packet.get(start..)?.first_chunk::<20>()?;
            if header[13] & SYN != 0 {
                let number = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
                let sequences = number..number.wrapping_add(1);
                self.sent.record(flow_key(packet, start), sequences, true);
            }
            return None;
        } else if self.joins_datagrams {
            datagram(packet)?
        } else {
            return None;
        };
        has_valid_checksum(packet, &headers).then_some(headers)
    }

    /// Removes all packets. Calls `write` with the virtio header, the bytes and the number of
    /// segments of each.
    pub(super) fn drain<E>(
        &mut self,
        mut write: impl FnMut(&[u8], &mut [u8], usize) -> Result<(), E>,
    ) -> Result<(), E> {
        let used = std::mem::take(&mut self.used);
        for joined in &mut self.packets[..used] {
            let offload = joined.seal();
            write(&offload, &mut joined.bytes, joined.count)?;
        }
        Ok(())
    }
}

/// Addresses and ports of a TCP segment.
fn flow_key(packet: &[u8], tcp_start: usize) -> &[u8] {
    let addresses = if tcp_start == 20 { 12 } else { 8 };
    &packet[addresses..tcp_start + 4]
}

/// Whether two packets have the same addresses. Both are IP packets of any kind.
fn is_flow_of(one: &[u8], other: &[u8]) -> bool {
    let version = one.first().map_or(0, |first| first >> 4);
    let addresses = if version == 4 { 12..20 } else { 8..40 };
    other.first().is_some_and(|first| first >> 4 == version)
        && one.get(addresses.clone()) == other.get(addresses)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns a segment with valid checksums.
    fn packet(
        v6: bool,
        port: u16,
        sequence: u32,
        flags: u8,
        window: u16,
        payload: &[u8],
    ) -> Vec<u8> {
        let tcp_length = 32 + payload.len();
        let mut bytes = if v6 {
            let mut ip = vec![0x60, 0, 0, 0, 0, 0, TCP, 64];
            ip[4..6].copy_from_slice(&(tcp_length as u16).to_be_bytes());
            ip.extend([1; 16]);
            ip.extend([2; 16]);
            ip
        } else {
            let mut ip = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, TCP, 0, 0];
            ip.extend([10, 0, 0, 1, 10, 0, 0, 2]);
            ip[2..4].copy_from_slice(&((20 + tcp_length) as u16).to_be_bytes());
            let sum = checksum(&ip);
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
            ip
        };
        let start = bytes.len();
        bytes.extend(port.to_be_bytes());
        bytes.extend(80_u16.to_be_bytes());
        bytes.extend(sequence.to_be_bytes());
        bytes.extend(7_u32.to_be_bytes());
        bytes.extend([8 << 4, flags]);
        bytes.extend(window.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend([1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
        bytes.extend_from_slice(payload);
        let (source, destination) = addresses(&bytes);
        bentpipe_wire::set_tcp_checksum(&mut bytes[start..], source, destination);
        bytes
    }

    /// Divides a packet as the kernel does (`tcp_gso_segment`).
    fn divided(offload: &[u8], bytes: &[u8]) -> Vec<Vec<u8>> {
        let field = |at: usize| usize::from(u16::from_ne_bytes([offload[at], offload[at + 1]]));
        if offload[1] == 0 {
            return vec![bytes.to_vec()];
        }
        let (headers, size, ip) = (field(2), field(4), field(6));
        let mut sequence = u32::from_be_bytes(bytes[ip + 4..ip + 8].try_into().expect("4 bytes"));
        let pieces: Vec<&[u8]> = bytes[headers..].chunks(size).collect();
        let last = pieces.len() - 1;
        let mut all = Vec::new();
        for (at, piece) in pieces.into_iter().enumerate() {
            let mut flags = bytes[ip + 13];
            if at < last {
                flags &= !(FIN | PSH);
            }
            let port = u16::from_be_bytes([bytes[ip], bytes[ip + 1]]);
            let window = u16::from_be_bytes([bytes[ip + 14], bytes[ip + 15]]);
            all.push(packet(ip == 40, port, sequence, flags, window, piece));
            sequence = sequence.wrapping_add(piece.len() as u32);
        }
        all
    }

    fn written(packets: &[Vec<u8>]) -> (Vec<Vec<u8>>, usize) {
        written_by(&mut Coalescer::default(), packets)
    }

    /// Returns a device's coalescer that has written the SYN of each flow.
    fn opened(v6: bool, ports: u16, sequence: u32) -> Coalescer {
        let mut coalescer = Coalescer::default();
        let number = sequence.wrapping_sub(1);
        let syns: Vec<_> = (0..ports)
            .map(|port| packet(v6, port, number, SYN, 100, &[]))
            .collect();
        written_by(&mut coalescer, &syns);
        coalescer
    }

    fn written_by(coalescer: &mut Coalescer, packets: &[Vec<u8>]) -> (Vec<Vec<u8>>, usize) {
        for packet in packets {
            coalescer.add(packet);
        }
        let (mut out, mut writes) = (Vec::new(), 0);
        let result: Result<(), ()> = coalescer.drain(|offload, bytes, count| {
            let pieces = divided(offload, bytes);
            assert_eq!(pieces.len(), count);
            if count > 1 {
                // The sum of the pseudo-header, continued over the segment, is the checksum.
                let ip = usize::from(u16::from_ne_bytes([offload[6], offload[7]]));
                let (source, destination) = addresses(bytes);
                let partial = [bytes[ip + 16], bytes[ip + 17]];
                let sum = !Sum::default()
                    .pseudo_header(source, destination, bytes.len() - ip)
                    .finish();
                assert_eq!(partial, sum.to_be_bytes());
                if ip == 20 {
                    assert_eq!(checksum(&bytes[..20]), 0);
                    assert_eq!(
                        usize::from(u16::from_be_bytes([bytes[2], bytes[3]])),
                        bytes.len()
                    );
                }
            }
            out.extend(pieces);
            writes += 1;
            Ok(())
        });
        assert_eq!(result, Ok(()));
        (out, writes)
    }

    #[test]
    fn consecutive_segments_are_one_write() {
        for v6 in [false, true] {
            let data = [9; 1_448];
            let packets: Vec<Vec<u8>> = (0..44)
                .map(|at| packet(v6, 5, 1_448 * at, ACK, 100, &data))
                .collect();
            let (out, writes) = written_by(&mut opened(v6, 6, 0), &packets);
            assert_eq!(out, packets);
            assert_eq!(writes, 1);
            // The first one of an unknown flow may be a retransmission.
            let (out, writes) = written(&packets);
            assert_eq!(out, packets);
            assert_eq!(writes, 2);
            // 45 do not fit.
            let more: Vec<Vec<u8>> = (0..46)
                .map(|at| packet(v6, 5, 1_448 * at, ACK, 100, &data))
                .collect();
            assert_eq!(written_by(&mut opened(v6, 6, 0), &more).1, 2);
        }
    }

    #[test]
    fn interleaved_flows_are_joined_by_flow() {
        let data = [9; 100];
        let packets: Vec<Vec<u8>> = (0..20)
            .map(|at| packet(false, at % 2, 100 * u32::from(at / 2), ACK, 100, &data))
            .collect();
        assert_eq!(written_by(&mut opened(false, 2, 0), &packets).1, 2);
    }

    #[test]
    fn retransmissions_are_not_joined_with_new_data() {
        for v6 in [false, true] {
            let mut coalescer = opened(v6, 1, 0);
            let data = [9; 100];
            let of = |at: u32| packet(v6, 0, 100 * at, ACK, 100, &data);
            let (_, writes) = written_by(&mut coalescer, &[of(0), of(1), of(2)]);
            assert_eq!(writes, 1);
            // A tail loss probe, and new data that an acknowledgment has released.
            let packets = [of(2), of(3), of(4)];
            let (out, writes) = written_by(&mut coalescer, &packets);
            assert_eq!(out, packets);
            assert_eq!(writes, 2);
        }
    }

    #[test]
    fn wrong_checksums_are_not_made_right() {
        let data = [9; 100];
        let of = |at: u32| packet(false, 0, 100 * at, ACK, 100, &data);
        for wrong in 0..3 {
            let mut packets = [of(0), of(1), of(2)];
            packets[wrong][60] ^= 1;
            let mut coalescer = opened(false, 1, 0);
            packets.iter().for_each(|packet| coalescer.add(packet));
            let mut written = Vec::new();
            let result: Result<(), ()> = coalescer.drain(|offload, bytes, _| {
                written.push((offload[1], bytes.to_vec()));
                Ok(())
            });
            assert_eq!(result, Ok(()));
            assert!(written.contains(&(0, packets[wrong].clone())), "{wrong}");
        }
    }

    /// Returns a datagram with a valid checksum.
    fn datagram_of(v6: bool, identification: u16, length: usize) -> Vec<u8> {
        let mut bytes = packet(v6, 5, 0, ACK, 0, &[]);
        let start = if v6 { 40 } else { 20 };
        bytes.truncate(start);
        bytes.extend([0, 5, 0, 80]);
        bytes.extend((8 + length as u16).to_be_bytes());
        bytes.extend([0; 2]);
        bytes.resize(start + 8 + length, 7);
        if v6 {
            bytes[6] = UDP;
            bytes[4..6].copy_from_slice(&(8 + length as u16).to_be_bytes());
        } else {
            bytes[9] = UDP;
            bytes[2..4].copy_from_slice(&(28 + length as u16).to_be_bytes());
            bytes[4..6].copy_from_slice(&identification.to_be_bytes());
        }
        let sum = pseudo_header(&bytes, start, true).bytes(&bytes[start..]);
        bytes[start + 6..start + 8].copy_from_slice(&sum.finish().to_be_bytes());
        bytes
    }

    /// Returns what is written: the kind, the size of each piece, the length, and the number.
    fn writes_of(joins: bool, packets: &[Vec<u8>]) -> Vec<(u8, u16, usize, usize)> {
        let mut coalescer = Coalescer::new(joins);
        packets.iter().for_each(|packet| coalescer.add(packet));
        let mut written = Vec::new();
        let result: Result<(), ()> = coalescer.drain(|offload, bytes, count| {
            let size = u16::from_ne_bytes([offload[4], offload[5]]);
            written.push((offload[1], size, bytes.len(), count));
            Ok(())
        });
        assert_eq!(result, Ok(()));
        written
    }

    #[test]
    fn datagrams_of_one_length_are_one_write() {
        let of = |identification, length| datagram_of(false, identification, length);
        let packets = [of(1, 1200), of(2, 1200), of(3, 700), of(4, 1200)];
        // A shorter one is the last.
        let expected = [(DATAGRAMS, 1200, 28 + 3_100, 3), (0, 0, 1_228, 1)];
        assert_eq!(writes_of(true, &packets), expected);
        assert_eq!(writes_of(false, &packets).len(), 4);
        let v6: Vec<_> = (0..5).map(|_| datagram_of(true, 0, 1000)).collect();
        assert_eq!(writes_of(true, &v6), [(DATAGRAMS, 1000, 48 + 5_000, 5)]);
        // Another identification than the kernel would give it.
        assert_eq!(writes_of(true, &[of(1, 99), of(3, 99)]).len(), 2);
        // Without a checksum, and with a wrong one.
        for field in [[0, 0], [1, 2]] {
            let mut odd = of(2, 99);
            odd[26..28].copy_from_slice(&field);
            assert_eq!(writes_of(true, &[of(1, 99), odd, of(3, 99)]).len(), 3);
        }
    }

    proptest! {
        /// The kernel sends the same segments as without coalescing, in the same order in each
        /// flow.
        #[test]
        fn segments_are_unchanged(
            v6 in any::<bool>(),
            steps in prop::collection::vec((0..3_u16, 0..4_usize, 0..6_u8, 0..12_u8), 1..80),
        ) {
            let mut sequences = [u32::MAX - 3_000, 5, 70_000];
            let mut packets = Vec::new();
            for (port, length, flag, odd) in steps {
                let length = [0, 100, 100, 37][length];
                let flags = match flag {
                    0 => ACK | PSH,
                    1 if odd == 0 => ACK | FIN,
                    2 if odd == 1 => 0x02,
                    _ => ACK,
                };
                let window = if odd == 2 { 99 } else { 100 };
                let sequence = &mut sequences[usize::from(port)];
                if odd == 3 {
                    *sequence = sequence.wrapping_add(50);
                } else if odd == 4 {
                    *sequence = sequence.wrapping_sub(100);
                }
                packets.push(packet(v6, port, *sequence, flags, window, &vec![length as u8; length]));
                *sequence = sequence.wrapping_add(length as u32);
            }
            let (out, writes) = written(&packets);
            prop_assert!(writes <= packets.len());
            let of = |all: &[Vec<u8>], port: u16| -> Vec<Vec<u8>> {
                let at = if v6 { 40 } else { 20 };
                let has = |packet: &&Vec<u8>| packet[at..at + 2] == port.to_be_bytes();
                all.iter().filter(has).cloned().collect()
            };
            for port in 0..3 {
                prop_assert_eq!(of(&out, port), of(&packets, port));
            }
        }
    }
}
