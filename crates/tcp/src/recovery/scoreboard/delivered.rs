//! What one acknowledgment says has arrived.

use bentpipe_types::{Span, Time};
use serde::{Deserialize, Serialize};

use super::segment::Order;

/// When the acknowledgment came, and what it takes to tell which transmission it acknowledges.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Arrival {
    /// The time.
    pub now: Time,
    /// The timestamp it echoes, where timestamps are in use.
    pub echo: Option<u32>,
    /// The shortest round trip seen: no retransmission is acknowledged sooner.
    pub minimum_rtt: Span,
}

impl Default for Arrival {
    fn default() -> Self {
        Self {
            now: Time::ZERO,
            echo: None,
            minimum_rtt: Span::ZERO,
        }
    }
}

/// The transmission that left last among those an acknowledgment says have arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Transmission {
    /// When it left.
    pub sent_at: Time,
    /// Its place among all transmissions. RFC 8985 goes by time, and by sequence number where two
    /// left at the same time; a simulated host sends many in one instant, and knows their order.
    pub order: Order,
    /// The position after its last.
    pub end: u64,
}

impl Transmission {
    const NONE: Self = Self {
        sent_at: Time::ZERO,
        order: Order(0),
        end: 0,
    };

    /// Did it leave after this one, or is there none to compare with?
    #[inline]
    #[must_use]
    pub fn is_newer_than(&self, other: Option<&Self>) -> bool {
        other.is_none_or(|other| other.order.is_before(self.order))
    }
}

/// What one acknowledgment says has arrived, cumulatively or selectively, and was not known to have.
///
/// Plain fields, of which those count that `known` names: an ordinary acknowledgment is to cost few
/// stores.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Delivered {
    now: Time,
    bytes: u64,
    sacked: u64,
    known: u16,
    newest: Transmission,
    // Where the lowest segment sent only once ends, with ACKNOWLEDGED or BY_SACK.
    original_end: u64,
    duplicate: (u64, u64),
    // Times at which segments sent only once had left: (earliest, latest), by how we know.
    acknowledged: (Time, Time),
    by_sack: (Time, Time),
}

// Delivered::known
const NEWEST: u16 = 1;
const DUPLICATE: u16 = 1 << 1;
const ACKNOWLEDGED: u16 = 1 << 2;
const BY_SACK: u16 = 1 << 3;
const REORDERED: u16 = 1 << 4;
const RETRANSMISSION: u16 = 1 << 5;
const LAST_AGAIN: u16 = 1 << 6;
const LATE_TWICE: u16 = 1 << 7;
const SACKED_AGAIN: u16 = 1 << 8;
const SHORT_ONES: u16 = 1 << 9;

/// The round trips that one acknowledgment measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Measured {
    /// Of the earliest segment it acknowledged: what the retransmission timer has to wait for.
    pub(crate) earliest: Span,
    /// Of the latest: without the wait of a delayed acknowledgment.
    pub(crate) latest: Span,
}

impl Measured {
    /// Of one segment, both are the same.
    #[inline]
    pub(crate) const fn of_one(rtt: Span) -> Self {
        Self {
            earliest: rtt,
            latest: rtt,
        }
    }
}

impl Delivered {
    pub(super) const fn none() -> Self {
        Self {
            now: Time::ZERO,
            bytes: 0,
            sacked: 0,
            known: 0,
            newest: Transmission::NONE,
            original_end: 0,
            duplicate: (0, 0),
            acknowledged: (Time::ZERO, Time::ZERO),
            by_sack: (Time::ZERO, Time::ZERO),
        }
    }

    /// An acknowledgment has come.
    #[inline]
    pub(super) fn begin(&mut self, now: Time) {
        self.now = now;
        self.bytes = 0;
        self.sacked = 0;
        self.known = 0;
    }

    /// Bytes (positions) newly known to have arrived.
    #[inline]
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Of those, the bytes that only SACK blocks tell of.
    #[inline]
    #[must_use]
    pub const fn sacked(&self) -> u64 {
        self.sacked
    }

    /// Does more count than these bytes: what [is short](Self::has_short), or what has come twice?
    #[inline]
    pub(crate) const fn counts_more(&self) -> bool {
        self.known & (DUPLICATE | SHORT_ONES) != 0
    }

    /// Is there a short segment that counts for a full one?
    #[inline]
    pub(super) const fn has_short(&self) -> bool {
        self.known & SHORT_ONES != 0
    }

    /// There is, or there is none that counts.
    pub(super) fn set_short(&mut self, short: bool) {
        self.known = self.known & !SHORT_ONES | if short { SHORT_ONES } else { 0 };
    }

    /// So many, however they are known of.
    pub(super) fn count(&mut self, bytes: u64) {
        self.bytes = bytes;
    }

    /// The transmission that left last. Of a segment sent more than once only where it is certain
    /// that its last transmission has arrived (RFC 8985 section 6.2 step 2).
    #[inline]
    #[must_use]
    pub fn newest(&self) -> Option<Transmission> {
        (self.known & NEWEST != 0).then_some(self.newest)
    }

    /// A segment sent only once was below one that had arrived before: the network reorders (RFC
    /// 8985 section 6.2 step 3).
    #[inline]
    #[must_use]
    pub const fn is_reordered(&self) -> bool {
        self.known & REORDERED != 0
    }

    /// Is there a segment sent only once that ends at `position` or below?
    #[must_use]
    pub const fn has_original_below(&self, position: u64) -> bool {
        self.known & (ACKNOWLEDGED | BY_SACK) != 0 && self.original_end <= position
    }

    /// The same, where nothing that was sent again is acknowledged with it.
    pub(crate) const fn has_only_originals_below(&self, position: u64) -> bool {
        self.has_original_below(position) && !self.has_retransmission()
    }

    /// What arrived twice, as the receiver says (RFC 2883): first position, and position after the
    /// last.
    #[inline]
    #[must_use]
    pub fn duplicate(&self) -> Option<(u64, u64)> {
        (self.known & DUPLICATE != 0).then_some(self.duplicate)
    }

    /// Is there nothing but segments sent once?
    #[inline]
    pub(super) const fn is_plain(&self) -> bool {
        self.known & (DUPLICATE | RETRANSMISSION) == 0
    }

    /// Was any of what is acknowledged now sent more than once?
    pub(super) const fn has_retransmission(&self) -> bool {
        self.known & RETRANSMISSION != 0
    }

    pub(super) fn set_reordered(&mut self) {
        self.known |= REORDERED;
    }

    pub(super) fn set_duplicate(&mut self, start: u64, end: u64) {
        self.known |= DUPLICATE;
        self.duplicate = (start, end);
    }

    /// Of what is acknowledged, something was SACKed before and sent again.
    pub(super) fn set_sacked_again(&mut self) {
        self.known |= SACKED_AGAIN;
    }

    /// The same, asked.
    pub(super) const fn has_sacked_again(&self) -> bool {
        self.known & SACKED_AGAIN != 0
    }

    /// Of what arrived twice the first transmission was late: it was SACKed before, and sent again.
    pub(super) fn set_late_twice(&mut self) {
        self.known |= LATE_TWICE;
    }

    /// The same, asked.
    #[inline]
    pub(super) const fn is_late_twice(&self) -> bool {
        self.known & LATE_TWICE != 0
    }

    /// A segment sent only once is acknowledged. In the order of sending.
    #[inline]
    pub(super) fn original_acknowledged(&mut self, transmission: Transmission, length: u32) {
        self.bytes += u64::from(length);
        self.acknowledged.1 = transmission.sent_at;
        if self.known & ACKNOWLEDGED == 0 {
            self.known |= ACKNOWLEDGED;
            self.acknowledged.0 = transmission.sent_at;
            self.original_end = transmission.end;
        }
        self.consider(transmission);
    }

    /// A segment sent only once is SACKed.
    #[inline]
    pub(super) fn original_sacked(&mut self, transmission: Transmission, length: u32) {
        self.bytes += u64::from(length);
        self.sacked += u64::from(length);
        let at = transmission.sent_at;
        if self.known & (ACKNOWLEDGED | BY_SACK) == 0 || transmission.end < self.original_end {
            self.original_end = transmission.end;
        }
        if self.known & BY_SACK == 0 {
            self.known |= BY_SACK;
            self.by_sack = (at, at);
        } else {
            self.by_sack = (self.by_sack.0.min(at), self.by_sack.1.max(at));
        }
        self.consider(transmission);
    }

    /// A segment sent more than once is acknowledged, or SACKed.
    pub(super) fn retransmission_arrived(
        &mut self,
        transmission: Transmission,
        length: u32,
        by_sack: bool,
        arrival: &Arrival,
    ) {
        self.bytes += u64::from(length);
        if by_sack {
            self.sacked += u64::from(length);
        } else {
            self.known |= RETRANSMISSION;
        }
        // RFC 8985 section 6.2 step 2: it may be the earlier transmission that has arrived.
        let sent_at = transmission.sent_at;
        let earlier = arrival.echo.is_some_and(|echo| {
            (echo.wrapping_sub(crate::timestamp(sent_at)) as i32).is_negative()
        });
        if !earlier && self.now.since(sent_at) >= arrival.minimum_rtt {
            if !by_sack {
                // (With it, `acknowledged` says nothing of round trips.)
                self.known |= LAST_AGAIN;
                self.acknowledged.1 = sent_at;
            }
            self.consider(transmission);
        }
    }

    /// A part of a segment is acknowledged.
    pub(super) fn part_acknowledged(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// A segment that was SACKed is acknowledged now.
    pub(super) fn sacked_before(&mut self, retransmitted: bool) {
        if retransmitted {
            self.known |= RETRANSMISSION;
        }
    }

    /// The round trips it measured, by segments sent only once (Karn's algorithm, RFC 6298 section
    /// 3). As in Linux, SACKed segments where the acknowledged ones don't tell.
    #[inline]
    pub(crate) fn measured(&self) -> Option<Measured> {
        let times = if self.known & (ACKNOWLEDGED | RETRANSMISSION) == ACKNOWLEDGED {
            self.acknowledged
        } else if self.known & BY_SACK != 0 {
            self.by_sack
        } else {
            return None;
        };
        Some(Measured {
            earliest: self.now.since(times.0),
            latest: self.now.since(times.1),
        })
    }

    /// When that was sent which Linux looks at last (tcp_rack_advance): what is highest in sequence of what is
    /// acknowledged, or else of what is SACKed.
    pub(crate) fn last_sent_at(&self) -> Option<Time> {
        if self.known & (ACKNOWLEDGED | LAST_AGAIN) != 0 {
            Some(self.acknowledged.1)
        } else if self.known & BY_SACK != 0 {
            Some(self.by_sack.1)
        } else {
            None
        }
    }

    #[inline]
    fn consider(&mut self, transmission: Transmission) {
        if self.known & NEWEST == 0 || self.newest.order.is_before(transmission.order) {
            self.known |= NEWEST;
            self.newest = transmission;
        }
    }
}
