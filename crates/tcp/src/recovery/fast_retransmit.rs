//! What Reno and NewReno share: counting duplicate acknowledgments, and inferring from them.

use serde::{Deserialize, Serialize};

use super::{Retransmission, SendSequence};

/// RFC 5681 section 3.2
const DUPLICATE_THRESHOLD: u32 = 3;

/// RFC 3042: new segments that duplicates below the threshold may send.
const LIMITED_TRANSMIT: u32 = 2;

/// Fast retransmit, and the bookkeeping of fast recovery.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct FastRetransmit {
    limited_transmit: bool,
    recovering: bool,
    retransmit: bool,
    // What goes again is what recovery begins with.
    begins: bool,
    duplicates: u32,
    // Outstanding at the first duplicate, before limited transmit added to it.
    flight_size: u64,
    // RFC 5681 section 3.2 inflates cwnd by a segment for each duplicate, as each tells of a
    // segment that has left the network. Here the window stays, and the inflation comes off the
    // flight: the same sum. Signed, because RFC 6582's deflation may exceed it.
    inflation: i64,
}

impl FastRetransmit {
    pub(super) const fn new(limited_transmit: bool) -> Self {
        Self {
            limited_transmit,
            recovering: false,
            retransmit: false,
            begins: false,
            duplicates: 0,
            flight_size: 0,
            inflation: 0,
        }
    }

    pub(super) const fn is_recovering(&self) -> bool {
        self.recovering
    }

    /// Is no recovery under way, and no duplicate counted?
    #[inline]
    pub(super) const fn is_quiet(&self) -> bool {
        !self.recovering && !self.retransmit && self.duplicates == 0
    }

    /// A duplicate while no recovery is under way. At the third, recovery begins: returns the
    /// FlightSize it begins with.
    pub(super) fn count_duplicate(&mut self, send: &SendSequence) -> Option<u64> {
        if self.duplicates == 0 {
            self.flight_size = send.outstanding();
        }
        self.duplicates += 1;
        if self.duplicates < DUPLICATE_THRESHOLD {
            return None;
        }
        self.recovering = true;
        self.retransmit = true;
        self.begins = true;
        // RFC 5681 section 3.2 step 3
        self.inflation = i64::from(DUPLICATE_THRESHOLD) * i64::from(send.segment);
        // Step 2: what limited transmit sent does not count.
        Some(self.flight_size)
    }

    /// A duplicate during recovery: RFC 5681 section 3.2 step 4.
    pub(super) fn inflate(&mut self, send: &SendSequence) {
        let inflation = self.inflation.saturating_add(i64::from(send.segment));
        // Duplicates cannot tell of more than was sent; a peer that invents them gains nothing.
        self.inflation = inflation.min(send.outstanding() as i64);
    }

    /// A partial acknowledgment: RFC 6582 section 3.2 step 3.
    pub(super) fn deflate(&mut self, acknowledged: u64, send: &SendSequence) {
        self.retransmit = true;
        self.inflation = self.inflation.saturating_sub(acknowledged as i64);
        if acknowledged >= u64::from(send.segment) {
            self.inflation += i64::from(send.segment);
        }
    }

    /// New data is acknowledged, or the timer has expired: back to the start.
    pub(super) fn reset(&mut self) {
        *self = Self::new(self.limited_transmit);
    }

    /// New data is acknowledged outside recovery.
    #[inline]
    pub(super) fn forget_duplicates(&mut self) {
        self.duplicates = 0;
    }

    #[inline]
    pub(super) const fn wants_retransmit(&self) -> bool {
        self.retransmit
    }

    pub(super) fn next_retransmit(&self, send: &SendSequence) -> Option<Retransmission> {
        self.retransmit.then_some(Retransmission {
            position: send.unacknowledged,
            length: None,
            regardless_of_window: true,
            restarts_timer: self.begins,
        })
    }

    pub(super) fn on_retransmitted(&mut self) {
        self.retransmit = false;
        self.begins = false;
    }

    #[inline]
    pub(super) fn in_flight(&self, send: &SendSequence) -> u64 {
        let outstanding = send.outstanding();
        if self.recovering {
            return u64::try_from(outstanding as i64 - self.inflation).unwrap_or(0);
        }
        if self.duplicates > 0 && self.limited_transmit {
            // RFC 3042 section 2: one segment for each of the first two, beyond cwnd
            let gone = self.duplicates.min(LIMITED_TRANSMIT);
            return outstanding.saturating_sub(u64::from(gone) * u64::from(send.segment));
        }
        outstanding
    }
}
