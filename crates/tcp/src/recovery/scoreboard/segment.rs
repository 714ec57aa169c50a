//! What is known of one segment that was sent and is not acknowledged.

use bentpipe_types::{Time, fetch};
use serde::{Deserialize, Serialize};

use super::Transmission;

/// Covered by a SACK block.
pub(super) const SACKED: u8 = 1;
/// Taken for lost.
pub(super) const LOST: u8 = 1 << 1;
/// Sent again, and that transmission is not taken for lost.
pub(super) const RETRANSMITTED: u8 = 1 << 2;
/// Sent again at least once.
pub(super) const EVER_RETRANSMITTED: u8 = 1 << 3;
/// Shorter than a full one, for which it counts (`Scoreboard::count_segments`).
pub(super) const SHORT: u8 = 1 << 4;
/// Its buffer goes on with the segment after it.
pub(super) const GOES_ON: u8 = 1 << 5;
/// It left in one buffer with the segment after it, which was cut in two since.
pub(super) const CUT: u8 = 1 << 6;

/// What has become of a segment, and whatever else is to be asked when something does.
pub(super) const FATE: u8 = SACKED | LOST | RETRANSMITTED | EVER_RETRANSMITTED | SHORT;
/// What of that stays when it is SACKed.
const KEPT: u8 = !(LOST | RETRANSMITTED);

/// One segment: 32 bytes, two to a cache line.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Segment {
    /// First position; moves up when a part is acknowledged.
    pub(super) start: u64,
    /// When it was last sent.
    pub(super) sent_at: Time,
    /// Positions from `start` on.
    pub(super) length: u32,
    /// Segments from here to the next that is perhaps not SACKed: 0 for one that is not.
    pub(super) skip: u32,
    /// Which transmission it was that was the last.
    pub(super) order: Order,
    pub(super) flags: u8,
}

/// A transmission's place among all, modulo 2^32.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Order(pub(super) u32);

impl Order {
    /// That of the transmission after it.
    #[inline]
    pub(super) const fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }

    /// Did this transmission leave before `other`?
    #[inline]
    #[must_use]
    pub fn is_before(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) as i32).is_negative()
    }
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

    /// Its last transmission.
    #[inline]
    pub(super) const fn transmission(&self) -> Transmission {
        Transmission {
            sent_at: self.sent_at,
            order: self.order,
            end: self.end(),
        }
    }

    /// Is any of these flags set?
    pub(super) const fn is(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }

    /// Is nothing known of it but that it was sent, once?
    #[inline(always)]
    pub(super) const fn is_plain(&self) -> bool {
        self.flags & FATE == 0
    }

    /// How often it is in flight, as far as is known: once more where it was sent again.
    pub(super) const fn in_flight(&self) -> u32 {
        (!self.is(SACKED | LOST)) as u32 + self.is(RETRANSMITTED) as u32
    }

    /// It is as long as it is: is it short, where one of `full` bytes is a full one? (The SYN is none at all.)
    pub(super) fn measure(&mut self, full: u32) {
        let short = self.length < full && self.start > 0;
        self.flags = self.flags & !SHORT | if short { SHORT } else { 0 };
    }

    /// Taken for lost, and not sent again since.
    pub(super) const fn is_to_be_sent(&self) -> bool {
        self.flags & (LOST | RETRANSMITTED) == LOST
    }
}

/// The segments outstanding, in order: a ring that doubles when it is full.
///
/// A segment's number counts from the first ever sent, and is its name: it stays good while the
/// ring grows, and tells when the segment is gone.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(into = "Outstanding", from = "Outstanding")]
pub(super) struct Ring {
    // A power of two of them.
    slots: Vec<Segment>,
    /// Number of the first segment outstanding.
    pub(super) first: u64,
    /// Number of the next to be sent.
    pub(super) next: u64,
}

/// What a [`Ring`] holds.
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

/// Slots of an idle connection's ring: a window of few segments needs no more.
const INITIAL_SLOTS: usize = 4;

impl Ring {
    pub(super) fn new() -> Self {
        Self {
            slots: vec![Segment::EMPTY; INITIAL_SLOTS],
            first: 0,
            next: 0,
        }
    }

    /// An empty one, whose first segment will have this number.
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

    /// Asks for the first segments, and for the places of the next.
    #[inline]
    pub(super) fn fetch(&self) {
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
        debug_assert!(
            (self.first..self.next).contains(&number),
            "gone, or to come"
        );
        let slot = self.slot(number);
        &self.slots[slot]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: u64) -> &mut Segment {
        debug_assert!(
            (self.first..self.next).contains(&number),
            "gone, or to come"
        );
        let slot = self.slot(number);
        &mut self.slots[slot]
    }

    /// Is a segment with this number outstanding?
    #[inline]
    pub(super) fn holds(&self, number: u64) -> bool {
        (self.first..self.next).contains(&number)
    }

    /// This segment is SACKed, and nothing else but that it was sent again, if it was. Returns whether those
    /// before and after it are SACKed. `LAST`: those after it are not.
    #[inline(always)]
    pub(super) fn set_sacked<const LAST: bool>(&mut self, number: u64) -> (bool, bool) {
        let (first, next) = (self.first, self.next);
        let slots = self.slots.as_mut_slice();
        let slot = |number: u64| number as usize & (slots.len() - 1);
        let (before, this, after) = (slot(number.wrapping_sub(1)), slot(number), slot(number + 1));
        let segment = &mut slots[this];
        segment.flags = segment.flags & KEPT | SACKED;
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

    /// The number of the segment that holds `position`, which is outstanding.
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

    /// What is outstanding of these segments, from one to the one before the other, is all SACKed: it is crossed in one
    /// step.
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
    /// Each SACKed segment points past itself, the first that a block [covers](Self::join) past those, as far as it was
    /// told of; a search makes those it meets point to where it ended (path halving), so that a run of any length is
    /// crossed in next to no steps.
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
