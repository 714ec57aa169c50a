//! Splitting of segments that are too long for the path, and merging of segments.

use super::segment::{
    CONTINUES, CUT, EVER_RETRANSMITTED, LOST, RETRANSMITTED, Ring, SACKED, Segment,
};
use super::{LossState, Scoreboard, WATCH_RETRANSMISSIONS};

impl Scoreboard {
    /// Whether an outstanding segment has more than `payload` bytes, in a stream that ends at
    /// `stream_end` (where a FIN may follow). Walks all outstanding segments.
    #[must_use]
    pub fn has_longer(&self, payload: u32, stream_end: u64) -> bool {
        (self.ring.first..self.ring.next)
            .any(|number| is_longer(self.ring.get(number), payload, stream_end))
    }

    /// Splits segments with more than `payload` bytes and marks the parts lost, because none can
    /// have arrived. SACKed segments stay. A buffer sent as one is split anew as a whole.
    ///
    /// Walks all outstanding segments.
    pub fn shorten(&mut self, payload: u32, stream_end: u64) {
        let payload = payload.max(1);
        if !self.has_longer(payload, stream_end) {
            return;
        }
        let empty = Ring::starting_at(self.ring.first);
        let old = std::mem::replace(&mut self.ring, empty);
        let mut number = old.first;
        while number < old.next {
            let first = *old.get(number);
            number += 1;
            let mut whole = first;
            let mut longer = is_longer(&first, payload, stream_end);
            let begins = number - 1;
            while number < old.next && !first.is(SACKED) {
                let next = old.get(number);
                if !old.get(number - 1).is(CONTINUES) || next.is(SACKED) {
                    break;
                }
                longer |= is_longer(next, payload, stream_end);
                whole.length += next.length;
                whole.flags |= next.flags & EVER_RETRANSMITTED;
                number += 1;
            }
            if !longer {
                (begins..number).for_each(|number| self.ring.push(*old.get(number)));
                continue;
            }
            let end = whole.end();
            let mut start = whole.start;
            while start < end {
                // A FIN goes with the last byte.
                let cut = (start + u64::from(payload)).min(end);
                let cut = if cut == stream_end { end } else { cut };
                let mut part = Segment {
                    start,
                    length: (cut - start) as u32,
                    flags: whole.flags & EVER_RETRANSMITTED | LOST,
                    ..whole
                };
                if cut < end && self.full > 0 {
                    part.flags |= CONTINUES;
                }
                part.measure(self.full);
                self.ring.push(part);
                start = cut;
            }
        }
        self.recount();
    }

    /// Merges the segments from `first` to `after` (exclusive) into one, with the state of the
    /// first.
    pub(super) fn join(&mut self, first: u64, after: u64) {
        let mut number = self.ring.first;
        let end = self.ring.get(after - 1).end();
        let inside = (first..after).map(|number| self.ring.get(number).flags);
        let flags = inside.fold(0, |all, flags| all | flags) & EVER_RETRANSMITTED;
        let full = self.full;
        self.split(|segment, ring| {
            if number == first {
                let mut all = Segment {
                    length: (end - segment.start) as u32,
                    flags: segment.flags | flags,
                    ..segment
                };
                all.measure(full);
                ring.push(all);
            } else if !(first..after).contains(&number) {
                ring.push(segment);
            }
            number += 1;
        });
    }

    /// Splits the segment that begins at `position` at the position `at` inside it. Both parts keep
    /// its state.
    ///
    /// Walks all outstanding segments.
    pub(crate) fn cut(&mut self, position: u64, at: u64) {
        let full = self.full;
        self.split(|whole, ring| {
            if whole.start != position || at <= position || at >= whole.end() {
                return ring.push(whole);
            }
            let mut parts = [whole, whole];
            let [before, rest] = &mut parts;
            before.length = (at - position) as u32;
            before.flags = before.flags & !CONTINUES | CUT;
            rest.start = at;
            rest.length = (whole.end() - at) as u32;
            for mut part in parts {
                part.measure(full);
                ring.push(part);
            }
        });
    }

    /// Rebuilds the ring from the `parts` of each segment.
    fn split(&mut self, mut parts: impl FnMut(Segment, &mut Ring)) {
        let mut ring = Ring::starting_at(self.ring.first);
        for number in self.ring.first..self.ring.next {
            parts(*self.ring.get(number), &mut ring);
        }
        self.ring = ring;
        self.recount();
    }

    /// Recomputes sums, queues and cursors after segments were renumbered.
    fn recount(&mut self) {
        self.lost = 0;
        self.to_send = 0;
        self.retransmitted = 0;
        self.retransmitted_segments = 0;
        let watches = self.has_request(WATCH_RETRANSMISSIONS);
        let loss_state = LossState::of(&mut self.loss_state);
        loss_state.lost_again.clear();
        loss_state.retransmissions.clear();
        loss_state.previous.forget();
        for number in self.ring.first..self.ring.next {
            let segment = *self.ring.get(number);
            let length = u64::from(segment.length);
            if segment.is(LOST) {
                self.lost += length;
            }
            self.to_send += u32::from(segment.is_to_be_sent());
            if segment.is(RETRANSMITTED) {
                self.retransmitted += length;
                self.retransmitted_segments += 1;
            }
            let was_sent_again =
                segment.flags & (SACKED | EVER_RETRANSMITTED) == EVER_RETRANSMITTED;
            if watches && was_sent_again && !segment.is_to_be_sent() {
                loss_state
                    .retransmissions
                    .push_back((number, segment.order));
            }
        }
        self.sort_retransmissions();
        self.sum_short();
        self.count_merged();
        self.restart_detection();
    }
}

fn is_longer(segment: &Segment, payload: u32, stream_end: u64) -> bool {
    let data_end = segment.end().min(stream_end);
    !segment.is(SACKED) && data_end.saturating_sub(segment.start) > u64::from(payload)
}
