//! Fast retransmit and fast recovery, for Reno and NewReno: counting of duplicate acknowledgments,
//! and window inflation.

use serde::{Deserialize, Serialize};

use super::{Retransmission, SendSequence};

/// RFC 5681 section 3.2: duplicates that trigger a fast retransmit.
const DUPLICATE_THRESHOLD: u32 = 3;

/// RFC 3042 section 2: new segments that duplicates below the threshold may send.
const LIMITED_TRANSMIT: u32 = 2;

/// State of fast retransmit and fast recovery.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct FastRetransmit {
    limited_transmit: bool,
    recovering: bool,
    retransmit: bool,
    // The pending retransmission is the first of the recovery.
    begins: bool,
    duplicates: u32,
    // FlightSize at the first duplicate, before limited transmit adds to it.
    flight_size: u64,
    // RFC 5681 section 3.2 step 4 inflates cwnd by one segment per duplicate, for the segment that
    // has left the network. Here the window stays, and the inflation is subtracted from the bytes
    // in flight, which is equivalent. Signed, because RFC 6582's deflation may exceed it.
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

    /// Whether no recovery is in progress and no duplicate was counted.
    #[inline]
    pub(super) const fn is_loss_free(&self) -> bool {
        !self.recovering && !self.retransmit && self.duplicates == 0
    }

    /// Counts a duplicate outside of recovery. The third begins recovery; returns its FlightSize.
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
        // RFC 5681 section 3.2 step 3: inflate by three segments.
        self.inflation = i64::from(DUPLICATE_THRESHOLD) * i64::from(send.segment);
        // RFC 5681 section 3.2 step 2: FlightSize excludes the data sent by limited transmit.
        Some(self.flight_size)
    }

    /// RFC 5681 section 3.2 step 4: inflates for a duplicate during recovery.
    pub(super) fn inflate(&mut self, send: &SendSequence) {
        let inflation = self.inflation.saturating_add(i64::from(send.segment));
        // Limited to the data outstanding, so that a peer gains nothing from forged duplicates.
        self.inflation = inflation.min(send.outstanding() as i64);
    }

    /// RFC 6582 section 3.2 step 3: deflates for a partial acknowledgment.
    pub(super) fn deflate(&mut self, acknowledged: u64, send: &SendSequence) {
        self.retransmit = true;
        self.inflation = self.inflation.saturating_sub(acknowledged as i64);
        if acknowledged >= u64::from(send.segment) {
            self.inflation += i64::from(send.segment);
        }
    }

    /// Resets the state, when recovery or a timeout ends it.
    pub(super) fn reset(&mut self) {
        *self = Self::new(self.limited_transmit);
    }

    /// Resets the count after an acknowledgment of new data outside of recovery.
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
            // RFC 3042 section 2: one segment beyond cwnd for each of the first two duplicates.
            let gone = self.duplicates.min(LIMITED_TRANSMIT);
            return outstanding.saturating_sub(u64::from(gone) * u64::from(send.segment));
        }
        outstanding
    }
}
