//! Reads all packets that a TUN device has, and returns them fairly by flow.
//!
//! The kernel queues up to 500 packets of 64 KiB for a TUN device, first come, first served. Behind
//! fifty busy connections, a packet of another flow would wait for tens of milliseconds. So the
//! kernel's queue is emptied here. A flow that has no packets queued comes first. Busy flows take
//! turns, by deficit round robin with FQ-CoDel's lists of new and old flows (RFC 8290 section 4.2).

use std::collections::VecDeque;
use std::hash::Hasher;
use std::{io, mem};

use bentpipe_wire::checksum::checksum;
use rustc_hash::FxHasher;
use tun_rs::{SyncDevice, VIRTIO_NET_HDR_GSO_UDP_L4, VIRTIO_NET_HDR_LEN, VirtioNetHdr, gso_split};

use crate::device::BatchBuffers;

/// Number of queues that flows are hashed to: a power of two.
const QUEUES: usize = 1 << 10;

/// Bytes that a flow may send when it is its turn: the longest read.
const QUANTUM: i64 = 1 << 16;

/// Limit of the bytes queued here. Beyond it, packets stay in the kernel's queue.
const MAX_BYTES: usize = 32 << 20;

/// Longest read: the longest packet and the virtio header.
const MAX_READ: usize = (1 << 16) + 64;

/// Shorter reads are copied, so that each takes as much memory as it has bytes.
const MIN_KEPT: usize = MAX_READ / 2;

/// Number of empty buffers that are kept.
const MAX_SPARE: usize = 64;

/// Flag of the virtio header: the checksum is to be completed.
const NEEDS_CHECKSUM: u8 = 1;

// IANA protocol numbers.
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Packets of the flows with the same hash.
#[derive(Debug, Default)]
struct FlowQueue {
    reads: VecDeque<Vec<u8>>,
    deficit: i64,
    is_listed: bool,
}

/// Packets that were read from a device and not processed yet.
#[derive(Debug)]
pub(super) struct FairReader {
    queues: Vec<FlowQueue>,
    new: VecDeque<u16>,
    old: VecDeque<u16>,
    bytes: usize,
    /// Buffer of the next read.
    buffer: Vec<u8>,
    /// Buffers of `MAX_READ` bytes.
    spare: Vec<Vec<u8>>,
}

impl Default for FairReader {
    fn default() -> Self {
        let mut queues = Vec::new();
        queues.resize_with(QUEUES, FlowQueue::default);
        Self {
            queues,
            new: VecDeque::new(),
            old: VecDeque::new(),
            bytes: 0,
            buffer: vec![0; MAX_READ],
            spare: Vec::new(),
        }
    }
}

/// Returns the queue of a packet, by its addresses, protocol and ports.
fn queue_of(packet: &[u8]) -> u16 {
    let mut hasher = FxHasher::default();
    let (addresses, protocol, transport) = match packet.first().map(|first| first >> 4) {
        Some(4) => {
            let length = usize::from(packet[0] & 15) * 4;
            // A fragment is queued with its datagram, whose later fragments have no ports.
            let is_fragment = packet
                .get(6..8)
                .is_none_or(|at| at[0] & 0x3f != 0 || at[1] != 0);
            let ports = (!is_fragment).then_some(length);
            (packet.get(12..20), packet.get(9), ports)
        }
        Some(6) => (packet.get(8..40), packet.get(6), Some(40)),
        _ => (None, None, None),
    };
    hasher.write(addresses.unwrap_or_default());
    if let Some(protocol) = protocol {
        hasher.write_u8(*protocol);
        if matches!(*protocol, TCP | UDP)
            && let Some(at) = transport
        {
            hasher.write(packet.get(at..at + 4).unwrap_or_default());
        }
    }
    (hasher.finish() >> 32) as u16 & (QUEUES as u16 - 1)
}

impl FairReader {
    /// Queues everything that the device has, up to the limit.
    pub(super) fn fill(&mut self, device: &SyncDevice) -> io::Result<()> {
        while self.bytes < MAX_BYTES {
            match device.recv(&mut self.buffer) {
                Ok(length) => self.queue(length),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Queues the bytes read.
    fn queue(&mut self, length: usize) {
        let Some(packet) = self.buffer.get(VIRTIO_NET_HDR_LEN..length) else {
            return;
        };
        let at = queue_of(packet);
        let read = if length < MIN_KEPT {
            self.buffer[..length].to_vec()
        } else {
            let next = self.spare.pop().unwrap_or_else(|| vec![0; MAX_READ]);
            let mut read = mem::replace(&mut self.buffer, next);
            read.truncate(length);
            read
        };
        self.bytes += length;
        let queue = &mut self.queues[usize::from(at)];
        queue.reads.push_back(read);
        if !mem::replace(&mut queue.is_listed, true) {
            queue.deficit = QUANTUM;
            self.new.push_back(at);
        }
    }

    /// Removes and returns the next read: virtio header and packet.
    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let is_new = !self.new.is_empty();
            let at = if is_new {
                self.new.pop_front()?
            } else {
                self.old.pop_front()?
            };
            let queue = &mut self.queues[usize::from(at)];
            if queue.deficit <= 0 {
                queue.deficit += QUANTUM;
                self.old.push_back(at);
                continue;
            }
            let Some(read) = queue.reads.pop_front() else {
                // A new flow stays for one more turn, so that it is not new again at once.
                if is_new {
                    self.old.push_back(at);
                } else {
                    queue.is_listed = false;
                }
                continue;
            };
            queue.deficit -= read.len() as i64;
            if is_new {
                self.new.push_front(at);
            } else {
                self.old.push_front(at);
            }
            self.bytes -= read.len();
            return Some(read);
        }
    }

    /// Takes back the buffer of a read.
    pub(super) fn give_back(&mut self, mut read: Vec<u8>) {
        if read.capacity() >= MAX_READ && self.spare.len() < MAX_SPARE {
            read.resize(MAX_READ, 0);
            self.spare.push(read);
        }
    }
}

/// Divides a read into the packets that the kernel would have sent. Returns their number.
pub(super) fn divide(read: &mut [u8], buffers: &mut BatchBuffers<'_>) -> io::Result<usize> {
    let malformed = || io::Error::other("malformed");
    let mut header = VirtioNetHdr::decode(read)?;
    let packet = read.get_mut(VIRTIO_NET_HDR_LEN..).ok_or_else(malformed)?;
    let (start, offset) = (
        usize::from(header.csum_start),
        usize::from(header.csum_offset),
    );
    if header.gso_type == 0 {
        if header.flags & NEEDS_CHECKSUM != 0 {
            complete_checksum(packet, start, start + offset).ok_or_else(malformed)?;
        }
        let (segment, length) = (&mut buffers.segments[0], &mut buffers.lengths[0]);
        (segment.get_mut(..packet.len()).ok_or_else(malformed)?).copy_from_slice(packet);
        *length = packet.len();
        return Ok(1);
    }
    // The kernel's length of the headers may be that of the first packet, if it forwards.
    let transport = if header.gso_type == VIRTIO_NET_HDR_GSO_UDP_L4 {
        8
    } else {
        u16::from(packet.get(start + 12).ok_or_else(malformed)? >> 4) * 4
    };
    header.hdr_len = header.csum_start.saturating_add(transport);
    if start + offset + 2 > packet.len() || usize::from(header.hdr_len) > packet.len() {
        return Err(malformed());
    }
    let is_v6 = packet[0] >> 4 == 6;
    gso_split(packet, header, buffers.segments, buffers.lengths, 0, is_v6)
}

/// Completes a checksum over the bytes from `start` on. Its field has the sum of the pseudo-header.
fn complete_checksum(packet: &mut [u8], start: usize, field: usize) -> Option<()> {
    packet.get(field..field + 2)?;
    let sum = checksum(packet.get(start..)?);
    // RFC 768: a UDP checksum of 0 means none.
    let is_udp = field - start == 6;
    let sum = if sum == 0 && is_udp { u16::MAX } else { sum };
    packet[field..field + 2].copy_from_slice(&sum.to_be_bytes());
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a read: a UDP packet between these ports.
    fn read(port: u16, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; VIRTIO_NET_HDR_LEN];
        bytes.extend([0x45, 0, 0, 0, 0, 0, 0, 0, 64, UDP, 0, 0]);
        bytes.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.extend(port.to_be_bytes());
        bytes.resize(VIRTIO_NET_HDR_LEN + length, 0);
        bytes
    }

    fn queue(reader: &mut FairReader, read: &[u8]) {
        reader.buffer[..read.len()].copy_from_slice(read);
        reader.queue(read.len());
    }

    fn port(read: &[u8]) -> u16 {
        let at = VIRTIO_NET_HDR_LEN + 20;
        u16::from_be_bytes([read[at], read[at + 1]])
    }

    #[test]
    fn flows_take_turns_and_new_ones_come_first() {
        let mut reader = FairReader::default();
        for _ in 0..5 {
            queue(&mut reader, &read(1, 60_000));
        }
        for _ in 0..5 {
            queue(&mut reader, &read(2, 60_000));
        }
        let mut ports = Vec::new();
        for _ in 0..4 {
            let next = reader.next().expect("queued");
            ports.push(port(&next));
            reader.give_back(next);
        }
        // Each may exceed its quantum once.
        assert_eq!(ports, [1, 1, 2, 2]);
        queue(&mut reader, &read(3, 100));
        assert_eq!(reader.next().as_deref().map(port), Some(3));
        let rest: Vec<u16> = std::iter::from_fn(|| reader.next())
            .map(|read| port(&read))
            .collect();
        assert_eq!(rest.len(), 6);
        assert_eq!(reader.bytes, 0);
        // The flow has been idle for a turn, and is new again.
        queue(&mut reader, &read(1, 60_000));
        queue(&mut reader, &read(3, 100));
        assert_eq!(reader.next().as_deref().map(port), Some(1));
        assert_eq!(reader.next().as_deref().map(port), Some(3));
    }

    #[test]
    fn a_flow_keeps_its_order() {
        let mut reader = FairReader::default();
        for length in 100..140 {
            queue(&mut reader, &read(7, length));
        }
        let lengths: Vec<usize> = std::iter::from_fn(|| reader.next())
            .map(|read| read.len() - VIRTIO_NET_HDR_LEN)
            .collect();
        assert_eq!(lengths, (100..140).collect::<Vec<_>>());
    }

    #[test]
    fn fragments_of_a_datagram_share_a_queue() {
        let (mut first, mut last) = (read(9, 100), read(0, 100));
        first[VIRTIO_NET_HDR_LEN + 6] = 0x20;
        last[VIRTIO_NET_HDR_LEN + 7] = 10;
        assert_eq!(
            queue_of(&first[VIRTIO_NET_HDR_LEN..]),
            queue_of(&last[VIRTIO_NET_HDR_LEN..])
        );
    }

    #[test]
    fn partial_checksums_are_completed() {
        let mut bytes = read(9, 60);
        bytes[0] = NEEDS_CHECKSUM;
        bytes[6..8].copy_from_slice(&20_u16.to_ne_bytes());
        bytes[8..10].copy_from_slice(&6_u16.to_ne_bytes());
        let field = VIRTIO_NET_HDR_LEN + 26;
        // The sum of a pseudo header.
        bytes[field..field + 2].copy_from_slice(&[0x12, 0x34]);
        let mut raw = Vec::new();
        let (mut segments, mut lengths) = (vec![vec![0; 1500]], [0]);
        let mut buffers = BatchBuffers {
            raw: &mut raw,
            segments: &mut segments,
            lengths: &mut lengths,
        };
        assert_eq!(divide(&mut bytes, &mut buffers).ok(), Some(1));
        assert_eq!(lengths[0], 60);
        // The receiver's sum, over the segment and the pseudo header.
        let mut received = segments[0][20..60].to_vec();
        received.extend([0x12, 0x34]);
        assert_eq!(checksum(&received), 0);
    }
}
