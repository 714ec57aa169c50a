//! The stored segments of one connection.

use std::collections::VecDeque;

use bentpipe_types::{PacketRef, PacketStore, SackBlock, Seq, Time};

/// A segment, as it was received from the server.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldSegment {
    /// First position to use. The packet may begin earlier, with data that was already stored; the
    /// host discards it.
    pub(super) start: u64,
    /// Position after the last one, FIN included.
    pub(super) end: u64,
    /// The packet, of which copies are sent.
    pub(super) packet: PacketRef,
    /// Time of the last transmission, if any.
    pub(super) sent_at: Time,
}

impl HeldSegment {
    pub(super) const fn length(&self) -> u64 {
        self.end - self.start
    }
}

/// Segments in order that the host has not acknowledged, sent or not, and segments out of order.
#[derive(Debug, Default)]
pub(super) struct SegmentStore {
    /// Consecutive segments, without gaps.
    in_order: VecDeque<HeldSegment>,
    /// Segments beyond a gap, by their starts. They may overlap.
    out_of_order: Vec<HeldSegment>,
    bytes: u64,
    bytes_out_of_order: u64,
    // The latest segment out of order. RFC 2018 section 4: its block is the first in the SACK
    // option.
    latest: Option<(u64, u64)>,
}

impl SegmentStore {
    pub(super) fn is_empty(&self) -> bool {
        self.in_order.is_empty() && self.out_of_order.is_empty()
    }

    /// Sequence numbers in order and not acknowledged.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Sequence numbers stored. Overlaps of out-of-order segments count twice.
    pub(super) fn total(&self) -> u64 {
        self.bytes + self.bytes_out_of_order
    }

    pub(super) fn segments(&self) -> usize {
        self.in_order.len() + self.out_of_order.len()
    }

    pub(super) fn has_gap(&self) -> bool {
        !self.out_of_order.is_empty()
    }

    /// Bytes of memory used, packets excluded.
    pub(super) fn allocated(&self) -> usize {
        (self.in_order.capacity() + self.out_of_order.capacity()) * size_of::<HeldSegment>()
    }

    /// Appends the next segment in order.
    pub(super) fn append(&mut self, held: HeldSegment) {
        debug_assert!(
            self.in_order
                .back()
                .is_none_or(|last| last.end == held.start)
        );
        self.bytes += held.length();
        self.in_order.push_back(held);
    }

    /// Stores an out-of-order segment. Returns false, and does not store it, if a stored one covers
    /// it.
    pub(super) fn insert_out_of_order(&mut self, held: HeldSegment) -> bool {
        self.latest = Some((held.start, held.end));
        let at = self
            .out_of_order
            .partition_point(|other| other.start < held.start);
        let covers = |other: &HeldSegment| other.start <= held.start && other.end >= held.end;
        let before = self.out_of_order[..at].iter().rev().take(1).any(covers);
        if before || self.out_of_order[at..].iter().take(1).any(covers) {
            return false;
        }
        self.bytes_out_of_order += held.length();
        self.out_of_order.insert(at, held);
        true
    }

    /// Drops the last out-of-order segment, if there is one. The server retransmits it.
    pub(super) fn drop_last_out_of_order(&mut self, packets: &mut PacketStore) -> bool {
        let Some(last) = self.out_of_order.pop() else {
            return false;
        };
        self.bytes_out_of_order -= last.length();
        packets.release(last.packet);
        if self.out_of_order.is_empty() {
            self.latest = None;
        }
        true
    }

    /// Takes the first out-of-order segment, if it is in order now that everything before `next` is
    /// stored. Releases segments that lie before `next`.
    pub(super) fn take_next_in_order(
        &mut self,
        next: u64,
        packets: &mut PacketStore,
    ) -> Option<HeldSegment> {
        let mut over = 0;
        let found = loop {
            match self.out_of_order.get(over) {
                Some(held) if held.end <= next => {
                    packets.release(held.packet);
                    self.bytes_out_of_order -= held.length();
                    over += 1;
                }
                Some(held) if held.start <= next => {
                    let held = *held;
                    self.bytes_out_of_order -= held.length();
                    over += 1;
                    break Some(HeldSegment {
                        start: next,
                        ..held
                    });
                }
                _ => break None,
            }
        };
        self.out_of_order.drain(..over);
        if self.out_of_order.is_empty() {
            self.latest = None;
        }
        found
    }

    /// Releases all segments before `position`, which the host has acknowledged.
    pub(super) fn acknowledge(&mut self, position: u64, packets: &mut PacketStore) {
        while let Some(first) = self.in_order.front_mut() {
            if first.end > position {
                // The packet stays whole, since it may be retransmitted.
                if first.start < position {
                    self.bytes -= position - first.start;
                    first.start = position;
                }
                break;
            }
            self.bytes -= first.length();
            packets.release(first.packet);
            self.in_order.pop_front();
        }
        if self.in_order.is_empty() && self.in_order.capacity() > 64 {
            self.in_order = VecDeque::new();
        }
    }

    /// Returns the stored segment in order that contains a position.
    pub(super) fn at(&self, position: u64) -> Option<&HeldSegment> {
        self.in_order.get(self.index(position)?)
    }

    /// Notes that the segment at a position was sent.
    pub(super) fn sent(&mut self, position: u64, now: Time) {
        if let Some(index) = self.index(position) {
            self.in_order[index].sent_at = now;
        }
    }

    fn index(&self, position: u64) -> Option<usize> {
        let first = self.in_order.front()?;
        let last = self.in_order.back()?;
        if position < first.start || position >= last.end {
            return None;
        }
        // Most segments are as long as the first one, so this guess is usually right.
        let guess = ((position - first.start) / first.length().max(1)) as usize;
        if let Some(held) = self.in_order.get(guess)
            && held.start <= position
            && position < held.end
        {
            return Some(guess);
        }
        let after = self.in_order.partition_point(|held| held.start <= position);
        after.checked_sub(1)
    }

    /// Returns the out-of-order ranges as SACK blocks, the latest first.
    pub(super) fn blocks(&self, initial: Seq, most: usize) -> impl Iterator<Item = SackBlock> {
        let block = move |(start, end): (u64, u64)| SackBlock {
            start: initial + start as u32,
            end: initial + end as u32,
        };
        let mut merged: Vec<(u64, u64)> = Vec::new();
        for held in &self.out_of_order {
            match merged.last_mut() {
                Some(last) if held.start <= last.1 => last.1 = last.1.max(held.end),
                _ => merged.push((held.start, held.end)),
            }
        }
        if let Some((start, _)) = self.latest
            && let Some(at) = merged.iter().position(|b| b.0 <= start && start < b.1)
        {
            merged[..=at].rotate_right(1);
        }
        merged.into_iter().take(most).map(block)
    }

    /// Releases everything.
    pub(super) fn clear(&mut self, packets: &mut PacketStore) {
        for held in self.in_order.drain(..).chain(self.out_of_order.drain(..)) {
            packets.release(held.packet);
        }
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_types::{Endpoint, IpVersion, Packet};

    use super::*;

    fn held(packets: &mut PacketStore, start: u64, end: u64) -> HeldSegment {
        let record = Packet::new(Endpoint::default(), Endpoint::default(), IpVersion::V4);
        HeldSegment {
            start,
            end,
            packet: packets.insert(record),
            sent_at: Time::ZERO,
        }
    }

    #[test]
    fn out_of_order_segments_join_in_order_without_loss() {
        let mut packets = PacketStore::default();
        let mut store = SegmentStore::default();
        for (start, end) in [(31, 41), (11, 21), (15, 31), (41, 51)] {
            let held = held(&mut packets, start, end);
            assert!(store.insert_out_of_order(held));
        }
        let again = held(&mut packets, 31, 41);
        assert!(!store.insert_out_of_order(again));
        packets.release(again.packet);
        let blocks: Vec<SackBlock> = store.blocks(Seq::new(0), 4).collect();
        assert_eq!(blocks.len(), 1);
        assert_eq!((blocks[0].start.get(), blocks[0].end.get()), (11, 51));
        let first = held(&mut packets, 1, 11);
        store.append(first);
        let mut next = 11;
        while let Some(held) = store.take_next_in_order(next, &mut packets) {
            assert_eq!(held.start, next);
            next = held.end;
            store.append(held);
        }
        assert_eq!(next, 51);
        assert_eq!(store.bytes(), 50);
        assert_eq!(store.total(), 50);
        assert_eq!(store.at(31).map(|held| held.end), Some(41));
        assert_eq!(store.at(21).map(|held| held.start), Some(21));
        assert!(store.at(51).is_none() && store.at(0).is_none());
        store.acknowledge(35, &mut packets);
        assert_eq!(store.bytes(), 16);
        assert_eq!(store.at(35).map(|held| held.start), Some(35));
        store.acknowledge(51, &mut packets);
        assert!(store.is_empty());
        assert_eq!(packets.held(), 0);
    }

    #[test]
    fn the_latest_sack_block_is_first() {
        let mut packets = PacketStore::default();
        let mut store = SegmentStore::default();
        for (start, end) in [(11, 21), (31, 41), (51, 61), (33, 39), (31, 45)] {
            let held = held(&mut packets, start, end);
            if !store.insert_out_of_order(held) {
                packets.release(held.packet);
            }
        }
        let starts: Vec<u32> = store
            .blocks(Seq::new(100), 3)
            .map(|block| block.start.get())
            .collect();
        assert_eq!(starts, [131, 111, 151]);
        store.clear(&mut packets);
        assert_eq!(packets.held(), 0);
    }
}
