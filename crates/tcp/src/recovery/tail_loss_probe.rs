//! Tail loss probe: one segment that elicits an acknowledgment when acknowledgments stop arriving
//! (RFC 8985 section 7).

use bentpipe_types::Span;
use serde::{Deserialize, Serialize};

use super::Scoreboard;

/// RFC 8985 section 7.2: maximum ACK delay of the receiver (Linux: the minimum retransmission
/// timeout).
const MAXIMUM_ACK_DELAY: Span = Span::from_millis(200);

/// RFC 8985 section 7.2: PTO without a round-trip sample.
const WITHOUT_RTT: Span = Span::from_secs(1);

/// RFC 8985 section 7.2: PTO, the time to wait for an acknowledgment before a probe.
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

/// An unacknowledged probe.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Probe {
    // TLP.end_seq
    end: u64,
    // TLP.is_retrans
    retransmission: bool,
}

/// Tail loss probe state of one connection.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct TailLossProbe {
    probe: Option<Probe>,
}

/// Meaning of an acknowledgment with regard to the probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ProbeOutcome {
    Nothing,
    /// The probe repaired a loss that was not detected otherwise.
    Repaired,
}

impl TailLossProbe {
    /// Whether a probe is unacknowledged.
    #[inline]
    pub(super) const fn is_outstanding(&self) -> bool {
        self.probe.is_some()
    }

    /// RFC 8985 section 7.3: records a probe; `end` is SND.NXT after it.
    pub(super) fn on_sent(&mut self, end: u64, retransmission: bool) {
        self.probe = Some(Probe {
            end,
            retransmission,
        });
    }

    /// RFC 8985 section 7.4.2: processes an acknowledgment. `pure_duplicate`: it acknowledges
    /// nothing new, cumulatively or selectively.
    #[inline]
    pub(super) fn on_ack(
        &mut self,
        board: &Scoreboard,
        unacknowledged: u64,
        pure_duplicate: bool,
    ) -> ProbeOutcome {
        let Some(probe) = self.probe else {
            return ProbeOutcome::Nothing;
        };
        if unacknowledged < probe.end {
            return ProbeOutcome::Nothing;
        }
        let twice = board
            .delivered()
            .duplicate()
            .is_some_and(|(_, end)| end == probe.end);
        if !probe.retransmission || twice {
            // The probe was new data, or both the original segment and the probe have arrived.
            self.probe = None;
        } else if unacknowledged > probe.end {
            // Data sent after the probe is acknowledged, without a D-SACK for the probe.
            self.probe = None;
            return ProbeOutcome::Repaired;
        } else if pure_duplicate {
            self.probe = None; // The receiver received it twice and does not send D-SACKs.
        }
        ProbeOutcome::Nothing
    }

    /// Discards the probe at the start of recovery or at a timeout, which determine what was lost.
    pub(super) fn forget(&mut self) {
        self.probe = None;
    }
}
