//! The scoreboard: what was sent and is not acknowledged, segment by segment (RFC 6675 section 3).
//!
//! One ring of records, and sums over it, so that nothing is walked to know how much is in flight
//! or what to send next. The cost of an acknowledgment doesn't depend on the window:
//!
//! * a SACK block is compared with those of the last acknowledgment, and what it adds to them is
//!   found by stepping over the SACKed runs that it covers, one step each;
//! * what lies below a threshold that only rises (too much is SACKed above it, or it was sent too
//!   long ago) is marked by a cursor that only rises;
//! * retransmissions are watched in a queue, in the order in which they left;
//! * lost segments are sent again lowest first: a cursor for those lost once, a set of bits for those of which a
//!   retransmission was lost as well.

mod blocks;
mod buffers;
mod delivered;
mod loss;
mod losses;
mod lowest_first;
mod merged;
mod segment;
mod shorten;
mod whole;

use std::collections::VecDeque;

use bentpipe_types::{Time, fetch, fetch_whole};
use serde::{Deserialize, Serialize};

use lowest_first::LowestFirst;
use segment::{
    CUT, EVER_RETRANSMITTED, FATE, GOES_ON, LOST, RETRANSMITTED, Ring, SACKED, SHORT, Segment,
};

pub(crate) use blocks::Covered;
pub(crate) use delivered::Measured;
pub use delivered::{Arrival, Delivered, Transmission};
pub use loss::Overdue;
pub use segment::Order;
pub(crate) use whole::Whole;

/// Segments outstanding at most: no peer's window and no tiny segments make it more memory.
const CAPACITY: usize = 1 << 20;

/// A segment that is lost and to be sent again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LostSegment {
    /// Its first position.
    pub position: u64,
    /// Positions in it.
    pub length: u32,
}

/// The segments outstanding, and what is known of them. Amounts are bytes (positions).
#[derive(Debug, Serialize, Deserialize)]
#[repr(C)]
pub struct Scoreboard {
    ring: Ring,
    arrival: Arrival,
    /// In segments that are SACKed.
    sacked: u64,
    /// Segments that are SACKed.
    sacked_segments: u64,
    /// In segments taken for lost.
    lost: u64,
    /// In segments of which a retransmission is under way.
    retransmitted: u64,
    /// After the highest position known to have arrived: the FACK paper's snd.fack.
    forward: u64,
    /// The same, before the last acknowledgment.
    forward_before: u64,
    /// Everything below has been judged: by number.
    cursor: u64,
    newly_lost: u64,
    /// Made when something is first SACKed, lost or sent again.
    trouble: Option<Box<Trouble>>,
    /// Segments taken for lost that are to be sent again.
    to_send: u32,
    /// Transmissions so far.
    transmissions: Order,
    /// Runs of SACKed segments.
    sacked_runs: u32,
    /// Those of them below the cursor.
    runs_below: u32,
    retransmitted_segments: u32,
    watch_retransmissions: bool,
    watched: bool,
    ignore_echo_of_sacked: bool,
    delivered: Delivered,
    /// Bytes SACKed below the cursor.
    sacked_below: u64,
    ignored_blocks: u32,
    /// Short segments in flight, each as often as it is, where [they count for full ones](Self::count_segments).
    short: u32,
    /// Segments lost once and not sent again are from here: by number.
    lost_cursor: u64,
    /// To here.
    lost_end: u64,
    /// Bytes ever sent again.
    sent_again: u64,
    /// No segment to be sent on suspicion is below: by number.
    suspect_cursor: u64,
    /// The most that was between a segment that came late and the highest before it.
    reordering: u64,
    reorderings_seen: u32,
    /// Payload of a full segment, where short ones count for that; 0 where bytes count.
    full: u32,
    /// Bytes that D-SACKs have told of.
    arrived_twice: u64,
}

/// What a connection needs no room for that has never lost anything.
#[derive(Debug, Default, Serialize, Deserialize)]
#[repr(C)]
struct Trouble {
    /// Retransmissions in the order of leaving: (number, which). Those that no longer stand in the
    /// record are over.
    under_way: VecDeque<(u64, Order)>,
    /// What goes again next, as was last said: by number.
    named: u64,
    /// The blocks of the last acknowledgment.
    previous: blocks::Previous,
    /// Between these positions lies what the last acknowledgment acknowledged, if any, of what was SACKed before and
    /// sent again.
    sacked_again: (u64, u64),
    /// Bytes in short segments in flight.
    short_bytes: u64,
    /// Where buffers end that have PSH, as far as they are outstanding, where buffers are known.
    pushed: VecDeque<u64>,
    /// So many buffers fewer there are than were sent, where buffers are known: see `merged.rs`.
    merged: i32,
    /// So much more has arrived newly if short segments count for full ones, where there are any.
    newly_short: u64,
    /// The lowest position that has come late, where the last acknowledgment told of one.
    late: u64,
    /// Segments of which a retransmission was lost, by number.
    lost_again: LowestFirst,
    /// The ranges newly SACKed and the segments newly taken for lost, if somebody wants to know which.
    newly_sacked: Vec<(u64, u64)>,
    newly_lost: Vec<LostSegment>,
}

impl Scoreboard {
    /// See [`Connection::fetch_senders`](crate::Connection::fetch_senders).
    #[inline]
    pub(crate) fn fetch(&self) {
        self.ring.fetch();
        if let Some(trouble) = &self.trouble {
            fetch_whole(&**trouble, &trouble.under_way);
        }
    }

    /// See [`Connection::fetch_last`](crate::Connection::fetch_last).
    #[inline]
    pub(crate) fn fetch_queue(&self) {
        if let Some(first) = self.oldest_under_way() {
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
    /// Nothing was sent.
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
            watch_retransmissions: false,
            watched: false,
            ignore_echo_of_sacked: false,
            transmissions: Order::default(),
            arrival: Arrival::default(),
            delivered: Delivered::none(),
            newly_lost: 0,
            trouble: None,
            ignored_blocks: 0,
            short: 0,
            full: 0,
            reordering: 0,
            reorderings_seen: 0,
            sent_again: 0,
            arrived_twice: 0,
        }
    }

    /// Is there room for one segment more?
    #[inline]
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.ring.len() < CAPACITY
    }

    /// Segments outstanding.
    #[must_use]
    pub fn segments(&self) -> usize {
        self.ring.len()
    }

    /// Bytes of memory that it has allocated.
    #[must_use]
    pub fn allocated(&self) -> usize {
        self.ring.allocated() + self.trouble.as_deref().map_or(0, Trouble::allocated)
    }

    /// Bytes in segments that are SACKed.
    #[inline]
    #[must_use]
    pub fn sacked(&self) -> u64 {
        self.sacked
    }

    /// Segments that were acknowledged, ever.
    #[must_use]
    pub fn acknowledged_segments(&self) -> u64 {
        self.ring.first
    }

    /// Segments that are SACKed.
    #[must_use]
    pub fn sacked_segments(&self) -> u64 {
        self.sacked_segments
    }

    /// Bytes in segments that are taken for lost, sent again or not.
    #[inline]
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Bytes of which a retransmission is under way: the FACK paper's `retran_data`.
    #[inline]
    #[must_use]
    pub fn retransmitted(&self) -> u64 {
        self.retransmitted
    }

    /// Segments of which a retransmission is under way.
    #[must_use]
    pub fn retransmitted_segments(&self) -> u64 {
        u64::from(self.retransmitted_segments)
    }

    /// Was anything ever sent again? As long as not, an acknowledgment is of what was sent once, whatever its
    /// [`Arrival`].
    #[inline]
    #[must_use]
    pub fn has_sent_again(&self) -> bool {
        self.sent_again > 0
    }

    /// Is there a lost segment to be sent again?
    #[inline]
    #[must_use]
    pub fn has_lost_to_send(&self) -> bool {
        self.to_send > 0
    }

    /// Is nothing SACKed, nothing lost or sent again, nothing short that counts for more, and nothing said to have arrived
    /// twice?
    #[inline]
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.sacked_segments | self.lost | self.retransmitted | u64::from(self.short) == 0
            && self.delivered.is_plain()
    }

    /// After the highest position known to have arrived: snd.fack.
    #[inline]
    #[must_use]
    pub fn forward(&self) -> u64 {
        self.forward
    }

    /// RFC 6675 section 4, SetPipe, of `outstanding` bytes: what is neither SACKed nor lost, and
    /// once more what was sent again; each segment for a full one, where [that counts](Self::count_segments).
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

    /// What the last acknowledgment said has arrived.
    #[inline]
    #[must_use]
    pub fn delivered(&self) -> &Delivered {
        &self.delivered
    }

    /// The last acknowledgment tells of this many bytes that have newly arrived, as duplicates are counted.
    pub(super) fn count_delivered(&mut self, bytes: u64) {
        self.delivered.count(bytes);
        self.delivered.set_short(false);
    }

    /// The ranges (first position, position after the last) that the last acknowledgment's blocks
    /// newly covered, segment by segment or merged, if they are watched.
    #[must_use]
    pub fn newly_sacked(&self) -> &[(u64, u64)] {
        self.trouble
            .as_deref()
            .map_or(&[], |trouble| &trouble.newly_sacked)
    }

    /// Bytes taken for lost since the last acknowledgment began, the same ones twice if it was a
    /// retransmission that was lost.
    #[must_use]
    pub fn newly_lost(&self) -> u64 {
        self.newly_lost
    }

    /// SACK blocks that made no sense: of what was never sent, or acknowledged long ago.
    #[must_use]
    pub fn ignored_blocks(&self) -> u64 {
        u64::from(self.ignored_blocks)
    }

    /// The most by which segments were reordered, in bytes from the start of one that came late to
    /// the end of the highest before it; 0 if none ever was.
    #[must_use]
    pub fn reordering(&self) -> u64 {
        self.reordering
    }

    /// Acknowledgments that told of reordering.
    #[must_use]
    pub fn reorderings_seen(&self) -> u64 {
        u64::from(self.reorderings_seen)
    }

    /// Remember in which order retransmissions left, to find those that are lost.
    pub(crate) fn watch_retransmissions(&mut self, watch: bool) {
        self.watch_retransmissions = watch;
    }

    /// What an acknowledgment echoes says nothing of what it SACKs: see `Habits::ignores_echo_of_sacked`.
    pub(crate) fn ignore_echo_of_sacked(&mut self, ignore: bool) {
        self.ignore_echo_of_sacked = ignore;
    }

    /// Positions from `start` to `end` were sent for the first time.
    #[inline]
    pub fn push(&mut self, start: u64, end: u64, now: Time) {
        if self.has_room() {
            self.push_next(start, end, now);
        }
    }

    /// The same, where there is room.
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

    /// An acknowledgment has come, of nothing that was not acknowledged before, but by SACK blocks perhaps.
    #[inline(always)]
    pub fn begin(&mut self, arrival: Arrival) {
        self.arrival = arrival;
        self.forward_before = self.forward;
        self.begin_plainly(arrival.now);
    }

    /// The same, of one that tells of nothing but segments that were sent once, and in order: so nobody looks at what
    /// is kept for others.
    #[inline(always)]
    pub(crate) fn begin_plainly(&mut self, now: Time) {
        if self.watched
            && let Some(trouble) = &mut self.trouble
        {
            trouble.newly_sacked.clear();
            trouble.newly_lost.clear();
        }
        self.newly_lost = 0;
        self.delivered.begin(now);
    }

    /// An acknowledgment has come, of everything below `position` (which may be nothing new).
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
                    self.reordered(segment.start, position);
                }
                self.delivered
                    .original_acknowledged(segment.transmission(), segment.length);
            } else if segment.is(SACKED) {
                self.delivered.sacked_before(segment.is(EVER_RETRANSMITTED));
                self.forget_first_sacked(position);
                continue;
            } else {
                self.acknowledge_marked(&segment, position);
            }
            if segment.is(CUT) || segment.is(GOES_ON) && self.sacked_segments > 0 {
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

    /// The first segment, not SACKed but with something about it, is acknowledged.
    fn acknowledge_marked(&mut self, segment: &Segment, position: u64) {
        self.forget_loss(segment);
        if segment.is(EVER_RETRANSMITTED) {
            let (transmission, arrival) = (segment.transmission(), self.arrival);
            self.delivered
                .retransmission_arrived(transmission, segment.length, false, &arrival);
        } else {
            if segment.end() < self.forward {
                self.reordered(segment.start, position);
            }
            self.delivered
                .original_acknowledged(segment.transmission(), segment.length);
        }
    }

    /// What begins at `start` was sent again, but it was the first transmission that came, late.
    pub fn came_late(&mut self, start: u64) {
        if start < self.forward {
            self.reordered(start, self.forward);
        }
    }

    /// What begins at `start` has come after what left later; everything up to `position` has arrived.
    #[cold]
    fn reordered(&mut self, start: u64, position: u64) {
        let trouble = Trouble::of(&mut self.trouble);
        if self.delivered.is_reordered() {
            trouble.late = trouble.late.min(start);
        } else {
            self.reorderings_seen += 1;
            self.delivered.set_reordered();
            trouble.late = start;
        }
        let late = self.forward.max(position) - trouble.late;
        self.reordering = self.reordering.max(late);
    }

    /// The acknowledgment has told of something late: how late that was, counted from the highest that has arrived by now
    /// (tcp_check_sack_reordering).
    #[cold]
    pub(crate) fn measure_reordering(&mut self) {
        let late = self
            .trouble
            .as_deref()
            .map_or(self.forward, |trouble| trouble.late);
        self.reordering = self.reordering.max(self.forward.saturating_sub(late));
    }

    /// Segments do not come later than by so many bytes, whatever was seen.
    pub(crate) fn limit_reordering(&mut self, most: u64) {
        self.reordering = self.reordering.min(most);
    }

    /// The first segments leave the ring: those of a run of SACKed ones that lie below `position`, as far
    /// as what is known of them is the same.
    fn forget_first_sacked(&mut self, position: u64) {
        let first = self.ring.first;
        let flags = self.ring.get(first).flags;
        let (mut number, mut bytes, mut below) = (first, 0, 0);
        while number < self.ring.next {
            let segment = self.ring.get(number);
            if (segment.flags ^ flags) & FATE != 0 || segment.end() > position {
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
            self.note_sacked_again(start, start + bytes);
        }
        self.forget_buffers(first, number);
        self.ring.first = number;
        self.sacked -= bytes;
        self.sacked_segments -= number - first;
        self.sacked_below -= below;
        // Their run goes on with the next, or ends.
        let goes_on = number < self.ring.next && self.ring.get(number).is(SACKED);
        if !goes_on {
            self.sacked_runs -= 1;
        }
        if first < self.cursor && !(goes_on && number < self.cursor) {
            self.runs_below -= 1;
        }
    }

    /// A segment is lost no longer, nor is a retransmission of it under way: it has arrived.
    fn forget_loss(&mut self, segment: &Segment) {
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

    /// The first segment is acknowledged in part, up to `position`.
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
        if let Some(trouble) = &mut self.trouble {
            trouble.previous.forget();
        }
    }
}

impl Trouble {
    /// What there is of it, made if there was none.
    #[inline]
    fn of(trouble: &mut Option<Box<Self>>) -> &mut Self {
        trouble.get_or_insert_with(Self::first)
    }

    #[cold]
    fn first() -> Box<Self> {
        Box::default()
    }

    /// Bytes of memory, its own included.
    fn allocated(&self) -> usize {
        size_of::<Self>()
            + self.under_way.capacity() * size_of::<(u64, Order)>()
            + self.lost_again.allocated()
            + self.pushed.capacity() * size_of::<u64>()
            + self.newly_sacked.capacity() * size_of::<(u64, u64)>()
            + self.newly_lost.capacity() * size_of::<LostSegment>()
    }
}

#[cfg(test)]
mod naive;
#[cfg(test)]
mod tests;
