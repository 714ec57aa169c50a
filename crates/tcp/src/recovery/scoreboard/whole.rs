//! An acknowledgment of whole segments that were sent once, in order, while nothing is known to be missing: what
//! nearly every acknowledgment of something new is.

use bentpipe_types::Time;

use super::segment::FATE;
use super::{Measured, Scoreboard, Transmission};

/// What it acknowledges. It is known before anything is changed, so that what follows from it need not be looked up
/// in the record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whole {
    /// The number of the segment after the last of them.
    after: u64,
    /// How many.
    segments: u64,
    /// When the first of them left.
    first_sent_at: Time,
    last: Transmission,
}

impl Whole {
    /// How many segments.
    #[inline]
    pub(crate) const fn segments(&self) -> u64 {
        self.segments
    }

    /// The transmission of the last of them.
    #[inline]
    pub(crate) const fn last(&self) -> Transmission {
        self.last
    }

    /// The round trips that it measures.
    #[inline]
    pub(crate) fn measured(&self, now: Time) -> Measured {
        Measured {
            earliest: now.since(self.first_sent_at),
            latest: now.since(self.last.sent_at),
        }
    }
}

impl Scoreboard {
    /// Does an acknowledgment of everything below `position`, which less is than was sent, acknowledge whole segments,
    /// of which nothing is known but that they were sent?
    #[inline(always)]
    pub(crate) fn acknowledges_whole(&self, position: u64) -> Option<Whole> {
        let mut number = self.ring.first;
        if number >= self.ring.next {
            return None;
        }
        let first = self.ring.get(number);
        let (start, first_sent_at) = (first.start, first.sent_at);
        let (mut segment, mut flags) = (first, first.flags);
        while segment.end() < position && number + 1 < self.ring.next {
            number += 1;
            segment = self.ring.get(number);
            flags |= segment.flags;
        }
        let last = segment.transmission();
        let whole = last.end == position && flags & FATE == 0 && self.forward <= start;
        whole.then_some(Whole {
            after: number + 1,
            segments: number + 1 - self.ring.first,
            first_sent_at,
            last,
        })
    }

    /// The same as [`acknowledge`](Self::acknowledge), where it was found to be so, and what the acknowledgment tells
    /// of is not watched.
    #[inline(always)]
    pub(crate) fn acknowledge_whole(&mut self, whole: &Whole, acknowledged: u64, now: Time) {
        self.begin_plainly(now);
        self.delivered.count(acknowledged);
        self.ring.first = whole.after;
        self.forward = whole.last.end;
        if self.cursor < whole.after {
            self.cursor = whole.after;
            debug_assert!(self.sacked_below == 0 && self.runs_below == 0);
        }
    }
}
