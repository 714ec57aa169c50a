//! The data newly reported as delivered by one acknowledgment.

use bentpipe_types::{Span, Time};
use serde::{Deserialize, Serialize};

use super::order::Order;
use crate::HostClock;

/// Arrival time of an acknowledgment, and what identifies the transmission it acknowledges.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Arrival {
    /// The current time.
    pub now: Time,
    /// The timestamp echoed, if timestamps are in use.
    pub echo: Option<u32>,
    /// The minimum round-trip time: no retransmission is acknowledged sooner.
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

/// One transmission of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Transmission {
    /// Its time.
    pub sent_at: Time,
    /// Its rank in send order. RFC 8985 uses the time, and the sequence number for equal times. A
    /// simulated host sends many segments at one instant, and knows their order.
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

    /// Whether it was sent after `other`, or `other` is absent.
    #[inline]
    #[must_use]
    pub fn is_newer_than(&self, other: Option<&Self>) -> bool {
        other.is_none_or(|other| other.order.is_before(self.order))
    }
}

/// The data newly reported as delivered by one acknowledgment, cumulatively or selectively.
///
/// Fields are valid only if the corresponding bit in `known` is set, which minimises the
/// stores for an ordinary acknowledgment.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Delivered {
    now: Time,
    bytes: u64,
    sacked: u64,
    known: u16,
    newest: Transmission,
    // End of the lowest segment sent only once, valid with ACKNOWLEDGED or BY_SACK.
    original_end: u64,
    duplicate: (u64, u64),
    // Send times of segments sent only once: (earliest, latest), by kind of acknowledgment.
    acknowledged: (Time, Time),
    by_sack: (Time, Time),
}

// Bits of `Delivered::known`.
const NEWEST: u16 = 1;
const DUPLICATE: u16 = 1 << 1;
const ACKNOWLEDGED: u16 = 1 << 2;
const BY_SACK: u16 = 1 << 3;
const REORDERED: u16 = 1 << 4;
const RETRANSMISSION: u16 = 1 << 5;
const LAST_RETRANSMITTED: u16 = 1 << 6;
const LATE_DUPLICATE: u16 = 1 << 7;
const SACKED_RETRANSMISSION: u16 = 1 << 8;
const SHORT_SEGMENTS: u16 = 1 << 9;

/// The round trips measured by one acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Measured {
    /// Of the earliest segment acknowledged: relevant for the retransmission timer.
    pub(crate) earliest: Span,
    /// Of the latest: without the peer's ACK delay.
    pub(crate) latest: Span,
}

impl Measured {
    /// The measurement from a single segment.
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

    /// Begins a new acknowledgment.
    #[inline]
    pub(super) fn begin(&mut self, now: Time) {
        self.now = now;
        self.bytes = 0;
        self.sacked = 0;
        self.known = 0;
    }

    /// Bytes (positions) newly reported as delivered.
    #[inline]
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The part of these bytes that is only SACKed.
    #[inline]
    #[must_use]
    pub const fn sacked(&self) -> u64 {
        self.sacked
    }

    /// Whether [short segments](Self::has_short) or duplicates count in addition to these bytes.
    #[inline]
    pub(crate) const fn counts_more(&self) -> bool {
        self.known & (DUPLICATE | SHORT_SEGMENTS) != 0
    }

    /// Whether a short segment counts as a full one.
    #[inline]
    pub(super) const fn has_short(&self) -> bool {
        self.known & SHORT_SEGMENTS != 0
    }

    /// Sets whether a short segment counts as a full one.
    pub(super) fn set_short(&mut self, short: bool) {
        self.known = self.known & !SHORT_SEGMENTS | if short { SHORT_SEGMENTS } else { 0 };
    }

    /// Sets the newly delivered bytes.
    pub(super) fn count(&mut self, bytes: u64) {
        self.bytes = bytes;
    }

    /// The latest transmission that was delivered. For a retransmitted segment only if its last
    /// transmission certainly arrived (RFC 8985 section 6.2 step 2).
    #[inline]
    #[must_use]
    pub fn latest_sent(&self) -> Option<Transmission> {
        (self.known & NEWEST != 0).then_some(self.newest)
    }

    /// RFC 8985 section 6.2 step 3: whether a segment sent only once arrived after a later one, so
    /// that the network reorders.
    #[inline]
    #[must_use]
    pub const fn is_reordered(&self) -> bool {
        self.known & REORDERED != 0
    }

    /// Whether a segment sent only once that ends at or below `position` was delivered.
    #[must_use]
    pub const fn has_original_below(&self, position: u64) -> bool {
        self.known & (ACKNOWLEDGED | BY_SACK) != 0 && self.original_end <= position
    }

    /// Like [`has_original_below`](Self::has_original_below), and no retransmitted segment was
    /// acknowledged.
    pub(crate) const fn has_only_originals_below(&self, position: u64) -> bool {
        self.has_original_below(position) && !self.has_retransmission()
    }

    /// The range reported by a D-SACK (RFC 2883): first position, and position after the last.
    #[inline]
    #[must_use]
    pub fn duplicate(&self) -> Option<(u64, u64)> {
        (self.known & DUPLICATE != 0).then_some(self.duplicate)
    }

    /// Whether only segments sent once are reported, without a D-SACK.
    #[inline]
    pub(super) const fn is_plain(&self) -> bool {
        self.known & (DUPLICATE | RETRANSMISSION) == 0
    }

    /// Whether a retransmitted segment was acknowledged.
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

    /// Records that data was acknowledged that had been SACKed and retransmitted before.
    pub(super) fn set_sacked_retransmission(&mut self) {
        self.known |= SACKED_RETRANSMISSION;
    }

    /// Whether data was acknowledged that had been SACKed and retransmitted before.
    pub(super) const fn has_sacked_retransmission(&self) -> bool {
        self.known & SACKED_RETRANSMISSION != 0
    }

    /// Records that the D-SACK is for a segment SACKed before its retransmission, whose first
    /// transmission was late.
    pub(super) fn set_late_duplicate(&mut self) {
        self.known |= LATE_DUPLICATE;
    }

    /// Whether the D-SACK is for a segment whose first transmission was late.
    #[inline]
    pub(super) const fn is_late_duplicate(&self) -> bool {
        self.known & LATE_DUPLICATE != 0
    }

    /// Records that a segment sent only once was acknowledged; to be called in sequence order.
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

    /// Records that a segment sent only once was SACKed.
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

    /// Records that a retransmitted segment was acknowledged or SACKed.
    pub(super) fn retransmission_arrived(
        &mut self,
        transmission: Transmission,
        length: u32,
        by_sack: bool,
        clock: HostClock,
        arrival: &Arrival,
    ) {
        self.bytes += u64::from(length);
        if by_sack {
            self.sacked += u64::from(length);
        } else {
            self.known |= RETRANSMISSION;
        }
        // RFC 8985 section 6.2 step 2: the earlier transmission may have arrived.
        let sent_at = transmission.sent_at;
        let earlier = arrival
            .echo
            .is_some_and(|echo| (echo.wrapping_sub(clock.timestamp(sent_at)) as i32).is_negative());
        if !earlier && self.now.since(sent_at) >= arrival.minimum_rtt {
            if !by_sack {
                // With RETRANSMISSION, `acknowledged` is not used for round trips.
                self.known |= LAST_RETRANSMITTED;
                self.acknowledged.1 = sent_at;
            }
            self.consider(transmission);
        }
    }

    /// Records the acknowledgment of a part of a segment.
    pub(super) fn part_acknowledged(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// Records the acknowledgment of a segment SACKed before.
    pub(super) fn sacked_before(&mut self, retransmitted: bool) {
        if retransmitted {
            self.known |= RETRANSMISSION;
        }
    }

    /// RFC 6298 section 3 (Karn's algorithm): round trips of segments sent only once. As in Linux
    /// from SACKed segments, if the acknowledged ones give none.
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

    /// Send time that Linux's RACK uses (tcp_rack_advance): of the acknowledged segment that is
    /// highest in sequence, or else of the highest SACKed one.
    pub(crate) fn last_sent_at(&self) -> Option<Time> {
        if self.known & (ACKNOWLEDGED | LAST_RETRANSMITTED) != 0 {
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
