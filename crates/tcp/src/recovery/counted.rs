//! Recovery without SACK as in Linux: each duplicate acknowledgment counts as a SACKed segment
//! (`tcp_add_reno_sack`). Bytes in flight, proportional rate reduction and retransmissions after a
//! timeout are then as with SACK.
//!
//! NewReno (RFC 6582) inflates the window instead, and goes back to SND.UNA after a timeout.

use bentpipe_types::Time;
use serde::{Deserialize, Serialize};

use super::course::{Course, State};
use super::f_rto::Evidence;
use super::proportional_rate_reduction::RecoveryAck;
use super::{
    Acknowledgment, Again, LossRecovery, MOST_REORDERING, Reaction, Retransmission, Scoreboard,
    SendSequence, TimedOut, USUAL_REORDERING,
};
use crate::{Config, RecoveryPhase};

/// Recovery in which duplicate acknowledgments count as SACKed segments.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Counted {
    pub(super) course: Course,
    /// Segments reported by duplicates: tp->sacked_out.
    ahead: u64,
    /// Reordering degree: number of duplicates that indicate a loss.
    reordering: u64,
    /// The scoreboard's number of acknowledged segments at the last acknowledgment.
    acknowledged: u64,
}

impl Counted {
    /// Creates the recovery with the options of `config`.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self {
            course: Course::new(config, config.proportional_rate_reduction),
            ahead: 0,
            reordering: USUAL_REORDERING,
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
            self.reordering = (outstanding + covered).min(MOST_REORDERING);
        }
    }

    /// Whether a duplicate counts as another SACKed segment. Not while [`is_held`](Self::is_held),
    /// and after a timeout only for data sent since.
    fn counts(&self, send: &SendSequence) -> bool {
        match self.course.state {
            State::Open => true,
            State::Fast { point } => send.unacknowledged < point,
            State::AfterTimeout { point } => send.unacknowledged < point && send.next > point,
        }
    }

    /// Whether exactly the data to be recovered is acknowledged. Recovery then lasts until more is
    /// acknowledged, because duplicates may be due to retransmissions (RFC 6582 section 4.1;
    /// tcp_is_non_sack_preventing_reopen).
    fn is_held(&self, unacknowledged: u64) -> bool {
        match self.course.state {
            State::Open => false,
            State::Fast { point } | State::AfterTimeout { point } => unacknowledged == point,
        }
    }

    fn enter(&mut self, ack: &Acknowledgment, send: &SendSequence, board: &Scoreboard) -> u64 {
        self.course.enter(send, board);
        send.outstanding() + ack.acknowledged
    }

    /// Outside of recovery: whether there is a loss. Marks the first segment if duplicates indicate
    /// one.
    fn loses(&self, board: &mut Scoreboard) -> bool {
        if self.ahead >= self.reordering {
            board.mark_first_once();
        }
        board.lost() > 0
    }

    /// Reaction to an acknowledgment outside of recovery.
    fn judge(
        &mut self,
        ack: &Acknowledgment,
        send: &SendSequence,
        board: &mut Scoreboard,
    ) -> Reaction {
        if self.loses(board) {
            let flight_size = self.enter(ack, send, board);
            Reaction::Enter { flight_size }
        } else if ack.acknowledged > 0 {
            Reaction::Grow
        } else {
            Reaction::Hold
        }
    }

    /// Undoes a spurious recovery; another loss may be detected.
    fn take_back(
        &mut self,
        ack: &Acknowledgment,
        send: &SendSequence,
        board: &mut Scoreboard,
    ) -> Reaction {
        self.course.undo.stop();
        board.unmark_lost();
        if self.is_held(send.unacknowledged) {
            return Reaction::Undo;
        }
        self.course.leave();
        if !self.loses(board) {
            return Reaction::Undo;
        }
        Reaction::UndoAndEnter {
            flight_size: self.enter(ack, send, board),
        }
    }

    fn while_fast(
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
            self.course.leave();
            if original {
                self.course.undo.stop();
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
            self.reordering = self.reordering.max(late).min(MOST_REORDERING);
            if board.retransmitted_segments() > 0 {
                return goes_on;
            }
            return self.take_back(ack, send, board);
        }
        // RFC 6582 section 3.2 step 3: the next segment is missing too.
        board.mark_first_once();
        goes_on
    }

    fn after_timeout(
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
            self.course.undo.stop();
            board.unmark_lost();
            return Reaction::Undo;
        }
        let spurious = self.course.is_spurious(&Evidence {
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
            self.take_back(ack, send, board)
        } else if una > point {
            // tcp_identify_packet_loss: duplicates for data sent since count at once.
            self.course.leave();
            self.judge(ack, send, board)
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

impl LossRecovery for Counted {
    fn count(&mut self, send: &SendSequence, board: &mut Scoreboard, duplicate: bool) {
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
        } else if duplicate && self.counts(send) {
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
        let original = ack.acknowledged > 0 && self.course.undo.answers_original(ack.echo);
        match self.course.state {
            State::Fast { point } => self.while_fast(point, original, ack, send, board),
            State::AfterTimeout { point } => self.after_timeout(point, original, ack, send, board),
            State::Open => {
                if ack.acknowledged > 0 {
                    self.ahead = 0;
                }
                self.judge(ack, send, board)
            }
        }
    }

    fn wants_retransmit(&self, board: &Scoreboard) -> bool {
        self.course.wants_retransmit(board)
    }

    fn next_retransmit(
        &mut self,
        _send: &SendSequence,
        board: &mut Scoreboard,
    ) -> Option<Retransmission> {
        self.course.next_retransmit(board)
    }

    fn on_retransmitted(&mut self, position: u64, now: Time, board: &mut Scoreboard) {
        self.course.on_retransmitted(position, now, board);
    }

    fn in_flight(&self, send: &SendSequence, board: &Scoreboard) -> u64 {
        let ahead = self.ahead * u64::from(send.segment);
        board.pipe(send.outstanding()).saturating_sub(ahead)
    }

    fn is_recovering(&self) -> bool {
        self.course.is_fast()
    }

    fn is_quiet(&self, _send: &SendSequence, board: &Scoreboard) -> bool {
        self.course.is_open() && self.ahead == 0 && board.is_clean()
    }

    fn phase(&self) -> RecoveryPhase {
        self.course.phase()
    }

    fn is_reduced_for(&self, send: &SendSequence) -> bool {
        match self.course.state {
            State::Fast { point } => send.unacknowledged < point,
            _ => self.course.is_reduced_for(send),
        }
    }

    fn segments_ahead(&self, _board: &Scoreboard) -> u64 {
        self.ahead
    }

    fn reordering(&self) -> u64 {
        self.reordering
    }

    fn regulate(
        &mut self,
        target: u64,
        delivered: u64,
        advances: bool,
        send: &SendSequence,
        board: &Scoreboard,
    ) -> Option<u64> {
        if !self.course.reduces() {
            return None;
        }
        let in_flight = self.in_flight(send, board);
        let ack = RecoveryAck {
            delivered,
            in_flight,
            safe: advances && board.newly_lost() == 0,
        };
        let ahead = self.ahead * u64::from(send.segment);
        self.course.reduction.on_ack(target, ahead, ack, send);
        Some(in_flight)
    }

    fn window(&self, window: u64) -> u64 {
        self.course.reduction.window(window)
    }

    fn on_sent(&mut self, bytes: u64) {
        self.course.reduction.on_sent(bytes);
    }

    fn on_timeout(
        &mut self,
        timeout: &TimedOut,
        send: &SendSequence,
        board: &mut Scoreboard,
    ) -> Again {
        if timeout.reduces {
            self.course.may_be_undone(send, board);
        }
        board.mark_after_timeout(None, timeout.now);
        self.course.begin_after_timeout(send, timeout.reduces);
        self.ahead = 0;
        Again::Marked
    }

    fn on_shortened(&mut self, send: &SendSequence) -> Again {
        self.course.undo.stop();
        self.course.begin_again(send);
        self.ahead = 0;
        Again::Marked
    }
}

#[cfg(test)]
mod tests;
