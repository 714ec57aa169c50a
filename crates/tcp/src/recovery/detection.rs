//! Loss detection in three variants: RFC 6675, FACK, and RACK (RFC 8985).

use bentpipe_types::{Span, Time};
use serde::{Deserialize, Serialize};

use super::rack::{DetectionContext, Rack};
use super::scoreboard::{Scoreboard, Transmission};
use super::{Acknowledgment, SendSequence};

/// RFC 6675 section 2: DupThresh.
const DUPLICATE_THRESHOLD: u32 = 3;

/// The loss detection algorithm. It has its own tag, because one placed in a niche of RACK's fields
/// would slow down each match.
// A tag of its own: one hidden among RACK's fields would cost every look at it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[repr(u8)]
pub(super) enum Detection {
    /// RFC 6675: by the amount SACKed above. With DupAcks.
    Sacked(u32),
    /// FACK (Mathis and Mahdavi 1996): by the distance of the highest segment received. With the
    /// number of duplicate acknowledgments.
    Forward(u32),
    /// RACK (RFC 8985): by send time.
    Rack(Rack),
}

/// Result of a detection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct DetectionResult {
    /// At least one segment was newly detected as lost.
    pub(super) something: bool,
    /// A retransmission was detected as lost.
    pub(super) retransmission: bool,
}

impl Detection {
    /// Takes an acknowledgment into account, before [`detect`](Self::detect).
    #[inline(always)]
    pub(super) fn observe_ack(
        &mut self,
        send: &SendSequence,
        board: &Scoreboard,
        in_order_last: Option<Transmission>,
        now: Time,
    ) {
        if let Self::Rack(rack) = self {
            rack.on_ack(board, send.unacknowledged, send.highest, in_order_last, now);
        }
    }

    /// Takes a round-trip sample.
    #[inline]
    pub(super) fn on_rtt(&mut self, rtt: Span, now: Time) {
        if let Self::Rack(rack) = self {
            rack.on_rtt(rtt, now);
        }
    }

    /// Records that reordering was observed.
    pub(super) fn note_reordering(&mut self) {
        if let Self::Rack(rack) = self {
            rack.note_reordering();
        }
    }

    /// Resets the state at the end of recovery.
    pub(super) fn on_exit(&mut self) {
        match self {
            Self::Rack(rack) => rack.on_exit(),
            Self::Sacked(duplicates) | Self::Forward(duplicates) => *duplicates = 0,
        }
    }

    /// Resets the state at a timeout. Returns the age below which a transmission is not yet
    /// considered lost, if the algorithm uses one.
    pub(super) fn on_timeout(
        &mut self,
        board: &Scoreboard,
        context: DetectionContext,
    ) -> Option<Span> {
        match self {
            Self::Rack(rack) => Some(rack.on_timeout(board, context)),
            Self::Sacked(duplicates) | Self::Forward(duplicates) => {
                *duplicates = 0;
                None
            }
        }
    }

    /// Time at which to detect again without an acknowledgment.
    #[inline]
    pub(super) fn deadline(&self) -> Option<Time> {
        match self {
            Self::Rack(rack) => rack.deadline(),
            _ => None,
        }
    }

    /// Cancels the deadline.
    pub(super) fn forget_deadline(&mut self) {
        if let Self::Rack(rack) = self {
            rack.forget_deadline();
        }
    }

    /// The minimum round-trip time measured by RACK.
    pub(super) fn minimum_rtt(&self) -> Span {
        match self {
            Self::Rack(rack) => rack.minimum_rtt(),
            _ => Span::ZERO,
        }
    }

    /// Marks lost segments.
    #[inline(always)]
    pub(super) fn detect(
        &mut self,
        ack: &Acknowledgment,
        send: &SendSequence,
        board: &mut Scoreboard,
        recovering: bool,
    ) -> DetectionResult {
        let advances = ack.acknowledged > 0;
        let sacks = ack.one_more || board.delivered().sacked() > 0;
        let something = match self {
            Self::Rack(rack) => {
                let context = DetectionContext {
                    now: ack.now,
                    recovering,
                    smoothed_rtt: ack.smoothed_rtt,
                };
                let overdue = rack.detect(board, context);
                return DetectionResult {
                    something: overdue.found,
                    retransmission: overdue.retransmission,
                };
            }
            Self::Sacked(duplicates) => {
                // RFC 6675 section 5: a duplicate acknowledgment is one that SACKs new data.
                *duplicates = if advances {
                    0
                } else {
                    *duplicates + u32::from(sacks)
                };
                // RFC 6675 section 4: IsLost (), for steps 1 and 2 of section 5.
                let bytes = u64::from(DUPLICATE_THRESHOLD - 1) * u64::from(send.segment);
                let found = board.mark_below_sacked(DUPLICATE_THRESHOLD, bytes);
                if !recovering && !found && *duplicates >= DUPLICATE_THRESHOLD {
                    // RFC 6675 section 5 step 4.3: retransmit the first segment, lost or not.
                    board.mark_first();
                    true
                } else {
                    found
                }
            }
            Self::Forward(duplicates) => {
                *duplicates = if advances {
                    0
                } else {
                    // RFC 2883 section 4: a D-SACK is no sign of loss.
                    let twice = board.delivered().duplicate().is_some();
                    *duplicates + u32::from(sacks || ack.duplicate && !twice)
                };
                // Mathis and Mahdavi 1996: (snd.fack - snd.una) > (3 * MSS) or dupacks == 3
                let ahead = board.forward().saturating_sub(send.unacknowledged);
                let triggered =
                    ahead > 3 * u64::from(send.segment) || *duplicates >= DUPLICATE_THRESHOLD;
                if !recovering && !triggered {
                    false
                } else {
                    let found = board.mark_below_forward();
                    if !recovering && !found {
                        board.mark_first();
                    }
                    found || !recovering
                }
            }
        };
        DetectionResult {
            something,
            retransmission: false,
        }
    }
}
