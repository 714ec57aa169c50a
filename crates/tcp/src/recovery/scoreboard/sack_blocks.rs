//! Processing of SACK blocks (RFC 2018, RFC 2883).
//!
//! RFC 6675 section 4: Update (). SACKed data stays on the scoreboard until it is acknowledged
//! cumulatively.

use bentpipe_types::{SackBlock, Seq, Time};

use super::previous_blocks::{BlockRange, PreviousBlocks, end_of};
use super::segment::{EVER_RETRANSMITTED, SACKED, Segment};
use super::{IGNORE_ECHO_OF_SACKED, LossState, Scoreboard, Transmission};

/// A segment newly covered by the first block, which was sent once and is the highest that has
/// arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OneMoreSegment {
    number: u64,
    segment: Segment,
    block: SackBlock,
    /// Index of the block in the previous acknowledgment, or
    /// [`NEW_BLOCK`](super::previous_blocks::NEW_BLOCK).
    place: usize,
    /// Number of blocks.
    count: usize,
}

impl OneMoreSegment {
    /// Time of its transmission.
    #[inline]
    pub(crate) fn sent_at(&self) -> Time {
        self.segment.sent_at
    }

    /// Its transmission.
    #[inline]
    pub(crate) fn transmission(&self) -> Transmission {
        self.segment.transmission()
    }

    /// Bytes (positions) in it.
    #[inline]
    pub(crate) fn length(&self) -> u64 {
        u64::from(self.segment.length)
    }
}

impl Scoreboard {
    /// Whether the blocks cover exactly one segment more than those of the previous acknowledgment,
    /// at the end of the first block and above all others. This is the usual case while segments
    /// arrive behind a gap.
    #[inline(always)]
    pub(crate) fn one_more_segment(
        &self,
        blocks: &[SackBlock],
        unacknowledged: u64,
        highest: u64,
    ) -> Option<OneMoreSegment> {
        let previous = &self.loss_state.as_deref()?.previous;
        let (number, end, place) = match previous.grown(blocks, unacknowledged, highest) {
            Some(end) => (previous.known[0].after, end, 0),
            None => self.one_more_in_other_block(blocks, unacknowledged, highest)?,
        };
        if !self.ring.holds(number) {
            return None;
        }
        let segment = *self.ring.get(number);
        let next = segment.is_plain() && segment.end() == end && end > self.forward;
        next.then_some(OneMoreSegment {
            number,
            segment,
            block: blocks[0],
            place,
            count: blocks.len(),
        })
    }

    /// Checks the same where the growing block was not the first before. Returns the segment's
    /// number, its end, and the block's previous index.
    #[inline(never)]
    fn one_more_in_other_block(
        &self,
        blocks: &[SackBlock],
        unacknowledged: u64,
        highest: u64,
    ) -> Option<(u64, u64, usize)> {
        let previous = &self.loss_state.as_deref()?.previous;
        let (start, end, place) = previous.moved_to_front(blocks, unacknowledged, highest)?;
        let number = match previous.known.get(place) {
            Some(known) => known.after,
            None if start < self.forward || self.ring.len() == 0 => return None,
            None => {
                let number = self.ring.find(start);
                if self.ring.get(number).start != start {
                    return None;
                }
                number
            }
        };
        Some((number, end, place))
    }

    /// Fast path of [`sack`](Self::sack) for [one more segment](Self::one_more_segment).
    #[inline(always)]
    pub(crate) fn sack_one_more(&mut self, covered: OneMoreSegment) {
        let OneMoreSegment {
            number,
            segment,
            block,
            place,
            count,
        } = covered;
        self.mark_sacked::<true>(number, &segment);
        if let Some(loss_state) = &mut self.loss_state {
            let previous = &mut loss_state.previous;
            let after = number + 1;
            if place == 0 {
                previous.grow(block.end, after);
            } else {
                let new = BlockRange {
                    start: segment.start,
                    first: number,
                    after,
                };
                let known = previous.known.get(place).unwrap_or(&new);
                let known = BlockRange { after, ..*known };
                self.tell_first(block, known, place, count);
            }
        }
    }

    /// Moves this block to the front: see [`PreviousBlocks::tell_first`].
    fn tell_first(&mut self, block: SackBlock, known: BlockRange, place: usize, count: usize) {
        let previous = &mut LossState::of(&mut self.loss_state).previous;
        self.ring.join(previous.first_range());
        previous.tell_first(block, known, place, count);
    }

    /// Processes the SACK blocks of an acknowledgment up to position `unacknowledged`, whose
    /// sequence number is `number`. `highest`: position after the last ever sent. To be called
    /// after [`acknowledge`](Self::acknowledge).
    #[inline(never)]
    pub fn sack(&mut self, blocks: &[SackBlock], unacknowledged: u64, number: Seq, highest: u64) {
        if let Some(loss_state) = &self.loss_state
            && let Some(end) = loss_state.previous.grown(blocks, unacknowledged, highest)
        {
            let from = loss_state.previous.known[0].after.max(self.ring.first);
            let after = self.mark_from(from, end);
            let previous = &mut LossState::of(&mut self.loss_state).previous;
            previous.grow(blocks[0].end, after);
        } else if let Some(loss_state) = &self.loss_state
            && let Some((start, end, place)) =
                (loss_state.previous).moved_to_front(blocks, unacknowledged, highest)
        {
            let known = match loss_state.previous.known.get(place) {
                None => self.mark_block(start, end),
                Some(&known) => {
                    // A retransmission has filled the gap behind it.
                    let after = self.mark_from(known.after.max(self.ring.first), end);
                    BlockRange { after, ..known }
                }
            };
            self.tell_first(blocks[0], known, place, blocks.len());
        } else {
            self.sack_all(blocks, unacknowledged, number, highest);
        }
    }

    /// Processes SACK blocks that differ from the previous ones in more than the first.
    fn sack_all(
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
            // RFC 2883 section 4: a first block below the acknowledgment, or inside the second
            // block, is a D-SACK.
            let old = start < 0 && end <= 0 && start < end;
            let inside = rest.first().is_some_and(|second| {
                start < end
                    && start >= 0
                    && distance(second.start) <= start
                    && end <= distance(second.end)
                    && position(second.end) <= highest
            });
            // A D-SACK must be within data that was sent.
            if (old && start.unsigned_abs() <= unacknowledged) || inside {
                let (start, end) = (position(first.start), position(first.end));
                self.delivered.set_duplicate(start, end);
                self.dsack_bytes += end - start;
                blocks = rest;
            }
        }
        let mut now = PreviousBlocks::default();
        for &block in blocks {
            let previous = &LossState::of(&mut self.loss_state).previous;
            let place = now.blocks.as_slice().len();
            if let Some(known) = previous.repeated(place, block, unacknowledged) {
                now.push(block, known);
                continue;
            }
            let (start, end) = (distance(block.start), distance(block.end));
            if start >= end || start < 0 || position(block.end) > highest {
                self.ignored_blocks += 1;
                continue;
            }
            let (start, end) = (position(block.start), position(block.end));
            let known = self.mark_block(start, end);
            now.push(block, known);
        }
        LossState::of(&mut self.loss_state).previous = now;
    }

    /// Whether a D-SACK can be due to retransmissions. Not if more was reported than was
    /// retransmitted, because the network then duplicates packets (Linux's `tcp_dsack_seen`;
    /// RFC 3708 section 3).
    pub fn explains_duplicate(&self) -> bool {
        self.delivered.duplicate().is_some() && self.dsack_bytes <= self.bytes_retransmitted
    }

    /// The range of an unnecessary retransmission reported by a D-SACK. SND.UNA moved up to
    /// `unacknowledged`, by `acknowledged`. Where the segment's record still exists, it must show a
    /// retransmission; older data is assumed to have been retransmitted (Linux's `tcp_check_dsack`
    /// and `tcp_sacktag_one`).
    pub fn unnecessary_retransmission(
        &self,
        unacknowledged: u64,
        acknowledged: u64,
    ) -> Option<(u64, u64)> {
        let (start, end) = self.delivered.duplicate()?;
        if !self.explains_duplicate() {
            return None;
        }
        let bytes_retransmitted = if end <= unacknowledged.saturating_sub(acknowledged) {
            true
        } else if end <= unacknowledged {
            self.delivered.has_retransmission()
        } else {
            self.ring.len() > 0
                && start >= self.ring.get(self.ring.first).start
                && self.ring.get(self.ring.find(start)).is(EVER_RETRANSMITTED)
        };
        bytes_retransmitted.then_some((start, end))
    }

    /// Whether the segment that starts at `start` was already SACKed and retransmitted. To be
    /// called after the cumulative acknowledgment and before the SACK blocks are processed.
    pub(crate) fn is_sacked_retransmission(&self, start: u64) -> bool {
        let first = self.ring.first;
        if first < self.ring.next && start >= self.ring.get(first).start {
            let segment = self.ring.get(self.ring.find(start));
            return segment.is(SACKED) && segment.is(EVER_RETRANSMITTED);
        }
        let range = self
            .loss_state
            .as_deref()
            .map_or((0, 0), |it| it.sacked_retransmission);
        self.delivered.has_sacked_retransmission() && (range.0..range.1).contains(&start)
    }

    /// Records a newly acknowledged range that was SACKed and retransmitted.
    #[cold]
    pub(super) fn record_sacked_retransmission(&mut self, start: u64, end: u64) {
        let range = &mut LossState::of(&mut self.loss_state).sacked_retransmission;
        *range = if self.delivered.has_sacked_retransmission() {
            (range.0, end)
        } else {
            (start, end)
        };
        self.delivered.set_sacked_retransmission();
    }

    /// Records a D-SACK for a segment that [was SACKed and
    /// retransmitted](Self::is_sacked_retransmission): its first transmission arrived late.
    pub(crate) fn set_late_duplicate_at(&mut self, start: u64) {
        if self
            .delivered
            .duplicate()
            .is_some_and(|range| range.0 == start)
        {
            self.delivered.set_late_duplicate();
        }
    }

    /// Start of a segment that arrived late and twice, according to the acknowledgment (Linux's
    /// tcp_sacktag_one; tcp_dsack_seen).
    pub(crate) fn late_duplicate(&self) -> Option<u64> {
        if !self.delivered.is_late_duplicate() || !self.explains_duplicate() {
            return None;
        }
        self.delivered.duplicate().map(|range| range.0)
    }

    /// Measures how late the segment was, relative to the highest SACKed one. Everything up to
    /// `unacknowledged` is acknowledged.
    pub(crate) fn record_late_duplicate(&mut self, start: u64, unacknowledged: u64) {
        let forward = if self.forward > unacknowledged {
            self.forward
        } else {
            self.forward_before
        };
        if start < forward {
            self.record_reordering(start, forward);
        }
    }

    /// Marks the segments between these positions SACKed. Returns their location.
    fn mark_block(&mut self, start: u64, end: u64) -> BlockRange {
        let first = self.ring.first;
        if first == self.ring.next || end <= self.ring.get(first).start {
            let after = first;
            return BlockRange {
                start,
                first,
                after,
            };
        }
        // The part known from the previous acknowledgment is already marked.
        let mut from = None;
        for (block, known) in self.loss_state.iter().flat_map(|t| t.previous.each()) {
            if known.start == start && known.after >= first {
                let known_end = end_of(block, start);
                if known_end == end {
                    return known;
                }
                if known_end < end {
                    from = Some(known);
                }
            }
        }
        let (first, number) = match from {
            Some(known) => (known.first, known.after),
            None if start <= self.ring.get(first).start => (first, first),
            None => {
                // Only whole segments: an honest receiver has all of a segment or nothing.
                let holds = self.ring.find(start);
                let number = holds + u64::from(self.ring.get(holds).start < start);
                (number, number)
            }
        };
        let after = self.mark_from(number, end);
        BlockRange {
            start,
            first,
            after,
        }
    }

    /// Marks the segments from `number` on that end at `end` or before. Returns the number after
    /// the last.
    #[inline]
    fn mark_from(&mut self, mut number: u64, end: u64) -> u64 {
        loop {
            number = self.ring.next_not_sacked(number);
            if number >= self.ring.next {
                return number;
            }
            let segment = *self.ring.get(number);
            if segment.end() > end {
                return number;
            }
            self.mark_sacked::<false>(number, &segment);
            number += 1;
            if segment.end() == end {
                return number;
            }
        }
    }

    /// Marks a segment SACKed. `ONE_MORE`: it has no other status and is above everything received.
    #[inline(always)]
    fn mark_sacked<const ONE_MORE: bool>(&mut self, number: u64, segment: &Segment) {
        let (length, end) = (u64::from(segment.length), segment.end());
        debug_assert!(!ONE_MORE || number >= self.cursor && end > self.forward);
        // The common case comes first, because its values are at hand.
        if !ONE_MORE && segment.is(EVER_RETRANSMITTED) {
            let transmission = segment.transmission();
            let mut arrival = self.arrival;
            arrival.echo = arrival
                .echo
                .filter(|_| !self.has_request(IGNORE_ECHO_OF_SACKED));
            self.delivered.retransmission_arrived(
                transmission,
                segment.length,
                true,
                self.clock,
                &arrival,
            );
        } else {
            // Blocks come in no order: only data known before this acknowledgment counts.
            if !ONE_MORE && end < self.forward_before {
                self.record_reordering(segment.start, end);
            }
            self.delivered
                .original_sacked(segment.transmission(), segment.length);
        }
        self.forward = if ONE_MORE { end } else { self.forward.max(end) };
        if !ONE_MORE {
            self.clear_loss(segment);
        }
        // The segment begins a run, unless it continues the previous one. A run that began just
        // after it is merged.
        let (goes_on, joins) = self.ring.set_sacked::<ONE_MORE>(number);
        self.sacked += length;
        self.sacked_segments += 1;
        self.sacked_runs = self.sacked_runs + u32::from(!goes_on) - u32::from(joins);
        if !ONE_MORE && number < self.cursor {
            self.sacked_below += length;
            let joins_below = joins && number + 1 < self.cursor;
            self.runs_below = self.runs_below + u32::from(!goes_on) - u32::from(joins_below);
        } else if number == self.cursor {
            // Loss detection has nothing to evaluate for it.
            self.advance_cursor(length, !goes_on);
        }
        if self.watched {
            self.note_sacked(segment.start, end);
        }
        if self.full > 0 {
            self.merge_buffers(number, segment);
        }
    }
}
