//! Recovery without SACK as in Linux: each duplicate acknowledgment counts as a SACKed segment
//! (`tcp_add_reno_sack`). Bytes in flight, proportional rate reduction and retransmissions after a
//! timeout are then as with SACK.
//!
//! NewReno (RFC 6582) inflates the window instead, and goes back to SND.UNA after a timeout.

use bentpipe_types::Time;
use serde::{Deserialize, Serialize};

use super::f_rto::Evidence;
use super::proportional_rate_reduction::RecoveryAck;
use super::recovery_progress::{RecoveryProgress, State};
use super::{
    Acknowledgment, DEFAULT_REORDERING, LossRecovery, MAXIMUM_REORDERING, Reaction, Retransmission,
    RetransmitScope, Scoreboard, SendSequence, TimedOut,
};
use crate::{Config, RecoveryPhase};

/// Recovery in which duplicate acknowledgments count as SACKed segments.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecoveryWithoutSack {
    pub(super) progress: RecoveryProgress,
    /// Segments reported by duplicates: tp->sacked_out.
    ahead: u64,
    /// Reordering degree: number of duplicates that indicate a loss.
    reordering: u64,
    /// The scoreboard's number of acknowledged segments at the last acknowledgment.
    acknowledged: u64,
}

impl RecoveryWithoutSack {
    /// Creates the recovery with the options of `config`.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self {
            progress: RecoveryProgress::new(config, config.proportional_rate_reduction),
            ahead: 0,
            reordering: DEFAULT_REORDERING,
            acknowledged: 0,
        }
    }

    /// Limits `ahead` to the outstanding segments that are not missing, of which there is at least
    /// one. More duplicates than that indicate reordering (tcp_check_reno_reordering), by the
    /// number outstanding before the acknowledgment covered `covered` segments.
    fn limit(&mut self, covered: u64, send: &SendSequence, board: &Scoreboard) {
        let outstanding = board.segments() as u64;
        let missing = board.lost().div_ceil(u64::from(send.segment)).max(1);
        let most = outstanding.saturating_sub(missing);
        if self.ahead > most {
            self.ahead = most;
            self.reordering = (outstanding + covered).min(MAXIMUM_REORDERING);
        }
    }

    /// Whether a duplicate counts as another SACKed segment. Not while [`is_held`](Self::is_held),
    /// and after a timeout only for data sent since.
    fn counts_duplicate(&self, send: &SendSequence) -> bool {
        match self.progress.state {
            State::Open => true,
            State::Fast { point } => send.unacknowledged < point,
            State::AfterTimeout { point } => send.unacknowledged < point && send.next > point,
        }
    }

    /// Whether exactly the data to be recovered is acknowledged. Recovery then lasts until more is
    /// acknowledged, because duplicates may be due to retransmissions (RFC 6582 section 4.1;
    /// tcp_is_non_sack_preventing_reopen).
    fn is_held(&self, unacknowledged: u64) -> bool {
        match self.progress.state {
            State::Open => false,
            State::Fast { point } | State::AfterTimeout { point } => unacknowledged == point,
        }
    }

    fn enter(&mut self, ack: &Acknowledgment, send: &SendSequence, board: &Scoreboard) -> u64 {
        self.progress.enter(send, board);
        send.outstanding() + ack.acknowledged
    }

    /// Outside of recovery: whether there is a loss. Marks the first segment if duplicates indicate
    /// one.
    fn detects_loss(&self, board: &mut Scoreboard) -> bool {
        if self.ahead >= self.reordering {
            board.mark_first_once();
        }
        board.lost() > 0
    }

    /// Reaction to an acknowledgment outside of recovery.
    fn react_when_open(
        &mut self,
        ack: &Acknowledgment,
        send: &SendSequence,
        board: &mut Scoreboard,
    ) -> Reaction {
        if self.detects_loss(board) {
            let flight_size = self.enter(ack, send, board);
            Reaction::Enter { flight_size }
        } else if ack.acknowledged > 0 {
            Reaction::Grow
        } else {
            Reaction::Hold
        }
    }

    /// Undoes a spurious recovery; another loss may be detected.
    fn undo_recovery(
        &mut self,
        ack: &Acknowledgment,
        send: &SendSequence,
        board: &mut Scoreboard,
    ) -> Reaction {
        self.progress.undo.stop();
        board.unmark_lost();
        if self.is_held(send.unacknowledged) {
            return Reaction::Undo;
        }
        self.progress.exit_recovery();
        if !self.detects_loss(board) {
            return Reaction::Undo;
        }
        Reaction::UndoAndEnter {
            flight_size: self.enter(ack, send, board),
        }
    }

    fn react_in_fast_recovery(
        &mut self,
        point: u64,
        original: bool,
        ack: &Acknowledgment,
        send: &SendSequence,
        board: &mut Scoreboard,
    ) -> Reaction {
        let una = send.unacknowledged;
        if una > point {
            self.ahead = 0;
            self.progress.exit_recovery();
            if original {
                self.progress.undo.stop();
                return Reaction::Undo;
            }
            return Reaction::Exit { limit: None };
        }
        if ack.acknowledged == 0 {
            return Reaction::Hold;
        }
        let goes_on = Reaction::Partial {
            restart_timer: true,
        };
        if una == point {
            self.ahead = 0;
            return goes_on;
        }
        if original {
            // tcp_try_undo_partial: the original arrived late, which gives the reordering degree.
            let late = ack.acknowledged.div_ceil(u64::from(send.segment));
            self.reordering = self.reordering.max(late).min(MAXIMUM_REORDERING);
            if board.retransmitted_segments() > 0 {
                return goes_on;
            }
            return self.undo_recovery(ack, send, board);
        }
        // RFC 6582 section 3.2 step 3: the next segment is missing too.
        board.mark_first_once();
        goes_on
    }

    fn react_after_timeout(
        &mut self,
        point: u64,
        original: bool,
        ack: &Acknowledgment,
        send: &SendSequence,
        board: &mut Scoreboard,
    ) -> Reaction {
        let una = send.unacknowledged;
        let advances = ack.acknowledged > 0;
        if original {
            // tcp_try_undo_loss: only F-RTO ends recovery.
            self.progress.undo.stop();
            board.unmark_lost();
            return Reaction::Undo;
        }
        let spurious = self.progress.is_spurious(&Evidence {
            unacknowledged: una,
            advances,
            delivers: advances,
            sacks: false,
            // Unknown if one of them was retransmitted.
            delivers_original: board.delivered().has_only_originals_below(point),
            duplicate: ack.duplicate,
            forward: 0,
            next: send.next,
            can_send_new: ack.can_send_new,
        });
        let reaction = if spurious {
            self.undo_recovery(ack, send, board)
        } else if una > point {
            // tcp_identify_packet_loss: duplicates for data sent since count at once.
            self.progress.exit_recovery();
            self.react_when_open(ack, send, board)
        } else if advances {
            Reaction::Grow
        } else {
            Reaction::Hold
        };
        if advances && !self.is_held(una) {
            self.ahead = 0;
        }
        reaction
    }
}

impl LossRecovery for RecoveryWithoutSack {
    fn count_duplicates(&mut self, send: &SendSequence, board: &mut Scoreboard, duplicate: bool) {
        let segment = u64::from(send.segment);
        let acknowledged = board.acknowledged_segments();
        let covered = acknowledged - std::mem::replace(&mut self.acknowledged, acknowledged);
        if covered > 0 {
            // One of the segments filled the gap; the others were counted before, as far as
            // duplicates arrived (tcp_remove_reno_sacks).
            let before = self.ahead.min(covered - 1);
            let bytes = board.delivered_with_short();
            board.count_delivered(bytes.saturating_sub(before * segment).max(1));
            self.ahead -= before;
            self.limit(covered, send, board);
        } else if duplicate && self.counts_duplicate(send) {
            let before = self.ahead;
            self.ahead += 1;
            self.limit(0, send, board);
            board.count_delivered(self.ahead.saturating_sub(before) * segment);
        }
    }

    fn on_ack(
        &mut self,
        ack: &Acknowledgment,
        send: &SendSequence,
        board: &mut Scoreboard,
    ) -> Reaction {
        let original = ack.acknowledged > 0 && self.progress.undo.answers_original(ack.echo);
        match self.progress.state {
            State::Fast { point } => self.react_in_fast_recovery(point, original, ack, send, board),
            State::AfterTimeout { point } => {
                self.react_after_timeout(point, original, ack, send, board)
            }
            State::Open => {
                if ack.acknowledged > 0 {
                    self.ahead = 0;
                }
                self.react_when_open(ack, send, board)
            }
        }
    }

    fn wants_retransmit(&self, board: &Scoreboard) -> bool {
        self.progress.wants_retransmit(board)
    }

    fn next_retransmit(
        &mut self,
        _send: &SendSequence,
        board: &mut Scoreboard,
    ) -> Option<Retransmission> {
        self.progress.next_retransmit(board)
    }

    fn on_retransmitted(&mut self, position: u64, now: Time, board: &mut Scoreboard) {
        self.progress.on_retransmitted(position, now, board);
    }

    fn in_flight(&self, send: &SendSequence, board: &Scoreboard) -> u64 {
        let ahead = self.ahead * u64::from(send.segment);
        board.pipe(send.outstanding()).saturating_sub(ahead)
    }

    fn is_recovering(&self) -> bool {
        self.progress.is_fast()
    }

    fn is_loss_free(&self, _send: &SendSequence, board: &Scoreboard) -> bool {
        self.progress.is_open() && self.ahead == 0 && board.is_clean()
    }

    fn phase(&self) -> RecoveryPhase {
        self.progress.phase()
    }

    fn is_reduced_for(&self, send: &SendSequence) -> bool {
        match self.progress.state {
            State::Fast { point } => send.unacknowledged < point,
            _ => self.progress.is_reduced_for(send),
        }
    }

    fn segments_ahead(&self, _board: &Scoreboard) -> u64 {
        self.ahead
    }

    fn reordering(&self) -> u64 {
        self.reordering
    }

    fn update_recovery_window(
        &mut self,
        target: u64,
        delivered: u64,
        advances: bool,
        send: &SendSequence,
        board: &Scoreboard,
    ) -> Option<u64> {
        if !self.progress.reduces() {
            return None;
        }
        let in_flight = self.in_flight(send, board);
        let ack = RecoveryAck {
            delivered,
            in_flight,
            safe: advances && board.newly_lost() == 0,
        };
        let ahead = self.ahead * u64::from(send.segment);
        self.progress.reduction.on_ack(target, ahead, ack, send);
        Some(in_flight)
    }

    fn window(&self, window: u64) -> u64 {
        self.progress.reduction.window(window)
    }

    fn on_sent(&mut self, bytes: u64) {
        self.progress.reduction.on_sent(bytes);
    }

    fn on_timeout(
        &mut self,
        timeout: &TimedOut,
        send: &SendSequence,
        board: &mut Scoreboard,
    ) -> RetransmitScope {
        if timeout.reduces {
            self.progress.prepare_undo(send, board);
        }
        board.mark_after_timeout(None, timeout.now);
        self.progress
            .enter_loss_after_timeout(send, timeout.reduces);
        self.ahead = 0;
        RetransmitScope::Marked
    }

    fn on_shortened(&mut self, send: &SendSequence) -> RetransmitScope {
        self.progress.undo.stop();
        self.progress.enter_loss(send);
        self.ahead = 0;
        RetransmitScope::Marked
    }
}

#[cfg(test)]
mod tests;
