//! Recovery without SACK as Linux has it: each duplicate acknowledgment counts as a segment that has arrived
//! ahead of the first (`tcp_add_reno_sack`), so that all else is as with SACK: what is in flight, the
//! proportional reduction of the window, what is sent again after a timeout.
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

/// Recovery by duplicate acknowledgments that count as SACKs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Counted {
    pub(super) course: Course,
    /// Segments that duplicates have told of: tp->sacked_out.
    ahead: u64,
    /// So many tell of a loss.
    reordering: u64,
    /// The scoreboard's acknowledged segments, as of the last acknowledgment.
    acknowledged: u64,
}

impl Counted {
    /// With whatever `config` wants of it.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self {
            course: Course::new(config, config.proportional_rate_reduction),
            ahead: 0,
            reordering: USUAL_REORDERING,
            acknowledged: 0,
        }
    }

    /// No more can have arrived ahead than is outstanding without what is missing, which is a segment at
    /// least. More duplicates than that are a sign of reordering (tcp_check_reno_reordering), by as much as
    /// was outstanding before the acknowledgment covered `covered` segments.
    fn limit(&mut self, covered: u64, send: &SendSequence, board: &Scoreboard) {
        let outstanding = board.segments() as u64;
        let missing = board.lost().div_ceil(u64::from(send.segment)).max(1);
        let most = outstanding.saturating_sub(missing);
        if self.ahead > most {
            self.ahead = most;
            self.reordering = (outstanding + covered).min(MOST_REORDERING);
        }
    }

    /// Does a duplicate tell of another segment? Not while [`is_held`](Self::is_held), and after a timeout
    /// only of what was sent since.
    fn counts(&self, send: &SendSequence) -> bool {
        match self.course.state {
            State::Open => true,
            State::Fast { point } => send.unacknowledged < point,
            State::AfterTimeout { point } => send.unacknowledged < point && send.next > point,
        }
    }

    /// Is exactly that acknowledged which was to be recovered? Then recovery is held until more is, because
    /// duplicates of it may come of what was sent again (RFC 6582 section 4.1;
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

    /// Outside recovery: do duplicates tell of a loss? Then the first segment is lost.
    fn loses(&self, board: &mut Scoreboard) -> bool {
        if self.ahead >= self.reordering {
            board.mark_first_once();
        }
        board.lost() > 0
    }

    /// Outside recovery: what the acknowledgment means.
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

    /// The last congestion was none, but something may be lost all the same.
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
            // It was late, by so many (tcp_try_undo_partial).
            let late = ack.acknowledged.div_ceil(u64::from(send.segment));
            self.reordering = self.reordering.max(late).min(MOST_REORDERING);
            if board.retransmitted_segments() > 0 {
                return goes_on;
            }
            return self.take_back(ack, send, board);
        }
        // RFC 6582: the next is missing, too.
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
            // (tcp_try_undo_loss: only F-RTO ends the recovery.)
            self.course.undo.stop();
            board.unmark_lost();
            return Reaction::Undo;
        }
        let spurious = self.course.is_spurious(&Evidence {
            unacknowledged: una,
            advances,
            delivers: advances,
            sacks: false,
            // With one that was sent again among them, nobody knows.
            delivers_original: board.delivered().has_only_originals_below(point),
            duplicate: ack.duplicate,
            forward: 0,
            next: send.next,
            can_send_new: ack.can_send_new,
        });
        let reaction = if spurious {
            self.take_back(ack, send, board)
        } else if una > point {
            // (What duplicates have told of what was sent since counts at once: tcp_identify_packet_loss.)
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
            // One of them filled the hole; the others were counted before, as far as duplicates came
            // (tcp_remove_reno_sacks).
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
