//! Fast path for an acknowledgment of whole segments that were sent once, while no data is missing.

use bentpipe_types::Time;

use super::segment::STATUS;
use super::{Measured, Scoreboard, Transmission};

/// The acknowledged segments. Determined before any change, so that later steps need not read the
/// records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WholeSegments {
    /// Number of the segment after the last.
    after: u64,
    /// Number of segments.
    segments: u64,
    /// Time of transmission of the first.
    first_sent_at: Time,
    last: Transmission,
}

impl WholeSegments {
    /// Number of segments.
    #[inline]
    pub(crate) const fn segments(&self) -> u64 {
        self.segments
    }

    /// The transmission of the last segment.
    #[inline]
    pub(crate) const fn last(&self) -> Transmission {
        self.last
    }

    /// The round trips that the acknowledgment measures.
    #[inline]
    pub(crate) fn measured(&self, now: Time) -> Measured {
        Measured {
            earliest: now.since(self.first_sent_at),
            latest: now.since(self.last.sent_at),
        }
    }
}

impl Scoreboard {
    /// The segments acknowledged up to `position`, if they are whole and have no status other than
    /// sent once. `position` is below the highest sent.
    #[inline(always)]
    pub(crate) fn acknowledges_whole(&self, position: u64) -> Option<WholeSegments> {
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
        let whole = last.end == position && flags & STATUS == 0 && self.forward <= start;
        whole.then_some(WholeSegments {
            after: number + 1,
            segments: number + 1 - self.ring.first,
            first_sent_at,
            last,
        })
    }

    /// Like [`acknowledge`](Self::acknowledge), for such segments, if deliveries are not watched.
    #[inline(always)]
    pub(crate) fn acknowledge_whole(
        &mut self,
        whole: &WholeSegments,
        acknowledged: u64,
        now: Time,
    ) {
        self.begin_in_order(now);
        self.delivered.count(acknowledged);
        self.ring.first = whole.after;
        self.forward = whole.last.end;
        if self.cursor < whole.after {
            self.cursor = whole.after;
            debug_assert!(self.sacked_below == 0 && self.runs_below == 0);
        }
    }
}
