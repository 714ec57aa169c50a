//! F-RTO: detection of spurious timeouts (RFC 5682 section 3.1, the SACK-enhanced version).

use serde::{Deserialize, Serialize};

/// State of the algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) enum ForwardRto {
    /// Inactive.
    #[default]
    Off,
    /// RFC 5682 section 3.1 step 2: waits for the first acknowledgment of new data. RecoveryPoint
    /// is the end of the data outstanding at the timeout.
    First {
        /// RecoveryPoint.
        point: u64,
    },
    /// RFC 5682 section 3.1 step 3: new segments were sent, and the next acknowledgment decides.
    Second {
        /// RecoveryPoint.
        point: u64,
    },
}

/// An acknowledgment as seen by F-RTO.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence {
    /// SND.UNA after it.
    pub(super) unacknowledged: u64,
    /// It cumulatively acknowledges new data.
    pub(super) advances: bool,
    /// It acknowledges new data, cumulatively or selectively.
    pub(super) delivers: bool,
    /// It selectively acknowledges new data.
    pub(super) sacks: bool,
    /// It newly acknowledges data sent only once, before the timeout.
    pub(super) delivers_original: bool,
    /// It is a duplicate.
    pub(super) duplicate: bool,
    /// Position after the highest one known to have arrived.
    pub(super) forward: u64,
    /// SND.NXT.
    pub(super) next: u64,
    /// New data exists, and the windows admit it.
    pub(super) can_send_new: bool,
}

impl ForwardRto {
    /// RFC 5682 section 3.1 step 1: starts at a timeout, with everything before `point` sent.
    pub(super) const fn start(point: u64) -> Self {
        Self::First { point }
    }

    /// Processes an acknowledgment. Returns true if the timeout was spurious.
    pub(super) fn on_ack(&mut self, evidence: &Evidence) -> bool {
        match *self {
            Self::Off => false,
            Self::First { point } => {
                // RFC 5682 section 3.1 step 2: duplicates change nothing.
                if evidence.advances {
                    let covered = evidence.unacknowledged >= point;
                    // Step 2a: it covers everything. Step 2b: else new data is sent, if possible.
                    *self = if covered || !evidence.can_send_new {
                        Self::Off
                    } else {
                        Self::Second {
                            point: evidence.next,
                        }
                    };
                }
                false
            }
            Self::Second { point } => {
                if !evidence.duplicate && !evidence.delivers {
                    return false; // "Other types of ACKs are ignored"
                }
                *self = Self::Off;
                // RFC 5682 section 3.1 step 3b: data sent before the timeout has arrived, and the
                // timeout was spurious. Step 3a: else a loss. (The RFC relies on a window of one
                // segment after the timeout, so that nothing else was retransmitted. Other window
                // rules allow more; so the data must have been sent only once.)
                evidence.delivers_original && evidence.forward <= point
            }
        }
    }

    /// Linux's variant (tcp_process_loss). Any acknowledgment of original data shows that the
    /// timeout was spurious, even the first one, and one that covers everything. If all of the data
    /// had been lost, it would have had to be retransmitted. An acknowledgment without data sent
    /// since does not end the check, although lost data is retransmitted.
    pub(super) fn on_ack_at_once(&mut self, evidence: &Evidence) -> bool {
        let (Self::First { point } | Self::Second { point }) = *self else {
            return false;
        };
        if evidence.delivers_original {
            *self = Self::Off;
            return true;
        }
        let covered = evidence.unacknowledged >= point;
        if evidence.next > point {
            *self = if evidence.sacks || evidence.duplicate {
                Self::Off
            } else {
                Self::First { point }
            };
        } else if evidence.advances && !covered {
            *self = if evidence.can_send_new {
                Self::Second {
                    point: evidence.next,
                }
            } else {
                Self::Off
            };
        }
        false
    }

    /// RFC 5682 section 3.1 step 2b: new segments are sent instead of retransmissions.
    #[inline]
    pub(super) const fn holds_retransmissions(&self) -> bool {
        matches!(self, Self::Second { .. })
    }
}
