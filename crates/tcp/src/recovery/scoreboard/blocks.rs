//! SACK blocks come in (RFC 2018, RFC 2883).

use bentpipe_types::{SackBlock, SackBlocks, Seq};
use serde::{Deserialize, Serialize};

use super::segment::{EVER_RETRANSMITTED, Segment};
use super::{Scoreboard, Trouble};

/// A block as positions, and where it ended in the ring: the number of the first segment after it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Known {
    block: SackBlock,
    start: u64,
    end: u64,
    after: u64,
}

/// The blocks of the last acknowledgment.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Previous {
    blocks: [Known; 4],
    count: usize,
}

impl Previous {
    pub(super) fn forget(&mut self) {
        self.count = 0;
    }

    fn known(&self) -> &[Known] {
        &self.blocks[..self.count]
    }

    /// The same blocks as before, but that the first has grown at its end, as nearly always while segments
    /// arrive behind a gap? Returns where it ends now. (A first block inside the second would tell of what
    /// has arrived twice.)
    #[inline]
    fn grown(&self, blocks: &[SackBlock], unacknowledged: u64, highest: u64) -> Option<u64> {
        let ([first, rest @ ..], [known, others @ ..]) = (blocks, self.known()) else {
            return None;
        };
        let more = first.end.distance_from(known.block.end);
        let end = known.end + u64::try_from(more).ok()?;
        let same = first.start == known.block.start
            && known.start >= unacknowledged
            && end <= highest
            && rest.len() == others.len()
            && rest
                .iter()
                .zip(others)
                .all(|(block, known)| *block == known.block && known.start >= unacknowledged);
        let inside = |second: &Known| second.start <= known.start && end <= second.end;
        (same && !others.first().is_some_and(inside)).then_some(end)
    }

    /// The same block in the same place, or in the one before it, if it is not yet acknowledged: most often only
    /// the first block of an acknowledgment says something new, and the others are as they were, or have moved
    /// on for it.
    #[inline]
    fn repeated(&self, place: usize, block: SackBlock, unacknowledged: u64) -> Option<Known> {
        let known = self.known().get(place.saturating_sub(1)..)?;
        let same = known.iter().take(2).find(|known| known.block == block)?;
        (same.start >= unacknowledged).then_some(*same)
    }
}

impl Scoreboard {
    /// The blocks of an acknowledgment up to position `unacknowledged`, whose sequence number is
    /// `number`; `highest` is the position after the last ever sent. After
    /// [`acknowledge`](Self::acknowledge).
    pub fn sack(&mut self, blocks: &SackBlocks, unacknowledged: u64, number: Seq, highest: u64) {
        let blocks = blocks.as_slice();
        if let Some(trouble) = &mut self.trouble
            && let Some(end) = trouble.previous.grown(blocks, unacknowledged, highest)
        {
            let known = &mut trouble.previous.blocks[0];
            known.block = blocks[0];
            known.end = end;
            let from = known.after.max(self.ring.first);
            let after = self.cover_from(from, end);
            if let Some(trouble) = &mut self.trouble {
                trouble.previous.blocks[0].after = after;
            }
        } else {
            self.sack_anew(blocks, unacknowledged, number, highest);
        }
    }

    /// The same, of blocks that say more than that the first has grown.
    fn sack_anew(
        &mut self,
        mut blocks: &[SackBlock],
        unacknowledged: u64,
        number: Seq,
        highest: u64,
    ) {
        let distance = |seq: Seq| i64::from(seq.distance_from(number));
        let position = |seq: Seq| unacknowledged.saturating_add_signed(distance(seq));
        if let [first, rest @ ..] = blocks {
            let (start, end) = (distance(first.start), distance(first.end));
            // RFC 2883 section 4: a first block below the acknowledgment, or inside the second one,
            // tells of what has arrived twice.
            let old = start < 0 && end <= 0 && start < end;
            let inside = rest.first().is_some_and(|second| {
                start < end
                    && start >= 0
                    && distance(second.start) <= start
                    && end <= distance(second.end)
                    && position(second.end) <= highest
            });
            // Nothing that was never sent has arrived twice.
            if (old && start.unsigned_abs() <= unacknowledged) || inside {
                let (start, end) = (position(first.start), position(first.end));
                self.delivered.set_duplicate(start, end);
                self.arrived_twice += end - start;
                blocks = rest;
            }
        }
        let mut now_known = [Known::default(); 4];
        let mut count = 0;
        for &block in blocks {
            let previous = &Trouble::of(&mut self.trouble).previous;
            if let Some(known) = previous.repeated(count, block, unacknowledged) {
                now_known[count] = known;
                count += 1;
                continue;
            }
            let (start, end) = (distance(block.start), distance(block.end));
            if start >= end || start < 0 || position(block.end) > highest {
                self.ignored_blocks += 1;
                continue;
            }
            let (start, end) = (position(block.start), position(block.end));
            now_known[count] = Known {
                block,
                start,
                end,
                after: self.cover(start, end),
            };
            count += 1;
        }
        Trouble::of(&mut self.trouble).previous = Previous {
            blocks: now_known,
            count,
        };
    }

    /// May what arrived twice, as a D-SACK says, have done so because it was sent again? Not where the network
    /// has doubled more than that (Linux's `tcp_dsack_seen`; RFC 3708 section 3 is about such networks, too).
    pub fn explains_duplicate(&self) -> bool {
        self.delivered.duplicate().is_some() && self.arrived_twice <= self.sent_again
    }

    /// What arrived twice because it was sent again, as far as one can tell; the acknowledgment moved up to
    /// `unacknowledged` by `acknowledged`. What the record still had until now has to have been sent again;
    /// nothing is known of what it had forgotten (Linux's `tcp_check_dsack` and `tcp_sacktag_one`).
    pub fn needless(&self, unacknowledged: u64, acknowledged: u64) -> Option<(u64, u64)> {
        let (start, end) = self.delivered.duplicate()?;
        if !self.explains_duplicate() {
            return None;
        }
        let sent_again = if end <= unacknowledged.saturating_sub(acknowledged) {
            true
        } else if end <= unacknowledged {
            self.delivered.has_retransmission()
        } else {
            self.ring.len() > 0
                && start >= self.ring.get(self.ring.first).start
                && self.ring.get(self.ring.find(start)).is(EVER_RETRANSMITTED)
        };
        sent_again.then_some((start, end))
    }

    /// Marks the segments that lie between these positions; returns the number of the first after
    /// them.
    fn cover(&mut self, start: u64, end: u64) -> u64 {
        let first = self.ring.first;
        if first == self.ring.next || end <= self.ring.get(first).start {
            return first;
        }
        // What the last acknowledgment had of it is marked already.
        let mut from = None;
        for known in self.trouble.iter().flat_map(|t| t.previous.known()) {
            if known.start == start && known.after >= first {
                if known.end == end {
                    return known.after;
                }
                if known.end < end {
                    from = Some(known.after);
                }
            }
        }
        let number = match from {
            Some(number) => number,
            None if start <= self.ring.get(first).start => first,
            None => {
                // Only whole segments: an honest receiver has all of a segment or nothing of it.
                let holds = self.ring.find(start);
                holds + u64::from(self.ring.get(holds).start < start)
            }
        };
        self.cover_from(number, end)
    }

    /// Marks the segments from this one on that end at `end` or before.
    #[inline]
    fn cover_from(&mut self, mut number: u64, end: u64) -> u64 {
        loop {
            number = self.ring.next_not_sacked(number);
            if number >= self.ring.next {
                return number;
            }
            let segment = *self.ring.get(number);
            if segment.end() > end {
                return number;
            }
            self.mark_sacked(number, &segment);
            number += 1;
            if segment.end() == end {
                return number;
            }
        }
    }

    /// A segment that was not is SACKed.
    fn mark_sacked(&mut self, number: u64, segment: &Segment) {
        let (length, end) = (u64::from(segment.length), segment.end());
        self.forget_loss(segment);
        // A run begins here, unless it goes on from the one before; one that began just after
        // doesn't any more.
        let (goes_on, joins) = self.ring.set_sacked(number);
        self.sacked += length;
        self.sacked_segments += 1;
        self.sacked_runs = self.sacked_runs + u32::from(!goes_on) - u32::from(joins);
        if number < self.cursor {
            self.sacked_below += length;
            let joins_below = joins && number + 1 < self.cursor;
            self.runs_below = self.runs_below + u32::from(!goes_on) - u32::from(joins_below);
        }
        if segment.is(EVER_RETRANSMITTED) {
            let (transmission, arrival) = (segment.transmission(), self.arrival);
            self.delivered
                .retransmission_arrived(transmission, segment.length, true, &arrival);
        } else {
            // Blocks come in no order: only what was known before counts.
            if end < self.forward_before {
                self.reordered(segment.start, self.forward_before);
            }
            self.delivered
                .original_sacked(segment.transmission(), segment.length);
        }
        self.forward = self.forward.max(end);
        if self.watched {
            self.note_sacked(segment.start, end);
        }
    }
}
