//! Segments that turn out to be longer than the path takes are split.

use super::segment::{EVER_RETRANSMITTED, LOST, RETRANSMITTED, Ring, SACKED, Segment};
use super::{Scoreboard, Trouble};

impl Scoreboard {
    /// Is a segment outstanding with more than `payload` bytes, in a stream that ends at position
    /// `stream_end` (where a FIN may follow)? Walks all that is outstanding.
    #[must_use]
    pub fn has_longer(&self, payload: u32, stream_end: u64) -> bool {
        (self.ring.first..self.ring.next)
            .any(|number| is_longer(self.ring.get(number), payload, stream_end))
    }

    /// Splits segments with more than `payload` bytes, and takes the parts for lost: none of them can
    /// have arrived. What is SACKED has, and stays.
    ///
    /// Walks all that is outstanding.
    pub fn shorten(&mut self, payload: u32, stream_end: u64) {
        let payload = payload.max(1);
        if !self.has_longer(payload, stream_end) {
            return;
        }
        self.split(|whole, ring| {
            if !is_longer(&whole, payload, stream_end) {
                return ring.push(whole);
            }
            let end = whole.end();
            let mut start = whole.start;
            while start < end {
                // A FIN goes with the last byte.
                let cut = (start + u64::from(payload)).min(end);
                let cut = if cut == stream_end { end } else { cut };
                let part = Segment {
                    start,
                    length: (cut - start) as u32,
                    flags: whole.flags & EVER_RETRANSMITTED | LOST,
                    ..whole
                };
                ring.push(part);
                start = cut;
            }
        });
    }

    /// Splits the segment that begins at `position`, if it goes on after `at`. Both parts are what it was.
    ///
    /// Walks all that is outstanding.
    pub(crate) fn cut(&mut self, position: u64, at: u64) {
        self.split(|whole, ring| {
            if whole.start != position || at <= position || at >= whole.end() {
                return ring.push(whole);
            }
            ring.push(Segment {
                length: (at - position) as u32,
                ..whole
            });
            ring.push(Segment {
                start: at,
                length: (whole.end() - at) as u32,
                ..whole
            });
        });
    }

    /// Puts into a new ring what `parts` makes of each segment.
    fn split(&mut self, parts: impl Fn(Segment, &mut Ring)) {
        let mut ring = Ring::starting_at(self.ring.first);
        for number in self.ring.first..self.ring.next {
            parts(*self.ring.get(number), &mut ring);
        }
        self.ring = ring;
        self.recount();
    }

    /// Sums, queues and cursors anew, after segments were numbered anew.
    fn recount(&mut self) {
        self.lost = 0;
        self.to_send = 0;
        self.retransmitted = 0;
        self.retransmitted_segments = 0;
        let trouble = Trouble::of(&mut self.trouble);
        trouble.lost_again.clear();
        trouble.under_way.clear();
        trouble.previous.forget();
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
            if self.watch_retransmissions && was_sent_again && !segment.is_to_be_sent() {
                trouble.under_way.push_back((number, segment.order));
            }
        }
        self.sort_under_way();
        self.rewind();
    }
}

fn is_longer(segment: &Segment, payload: u32, stream_end: u64) -> bool {
    let data_end = segment.end().min(stream_end);
    !segment.is(SACKED) && data_end.saturating_sub(segment.start) > u64::from(payload)
}
