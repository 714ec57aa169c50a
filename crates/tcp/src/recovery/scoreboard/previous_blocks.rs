//! The SACK blocks of the previous acknowledgment, by which the new part of the next one is found.

use bentpipe_types::{SackBlock, SackBlocks, Seq, tell_first};
use serde::{Deserialize, Serialize};

/// Location of a block: its first position, the number of its first segment, and the number after
/// its last segment.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct BlockRange {
    pub(super) start: u64,
    pub(super) first: u64,
    pub(super) after: u64,
}

impl BlockRange {
    /// Whether this block contains the range between these positions. (A first block inside another
    /// one is a D-SACK.)
    #[inline(always)]
    pub(super) fn holds(&self, block: Option<&SackBlock>, start: u64, end: u64) -> bool {
        block.is_some_and(|block| self.start <= start && end <= end_of(*block, self.start))
    }
}

/// The position after a block that starts at `start`.
pub(super) fn end_of(block: SackBlock, start: u64) -> u64 {
    start + u64::from(block.end.get().wrapping_sub(block.start.get()))
}

/// Index for a block that was not among the previous ones.
pub(super) const NEW_BLOCK: usize = 4;

/// The SACK blocks of the previous acknowledgment.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct PreviousBlocks {
    pub(super) blocks: SackBlocks,
    /// Locations of the blocks.
    pub(super) known: [BlockRange; 4],
    /// Start of the lowest block.
    pub(super) lowest: u64,
}

impl PreviousBlocks {
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Appends a block.
    pub(super) fn push(&mut self, block: SackBlock, known: BlockRange) {
        let count = self.blocks.as_slice().len();
        self.lowest = if count == 0 {
            known.start
        } else {
            self.lowest.min(known.start)
        };
        if let Some(place) = self.known.get_mut(count) {
            *place = known;
            self.blocks.push(block);
        }
    }

    pub(super) fn each(&self) -> impl Iterator<Item = (SackBlock, BlockRange)> {
        let blocks = self.blocks.as_slice().iter().copied();
        blocks.zip(self.known.iter().copied())
    }

    /// Whether the blocks equal the previous ones except that the first has grown at its end, as is
    /// usual while segments arrive behind a gap. Returns its new end.
    #[inline(always)]
    pub(super) fn grown(
        &self,
        blocks: &[SackBlock],
        unacknowledged: u64,
        highest: u64,
    ) -> Option<u64> {
        let ([block, rest @ ..], [before, others @ ..]) = (blocks, self.blocks.as_slice()) else {
            return None;
        };
        let [first, second, ..] = &self.known;
        let end = end_of(*block, first.start);
        let same = block.start == before.start
            && before.end.at_or_before(block.end)
            && rest == others
            && self.lowest >= unacknowledged
            && end <= highest
            && !second.holds(others.first(), first.start, end);
        same.then_some(end)
    }

    /// Whether the blocks equal the previous ones except for the first, which is new or was further
    /// back and has grown at its end. This occurs when a retransmission fills a gap, or another gap
    /// begins. Returns its start, its end, and its previous index, or `NEW_BLOCK`.
    pub(super) fn moved_to_front(
        &self,
        blocks: &[SackBlock],
        unacknowledged: u64,
        highest: u64,
    ) -> Option<(u64, u64, usize)> {
        let ([block, rest @ ..], before @ [first, ..]) = (blocks, self.blocks.as_slice()) else {
            return None;
        };
        if block.start == first.start {
            return None; // It may have `grown`.
        }
        let place = before.iter().position(|it| it.start == block.start);
        let (start, place, same) = if let Some(place) = place {
            let (above, below) = before.split_at(place);
            let same = blocks.len() == before.len()
                && rest[..place] == *above
                && rest[place..] == below[1..]
                && below[0].end.at_or_before(block.end);
            (self.known[place].start, place, same)
        } else {
            let start = self.known[0]
                .start
                .saturating_add_signed(i64::from(block.start.distance_from(first.start)));
            let same = block.start.at_or_before(block.end) && before.starts_with(rest);
            (start, NEW_BLOCK, same)
        };
        let end = end_of(*block, start);
        let good = same
            && self.lowest.min(start) >= unacknowledged
            && end <= highest
            && !self.known[0].holds(rest.first(), start, end);
        good.then_some((start, end, place))
    }

    /// Extends the first block up to `end`.
    #[inline(always)]
    pub(super) fn grow(&mut self, end: Seq, after: u64) {
        self.blocks.set_first_end(end);
        let [first, ..] = &mut self.known;
        first.after = after;
    }

    /// Moves a block to the front, from another place or [new](NEW_BLOCK). `count`: number of
    /// blocks now.
    pub(super) fn tell_first(
        &mut self,
        block: SackBlock,
        known: BlockRange,
        place: usize,
        count: usize,
    ) {
        tell_first(&mut self.known, known, place);
        if place < NEW_BLOCK {
            self.blocks.tell_first(block, place);
        } else {
            self.blocks.push_front(block);
            self.blocks.truncate(count);
            let starts = self.each().map(|(_, known)| known.start);
            self.lowest = starts.min().unwrap_or_default();
        }
    }

    /// Segment numbers covered by the first block: the first, and the one after the last.
    #[inline]
    pub(super) fn first_range(&self) -> (u64, u64) {
        let [first, ..] = &self.known;
        (first.first, first.after)
    }

    /// The location of a block that was at the same index, or the one before, in the previous
    /// acknowledgment, and is not acknowledged yet. Most often only the first block changes, and
    /// the others stay or move back by one.
    #[inline]
    pub(super) fn repeated(
        &self,
        place: usize,
        block: SackBlock,
        unacknowledged: u64,
    ) -> Option<BlockRange> {
        let mut near = self.each().skip(place.saturating_sub(1)).take(2);
        let (_, same) = near.find(|(known, _)| *known == block)?;
        (same.start >= unacknowledged).then_some(same)
    }
}
