//! What one acknowledgment says has arrived.

use bentpipe_types::{Span, Time};

use super::segment::Order;

/// When the acknowledgment came, and what it takes to tell which transmission it acknowledges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
    /// Did it leave after this one, or is there none to compare with?
    #[inline]
    #[must_use]
    pub fn is_newer_than(&self, other: Option<&Self>) -> bool {
        other.is_none_or(|other| other.order.is_before(self.order))
    }
}

/// What one acknowledgment says has arrived, cumulatively or selectively, and was not known to have.
#[derive(Clone, Copy, Debug)]
pub struct Delivered {
    /// Bytes (positions) newly known to have arrived.
    pub bytes: u64,
    /// Of those, the bytes that only SACK blocks tell of.
    pub sacked: u64,
    /// The transmission that left last. Of a segment sent more than once only where it is certain
    /// that its last transmission has arrived (RFC 8985 section 6.2 step 2).
    pub newest: Option<Transmission>,
    /// A segment sent only once, below one that had arrived before: the network reorders (RFC 8985
    /// section 6.2 step 3).
    pub reordered: bool,
    /// Where the lowest segment sent only once ends.
    pub lowest_original_end: Option<u64>,
    /// What arrived twice, as the receiver says (RFC 2883).
    pub duplicate: Option<(u64, u64)>,
    // Times at which segments sent only once had left: (earliest, latest), by how we know.
    acknowledged_originals: Option<(Time, Time)>,
    sacked_originals: Option<(Time, Time)>,
    acknowledged_retransmission: bool,
    now: Time,
}

/// The round trips that one acknowledgment measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Measured {
    /// Of the earliest segment it acknowledged: what the retransmission timer has to wait for.
    pub(crate) earliest: Span,
    /// Of the latest: without the wait of a delayed acknowledgment.
    pub(crate) latest: Span,
}

impl Delivered {
    pub(super) const fn none(now: Time) -> Self {
        Self {
            bytes: 0,
            sacked: 0,
            newest: None,
            reordered: false,
            lowest_original_end: None,
            duplicate: None,
            acknowledged_originals: None,
            sacked_originals: None,
            acknowledged_retransmission: false,
            now,
        }
    }

    /// A segment sent only once is acknowledged. In the order of sending.
    #[inline]
    pub(super) fn original_acknowledged(&mut self, transmission: Transmission, length: u32) {
        let Transmission { sent_at, end, .. } = transmission;
        self.bytes += u64::from(length);
        match &mut self.acknowledged_originals {
            Some((_, latest)) => *latest = sent_at,
            None => {
                self.acknowledged_originals = Some((sent_at, sent_at));
                self.lowest_original_end = Some(end);
            }
        }
        self.consider(transmission);
    }

    /// A segment sent only once is SACKed.
    #[inline]
    pub(super) fn original_sacked(&mut self, transmission: Transmission, length: u32) {
        let Transmission { sent_at, end, .. } = transmission;
        self.bytes += u64::from(length);
        self.sacked += u64::from(length);
        let (earliest, latest) = self.sacked_originals.unwrap_or((sent_at, sent_at));
        self.sacked_originals = Some((earliest.min(sent_at), latest.max(sent_at)));
        let lowest = self.lowest_original_end.unwrap_or(end);
        self.lowest_original_end = Some(lowest.min(end));
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
            self.acknowledged_retransmission = true;
        }
        // RFC 8985 section 6.2 step 2: it may be the earlier transmission that has arrived.
        let sent_at = transmission.sent_at;
        let earlier = arrival.echo.is_some_and(|echo| {
            (echo.wrapping_sub(crate::timestamp(sent_at)) as i32).is_negative()
        });
        if !earlier && self.now.since(sent_at) >= arrival.minimum_rtt {
            self.consider(transmission);
        }
    }

    /// A segment that was SACKed is acknowledged now.
    pub(super) fn sacked_before(&mut self, retransmitted: bool) {
        self.acknowledged_retransmission |= retransmitted;
    }

    /// Were all segments that it acknowledges sent once?
    #[inline]
    pub(super) fn all_originals(&self) -> bool {
        !self.acknowledged_retransmission
    }

    /// The round trips it measured, by segments sent only once (Karn's algorithm, RFC 6298 section
    /// 3). As in Linux, SACKed segments where the acknowledged ones don't tell.
    #[inline]
    pub(crate) fn measured(&self) -> Option<Measured> {
        let times = match self.acknowledged_originals {
            Some(times) if !self.acknowledged_retransmission => times,
            _ => self.sacked_originals?,
        };
        Some(Measured {
            earliest: self.now.since(times.0),
            latest: self.now.since(times.1),
        })
    }

    #[inline]
    fn consider(&mut self, transmission: Transmission) {
        if transmission.is_newer_than(self.newest.as_ref()) {
            self.newest = Some(transmission);
        }
    }
}
