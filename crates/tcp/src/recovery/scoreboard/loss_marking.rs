//! Marking of lost segments, and retransmissions.

use std::ops::Range;

use bentpipe_types::{Span, Time};

use super::segment::{EVER_RETRANSMITTED, LOST, RETRANSMITTED, Ring, SACKED, SHORT, Segment};
use super::{LossState, LostSegment, Order, Scoreboard, Transmission, WATCH_RETRANSMISSIONS};

/// Result of a time-based loss detection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Overdue {
    /// A segment was newly marked lost.
    pub found: bool,
    /// One of them was a retransmission.
    pub retransmission: bool,
    /// Send time of the last segment that was sent before the newest delivered one and is not
    /// overdue yet, if any.
    pub pending: Option<Time>,
}

/// Maximum number of pending segments examined for their send time.
const MAXIMUM_PENDING: usize = 64;

impl Scoreboard {
    /// Marks lost segments by RFC 6675 section 4, IsLost (): `runs` SACKed runs above, or more than
    /// `bytes` SACKed above. Returns whether any was marked.
    pub fn mark_below_sacked(&mut self, runs: u32, bytes: u64) -> bool {
        let before = self.newly_lost;
        // The amount SACKed above a segment decreases with its position, so a cursor suffices.
        while self.cursor < self.ring.next {
            let segment = *self.ring.get(self.cursor);
            let is_sacked = segment.is(SACKED);
            let (own, begins) = if is_sacked {
                (u64::from(segment.length), self.begins_run(self.cursor))
            } else {
                (0, false)
            };
            let bytes_above = self.sacked - self.sacked_below - own;
            let runs_above = self.sacked_runs - self.runs_below - u32::from(begins);
            if bytes_above <= bytes && runs_above < runs {
                break;
            }
            if !is_sacked {
                self.mark_lost(self.cursor);
            }
            self.advance_cursor(own, begins);
        }
        self.newly_lost > before
    }

    /// Marks everything below the highest position received, as FACK does. Returns whether any was
    /// marked.
    pub fn mark_below_forward(&mut self) -> bool {
        let before = self.newly_lost;
        while self.cursor < self.ring.next {
            let segment = *self.ring.get(self.cursor);
            if segment.end() > self.forward {
                break;
            }
            let is_sacked = segment.is(SACKED);
            let own = if is_sacked {
                u64::from(segment.length)
            } else {
                self.mark_lost(self.cursor);
                0
            };
            let begins = is_sacked && self.begins_run(self.cursor);
            self.advance_cursor(own, begins);
        }
        self.newly_lost > before
    }

    /// Marks the first segment lost, even if it was retransmitted.
    pub fn mark_first(&mut self) {
        let first = self.ring.first;
        if self.ring.len() == 0 || self.ring.get(first).is(SACKED) {
            return;
        }
        if self.ring.get(first).is(RETRANSMITTED) {
            self.mark_retransmission_lost(first);
        } else {
            self.mark_lost(first);
        }
    }

    /// Marks the first segment lost, unless it is already, retransmitted or not.
    pub fn mark_first_once(&mut self) {
        if self.ring.len() > 0 {
            self.mark_lost(self.ring.first);
        }
    }

    /// Whether a segment sent before `newest` may be outstanding and not marked lost. Most often
    /// there is none.
    #[inline(always)]
    pub fn may_be_overdue(&self, newest: Transmission) -> bool {
        let ahead = self.cursor < self.ring.next && {
            let segment = self.ring.get(self.cursor);
            !segment.is_plain() || segment.order.is_before(newest.order)
        };
        ahead
            || self
                .oldest_retransmission()
                .is_some_and(|(_, order)| order.is_before(newest.order))
    }

    /// RFC 8985 section 6.2 step 5: marks segments sent before `newest` that have not arrived
    /// `allowance` after their transmission. The search is in send order and ends at the first
    /// segment that is not overdue.
    #[inline(never)]
    pub fn mark_overdue(&mut self, newest: Transmission, allowance: Span, now: Time) -> Overdue {
        let mut overdue = Overdue::default();
        while self.cursor < self.ring.next {
            let segment = *self.ring.get(self.cursor);
            let is_sacked = segment.is(SACKED);
            // Retransmitted segments are in the queue below.
            if !segment.is(SACKED | LOST | EVER_RETRANSMITTED) {
                if !segment.order.is_before(newest.order) {
                    break;
                }
                if segment.sent_at + allowance > now {
                    overdue.pending = Some(self.last_before(newest));
                    break;
                }
                overdue.found = true;
                self.mark_lost(self.cursor);
            }
            let own = if is_sacked {
                u64::from(segment.length)
            } else {
                0
            };
            let begins = is_sacked && self.begins_run(self.cursor);
            self.advance_cursor(own, begins);
        }
        // A run of consecutive segments to be retransmitted again.
        let mut run = 0..0;
        // Entries in the queue are in send order.
        while let Some(&(number, order)) = self.oldest_retransmission()
            && order.is_before(newest.order)
        {
            if let Some(segment) = self.retransmission_in_flight(number, order) {
                if segment.sent_at + allowance > now {
                    let last = self.last_again_before(newest, segment.sent_at);
                    overdue.pending = overdue.pending.max(Some(last));
                    break;
                }
                overdue.found = true;
                // A probe that does not count as a retransmission is lost for the first time
                // (FLAG_LOST_RETRANS).
                if segment.is(RETRANSMITTED) {
                    overdue.retransmission = true;
                    self.record_lost_retransmission(number);
                    if number != run.end {
                        self.queue_lost_again(run);
                        run = number..number;
                    }
                    run.end += 1;
                } else {
                    self.mark_lost(number);
                }
            }
            LossState::of(&mut self.loss_state)
                .retransmissions
                .pop_front();
        }
        self.queue_lost_again(run);
        overdue
    }

    /// Send time of the last segment sent before `newest`, from the cursor on, that was sent once
    /// and has not arrived. After [`MAXIMUM_PENDING`] segments, the time of `newest` is returned to
    /// limit the cost.
    fn last_before(&mut self, newest: Transmission) -> Time {
        let mut number = self.cursor;
        let mut last = newest.sent_at;
        for _ in 0..MAXIMUM_PENDING {
            if number >= self.ring.next {
                return last;
            }
            let segment = self.ring.get(number);
            if !segment.is(SACKED | LOST | EVER_RETRANSMITTED) {
                if !segment.order.is_before(newest.order) {
                    return last;
                }
                last = segment.sent_at;
            }
            number = self.ring.next_not_sacked(number + 1);
        }
        newest.sent_at
    }

    /// Send time of the last retransmission sent before `newest`; `first` is that of the first.
    fn last_again_before(&self, newest: Transmission, first: Time) -> Time {
        let Some(loss_state) = self.loss_state.as_deref() else {
            return first;
        };
        let mut last = first;
        for &(number, order) in loss_state.retransmissions.iter().take(MAXIMUM_PENDING) {
            if !order.is_before(newest.order) {
                return last;
            }
            if let Some(segment) = self.retransmission_in_flight(number, order) {
                last = segment.sent_at;
            }
        }
        if loss_state.retransmissions.len() > MAXIMUM_PENDING {
            newest.sent_at
        } else {
            last
        }
    }

    /// The segment of this retransmission, if it is still in flight.
    #[inline]
    fn retransmission_in_flight(&self, number: u64, order: Order) -> Option<Segment> {
        let segment = (number >= self.ring.first).then(|| *self.ring.get(number))?;
        let waits = segment.is(SACKED) || segment.is_to_be_sent();
        (!waits && segment.order == order).then_some(segment)
    }

    #[inline]
    pub(super) fn oldest_retransmission(&self) -> Option<&(u64, Order)> {
        self.loss_state.as_deref()?.retransmissions.front()
    }

    /// RFC 8985 section 6.3: after a timeout, marks segments and retransmissions sent more than
    /// `recent` ago lost, and the first segment in any case. Returns whether the receiver has
    /// reneged on a SACK (RFC 2018 section 8): then all SACK information is discarded.
    ///
    /// Walks all outstanding segments.
    pub fn mark_after_timeout(&mut self, recent: Option<Span>, now: Time) -> bool {
        let (first, next) = (self.ring.first, self.ring.next);
        // A SACKed segment is at SND.UNA and not acknowledged.
        // RFC 6675 section 5.1: otherwise all SACK information is used after the timeout.
        let reneged = first < next && self.ring.get(first).is(SACKED);
        self.lost = 0;
        self.retransmitted = 0;
        self.retransmitted_segments = 0;
        self.to_send = 0;
        LossState::of(&mut self.loss_state).lost_again.clear();
        let mut any_under_way = false;
        for number in first..next {
            let segment = self.ring.get_mut(number);
            if reneged {
                segment.flags &= !SACKED;
                segment.skip = 0;
            }
            if segment.is(SACKED) {
                continue;
            }
            let length = u64::from(segment.length);
            let is_recent = !reneged && recent.is_some_and(|span| segment.sent_at + span > now);
            if number > first && is_recent {
                if segment.is(LOST) {
                    self.lost += length;
                    self.to_send += u32::from(!segment.is(RETRANSMITTED));
                }
                if segment.is(RETRANSMITTED) {
                    self.retransmitted += length;
                    self.retransmitted_segments += 1;
                }
                // Not only segments marked as retransmitted: after an undo, a retransmitted segment
                // has no mark, and is only found through the queue.
                any_under_way |= segment.is(EVER_RETRANSMITTED);
                continue;
            }
            if !segment.is(LOST) || segment.is(RETRANSMITTED) {
                let (position, length) = (segment.start, segment.length);
                self.note_loss(position, length);
            }
            let segment = self.ring.get_mut(number);
            segment.flags = segment.flags & !RETRANSMITTED | LOST;
            self.lost += length;
            self.to_send += 1;
        }
        self.sum_short();
        let loss_state = LossState::of(&mut self.loss_state);
        if !any_under_way {
            loss_state.retransmissions.clear();
        }
        if reneged {
            self.sacked = 0;
            self.sacked_segments = 0;
            self.sacked_runs = 0;
            loss_state.previous.forget();
            self.count_merged();
        }
        self.restart_detection();
        reneged
    }

    /// Removes all loss marks, because the losses were spurious.
    ///
    /// Walks all outstanding segments.
    pub fn unmark_lost(&mut self) {
        let watches = self.has_request(WATCH_RETRANSMISSIONS);
        let loss_state = LossState::of(&mut self.loss_state);
        loss_state.retransmissions.clear();
        loss_state.lost_again.clear();
        for number in self.ring.first..self.ring.next {
            let segment = self.ring.get_mut(number);
            segment.flags &= !LOST;
            if watches && segment.flags & (SACKED | EVER_RETRANSMITTED) == EVER_RETRANSMITTED {
                loss_state
                    .retransmissions
                    .push_back((number, segment.order));
            }
        }
        self.sort_retransmissions();
        self.lost = 0;
        self.to_send = 0;
        self.sum_short();
        self.restart_detection();
    }

    /// Discards what is known about all outstanding segments, also which of them have arrived, as
    /// ns-2's TCP-Linux does at the end of recovery (`ScoreBoard1::ClearScoreBoard`).
    ///
    /// Walks all outstanding segments.
    pub fn clear_marks(&mut self) {
        let watches = self.has_request(WATCH_RETRANSMISSIONS);
        let loss_state = LossState::of(&mut self.loss_state);
        loss_state.retransmissions.clear();
        loss_state.lost_again.clear();
        loss_state.previous.forget();
        for number in self.ring.first..self.ring.next {
            let segment = self.ring.get_mut(number);
            segment.flags &= !(SACKED | LOST | RETRANSMITTED);
            segment.skip = 0;
            // Loss of these is only detected through the queue.
            if watches && segment.is(EVER_RETRANSMITTED) {
                loss_state
                    .retransmissions
                    .push_back((number, segment.order));
            }
        }
        self.sort_retransmissions();
        self.sacked = 0;
        self.sacked_segments = 0;
        self.sacked_runs = 0;
        self.lost = 0;
        self.retransmitted = 0;
        self.retransmitted_segments = 0;
        self.to_send = 0;
        if self.ring.first < self.ring.next {
            let start = self.ring.get(self.ring.first).start;
            self.forward = start;
            self.forward_before = start;
        }
        self.sum_short();
        self.count_merged();
        self.restart_detection();
    }

    /// Sorts the retransmissions in flight in send order.
    pub(super) fn sort_retransmissions(&mut self) {
        let last = self.transmissions;
        let retransmissions = &mut LossState::of(&mut self.loss_state).retransmissions;
        retransmissions
            .make_contiguous()
            .sort_unstable_by_key(|(_, order)| order.0.wrapping_sub(last.0) as i32);
    }

    /// The lowest segment that is lost and was not retransmitted since.
    #[inline(always)]
    pub fn next_lost(&mut self) -> Option<LostSegment> {
        if self.to_send == 0 {
            return None;
        }
        let number = self.next_lost_number()?;
        let segment = self.ring.get(number);
        Some(LostSegment {
            position: segment.start,
            length: segment.length,
        })
    }

    #[inline(always)]
    fn next_lost_number(&mut self) -> Option<u64> {
        self.lost_cursor = self.lost_cursor.max(self.ring.first);
        LossState::of(&mut self.loss_state).next_lost(
            &self.ring,
            &mut self.lost_cursor,
            self.lost_end,
        )
    }

    /// RFC 6675 section 4, NextSeg () rule 3: the lowest segment below the highest SACKed one that
    /// is not SACKed, lost or retransmitted.
    pub fn next_suspect(&mut self) -> Option<LostSegment> {
        self.suspect_cursor = self.suspect_cursor.max(self.cursor);
        while self.suspect_cursor < self.ring.next {
            let segment = *self.ring.get(self.suspect_cursor);
            if segment.end() > self.forward {
                return None;
            }
            if !segment.is(SACKED | LOST | RETRANSMITTED) {
                return Some(LostSegment {
                    position: segment.start,
                    length: segment.length,
                });
            }
            self.suspect_cursor += 1;
        }
        None
    }

    /// RFC 6675 section 4, NextSeg () rule 4, and RFC 8985 section 7.3: the highest segment that is
    /// not SACKed. Walks the run of SACKed segments at the end.
    #[must_use]
    pub fn highest_not_sacked(&self) -> Option<LostSegment> {
        (self.ring.first..self.ring.next).rev().find_map(|number| {
            let segment = self.ring.get(number);
            (!segment.is(SACKED)).then_some(LostSegment {
                position: segment.start,
                length: segment.length,
            })
        })
    }

    /// Records the retransmission of the segment at `position`. Returns its length, 0 if there is
    /// none.
    #[inline(always)]
    pub fn on_retransmitted(&mut self, position: u64, now: Time) -> u32 {
        let loss_state = LossState::of(&mut self.loss_state);
        // Most often it is the segment returned last by `next_lost`.
        let next_to_retransmit = loss_state.next_to_retransmit;
        let number = if self.ring.holds(next_to_retransmit)
            && self.ring.get(next_to_retransmit).start == position
        {
            next_to_retransmit
        } else if self.ring.len() == 0 || position < self.ring.get(self.ring.first).start {
            return 0;
        } else {
            self.ring.find(position)
        };
        self.record_retransmission(number, now)
    }

    /// Treats the retransmission just sent at `position` as the original transmission, sent later:
    /// it does not count as a retransmission, and not as further data in flight.
    #[cold]
    pub(crate) fn count_as_original(&mut self, position: u64) {
        if self.ring.len() == 0 {
            return;
        }
        let number = self.ring.find(position);
        let segment = self.ring.get_mut(number);
        if segment.flags & (RETRANSMITTED | LOST | SACKED) != RETRANSMITTED {
            return;
        }
        segment.flags &= !RETRANSMITTED;
        let (length, is_short) = (segment.length, segment.is(SHORT));
        self.retransmitted -= u64::from(length);
        self.retransmitted_segments -= 1;
        if is_short {
            self.add_short(number, -1);
        }
    }

    /// Retransmits up to `most` lost segments, lowest first, as long as they have this length and
    /// end at or before `edge`. Calls `each` with each start. Returns the number of segments.
    #[inline(always)]
    pub fn retransmit_run(
        &mut self,
        length: u32,
        edge: u64,
        most: u64,
        now: Time,
        mut each: impl FnMut(u64),
    ) -> u64 {
        let most = most.min(u64::from(self.to_send));
        let first = self.ring.first;
        let loss_state = LossState::of(&mut self.loss_state);
        loss_state.forget_below(first);
        let mut order = self.transmissions;
        let mut cursor = self.lost_cursor.max(first);
        let mut count = 0;
        while count < most {
            let Some(number) = loss_state.next_lost(&self.ring, &mut cursor, self.lost_end) else {
                break;
            };
            let segment = self.ring.get_mut(number);
            if segment.length != length || segment.end() > edge || segment.is(SHORT) {
                break;
            }
            order = order.next();
            segment.flags |= RETRANSMITTED | EVER_RETRANSMITTED;
            segment.sent_at = now;
            segment.order = order;
            each(segment.start);
            if loss_state.lost_again.first() == Some(number) {
                loss_state.lost_again.remove_first();
            }
            if self.requests & WATCH_RETRANSMISSIONS != 0 {
                loss_state.retransmissions.push_back((number, order));
            }
            count += 1;
        }
        self.lost_cursor = cursor;
        self.transmissions = order;
        self.to_send -= count as u32;
        self.retransmitted_segments += count as u32;
        self.retransmitted += count * u64::from(length);
        self.bytes_retransmitted += count * u64::from(length);
        count
    }

    /// Records a retransmission of this segment. Returns its length.
    #[inline(always)]
    fn record_retransmission(&mut self, number: u64, now: Time) -> u32 {
        let loss_state = LossState::of(&mut self.loss_state);
        self.transmissions = self.transmissions.next();
        let order = self.transmissions;
        let segment = self.ring.get_mut(number);
        let was_to_be_sent = segment.is_to_be_sent();
        let was_under_way = segment.is(RETRANSMITTED);
        // RFC 6675 section 5, step C.2: instead of HighRxt, each segment is marked.
        segment.flags |= RETRANSMITTED | EVER_RETRANSMITTED;
        segment.sent_at = now;
        segment.order = order;
        let length = segment.length;
        let is_short = segment.is(SHORT);
        self.bytes_retransmitted += u64::from(length);
        self.to_send -= u32::from(was_to_be_sent);
        if loss_state.lost_again.first() == Some(number) {
            loss_state.lost_again.remove_first();
        }
        if !was_under_way {
            self.retransmitted += u64::from(length);
            self.retransmitted_segments += 1;
        }
        if self.requests & WATCH_RETRANSMISSIONS != 0 {
            loss_state.forget_below(self.ring.first);
            loss_state.retransmissions.push_back((number, order));
        }
        if is_short && !was_under_way {
            self.add_short(number, 1);
        }
        length
    }

    /// Records that the first segment was sent anew in place of its previous transmission.
    pub(crate) fn renew_first(&mut self, now: Time) {
        if self.ring.len() > 0 {
            self.transmissions = self.transmissions.next();
            let order = self.transmissions;
            let first = self.ring.get_mut(self.ring.first);
            first.sent_at = now;
            first.order = order;
        }
    }

    /// Whether this SACKed segment is the first of a run.
    fn begins_run(&self, number: u64) -> bool {
        number == self.ring.first || !self.ring.get(number - 1).is(SACKED)
    }

    /// Moves the cursor past a segment of which `sacked` bytes are SACKed.
    #[inline]
    pub(super) fn advance_cursor(&mut self, sacked: u64, begins_run: bool) {
        self.sacked_below += sacked;
        self.runs_below += u32::from(begins_run);
        self.cursor += 1;
    }

    fn mark_lost(&mut self, number: u64) {
        let segment = self.ring.get_mut(number);
        if segment.is(LOST) {
            return;
        }
        segment.flags |= LOST;
        let is_short = segment.is(SHORT);
        let (position, length) = (segment.start, segment.length);
        let to_be_sent = segment.is_to_be_sent();
        if is_short {
            self.add_short(number, -1);
        }
        self.lost += u64::from(length);
        self.note_loss(position, length);
        if self.to_send == 0 {
            // Nothing below waits to be sent again.
            self.lost_cursor = self.lost_cursor.max(number);
        }
        self.to_send += u32::from(to_be_sent);
        if number < self.lost_cursor {
            let loss_state = LossState::of(&mut self.loss_state);
            loss_state.lost_again.push(number, self.ring.first);
        }
        self.lost_end = self.lost_end.max(number + 1);
    }

    fn mark_retransmission_lost(&mut self, number: u64) {
        self.record_lost_retransmission(number);
        self.queue_lost_again(number..number + 1);
    }

    /// Queues segments whose retransmissions were lost for another retransmission.
    #[inline]
    fn queue_lost_again(&mut self, numbers: Range<u64>) {
        if !numbers.is_empty() {
            let again = &mut LossState::of(&mut self.loss_state).lost_again;
            again.push_all(numbers.start, numbers.end, self.ring.first);
        }
    }

    /// Marks the retransmission of this segment lost. The caller [queues](Self::queue_lost_again)
    /// it.
    #[inline(always)]
    fn record_lost_retransmission(&mut self, number: u64) {
        let segment = self.ring.get_mut(number);
        let (position, length) = (segment.start, segment.length);
        let was_lost = segment.is(LOST);
        segment.flags = segment.flags & !RETRANSMITTED | LOST;
        if segment.is(SHORT) {
            self.add_short(number, if was_lost { -1 } else { -2 });
        }
        self.retransmitted -= u64::from(length);
        self.retransmitted_segments -= 1;
        self.note_loss(position, length);
        self.to_send += 1;
        if !was_lost {
            self.lost += u64::from(length);
        }
    }

    /// Restarts loss detection and retransmission from the first segment.
    pub(super) fn restart_detection(&mut self) {
        self.cursor = self.ring.first;
        self.sacked_below = 0;
        self.runs_below = 0;
        self.lost_cursor = self.ring.first;
        self.lost_end = self.ring.next;
        self.suspect_cursor = self.ring.first;
    }
}

impl LossState {
    /// The number of the lowest lost segment to be retransmitted. Those lost once lie between
    /// `cursor`, which is advanced, and `end`.
    #[inline(always)]
    fn next_lost(&mut self, ring: &Ring, cursor: &mut u64, end: u64) -> Option<u64> {
        let again = loop {
            match self.lost_again.first() {
                Some(number) if number < ring.first || !ring.get(number).is_to_be_sent() => {
                    self.lost_again.remove_first();
                }
                again => break again,
            }
        };
        while *cursor < end && !ring.get(*cursor).is_to_be_sent() {
            *cursor += 1;
        }
        let once = (*cursor < end).then_some(*cursor);
        let lowest = match (once, again) {
            (Some(once), Some(again)) => once.min(again),
            (once, again) => once.or(again)?,
        };
        self.next_to_retransmit = lowest;
        Some(lowest)
    }

    /// Removes queue entries of segments below `first`.
    #[inline]
    fn forget_below(&mut self, first: u64) {
        while let Some(&(oldest, _)) = self.retransmissions.front()
            && oldest < first
        {
            self.retransmissions.pop_front();
        }
    }
}
