//! The segments of one connection that the gateway answers for.

use std::collections::VecDeque;

use bentpipe_types::{PacketRef, PacketStore, SackBlock, Seq, Time};

/// A segment, as it came from the server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    /// The first position that it stands for. Its packet may begin earlier, with what was there
    /// already: the host drops that.
    pub(super) start: u64,
    /// The position after its last, the FIN's included.
    pub(super) end: u64,
    /// The packet. What is sent is a copy of it.
    pub(super) packet: PacketRef,
    /// When it was last sent, if it was.
    pub(super) sent_at: Time,
}

impl Held {
    pub(super) const fn length(&self) -> u64 {
        self.end - self.start
    }
}

/// What is in order and not acknowledged by the host, sent or not, and what came ahead of a gap.
#[derive(Debug, Default)]
pub(super) struct Store {
    /// One after the other, without gaps.
    in_order: VecDeque<Held>,
    /// By their starts; they may overlap.
    ahead: Vec<Held>,
    bytes: u64,
    bytes_ahead: u64,
    // The last that came ahead: RFC 2018 section 4 reports it first.
    latest: Option<(u64, u64)>,
}

impl Store {
    pub(super) fn is_empty(&self) -> bool {
        self.in_order.is_empty() && self.ahead.is_empty()
    }

    /// Positions in order and not acknowledged.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Positions held in all, those that came ahead twice if they came twice.
    pub(super) fn total(&self) -> u64 {
        self.bytes + self.bytes_ahead
    }

    pub(super) fn segments(&self) -> usize {
        self.in_order.len() + self.ahead.len()
    }

    pub(super) fn has_gap(&self) -> bool {
        !self.ahead.is_empty()
    }

    /// Bytes of memory that belong to it, the packets' own aside.
    pub(super) fn allocated(&self) -> usize {
        (self.in_order.capacity() + self.ahead.capacity()) * size_of::<Held>()
    }

    /// Appends the next segment.
    pub(super) fn append(&mut self, held: Held) {
        debug_assert!(
            self.in_order
                .back()
                .is_none_or(|last| last.end == held.start)
        );
        self.bytes += held.length();
        self.in_order.push_back(held);
    }

    /// Keeps a segment that is ahead of a gap. False: an earlier one says the same, and it is not
    /// kept.
    pub(super) fn put_ahead(&mut self, held: Held) -> bool {
        self.latest = Some((held.start, held.end));
        let at = self.ahead.partition_point(|other| other.start < held.start);
        let covers = |other: &Held| other.start <= held.start && other.end >= held.end;
        let before = self.ahead[..at].iter().rev().take(1).any(covers);
        if before || self.ahead[at..].iter().take(1).any(covers) {
            return false;
        }
        self.bytes_ahead += held.length();
        self.ahead.insert(at, held);
        true
    }

    /// Lets the last that came ahead go, if there is one: the server sends it again.
    pub(super) fn drop_ahead(&mut self, packets: &mut PacketStore) -> bool {
        let Some(last) = self.ahead.pop() else {
            return false;
        };
        self.bytes_ahead -= last.length();
        packets.release(last.packet);
        if self.ahead.is_empty() {
            self.latest = None;
        }
        true
    }

    /// Takes the first that came ahead, if it is in order now that everything below `next` is.
    /// What has come meanwhile by another way is let go.
    pub(super) fn take_ahead(&mut self, next: u64, packets: &mut PacketStore) -> Option<Held> {
        let mut over = 0;
        let found = loop {
            match self.ahead.get(over) {
                Some(held) if held.end <= next => {
                    packets.release(held.packet);
                    self.bytes_ahead -= held.length();
                    over += 1;
                }
                Some(held) if held.start <= next => {
                    let held = *held;
                    self.bytes_ahead -= held.length();
                    over += 1;
                    break Some(Held {
                        start: next,
                        ..held
                    });
                }
                _ => break None,
            }
        };
        self.ahead.drain(..over);
        if self.ahead.is_empty() {
            self.latest = None;
        }
        found
    }

    /// The host has everything below `position`.
    pub(super) fn acknowledge(&mut self, position: u64, packets: &mut PacketStore) {
        while let Some(first) = self.in_order.front_mut() {
            if first.end > position {
                // The packet stays whole: it may have to go again.
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

    /// The segment that holds a position, if it is in order and not acknowledged.
    pub(super) fn at(&self, position: u64) -> Option<&Held> {
        self.in_order.get(self.index(position)?)
    }

    /// It was sent.
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
        // Most are as long as the first.
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

    /// What came ahead, as SACK blocks, the latest first.
    pub(super) fn blocks(&self, initial: Seq, most: usize) -> impl Iterator<Item = SackBlock> {
        let block = move |(start, end): (u64, u64)| SackBlock {
            start: initial + start as u32,
            end: initial + end as u32,
        };
        let mut merged: Vec<(u64, u64)> = Vec::new();
        for held in &self.ahead {
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

    /// Lets everything go.
    pub(super) fn clear(&mut self, packets: &mut PacketStore) {
        for held in self.in_order.drain(..).chain(self.ahead.drain(..)) {
            packets.release(held.packet);
        }
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_types::{Endpoint, IpVersion, Packet};

    use super::*;

    fn held(packets: &mut PacketStore, start: u64, end: u64) -> Held {
        let record = Packet::new(Endpoint::default(), Endpoint::default(), IpVersion::V4);
        Held {
            start,
            end,
            packet: packets.insert(record),
            sent_at: Time::ZERO,
        }
    }

    #[test]
    fn what_came_ahead_joins_in_order_and_nothing_is_lost() {
        let mut packets = PacketStore::default();
        let mut store = Store::default();
        for (start, end) in [(31, 41), (11, 21), (15, 31), (41, 51)] {
            let held = held(&mut packets, start, end);
            assert!(store.put_ahead(held));
        }
        let again = held(&mut packets, 31, 41);
        assert!(!store.put_ahead(again));
        packets.release(again.packet);
        let blocks: Vec<SackBlock> = store.blocks(Seq::new(0), 4).collect();
        assert_eq!(blocks.len(), 1);
        assert_eq!((blocks[0].start.get(), blocks[0].end.get()), (11, 51));
        let first = held(&mut packets, 1, 11);
        store.append(first);
        let mut next = 11;
        while let Some(held) = store.take_ahead(next, &mut packets) {
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
    fn the_latest_block_is_first() {
        let mut packets = PacketStore::default();
        let mut store = Store::default();
        for (start, end) in [(11, 21), (31, 41), (51, 61), (33, 39), (31, 45)] {
            let held = held(&mut packets, start, end);
            if !store.put_ahead(held) {
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
