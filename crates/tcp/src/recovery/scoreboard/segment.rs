//! The record of one outstanding segment, and the ring of them.

use bentpipe_types::{Time, fetch};
use serde::{Deserialize, Serialize};

use super::Transmission;
use super::order::Order;

/// Covered by a SACK block.
pub(super) const SACKED: u8 = 1;
/// Marked lost.
pub(super) const LOST: u8 = 1 << 1;
/// Retransmitted, and that transmission is not marked lost.
pub(super) const RETRANSMITTED: u8 = 1 << 2;
/// Retransmitted at least once.
pub(super) const EVER_RETRANSMITTED: u8 = 1 << 3;
/// Shorter than a full segment, and counted as one (`Scoreboard::count_segments`).
pub(super) const SHORT: u8 = 1 << 4;
/// Its buffer continues with the next segment.
pub(super) const CONTINUES: u8 = 1 << 5;
/// It was sent in one buffer with the next segment, and the buffer was split since.
pub(super) const CUT: u8 = 1 << 6;

/// The flags that require other than the common treatment on an acknowledgment.
pub(super) const STATUS: u8 = SACKED | LOST | RETRANSMITTED | EVER_RETRANSMITTED | SHORT;
/// The flags that are kept when the segment is SACKed.
const KEPT_FLAGS: u8 = !(LOST | RETRANSMITTED);

/// One segment, in 32 bytes: two per cache line.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Segment {
    /// First position; moves up when a part is acknowledged.
    pub(super) start: u64,
    /// Time of the last transmission.
    /// Exact to the nanosecond (RFC 8985 section 4).
    pub(super) sent_at: Time,
    /// Number of positions from `start` on.
    pub(super) length: u32,
    /// Distance in segments to the next one that may not be SACKed: 0 if this one is not SACKed.
    pub(super) skip: u32,
    /// Order of the last transmission.
    pub(super) order: Order,
    pub(super) flags: u8,
}

impl Segment {
    pub(super) const EMPTY: Self = Self {
        start: 0,
        sent_at: Time::ZERO,
        length: 0,
        skip: 0,
        order: Order(0),
        flags: 0,
    };

    /// The position after its last.
    pub(super) const fn end(&self) -> u64 {
        self.start + self.length as u64
    }

    /// The last transmission of the segment.
    #[inline]
    pub(super) const fn transmission(&self) -> Transmission {
        Transmission {
            sent_at: self.sent_at,
            order: self.order,
            end: self.end(),
        }
    }

    /// Whether any of these flags is set.
    pub(super) const fn is(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }

    /// Whether the segment was sent once and has no other status.
    #[inline(always)]
    pub(super) const fn is_plain(&self) -> bool {
        self.flags & STATUS == 0
    }

    /// Number of its transmissions presumed in flight: 0 to 2.
    pub(super) const fn in_flight(&self) -> u32 {
        (!self.is(SACKED | LOST)) as u32 + self.is(RETRANSMITTED) as u32
    }

    /// Sets whether the segment is short, where a full one has `full` bytes. The SYN is never
    /// short.
    pub(super) fn measure(&mut self, full: u32) {
        let short = self.length < full && self.start > 0;
        self.flags = self.flags & !SHORT | if short { SHORT } else { 0 };
    }

    /// Whether it is marked lost and not retransmitted since.
    pub(super) const fn is_to_be_sent(&self) -> bool {
        self.flags & (LOST | RETRANSMITTED) == LOST
    }
}

/// The outstanding segments in order: a ring that doubles when it is full.
///
/// Segments are identified by their number, counted from the first ever sent. A number stays valid
/// while the ring grows, and shows whether the segment is still outstanding.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(into = "Outstanding", from = "Outstanding")]
pub(super) struct Ring {
    // The length is a power of two.
    slots: Vec<Segment>,
    /// Number of the first outstanding segment.
    pub(super) first: u64,
    /// Number of the next segment to be sent.
    pub(super) next: u64,
}

/// Serialized contents of a [`Ring`].
#[derive(Serialize, Deserialize)]
struct Outstanding {
    first: u64,
    segments: Vec<Segment>,
}

impl From<Ring> for Outstanding {
    fn from(ring: Ring) -> Self {
        Self {
            first: ring.first,
            segments: (ring.first..ring.next).map(|n| *ring.get(n)).collect(),
        }
    }
}

impl From<Outstanding> for Ring {
    fn from(outstanding: Outstanding) -> Self {
        let mut ring = Self::starting_at(outstanding.first);
        for segment in outstanding.segments {
            ring.push(segment);
        }
        ring
    }
}

/// Slots of an idle connection's ring, which suffice for a window of few segments.
const INITIAL_SLOTS: usize = 4;

impl Ring {
    pub(super) fn new() -> Self {
        Self {
            slots: vec![Segment::EMPTY; INITIAL_SLOTS],
            first: 0,
            next: 0,
        }
    }

    /// Creates an empty ring whose first segment will have this number.
    pub(super) fn starting_at(first: u64) -> Self {
        Self {
            first,
            next: first,
            ..Self::new()
        }
    }

    pub(super) fn allocated(&self) -> usize {
        self.slots.capacity() * size_of::<Segment>()
    }

    /// Prefetches the first segments, and the slots of the next ones.
    #[inline]
    pub(super) fn prefetch(&self) {
        for number in [self.first, self.first + 2, self.next, self.next + 1] {
            fetch(&self.slots[self.slot(number)], 1);
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        (self.next - self.first) as usize
    }

    #[inline]
    fn slot(&self, number: u64) -> usize {
        number as usize & (self.slots.len() - 1)
    }

    #[inline]
    pub(super) fn get(&self, number: u64) -> &Segment {
        debug_assert!((self.first..self.next).contains(&number), "not outstanding");
        let slot = self.slot(number);
        &self.slots[slot]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: u64) -> &mut Segment {
        debug_assert!((self.first..self.next).contains(&number), "not outstanding");
        let slot = self.slot(number);
        &mut self.slots[slot]
    }

    /// Whether a segment with this number is outstanding.
    #[inline]
    pub(super) fn holds(&self, number: u64) -> bool {
        (self.first..self.next).contains(&number)
    }

    /// Marks a segment SACKed and clears its other status except past retransmission. Returns
    /// whether the segments before and after it are SACKed. `LAST`: none after it is.
    #[inline(always)]
    pub(super) fn set_sacked<const LAST: bool>(&mut self, number: u64) -> (bool, bool) {
        let (first, next) = (self.first, self.next);
        let slots = self.slots.as_mut_slice();
        let slot = |number: u64| number as usize & (slots.len() - 1);
        let (before, this, after) = (slot(number.wrapping_sub(1)), slot(number), slot(number + 1));
        let segment = &mut slots[this];
        segment.flags = segment.flags & KEPT_FLAGS | SACKED;
        segment.skip = 1;
        let goes_on = number > first && slots[before].is(SACKED);
        let joins = !LAST && number + 1 < next && slots[after].is(SACKED);
        (goes_on, joins)
    }

    #[inline]
    pub(super) fn push(&mut self, segment: Segment) {
        if self.len() == self.slots.len() {
            self.grow();
        }
        let slot = self.slot(self.next);
        self.slots[slot] = segment;
        self.next += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let mut slots = vec![Segment::EMPTY; self.slots.len() * 2];
        for number in self.first..self.next {
            slots[number as usize & (self.slots.len() * 2 - 1)] = *self.get(number);
        }
        self.slots = slots;
    }

    /// The number of the segment that contains `position`, which must be outstanding.
    pub(super) fn find(&self, position: u64) -> u64 {
        let first = self.get(self.first);
        debug_assert!(first.start <= position, "acknowledged already");
        // Most segments are as long as the first.
        let guess = self.first + (position - first.start) / u64::from(first.length.max(1));
        let guess = guess.min(self.next - 1);
        let at_guess = self.get(guess);
        if at_guess.start <= position && position < at_guess.end() {
            return guess;
        }
        let (mut low, mut high) = (self.first, self.next);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.get(middle).start <= position {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Links the segments from the first to the one before `after`, which must all be SACKed, so
    /// that they are crossed in one step.
    #[inline]
    pub(super) fn join(&mut self, (first, after): (u64, u64)) {
        let first = first.max(self.first);
        if first < after {
            debug_assert!((first..after).all(|number| self.get(number).is(SACKED)));
            self.get_mut(first).skip = (after - first) as u32;
        }
    }

    /// The first segment at or after `number` that is not SACKed, or `next`.
    ///
    /// Each SACKed segment points past itself, and the first of a [joined](Self::join) block past
    /// the block. A search shortens the links it follows (path halving), so that a run of any
    /// length is crossed in few steps.
    pub(super) fn next_not_sacked(&mut self, number: u64) -> u64 {
        let mut number = number;
        while number < self.next {
            let skip = u64::from(self.get(number).skip);
            if skip == 0 {
                break;
            }
            let target = number + skip;
            if target < self.next {
                let onward = u64::from(self.get(target).skip);
                self.get_mut(number).skip = (skip + onward) as u32;
            }
            number = target;
        }
        number
    }
}
