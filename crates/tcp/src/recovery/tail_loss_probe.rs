//! Tail loss probe: when acknowledgments stop coming, one segment that makes the receiver speak
//! (RFC 8985 section 7).

use bentpipe_types::Span;
use serde::{Deserialize, Serialize};

use super::Scoreboard;

/// RFC 8985 section 7.2: the longest that a receiver may delay an acknowledgment (Linux: the floor
/// of its retransmission timeout).
const MAXIMUM_ACK_DELAY: Span = Span::from_millis(200);

/// RFC 8985 section 7.2: without a measured round trip
const WITHOUT_RTT: Span = Span::from_secs(1);

/// RFC 8985 section 7.2: how long to wait for an acknowledgment before a probe: PTO.
#[inline]
pub(crate) fn tail_loss_timeout(smoothed_rtt: Option<Span>, one_segment: bool) -> Span {
    let Some(rtt) = smoothed_rtt else {
        return WITHOUT_RTT;
    };
    let wait = rtt * 2;
    if one_segment {
        wait + MAXIMUM_ACK_DELAY
    } else {
        wait
    }
}

/// A probe that is not acknowledged.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Probe {
    // TLP.end_seq
    end: u64,
    // TLP.is_retrans
    retransmission: bool,
}

/// The state of one connection.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct TailLossProbe {
    probe: Option<Probe>,
}

/// What an acknowledgment means for a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    Nothing,
    /// The probe has repaired a loss that nothing else told of.
    Repaired,
}

impl TailLossProbe {
    /// Is a probe under way?
    #[inline]
    pub(super) const fn is_under_way(&self) -> bool {
        self.probe.is_some()
    }

    /// Section 7.3: a probe was sent; `end` is SND.NXT after it.
    pub(super) fn on_sent(&mut self, end: u64, retransmission: bool) {
        self.probe = Some(Probe {
            end,
            retransmission,
        });
    }

    /// Section 7.4.2: an acknowledgment has come. `pure_duplicate`: it acknowledges nothing new,
    /// cumulatively or selectively.
    #[inline]
    pub(super) fn on_ack(
        &mut self,
        board: &Scoreboard,
        unacknowledged: u64,
        pure_duplicate: bool,
    ) -> Verdict {
        let Some(probe) = self.probe else {
            return Verdict::Nothing;
        };
        if unacknowledged < probe.end {
            return Verdict::Nothing;
        }
        let twice = board
            .delivered()
            .duplicate()
            .is_some_and(|(_, end)| end == probe.end);
        if !probe.retransmission || twice {
            // New data; or both the segment and its probe have arrived.
            self.probe = None;
        } else if unacknowledged > probe.end {
            // Something sent after the probe is acknowledged, and nothing said that it came twice.
            self.probe = None;
            return Verdict::Repaired;
        } else if pure_duplicate {
            self.probe = None; // the receiver got it twice, and doesn't do D-SACK
        }
        Verdict::Nothing
    }

    /// Recovery begins, or a timeout: that decides what was lost.
    pub(super) fn forget(&mut self) {
        self.probe = None;
    }
}
