//! The scoreboard: the outstanding data, segment by segment (RFC 6675 section 3).
//!
//! It consists of one ring of records and sums over it, so that the bytes in flight and the next
//! segment to send are known without a walk. The cost of an acknowledgment does not depend on the
//! window:
//!
//! * A SACK block is compared with the previous acknowledgment's blocks. Its new part is found by
//!   stepping over the SACKed runs that it covers, one step each.
//! * Segments below a threshold that only rises (too much is SACKed above, or they were sent too
//!   long ago) are marked by a cursor that only rises.
//! * Retransmissions are tracked in a queue, in send order.
//! * Lost segments are retransmitted lowest first: a cursor for those lost once, a bit set for
//!   those whose retransmission was lost as well.

mod buffer_merging;
mod delivered;
mod linux_buffers;
mod loss_marking;
mod min_bitset;
mod order;
mod previous_blocks;
mod resegmentation;
mod sack_blocks;
mod segment;
mod watched_segments;
mod whole_segments;

use std::collections::VecDeque;

use bentpipe_types::{Time, fetch, fetch_whole};
use serde::{Deserialize, Serialize};

use crate::HostClock;
use min_bitset::MinBitset;
use previous_blocks::PreviousBlocks;
use segment::{
    CONTINUES, CUT, EVER_RETRANSMITTED, LOST, RETRANSMITTED, Ring, SACKED, SHORT, STATUS, Segment,
};

pub(crate) use delivered::Measured;
pub use delivered::{Arrival, Delivered, Transmission};
pub use loss_marking::Overdue;
pub use order::Order;
pub(crate) use sack_blocks::OneMoreSegment;
pub(crate) use whole_segments::WholeSegments;

/// Maximum number of outstanding segments. Limits the memory for large peer windows and tiny
/// segments.
const CAPACITY: usize = 1 << 20;

/// A lost segment to be retransmitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LostSegment {
    /// Its first position.
    pub position: u64,
    /// Number of positions in it.
    pub length: u32,
}

/// The outstanding segments and their state. Amounts are in bytes (positions).
#[derive(Debug, Serialize, Deserialize)]
#[repr(C)]
pub struct Scoreboard {
    ring: Ring,
    arrival: Arrival,
    /// Bytes in SACKed segments.
    sacked: u64,
    /// Number of SACKed segments.
    sacked_segments: u64,
    /// Bytes in segments marked lost.
    lost: u64,
    /// Bytes in segments with a retransmission in flight.
    retransmitted: u64,
    /// Position after the highest one known to have arrived: the FACK paper's snd.fack.
    forward: u64,
    /// Value of `forward` before the last acknowledgment.
    forward_before: u64,
    /// Loss detection cursor: segments with a lower number are evaluated.
    cursor: u64,
    newly_lost: u64,
    /// State needed once a segment is SACKed, lost or retransmitted.
    loss_state: Option<Box<LossState>>,
    /// Number of lost segments to be retransmitted.
    to_send: u32,
    /// Order of the last transmission.
    transmissions: Order,
    /// Number of runs of SACKed segments.
    sacked_runs: u32,
    /// Number of SACKed runs below the cursor.
    runs_below: u32,
    retransmitted_segments: u32,
    // Flags: WATCH_RETRANSMISSIONS, IGNORE_ECHO_OF_SACKED. One byte, so that `clock` fits beside
    // it.
    requests: u8,
    watched: bool,
    clock: HostClock,
    delivered: Delivered,
    /// Bytes SACKed below the cursor.
    sacked_below: u64,
    ignored_blocks: u32,
    /// Number of short segments in flight, with multiplicity, where [they count as full
    /// ones](Self::count_segments).
    short: u32,
    /// Number of the first segment that may be lost once and not retransmitted.
    lost_cursor: u64,
    /// Number after the last segment that may be lost and not retransmitted.
    lost_end: u64,
    /// Total bytes retransmitted.
    bytes_retransmitted: u64,
    /// Number below which no segment qualifies for a retransmission without evidence of loss.
    suspect_cursor: u64,
    /// Reordering degree: the maximum distance from a late segment to the highest one received
    /// before it.
    reordering: u64,
    reorderings_seen: u32,
    /// Payload of a full segment, where short ones count as full; 0 where bytes count.
    full: u32,
    /// Total bytes reported by D-SACKs.
    dsack_bytes: u64,
}

// Flags of `Scoreboard::requests`.
const WATCH_RETRANSMISSIONS: u8 = 1;
const IGNORE_ECHO_OF_SACKED: u8 = 1 << 1;

/// State that only connections with losses or reordering need.
#[derive(Debug, Default, Serialize, Deserialize)]
#[repr(C)]
struct LossState {
    /// Retransmissions in send order: (segment number, order). An entry whose order differs from
    /// the segment's record is obsolete.
    retransmissions: VecDeque<(u64, Order)>,
    /// Number of the segment last returned as next to retransmit.
    next_to_retransmit: u64,
    /// The blocks of the previous acknowledgment.
    previous: PreviousBlocks,
    /// Range of the data newly acknowledged that was SACKed before and retransmitted, if any.
    sacked_retransmission: (u64, u64),
    /// Bytes in short segments in flight.
    short_bytes: u64,
    /// Ends of outstanding buffers with PSH, where buffers are tracked.
    pushed: VecDeque<u64>,
    /// Number of buffers saved by merging, where buffers are tracked (see `buffer_merging.rs`).
    merged: i32,
    /// Additional delivered bytes if short segments count as full ones.
    newly_short: u64,
    /// Lowest position that arrived late according to the last acknowledgment.
    late: u64,
    /// Numbers of the segments whose retransmission was lost.
    lost_again: MinBitset,
    /// Ranges newly SACKed, if watched.
    newly_sacked: Vec<(u64, u64)>,
    /// Segments newly marked lost, if watched.
    newly_lost: Vec<LostSegment>,
}

impl Scoreboard {
    /// See [`Connection::prefetch_senders`](crate::Connection::prefetch_senders).
    #[inline]
    pub(crate) fn prefetch(&self) {
        self.ring.prefetch();
        if let Some(loss_state) = &self.loss_state {
            fetch_whole(&**loss_state, &loss_state.retransmissions);
        }
    }

    /// See [`Connection::prefetch_last`](crate::Connection::prefetch_last).
    #[inline]
    pub(crate) fn prefetch_queue(&self) {
        if let Some(first) = self.oldest_retransmission() {
            fetch(first, 1);
        }
    }
}

impl Default for Scoreboard {
    fn default() -> Self {
        Self::new()
    }
}

impl Scoreboard {
    /// Creates an empty scoreboard.
    #[must_use]
    pub fn new() -> Self {
        Self {
            ring: Ring::new(),
            sacked: 0,
            sacked_segments: 0,
            sacked_runs: 0,
            lost: 0,
            retransmitted: 0,
            retransmitted_segments: 0,
            to_send: 0,
            forward: 0,
            forward_before: 0,
            cursor: 0,
            sacked_below: 0,
            runs_below: 0,
            lost_cursor: 0,
            lost_end: 0,
            suspect_cursor: 0,
            requests: 0,
            watched: false,
            clock: HostClock::default(),
            transmissions: Order::default(),
            arrival: Arrival::default(),
            delivered: Delivered::none(),
            newly_lost: 0,
            loss_state: None,
            ignored_blocks: 0,
            short: 0,
            full: 0,
            reordering: 0,
            reorderings_seen: 0,
            bytes_retransmitted: 0,
            dsack_bytes: 0,
        }
    }

    /// Whether there is room for another segment.
    #[inline]
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.ring.len() < CAPACITY
    }

    /// Number of outstanding segments.
    #[must_use]
    pub fn segments(&self) -> usize {
        self.ring.len()
    }

    /// Allocated memory in bytes.
    #[must_use]
    pub fn allocated(&self) -> usize {
        self.ring.allocated() + self.loss_state.as_deref().map_or(0, LossState::allocated)
    }

    /// Bytes in SACKed segments.
    #[inline]
    #[must_use]
    pub fn sacked(&self) -> u64 {
        self.sacked
    }

    /// Total number of acknowledged segments.
    #[must_use]
    pub fn acknowledged_segments(&self) -> u64 {
        self.ring.first
    }

    /// Number of SACKed segments.
    #[must_use]
    pub fn sacked_segments(&self) -> u64 {
        self.sacked_segments
    }

    /// Bytes in segments marked lost, retransmitted or not.
    #[inline]
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Bytes with a retransmission in flight: the FACK paper's `retran_data`.
    #[inline]
    #[must_use]
    pub fn retransmitted(&self) -> u64 {
        self.retransmitted
    }

    /// Number of segments with a retransmission in flight.
    #[must_use]
    pub fn retransmitted_segments(&self) -> u64 {
        u64::from(self.retransmitted_segments)
    }

    /// Whether anything was ever retransmitted. If not, the [`Arrival`] of an acknowledgment is
    /// irrelevant.
    #[inline]
    #[must_use]
    pub fn has_retransmitted(&self) -> bool {
        self.bytes_retransmitted > 0
    }

    /// Whether there is a lost segment to be retransmitted.
    #[inline]
    #[must_use]
    pub fn has_lost_to_send(&self) -> bool {
        self.to_send > 0
    }

    /// Whether nothing is SACKed, lost, retransmitted or short, and the last acknowledgment had no
    /// D-SACK.
    #[inline]
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.sacked_segments | self.lost | self.retransmitted | u64::from(self.short) == 0
            && self.delivered.is_plain()
    }

    /// Position after the highest one known to have arrived: snd.fack.
    #[inline]
    #[must_use]
    pub fn forward(&self) -> u64 {
        self.forward
    }

    /// RFC 6675 section 4: SetPipe () for `outstanding` bytes, without what is SACKed or lost, and
    /// with retransmissions added. Short segments count as full ones if
    /// [configured](Self::count_segments).
    #[inline]
    #[must_use]
    pub fn pipe(&self, outstanding: u64) -> u64 {
        debug_assert!(outstanding + self.retransmitted >= self.sacked + self.lost);
        let pipe = (outstanding + self.retransmitted).saturating_sub(self.sacked + self.lost);
        if self.short > 0 {
            return pipe + self.deficit();
        }
        pipe
    }

    /// The data newly reported by the last acknowledgment.
    #[inline]
    #[must_use]
    pub fn delivered(&self) -> &Delivered {
        &self.delivered
    }

    /// Sets the newly delivered bytes of the last acknowledgment, where duplicates are counted.
    pub(super) fn count_delivered(&mut self, bytes: u64) {
        self.delivered.count(bytes);
        self.delivered.set_short(false);
    }

    /// Ranges (first position, position after the last) newly SACKed by the last acknowledgment, by
    /// segment or merged, if watched.
    #[must_use]
    pub fn newly_sacked(&self) -> &[(u64, u64)] {
        self.loss_state
            .as_deref()
            .map_or(&[], |loss_state| &loss_state.newly_sacked)
    }

    /// Bytes marked lost since the last acknowledgment began. Includes lost retransmissions.
    #[must_use]
    pub fn newly_lost(&self) -> u64 {
        self.newly_lost
    }

    /// Number of invalid SACK blocks: for data never sent, or acknowledged long ago.
    #[must_use]
    pub fn ignored_blocks(&self) -> u64 {
        u64::from(self.ignored_blocks)
    }

    /// Reordering degree: maximum distance in bytes from the start of a late segment to the end of
    /// the highest one received before it; 0 without reordering.
    #[must_use]
    pub fn reordering(&self) -> u64 {
        self.reordering
    }

    /// Number of acknowledgments that showed reordering.
    #[must_use]
    pub fn reorderings_seen(&self) -> u64 {
        u64::from(self.reorderings_seen)
    }

    /// Enables tracking of retransmissions in send order, to detect lost ones.
    pub(crate) fn watch_retransmissions(&mut self, watch: bool) {
        self.request(WATCH_RETRANSMISSIONS, watch);
    }

    /// Ignores the timestamp echo of SACKed segments: see `RecoveryQuirks::ignores_echo_of_sacked`.
    pub(crate) fn ignore_echo_of_sacked(&mut self, ignore: bool) {
        self.request(IGNORE_ECHO_OF_SACKED, ignore);
    }

    #[inline]
    fn has_request(&self, what: u8) -> bool {
        self.requests & what != 0
    }

    fn request(&mut self, what: u8, requested: bool) {
        self.requests = self.requests & !what | if requested { what } else { 0 };
    }

    /// The clock of the timestamps that segments carry.
    pub(crate) fn clock(&self) -> HostClock {
        self.clock
    }

    /// Sets the clock of the timestamps that segments carry.
    pub(crate) fn set_clock(&mut self, clock: HostClock) {
        self.clock = clock;
    }

    /// Records the first transmission of positions `start` to `end`.
    #[inline]
    pub fn push(&mut self, start: u64, end: u64, now: Time) {
        if self.has_room() {
            self.push_next(start, end, now);
        }
    }

    /// Like [`push`](Self::push), with room guaranteed.
    #[inline]
    pub(crate) fn push_next(&mut self, start: u64, end: u64, now: Time) {
        debug_assert!(start < end && end - start <= u64::from(u32::MAX));
        debug_assert!(self.has_room());
        self.transmissions = self.transmissions.next();
        let order = self.transmissions;
        self.ring.push(Segment {
            start,
            sent_at: now,
            length: (end - start) as u32,
            skip: 0,
            order,
            flags: 0,
        });
    }

    /// Begins the processing of an acknowledgment that does not advance SND.UNA.
    #[inline(always)]
    pub fn begin(&mut self, arrival: Arrival) {
        self.arrival = arrival;
        self.forward_before = self.forward;
        self.begin_in_order(arrival.now);
    }

    /// Begins the processing of an acknowledgment that only reports in-order segments sent once,
    /// which leaves the loss state untouched.
    #[inline(always)]
    pub(crate) fn begin_in_order(&mut self, now: Time) {
        if self.watched
            && let Some(loss_state) = &mut self.loss_state
        {
            loss_state.newly_sacked.clear();
            loss_state.newly_lost.clear();
        }
        self.newly_lost = 0;
        self.delivered.begin(now);
    }

    /// Processes an acknowledgment of everything below `position`, which may be nothing new.
    #[inline(always)]
    pub fn acknowledge(&mut self, position: u64, arrival: Arrival) {
        self.begin(arrival);
        while self.ring.first < self.ring.next {
            let segment = *self.ring.get(self.ring.first);
            let end = segment.end();
            if end > position {
                if segment.start < position {
                    self.acknowledge_part(position);
                }
                break;
            }
            if segment.is_plain() {
                if end < self.forward {
                    self.record_reordering(segment.start, position);
                }
                self.delivered
                    .original_acknowledged(segment.transmission(), segment.length);
            } else if segment.is(SACKED) {
                self.delivered.sacked_before(segment.is(EVER_RETRANSMITTED));
                self.remove_first_sacked(position);
                continue;
            } else {
                self.acknowledge_marked(&segment, position);
            }
            if segment.is(CUT) || segment.is(CONTINUES) && self.sacked_segments > 0 {
                self.forget_buffers(self.ring.first, self.ring.first + 1);
            }
            self.ring.first += 1;
            if end == position {
                break;
            }
        }
        self.forward = self.forward.max(position);
        let first = self.ring.first;
        if self.cursor < first {
            self.cursor = first;
            debug_assert!(self.sacked_below == 0 && self.runs_below == 0);
        }
    }

    /// Processes the acknowledgment of the first segment, which is not SACKed but has other flags.
    fn acknowledge_marked(&mut self, segment: &Segment, position: u64) {
        self.clear_loss(segment);
        if segment.is(EVER_RETRANSMITTED) {
            let (transmission, arrival) = (segment.transmission(), self.arrival);
            self.delivered.retransmission_arrived(
                transmission,
                segment.length,
                false,
                self.clock,
                &arrival,
            );
        } else {
            if segment.end() < self.forward {
                self.record_reordering(segment.start, position);
            }
            self.delivered
                .original_acknowledged(segment.transmission(), segment.length);
        }
    }

    /// Records that the original transmission of a retransmitted segment, starting at `start`,
    /// arrived late.
    pub fn record_late_original(&mut self, start: u64) {
        if start < self.forward {
            self.record_reordering(start, self.forward);
        }
    }

    /// Records a segment starting at `start` that arrived after later ones. Everything up to
    /// `position` has arrived.
    #[cold]
    fn record_reordering(&mut self, start: u64, position: u64) {
        let loss_state = LossState::of(&mut self.loss_state);
        if self.delivered.is_reordered() {
            loss_state.late = loss_state.late.min(start);
        } else {
            self.reorderings_seen += 1;
            self.delivered.set_reordered();
            loss_state.late = start;
        }
        let late = self.forward.max(position) - loss_state.late;
        self.reordering = self.reordering.max(late);
    }

    /// Measures how late the reported segment was, from the highest one received so far
    /// (tcp_check_sack_reordering).
    #[cold]
    pub(crate) fn measure_reordering(&mut self) {
        let late = self
            .loss_state
            .as_deref()
            .map_or(self.forward, |loss_state| loss_state.late);
        self.reordering = self.reordering.max(self.forward.saturating_sub(late));
    }

    /// Limits the reordering degree to this many bytes.
    pub(crate) fn limit_reordering(&mut self, most: u64) {
        self.reordering = self.reordering.min(most);
    }

    /// Removes the first run of SACKed segments with equal flags, below `position`, from the ring.
    fn remove_first_sacked(&mut self, position: u64) {
        let first = self.ring.first;
        let flags = self.ring.get(first).flags;
        let (mut number, mut bytes, mut below) = (first, 0, 0);
        while number < self.ring.next {
            let segment = self.ring.get(number);
            if (segment.flags ^ flags) & STATUS != 0 || segment.end() > position {
                break;
            }
            bytes += u64::from(segment.length);
            number += 1;
            if number <= self.cursor {
                below = bytes;
            }
        }
        if flags & EVER_RETRANSMITTED != 0 {
            let start = self.ring.get(first).start;
            self.record_sacked_retransmission(start, start + bytes);
        }
        self.forget_buffers(first, number);
        self.ring.first = number;
        self.sacked -= bytes;
        self.sacked_segments -= number - first;
        self.sacked_below -= below;
        // The run continues with the next segment, or ends.
        let goes_on = number < self.ring.next && self.ring.get(number).is(SACKED);
        if !goes_on {
            self.sacked_runs -= 1;
        }
        if first < self.cursor && !(goes_on && number < self.cursor) {
            self.runs_below -= 1;
        }
    }

    /// Removes an arrived segment from the lost and retransmitted counts.
    fn clear_loss(&mut self, segment: &Segment) {
        let length = u64::from(segment.length);
        if segment.is(SHORT) {
            self.change_short(segment.length, -(segment.in_flight() as i32));
            self.deliver_short(segment.length);
        }
        if segment.is(LOST) {
            self.lost -= length;
        }
        if segment.is(RETRANSMITTED) {
            self.retransmitted -= length;
            self.retransmitted_segments -= 1;
        } else if segment.is(LOST) {
            self.to_send -= 1;
        }
    }

    /// Processes a partial acknowledgment of the first segment, up to `position`.
    #[cold]
    fn acknowledge_part(&mut self, position: u64) {
        let first = self.ring.first;
        let below = first < self.cursor;
        self.forget_short(first);
        let merged = self.merged_after(first);
        let segment = self.ring.get_mut(first);
        let part = position - segment.start;
        segment.start = position;
        segment.length -= part as u32;
        let flags = segment.flags;
        self.measure(first);
        self.change_merged(self.merged_after(first) - merged);
        if flags & SACKED == 0 {
            self.delivered.part_acknowledged(part);
        } else {
            self.sacked -= part;
            if below {
                self.sacked_below -= part;
            }
        }
        if flags & LOST != 0 {
            self.lost -= part;
        }
        if flags & RETRANSMITTED != 0 {
            self.retransmitted -= part;
        }
        if let Some(loss_state) = &mut self.loss_state {
            loss_state.previous.forget();
        }
    }
}

impl LossState {
    /// The loss state, allocated if necessary.
    #[inline]
    fn of(loss_state: &mut Option<Box<Self>>) -> &mut Self {
        loss_state.get_or_insert_with(Self::first)
    }

    #[cold]
    fn first() -> Box<Self> {
        Box::default()
    }

    /// Memory in bytes, including its own.
    fn allocated(&self) -> usize {
        size_of::<Self>()
            + self.retransmissions.capacity() * size_of::<(u64, Order)>()
            + self.lost_again.allocated()
            + self.pushed.capacity() * size_of::<u64>()
            + self.newly_sacked.capacity() * size_of::<(u64, u64)>()
            + self.newly_lost.capacity() * size_of::<LostSegment>()
    }
}

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;
