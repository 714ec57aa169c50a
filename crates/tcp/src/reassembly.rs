//! Reassembly queue: data received out of order. RFC 9293 section 3.10.7.4: "Segments with higher
//! beginning sequence numbers SHOULD be held for later processing."

use std::collections::VecDeque;

use bentpipe_types::{SackBlock, SackBlocks, Seq, fetch, tell_first};
use serde::{Deserialize, Serialize};

/// A half-open range of positions (see [`connection`](crate::connection)).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Range {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// Number of blocks remembered for the SACK option: as many as fit into one (RFC 2018 section 3).
const MAXIMUM_BLOCKS: usize = 4;

/// Flag in `limit`; see [`Reassembly::with_linux_blocks`].
const LINUX_BLOCKS: u32 = 1 << 31;

/// The ranges received out of order: disjoint, not adjacent, in ascending order.
///
/// The receive window limits how far ahead a range may be, and `limit` the number of ranges. A peer
/// that sends every other byte then needs no more memory than an honest one.
#[derive(Debug, Serialize, Deserialize)]
#[repr(C)]
pub(crate) struct Reassembly {
    // Total bytes in all ranges.
    bytes: u64,
    // Allocated with the first out-of-order data.
    ahead: Option<Box<Ahead>>,
    // Maximum number of ranges. The highest bit is AckQuirks::remembers_four_sack_blocks, because
    // the cache lines of a connection have no byte left.
    limit: u32,
    // The peer's initial sequence number, for SACK blocks.
    initial: Seq,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Ahead {
    ranges: VecDeque<Range>,
    // Ranges of the latest segments, latest first (RFC 2018 section 4). With `with_linux_blocks`,
    // the remembered blocks instead (tp->selective_acks). They never touch each other.
    recent: [Range; MAXIMUM_BLOCKS],
    recent_count: usize,
    // The same ranges as SACK blocks, except for the end of the first: a full read directly after a
    // partial write would stall.
    blocks: SackBlocks,
}

/// Result of inserting a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Inserted {
    /// No byte of it was present.
    New,
    /// This part of it was present.
    Overlapping(Range),
    /// Refused: there are too many ranges.
    Refused,
}

impl Reassembly {
    /// See [`Connection::prefetch_more`](crate::Connection::prefetch_more).
    #[inline]
    pub(crate) fn prefetch(&self) {
        if let Some(ahead) = &self.ahead {
            fetch(&ahead.recent_count, 3);
            fetch(&ahead.ranges, 1);
        }
    }

    /// Creates a queue of at most `limit` ranges.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            bytes: 0,
            limit: limit.clamp(1, (LINUX_BLOCKS - 1) as usize) as u32,
            initial: Seq::default(),
            ahead: None,
        }
    }

    /// Sets whether SACK blocks only report what is remembered:
    /// [`AckQuirks::remembers_four_sack_blocks`](crate::AckQuirks::remembers_four_sack_blocks).
    pub(crate) fn with_linux_blocks(self, forgets: bool) -> Self {
        let limit = self.limit() as u32 | if forgets { LINUX_BLOCKS } else { 0 };
        Self { limit, ..self }
    }

    /// See [`with_linux_blocks`](Self::with_linux_blocks).
    pub(crate) fn has_linux_blocks(&self) -> bool {
        self.limit & LINUX_BLOCKS != 0
    }

    #[inline]
    fn limit(&self) -> usize {
        (self.limit & !LINUX_BLOCKS) as usize
    }

    /// Sets the peer's initial sequence number, that of position 0, before any insertion.
    pub(crate) fn begin(&mut self, initial: Seq) {
        debug_assert!(self.ahead.is_none(), "blocks of another stream");
        self.initial = initial;
    }

    /// Whether no out-of-order data is held.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Out-of-order bytes held.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The end of the last range.
    pub(crate) fn highest(&self) -> Option<u64> {
        if self.is_empty() {
            return None; // Does not access `ahead` if nothing is out of order.
        }
        self.ranges()?.back().map(|range| range.end)
    }

    /// The number of ranges.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.ranges().map_or(0, VecDeque::len)
    }

    fn ranges(&self) -> Option<&VecDeque<Range>> {
        self.ahead.as_deref().map(|ahead| &ahead.ranges)
    }

    /// Inserts a range.
    #[inline(always)]
    pub(crate) fn insert(&mut self, range: Range) -> Inserted {
        debug_assert!(range.start < range.end, "an empty range");
        let (limit, forgets) = (self.limit(), self.has_linux_blocks());
        let ahead = self.ahead.get_or_insert_default();
        // Most segments extend the last range, and most others begin the next one.
        if let Some(last) = ahead.ranges.back_mut()
            && last.end == range.start
        {
            last.end = range.end;
            self.bytes += range.end - range.start;
            let grown = *last;
            ahead.report_grown(grown, range, forgets, self.initial);
            return Inserted::New;
        }
        if ahead.is_next(range) && ahead.ranges.len() < limit {
            ahead.ranges.push_back(range);
            self.bytes += range.end - range.start;
            ahead.report_new(range, self.initial);
            return Inserted::New;
        }
        self.insert_anywhere(range)
    }

    #[inline(never)]
    fn insert_anywhere(&mut self, range: Range) -> Inserted {
        let (limit, forgets) = (self.limit(), self.has_linux_blocks());
        let ahead = self.ahead.get_or_insert_default();
        // The ranges that touch or overlap this one are [first, after).
        let first = ahead.ranges.partition_point(|r| r.end < range.start);
        let mut after = first;
        let mut merged = range;
        let mut overlap: Option<Range> = None;
        let mut held = 0;
        while let Some(&other) = ahead.ranges.get(after)
            && other.start <= range.end
        {
            if overlap.is_none() {
                let common = Range {
                    start: range.start.max(other.start),
                    end: range.end.min(other.end),
                };
                overlap = (common.start < common.end).then_some(common);
            }
            held += other.end - other.start;
            merged.start = merged.start.min(other.start);
            merged.end = merged.end.max(other.end);
            after += 1;
        }
        if first == after {
            if ahead.ranges.len() >= limit {
                return Inserted::Refused;
            }
            ahead.ranges.insert(first, merged);
        } else {
            ahead.ranges[first] = merged;
            if after - first == 2 {
                ahead.ranges.remove(first + 1);
            } else if after - first > 2 {
                ahead.ranges.drain(first + 1..after);
            }
        }
        self.bytes += merged.end - merged.start - held;
        if forgets {
            ahead.report_segment(range, self.initial);
        } else {
            ahead.report(merged, self.initial);
        }
        overlap.map_or(Inserted::New, Inserted::Overlapping)
    }

    /// Removes the ranges that directly follow in-order data up to `position`. Returns the new end
    /// of the in-order data.
    pub(crate) fn advance(&mut self, position: u64) -> u64 {
        let Some(ahead) = self.ahead.as_deref_mut() else {
            return position;
        };
        let mut position = position;
        while let Some(&range) = ahead.ranges.front()
            && range.start <= position
        {
            position = position.max(range.end);
            self.bytes -= range.end - range.start;
            ahead.ranges.pop_front();
        }
        let mut kept = 0;
        for index in 0..ahead.recent_count {
            if ahead.recent[index].start > position {
                ahead.recent[kept] = ahead.recent[index];
                kept += 1;
            }
        }
        ahead.recent_count = kept;
        ahead.write_blocks(self.initial);
        position
    }

    /// Discards all data from `position` on, and all SACK blocks, for lack of memory
    /// (tcp_prune_ofo_queue).
    pub(crate) fn discard_from(&mut self, position: u64) {
        let Some(ahead) = self.ahead.as_deref_mut() else {
            return;
        };
        while let Some(last) = ahead.ranges.back_mut()
            && last.end > position
        {
            if last.start < position {
                self.bytes -= last.end - position;
                last.end = position;
                break;
            }
            self.bytes -= last.end - last.start;
            ahead.ranges.pop_back();
        }
        ahead.recent_count = 0;
        ahead.write_blocks(self.initial);
    }

    /// The part of the first range that lies before `end`, if any.
    pub(crate) fn first_within(&self, end: u64) -> Option<Range> {
        let first = self.ranges()?.front().filter(|first| first.start < end)?;
        Some(Range {
            start: first.start,
            end: first.end.min(end),
        })
    }

    /// The range that contains `position`, if any.
    pub(crate) fn containing(&self, position: u64) -> Option<Range> {
        let ranges = self.ranges()?;
        let index = ranges.partition_point(|r| r.end <= position);
        ranges
            .get(index)
            .copied()
            .filter(|range| range.start <= position)
    }

    /// The SACK blocks, that of the latest segment first, if any data was ever out of order.
    #[inline(always)]
    pub(crate) fn blocks(&self) -> Option<SackBlocks> {
        let ahead = self.ahead.as_deref()?;
        let mut blocks = ahead.blocks;
        if ahead.recent_count > 0 {
            blocks.set_first_end(self.initial + ahead.recent[0].end as u32);
        }
        Some(blocks)
    }

    #[cfg(test)]
    fn recent(&self) -> &[Range] {
        self.ahead
            .as_deref()
            .map_or(&[], |ahead| &ahead.recent[..ahead.recent_count])
    }
}

impl Ahead {
    // Updates the blocks after a range grew at its end without meeting another. Most often it is
    // the first block.
    #[inline]
    fn report_grown(&mut self, grown: Range, by: Range, forgets: bool, initial: Seq) {
        if self.recent_count > 0 && self.recent[0].end == by.start {
            self.recent[0].end = by.end;
        } else if forgets {
            self.report_segment(by, initial);
        } else {
            self.report(grown, initial);
        }
    }

    // tcp_sack_new_ofo_skb: a segment that touches a remembered block (tcp_sack_extend) makes it
    // the first, and merges it with the blocks it touches then (tcp_sack_maybe_coalesce). Otherwise
    // it is a block of its own.
    #[inline(never)]
    fn report_segment(&mut self, segment: Range, initial: Seq) {
        let touch = |one: &Range, other: &Range| one.start <= other.end && other.start <= one.end;
        let recent = &self.recent[..self.recent_count];
        let mut first = segment;
        let place = recent.iter().position(|block| touch(block, &segment));
        if let Some(place) = place {
            first.start = first.start.min(recent[place].start);
            first.end = first.end.max(recent[place].end);
        }
        let mut rest = [Range::default(); MAXIMUM_BLOCKS];
        let mut count = 0;
        for (index, &block) in recent.iter().enumerate() {
            if Some(index) == place {
                continue;
            }
            if place.is_some() && touch(&first, &block) {
                first.start = first.start.min(block.start);
                first.end = first.end.max(block.end);
            } else {
                rest[count] = block;
                count += 1;
            }
        }
        self.recent[0] = first;
        let kept = count.min(MAXIMUM_BLOCKS - 1);
        self.recent[1..=kept].copy_from_slice(&rest[..kept]);
        self.recent_count = 1 + kept;
        self.write_blocks(initial);
    }

    // Whether the range lies beyond everything received.
    #[inline]
    fn is_next(&self, range: Range) -> bool {
        self.ranges
            .back()
            .is_some_and(|last| last.end < range.start)
    }

    // Like `report`, for a new range that touches no other.
    #[inline]
    fn report_new(&mut self, new: Range, initial: Seq) {
        if self.recent_count > 0 {
            self.blocks
                .set_first_end(initial + self.recent[0].end as u32);
        }
        tell_first(&mut self.recent, new, MAXIMUM_BLOCKS);
        self.recent_count = (self.recent_count + 1).min(MAXIMUM_BLOCKS);
        self.blocks.push_front(new.block(initial));
    }

    // RFC 2018 section 4: the first block contains the segment that triggered the acknowledgment,
    // and the others repeat the most recently reported.
    fn report(&mut self, merged: Range, initial: Seq) {
        let recent = &self.recent[..self.recent_count];
        let parts = |range: &&Range| merged.start <= range.start && range.end <= merged.end;
        if let Some(place) = recent.iter().position(|it| it.start == merged.start)
            && recent.iter().filter(parts).count() == 1
        {
            // It was reported before, and has grown.
            self.blocks.set_first_end(initial + recent[0].end as u32);
            tell_first(&mut self.recent, merged, place);
            self.blocks.tell_first(merged.block(initial), place);
            return;
        }
        let mut held = merged;
        let mut kept = 0;
        for index in 0..self.recent_count {
            let entry = self.recent[index];
            if entry.start >= merged.start && entry.end <= merged.end {
                continue; // Part of the merged range now.
            }
            self.recent[kept] = held;
            kept += 1;
            held = entry;
        }
        if kept < MAXIMUM_BLOCKS {
            self.recent[kept] = held;
            kept += 1;
        }
        self.recent_count = kept;
        self.write_blocks(initial);
    }

    fn write_blocks(&mut self, initial: Seq) {
        let recent = &self.recent[..self.recent_count];
        self.blocks = recent.iter().map(|range| range.block(initial)).collect();
    }
}

impl Range {
    /// The range as a SACK block of a stream with this initial sequence number.
    pub(crate) fn block(self, initial: Seq) -> SackBlock {
        SackBlock {
            start: initial + self.start as u32,
            end: initial + self.end as u32,
        }
    }
}

#[cfg(test)]
mod tests;
