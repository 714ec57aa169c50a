//! Merging of SACKed buffers, as in Linux: `tcp_shift_skb_data` and `tcp_match_skb_to_sack` in
//! `tcp_input.c`.
//!
//! A buffer covered by a SACK block is merged into the previous one, if that is SACKed too, so that
//! a run of SACKed segments is one buffer. A buffer is split where a block begins or ends inside
//! it, or where a part of it is retransmitted (`tcp_retransmit_skb`). This determines the memory
//! overhead of the send buffer, and so when a writer continues during recovery.

use super::segment::{CONTINUES, CUT, SACKED, Segment};
use super::{LossState, Scoreboard};

/// Number of buffer boundaries between two adjacent segments that have disappeared (1) or appeared
/// (-1) since the transmission.
///
/// Only segments of equal length are merged: a short one stays as it is.
fn merged(segment: &Segment, next: &Segment) -> i32 {
    let left_together = i32::from(segment.is(CONTINUES | CUT));
    match (segment.is(SACKED), next.is(SACKED)) {
        (true, true) if segment.length == next.length => 1 - left_together,
        (true, true) | (false, false) => -i32::from(segment.is(CUT)),
        _ => -left_together,
    }
}

impl Scoreboard {
    /// Number of outstanding buffers saved by merging, where buffers are tracked; negative if
    /// splitting prevails.
    #[inline]
    pub(crate) fn merged(&self) -> i32 {
        self.loss_state
            .as_deref()
            .map_or(0, |loss_state| loss_state.merged)
    }

    /// The value of [`merged`] for this segment and the next.
    pub(super) fn merged_after(&self, number: u64) -> i32 {
        if number + 1 >= self.ring.next {
            return 0;
        }
        merged(self.ring.get(number), self.ring.get(number + 1))
    }

    pub(super) fn change_merged(&mut self, by: i32) {
        if by != 0 {
            LossState::of(&mut self.loss_state).merged += by;
        }
    }

    /// Updates the number of buffers after the segment with this number was SACKed. `was`: its
    /// previous state.
    #[inline(never)]
    pub(super) fn merge_buffers(&mut self, number: u64, was: &Segment) {
        if number + 1 == self.ring.next {
            // Later segments do not belong to its buffer.
            self.ring.get_mut(number).flags &= !CONTINUES;
        }
        let is = *self.ring.get(number);
        let mut by = 0;
        if number > self.ring.first {
            let before = self.ring.get(number - 1);
            by += merged(before, &is) - merged(before, was);
        }
        if number + 1 < self.ring.next {
            let next = self.ring.get(number + 1);
            by += merged(&is, next) - merged(was, next);
        }
        self.change_merged(by);
    }

    /// Ends the buffer of this segment after the segment.
    pub(super) fn cut_buffer(&mut self, number: u64) {
        if self.full == 0 || number + 1 >= self.ring.next || !self.ring.get(number).is(CONTINUES) {
            return;
        }
        let merged = self.merged_after(number);
        let segment = self.ring.get_mut(number);
        segment.flags = segment.flags & !CONTINUES | CUT;
        self.change_merged(self.merged_after(number) - merged);
    }

    /// Splits the buffer after the last retransmitted segment, when no more is retransmitted for
    /// now.
    pub(crate) fn cut_after_last(&mut self) {
        if let Some(&(number, _)) = self
            .loss_state
            .as_deref()
            .and_then(|it| it.retransmissions.back())
            && self.ring.holds(number)
        {
            self.cut_buffer(number);
        }
    }

    /// Splits the buffer before the segment that begins at `position` and is retransmitted.
    pub(crate) fn cut_before(&mut self, position: u64) {
        if let Some(number) = self.number_at(position)
            && number > self.ring.first
        {
            self.cut_buffer(number - 1);
        }
    }

    /// Updates the number of buffers before the segments from `first` to `after` (exclusive) are
    /// removed.
    pub(super) fn forget_buffers(&mut self, first: u64, after: u64) {
        if self.full > 0 {
            let by: i32 = (first..after).map(|number| self.merged_after(number)).sum();
            self.change_merged(-by);
        }
    }

    /// Recounts the buffers, after segments were renumbered or all SACKs discarded.
    pub(super) fn count_merged(&mut self) {
        if self.full > 0 {
            let all = self.ring.first..self.ring.next;
            let sum: i32 = all.map(|number| self.merged_after(number)).sum();
            self.change_merged(sum - self.merged());
        }
    }
}
