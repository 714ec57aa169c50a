//! F-RTO: was the timeout needless? (RFC 5682 section 3.1, the version with SACK)

use serde::{Deserialize, Serialize};

/// Where the algorithm stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) enum ForwardRto {
    /// Not at work.
    #[default]
    Off,
    /// Step 2: the first acknowledgment of something new is awaited. With what was outstanding at
    /// the timeout: RecoveryPoint.
    First {
        /// RecoveryPoint
        point: u64,
    },
    /// Step 3: new segments were sent, and the next acknowledgment decides.
    Second {
        /// RecoveryPoint
        point: u64,
    },
}

/// An acknowledgment, as F-RTO sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence {
    /// SND.UNA after it.
    pub(super) unacknowledged: u64,
    /// It acknowledges something new cumulatively.
    pub(super) advances: bool,
    /// It acknowledges something new, cumulatively or selectively.
    pub(super) delivers: bool,
    /// It does selectively.
    pub(super) sacks: bool,
    /// Of that, something sent only once, before the timeout.
    pub(super) delivers_original: bool,
    /// It is a duplicate.
    pub(super) duplicate: bool,
    /// After the highest position known to have arrived.
    pub(super) forward: u64,
    /// SND.NXT
    pub(super) next: u64,
    /// Is there new data, and do the windows let it go?
    pub(super) can_send_new: bool,
}

impl ForwardRto {
    /// Step 1, at a timeout with everything before `point` sent.
    pub(super) const fn start(point: u64) -> Self {
        Self::First { point }
    }

    /// True: the timeout was spurious.
    pub(super) fn on_ack(&mut self, evidence: &Evidence) -> bool {
        match *self {
            Self::Off => false,
            Self::First { point } => {
                // Step 2: duplicates change nothing.
                if evidence.advances {
                    let covered = evidence.unacknowledged >= point;
                    // 2a: it covers everything; 2b: or new data goes out, if it can
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
                // 3b: something sent before the timeout has arrived; 3a: or it was a loss
                // (The RFC relies on a window of one segment after the timeout: nothing else was
                // sent again. Not every window rule has that, so it has to have been sent once.)
                evidence.delivers_original && evidence.forward <= point
            }
        }
    }

    /// The same as Linux has it (tcp_process_loss). Whatever acknowledges an original tells that the timeout was spurious, also
    /// the first acknowledgment, and one that covers everything: only a loss of all of it would have had to be repaired. And
    /// what tells of nothing that was sent since does not end the doubt, though what is lost goes again then.
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

    /// Step 2b: new segments go out, rather than old ones again.
    #[inline]
    pub(super) const fn holds_retransmissions(&self) -> bool {
        matches!(self, Self::Second { .. })
    }
}
