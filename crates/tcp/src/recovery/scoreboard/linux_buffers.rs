//! Linux's view of the outstanding data: whole segments, as counted by the congestion window, in
//! buffers of several segments.

use super::segment::{CONTINUES, SACKED, SHORT};
use super::{LossState, LostSegment, Scoreboard};

impl Scoreboard {
    /// Counts segments shorter than `full` bytes as that long from now on (Linux's packets_out,
    /// tcp_packets_in_flight).
    ///
    /// Walks all outstanding segments.
    pub(crate) fn count_segments(&mut self, full: u32) {
        self.full = full;
        for number in self.ring.first..self.ring.next {
            self.ring.get_mut(number).measure(full);
        }
        self.sum_short();
    }

    /// Whether short segments in flight count as full ones.
    #[inline]
    pub(crate) fn has_short(&self) -> bool {
        self.short > 0
    }

    /// Difference between the amount counted as in flight and the bytes in flight.
    #[cold]
    pub(super) fn deficit(&self) -> u64 {
        let bytes = self.loss_state.as_deref().map_or(0, |it| it.short_bytes);
        (u64::from(self.short) * u64::from(self.full)).saturating_sub(bytes)
    }

    /// Recounts the short segments.
    pub(super) fn sum_short(&mut self) {
        if self.full == 0 {
            return;
        }
        self.short = 0;
        if let Some(loss_state) = &mut self.loss_state {
            loss_state.short_bytes = 0;
        }
        for number in self.ring.first..self.ring.next {
            self.note_short(number);
        }
    }

    /// Changes the number of transmissions in flight of a short segment of this length.
    #[cold]
    pub(super) fn change_short(&mut self, length: u32, times: i32) {
        self.short = self.short.saturating_add_signed(times);
        let bytes = &mut LossState::of(&mut self.loss_state).short_bytes;
        *bytes = bytes.saturating_add_signed(i64::from(length) * i64::from(times));
    }

    /// Records the delivery of a short segment of this length.
    #[cold]
    pub(super) fn deliver_short(&mut self, length: u32) {
        let newly = &mut LossState::of(&mut self.loss_state).newly_short;
        let before = if self.delivered.has_short() {
            *newly
        } else {
            0
        };
        *newly = before + u64::from(self.full.saturating_sub(length));
        self.delivered.set_short(true);
    }

    /// Newly delivered bytes, with short segments counted as full ones.
    #[inline(never)]
    pub(crate) fn delivered_with_short(&self) -> u64 {
        let bytes = self.delivered.bytes();
        if !self.delivered.has_short() {
            return bytes;
        }
        bytes + self.loss_state.as_deref().map_or(0, |it| it.newly_short)
    }

    /// Like [`change_short`](Self::change_short), for the segment with this number.
    #[cold]
    pub(super) fn add_short(&mut self, number: u64, times: i32) {
        let length = self.ring.get(number).length;
        self.change_short(length, times);
    }

    /// Counts a segment if it is short, with its transmissions in flight.
    fn note_short(&mut self, number: u64) {
        let segment = self.ring.get(number);
        if segment.is(SHORT) {
            self.add_short(number, segment.in_flight() as i32);
        }
    }

    /// Removes a short segment from the count.
    pub(super) fn forget_short(&mut self, number: u64) {
        let segment = self.ring.get(number);
        if segment.is(SHORT) {
            self.add_short(number, -(segment.in_flight() as i32));
        }
    }

    /// Measures a segment whose length has changed and which is not counted.
    pub(super) fn measure(&mut self, number: u64) {
        let full = self.full;
        self.ring.get_mut(number).measure(full);
        self.note_short(number);
    }

    /// Measures the segment just sent, which is short and ends at `end`. If it is not the last one,
    /// it is a retransmission.
    #[inline(never)]
    pub(crate) fn measure_last(&mut self, end: u64) {
        let number = self.ring.next.wrapping_sub(1);
        if self.full == 0 || !self.ring.holds(number) || self.ring.get(number).end() != end {
            return;
        }
        self.forget_short(number);
        self.measure(number);
    }

    /// Records that the next segment belongs to the same buffer as the last one.
    pub(crate) fn continue_buffer(&mut self) {
        if self.ring.len() > 0 {
            self.ring.get_mut(self.ring.next - 1).flags |= CONTINUES;
        }
    }

    /// Records that the buffer ending at `end` has PSH.
    #[inline(never)]
    pub(crate) fn note_pushed(&mut self, end: u64) {
        if self.full == 0 {
            return;
        }
        let first = self.first_outstanding().unwrap_or(end);
        let pushed = &mut LossState::of(&mut self.loss_state).pushed;
        while pushed.front().is_some_and(|&end| end <= first) {
            pushed.pop_front();
        }
        if pushed.back().is_none_or(|&last| last < end) {
            pushed.push_back(end);
        }
    }

    /// Whether a buffer with PSH ends at `end`.
    pub(crate) fn is_pushed(&self, end: u64) -> bool {
        let pushed = self
            .loss_state
            .as_deref()
            .map(|loss_state| &loss_state.pushed);
        pushed.is_some_and(|ends| ends.binary_search(&end).is_ok())
    }

    fn first_outstanding(&self) -> Option<u64> {
        (self.ring.len() > 0).then(|| self.ring.get(self.ring.first).start)
    }

    /// The number of the segment that begins at `position`.
    pub(super) fn number_at(&self, position: u64) -> Option<u64> {
        let starts = self.ring.len() > 0 && position >= self.ring.get(self.ring.first).start;
        let number = starts.then(|| self.ring.find(position))?;
        (self.ring.get(number).start == position).then_some(number)
    }

    /// The number of segments, at most `most`, from this position on that are in one buffer and to
    /// be retransmitted. They are sent together; the rest becomes a buffer of its own.
    pub(crate) fn begin_buffer(&mut self, position: u64, most: u64) -> u64 {
        let Some(first) = self.number_at(position) else {
            return 1;
        };
        let mut last = first;
        while self.continues(last)
            && last + 1 - first < most
            && self.ring.get(last + 1).is_to_be_sent()
        {
            last += 1;
        }
        self.cut_buffer(last);
        last + 1 - first
    }

    /// Whether this segment is in one buffer with the next.
    fn continues(&self, number: u64) -> bool {
        number + 1 < self.ring.next && self.ring.get(number).is(CONTINUES)
    }

    /// Merges following segments into the one that begins at `position` (tcp_retrans_try_collapse).
    /// Together they have at most `payload` bytes and end at or before `edge`, and each is a whole
    /// buffer. A FIN after `stream_end` takes no room. `ends_record`: whether a record ends at a
    /// position.
    ///
    /// Walks all outstanding segments if any is merged.
    pub(crate) fn collapse(
        &mut self,
        position: u64,
        payload: u32,
        edge: u64,
        stream_end: u64,
        ends_record: impl Fn(u64) -> bool,
    ) -> Option<LostSegment> {
        let first = self.number_at(position)?;
        if self.continues(first) {
            return None;
        }
        let mut after = first + 1;
        let mut end = self.ring.get(first).end();
        while after < self.ring.next && !ends_record(end) {
            let next = self.ring.get(after);
            let text_end = next.end().min(stream_end);
            if next.is(SACKED)
                || self.continues(after)
                || text_end > position + u64::from(payload)
                || text_end > edge
            {
                break;
            }
            end = next.end();
            after += 1;
        }
        if after == first + 1 {
            return None;
        }
        self.join(first, after);
        Some(LostSegment {
            position,
            length: (end - position) as u32,
        })
    }
}
