//! Loss recovery: which data was lost, and what to retransmit.
//!
//! A recovery algorithm receives acknowledgments and determines the [`Reaction`], the
//! retransmissions, and the bytes in flight. It does not determine window growth, which belongs to
//! [`congestion`](crate::congestion).

mod algorithm;
mod detection;
mod duplicate_based;
mod f_rto;
mod fast_retransmit;
mod newreno;
mod proportional_rate_reduction;
mod prr_state;
mod rack;
mod recovery_progress;
mod recovery_without_sack;
mod reno;
mod scoreboard;
mod selective;
mod tail_loss_probe;
mod undo;
mod window_reduction;

use bentpipe_types::{Span, Time};
use serde::{Deserialize, Serialize};

use crate::RecoveryPhase;

pub use crate::config::RecoveryKind;
pub(crate) use algorithm::{Recovery, RecoveryStatus};
pub use newreno::NewReno;
pub use proportional_rate_reduction::{ProportionalRateReduction, RecoveryAck};
pub use recovery_without_sack::RecoveryWithoutSack;
pub use reno::Reno;
pub use scoreboard::{Arrival, Delivered, LostSegment, Order, Overdue, Scoreboard, Transmission};
pub(crate) use scoreboard::{Measured, OneMoreSegment, WholeSegments};
pub use selective::Selective;
pub(crate) use tail_loss_probe::tail_loss_timeout;

/// The sender's sequence variables (RFC 9293 section 3.3.1) as positions: sequence numbers
/// unwrapped to 64 bits and counted from our SYN, which is 0. Byte n of the stream is 1 + n.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SendSequence {
    /// SND.UNA: the first unacknowledged position.
    pub unacknowledged: u64,
    /// SND.NXT: the next position to send. After a timeout it may return to `unacknowledged`.
    pub next: u64,
    /// The position after the highest ever sent.
    pub highest: u64,
    /// Payload of a full segment.
    pub segment: u32,
}

impl SendSequence {
    /// Sent and unacknowledged positions below SND.NXT: RFC 5681's FlightSize.
    #[must_use]
    pub const fn outstanding(&self) -> u64 {
        self.next.saturating_sub(self.unacknowledged)
    }

    /// Sent and unacknowledged positions, including those to be retransmitted after a timeout:
    /// everything that may be acknowledged.
    #[must_use]
    pub const fn outstanding_ever(&self) -> u64 {
        self.highest.saturating_sub(self.unacknowledged)
    }
}

/// An acknowledgment as seen by loss recovery. [`SendSequence::unacknowledged`] and the
/// [`Scoreboard`] are updated before.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledgment {
    /// Positions newly acknowledged; 0 for a duplicate or a window update.
    pub acknowledged: u64,
    /// It is a duplicate by RFC 5681 section 2: data is outstanding, the segment carries none, and
    /// the acknowledgment number and window are unchanged.
    pub duplicate: bool,
    /// The time.
    pub now: Time,
    /// The timestamp echoed, if timestamps are in use.
    pub echo: Option<u32>,
    /// The smoothed round-trip time.
    pub smoothed_rtt: Option<Span>,
    /// Unsent data exists, and the peer's window has room for it.
    pub can_send_new: bool,
    /// It only reports [one segment more](Scoreboard::one_more_segment).
    pub one_more: bool,
}

/// Consequence of an acknowledgment for the congestion window and the timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reaction {
    /// Normal operation: the window may grow.
    Grow,
    /// The window stays: a duplicate, or recovery continues.
    Hold,
    /// A loss was detected, and recovery begins. `flight_size` is RFC 5681's FlightSize.
    Enter {
        /// Bytes outstanding that count for the new threshold.
        flight_size: u64,
    },
    /// New data is acknowledged and recovery continues.
    Partial {
        /// The retransmission timer is restarted.
        restart_timer: bool,
    },
    /// Recovery ends.
    Exit {
        /// Upper limit of the window.
        limit: Option<u64>,
    },
    /// Recovery ends, and another begins for data that was sent and lost meanwhile.
    ExitAndEnter {
        /// Bytes outstanding that count for the new threshold.
        flight_size: u64,
    },
    /// A tail loss probe repaired a loss before recovery began. The window is reduced as for a
    /// loss.
    Repaired {
        /// Bytes outstanding that count for the new threshold.
        flight_size: u64,
    },
    /// The last congestion event was spurious: the window is restored.
    Undo,
    /// The last congestion event was spurious, but another loss was detected, and recovery begins.
    UndoAndEnter {
        /// Bytes outstanding that count for the new threshold.
        flight_size: u64,
    },
}

/// A segment to retransmit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retransmission {
    /// Its first position.
    pub position: u64,
    /// Length in sequence numbers; `None`: a full segment, or as much as is outstanding.
    pub length: Option<u32>,
    /// Sent even if the congestion window is full.
    pub regardless_of_window: bool,
    /// Restarts the retransmission timer if this is the first outstanding segment. (A partial
    /// acknowledgment determines this separately.)
    pub restarts_timer: bool,
}

/// Linux's tcp_reordering: default reordering degree in segments.
pub(crate) const DEFAULT_REORDERING: u64 = 3;

/// Linux's tcp_max_reordering: maximum reordering degree in segments.
pub(crate) const MAXIMUM_REORDERING: u64 = 300;

/// A loss recovery algorithm.
pub trait LossRecovery {
    /// Takes an acknowledgment into account, after the scoreboard was updated. `in_order_last`: the
    /// last transmission of the acknowledged segments, if the acknowledgment only reports [one
    /// segment more](Scoreboard::one_more_segment) or [whole
    /// segments](Scoreboard::acknowledges_whole). The scoreboard need not be consulted then.
    fn observe_ack(
        &mut self,
        _send: &SendSequence,
        _board: &Scoreboard,
        _in_order_last: Option<Transmission>,
        _now: Time,
    ) {
    }

    /// Counts a duplicate acknowledgment (`duplicate`, by RFC 5681 section 2) or progress, without
    /// SACK, for a recovery that counts duplicates.
    fn count_duplicates(
        &mut self,
        _send: &SendSequence,
        _board: &mut Scoreboard,
        _duplicate: bool,
    ) {
    }

    /// Determines the reaction to an acknowledgment, after [`observe_ack`](Self::observe_ack). An
    /// acknowledgment of new data while recovery [is loss-free](Self::is_loss_free) always results
    /// in [`Reaction::Grow`]; the call may be omitted.
    fn on_ack(
        &mut self,
        ack: &Acknowledgment,
        send: &SendSequence,
        board: &mut Scoreboard,
    ) -> Reaction;

    /// Whether there is something to retransmit.
    fn wants_retransmit(&self, board: &Scoreboard) -> bool;

    /// The next segment to retransmit, before new data.
    fn next_retransmit(
        &mut self,
        send: &SendSequence,
        board: &mut Scoreboard,
    ) -> Option<Retransmission>;

    /// Records that the segment of `next_retransmit`, at `position`, was sent.
    fn on_retransmitted(&mut self, position: u64, now: Time, board: &mut Scoreboard);

    /// Bytes estimated to be in the network.
    fn in_flight(&self, send: &SendSequence, board: &Scoreboard) -> u64;

    /// Whether fast recovery is in progress.
    fn is_recovering(&self) -> bool;

    /// Whether no loss, retransmission or duplicate is pending. Then all outstanding data is in
    /// flight, and only the congestion window limits it.
    fn is_loss_free(&self, send: &SendSequence, board: &Scoreboard) -> bool;

    /// Reacts to a retransmission timeout: outstanding data is to be retransmitted.
    /// [`RetransmitScope::All`] requires the connection to return to SND.UNA.
    fn on_timeout(
        &mut self,
        timeout: &TimedOut,
        send: &SendSequence,
        board: &mut Scoreboard,
    ) -> RetransmitScope;

    /// Reacts to a reduction of the path MTU: data in segments that were too long is retransmitted
    /// in shorter ones, which is no sign of congestion. On a scoreboard, these segments are split
    /// and marked already.
    fn on_shortened(&mut self, send: &SendSequence) -> RetransmitScope;

    /// Whether the window is reduced already for the outstanding data, so that a timeout is no new
    /// sign of congestion.
    fn is_reduced_for(&self, _send: &SendSequence) -> bool {
        self.is_recovering()
    }

    // The following methods are for recoveries that track individual segments:
    // `Recovery::tracks_segments`.

    /// Number of segments known to have arrived out of order.
    fn segments_ahead(&self, board: &Scoreboard) -> u64 {
        board.sacked_segments()
    }

    /// Reordering degree in segments above which a segment is considered lost, if the algorithm
    /// counts it.
    fn reordering(&self) -> u64 {
        0
    }

    /// Whether the scoreboard must track retransmissions in send order.
    fn watches_retransmissions(&self) -> bool {
        false
    }

    /// Phase of recovery.
    fn phase(&self) -> RecoveryPhase {
        if self.is_recovering() {
            RecoveryPhase::FastRecovery
        } else {
            RecoveryPhase::Open
        }
    }

    /// The minimum round-trip time, as far as the algorithm measures it.
    fn minimum_rtt(&self) -> Span {
        Arrival::default().minimum_rtt
    }

    /// Takes a round-trip sample.
    fn on_rtt(&mut self, _rtt: Span, _now: Time) {}

    /// Records `bytes` sent, new or retransmitted.
    fn on_sent(&mut self, _bytes: u64) {}

    /// Bytes that may be in flight, given the congestion `window`.
    fn window(&self, window: u64) -> u64 {
        window
    }

    /// Sets the window of fast recovery, after each acknowledgment in it. `target`: the window at
    /// the end of the reduction; `delivered`: newly reported bytes. Returns the bytes [in
    /// flight](Self::in_flight), if they were computed.
    fn update_recovery_window(
        &mut self,
        _target: u64,
        _delivered: u64,
        _advances: bool,
        _send: &SendSequence,
        _board: &Scoreboard,
    ) -> Option<u64> {
        None
    }

    /// The next segment to retransmit without evidence of its loss, when the window has room and
    /// there is no new data.
    fn next_suspect(&mut self, _board: &mut Scoreboard) -> Option<LostSegment> {
        None
    }

    /// Time at which losses are to be detected again (reordering timer).
    fn reordering_deadline(&self) -> Option<Time> {
        None
    }

    /// Handles the reordering timer, after the scoreboard was given the time.
    fn on_reordering_timer(
        &mut self,
        _send: &SendSequence,
        _board: &mut Scoreboard,
        _smoothed_rtt: Option<Span>,
        _now: Time,
    ) -> Reaction {
        Reaction::Hold
    }

    /// Cancels the [reordering timer](Self::reordering_deadline).
    fn forget_reordering_deadline(&mut self) {}

    /// Whether a tail loss probe should be scheduled, after [this time](tail_loss_timeout).
    fn probes_tail(&self, _board: &Scoreboard) -> bool {
        false
    }

    /// Whether a tail loss probe is outstanding.
    fn has_probed(&self) -> bool {
        false
    }

    /// Records a duplicate acknowledgment while nothing is outstanding.
    fn on_duplicate_while_idle(&mut self) {}

    /// Records that a tail loss probe was sent.
    fn on_probe(&mut self, _send: &SendSequence, _retransmission: bool) {}
}

/// A retransmission timeout.
#[derive(Clone, Copy, Debug)]
pub struct TimedOut {
    /// The timeout reduces the window.
    pub reduces: bool,
    /// The smoothed round-trip time.
    pub smoothed_rtt: Option<Span>,
    /// The time.
    pub now: Time,
}

/// Data to retransmit after a timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RetransmitScope {
    /// Everything from SND.UNA on.
    All,
    /// The segments marked on the scoreboard.
    Marked,
}

#[cfg(test)]
mod tests;
