//! Buffers that become one once they are SACKed, as Linux's do: `tcp_shift_skb_data` and `tcp_match_skb_to_sack` of
//! `tcp_input.c`.
//!
//! A buffer that a SACK block covers is shifted into the one before it, if that is SACKed, too, so that a run of SACKed
//! segments is one buffer; and where a block begins or ends within a buffer, that is cut in two, as where a part of it
//! goes again (`tcp_retransmit_skb`). What buffers take beside their payload follows, and so when a writer goes on in the
//! midst of a recovery.

use super::segment::{CUT, GOES_ON, SACKED, Segment};
use super::{Scoreboard, Trouble};

/// Between these two, one after the other, there are so many ends of buffers fewer than were sent: 1, 0 or -1.
///
/// (Shifted are segments of one length: a short one stays as it is.)
fn merged(segment: &Segment, next: &Segment) -> i32 {
    let left_together = i32::from(segment.is(GOES_ON | CUT));
    match (segment.is(SACKED), next.is(SACKED)) {
        (true, true) if segment.length == next.length => 1 - left_together,
        (true, true) | (false, false) => -i32::from(segment.is(CUT)),
        _ => -left_together,
    }
}

impl Scoreboard {
    /// So many buffers fewer are outstanding than were sent and are not acknowledged, where buffers are known; more, if it is
    /// negative.
    #[inline]
    pub(crate) fn merged(&self) -> i32 {
        self.trouble.as_deref().map_or(0, |trouble| trouble.merged)
    }

    /// What [`merged`] says of this segment and the one after it.
    pub(super) fn merged_after(&self, number: u64) -> i32 {
        if number + 1 >= self.ring.next {
            return 0;
        }
        merged(self.ring.get(number), self.ring.get(number + 1))
    }

    pub(super) fn change_merged(&mut self, by: i32) {
        if by != 0 {
            Trouble::of(&mut self.trouble).merged += by;
        }
    }

    /// The segment with this number has been SACKed; it was this one.
    #[inline(never)]
    pub(super) fn merge_buffers(&mut self, number: u64, was: &Segment) {
        if number + 1 == self.ring.next {
            // What comes next is none of its buffer.
            self.ring.get_mut(number).flags &= !GOES_ON;
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

    /// The buffer that this segment is in ends with it from now on.
    pub(super) fn cut_buffer(&mut self, number: u64) {
        if self.full == 0 || number + 1 >= self.ring.next || !self.ring.get(number).is(GOES_ON) {
            return;
        }
        let merged = self.merged_after(number);
        let segment = self.ring.get_mut(number);
        segment.flags = segment.flags & !GOES_ON | CUT;
        self.change_merged(self.merged_after(number) - merged);
    }

    /// No more goes again for now: what is left of the buffer of the last that has is one of its own.
    pub(crate) fn cut_after_last(&mut self) {
        if let Some(&(number, _)) = self.trouble.as_deref().and_then(|it| it.under_way.back())
            && self.ring.holds(number)
        {
            self.cut_buffer(number);
        }
    }

    /// What begins here goes again without what was before it in its buffer.
    pub(crate) fn cut_before(&mut self, position: u64) {
        if let Some(number) = self.number_at(position)
            && number > self.ring.first
        {
            self.cut_buffer(number - 1);
        }
    }

    /// The segments from the first to the one before `after` are about to go.
    pub(super) fn forget_buffers(&mut self, first: u64, after: u64) {
        if self.full > 0 {
            let by: i32 = (first..after).map(|number| self.merged_after(number)).sum();
            self.change_merged(-by);
        }
    }

    /// All anew, after segments were numbered anew, or nothing is SACKed any more.
    pub(super) fn count_merged(&mut self) {
        if self.full > 0 {
            let all = self.ring.first..self.ring.next;
            let sum: i32 = all.map(|number| self.merged_after(number)).sum();
            self.change_merged(sum - self.merged());
        }
    }
}
