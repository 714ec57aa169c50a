//! SACK blocks (RFC 2018).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Seq;

/// One block of a SACK option: `[start, end)` was received (RFC 2018 section 3).
#[derive(Clone, Copy, Eq, Default, Debug, Serialize, Deserialize)]
pub struct SackBlock {
    /// First sequence number of the block.
    pub start: Seq,
    /// Sequence number after the last one of the block.
    pub end: Seq,
}

/// Compares both numbers at once: the blocks of consecutive acknowledgments are compared.
impl PartialEq for SackBlock {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        let both =
            |block: &Self| u64::from(block.end.get()) << u32::BITS | u64::from(block.start.get());
        both(self) == both(other)
    }
}

/// Moves element `place` to the front as `now`. A `place` beyond the end inserts `now` and drops
/// the last element. Five times as fast as `rotate_right` on a slice.
#[inline(always)]
pub fn tell_first<T: Copy>(four: &mut [T; 4], now: T, place: usize) {
    let mut place = place.min(3);
    while place > 0 {
        four[place] = four[place - 1];
        place -= 1;
    }
    four[0] = now;
}

/// Up to four SACK blocks, most recent first.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SackBlocks {
    blocks: [SackBlock; 4],
    count: u8,
}

impl SackBlocks {
    /// Appends a block. A fifth is ignored, since it does not fit into a TCP header.
    #[inline]
    pub fn push(&mut self, block: SackBlock) {
        if usize::from(self.count) < self.blocks.len() {
            self.blocks[usize::from(self.count)] = block;
            self.count += 1;
        }
    }

    /// Returns the number of blocks.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        usize::from(self.count)
    }

    /// Returns the first three blocks; missing ones are empty.
    #[inline]
    pub(crate) fn first_three(&self) -> [SackBlock; 3] {
        let [first, second, third, _] = self.blocks;
        [first, second, third]
    }

    /// Returns the blocks, most recent first.
    #[must_use]
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.count)]
    }

    /// Inserts a block at the front. With four blocks, the last one is dropped.
    #[inline]
    pub fn push_front(&mut self, block: SackBlock) {
        tell_first(&mut self.blocks, block, usize::MAX);
        if usize::from(self.count) < self.blocks.len() {
            self.count += 1;
        }
    }

    /// Moves the block at `place` to the front and replaces it by `block`.
    #[inline]
    pub fn tell_first(&mut self, block: SackBlock, place: usize) {
        debug_assert!(place < usize::from(self.count), "there is none");
        tell_first(&mut self.blocks, block, place);
    }

    /// Keeps at most `count` blocks.
    #[inline]
    pub fn truncate(&mut self, count: usize) {
        if count < usize::from(self.count) {
            self.blocks[count..].fill(SackBlock::default());
            self.count = count as u8;
        }
    }

    /// Sets the end of the first block, which must exist.
    #[inline]
    pub fn set_first_end(&mut self, end: Seq) {
        debug_assert!(self.count > 0, "there is none");
        self.blocks[0].end = end;
    }
}

impl FromIterator<SackBlock> for SackBlocks {
    #[inline]
    fn from_iter<I: IntoIterator<Item = SackBlock>>(blocks: I) -> Self {
        let mut collected = Self::default();
        let mut count = 0;
        for (place, block) in collected.blocks.iter_mut().zip(blocks) {
            *place = block;
            count += 1;
        }
        collected.count = count;
        collected
    }
}

impl fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}
