//! Timer events of recovery with SACK.

use bentpipe_types::{Span, Time};

use super::super::rack::Surroundings;
use super::super::{
    Acknowledgment, Reaction, Scoreboard, SendSequence, TimedOut, USUAL_REORDERING,
};
use super::Selective;

impl Selective {
    /// Handles the reordering timer (RFC 8985 section 6.2 step 5), after the scoreboard was given
    /// the time.
    pub(super) fn after_reordering(
        &mut self,
        send: &SendSequence,
        board: &mut Scoreboard,
        smoothed_rtt: Option<Span>,
        now: Time,
    ) -> Reaction {
        let ack = Acknowledgment {
            acknowledged: 0,
            duplicate: false,
            now,
            echo: None,
            smoothed_rtt,
            can_send_new: false,
            one_more: false,
        };
        let recovering = !self.course.is_open();
        let lost = self.detection.detect(&ack, send, board, recovering);
        if lost.something && self.course.is_open() {
            self.enter(send, board);
            return Reaction::Enter {
                flight_size: send.outstanding(),
            };
        }
        Reaction::Hold
    }

    /// Retransmits data that was too long for the path, in shorter segments. Like a timeout, but
    /// without a check for spuriousness or an undo.
    pub(super) fn after_shortening(&mut self, send: &SendSequence) {
        self.course.undo.stop();
        self.probe.forget();
        self.course.begin_again(send);
    }

    /// Handles a retransmission timeout.
    pub(super) fn after_timeout(
        &mut self,
        timeout: &TimedOut,
        send: &SendSequence,
        board: &mut Scoreboard,
    ) {
        let TimedOut {
            reduces,
            smoothed_rtt,
            now,
        } = *timeout;
        if reduces {
            self.course.may_be_undone(send, board);
        }
        let first_time = self.course.is_open();
        let around = Surroundings {
            now,
            recovering: !first_time,
            smoothed_rtt,
        };
        let recent = self.detection.on_timeout(board, around);
        board.mark_after_timeout(recent, now);
        // Many segments were received out of order, and yet this was a loss: the reordering degree
        // was overestimated (tcp_enter_loss).
        if first_time && board.sacked_segments() >= USUAL_REORDERING {
            board.limit_reordering(USUAL_REORDERING * u64::from(send.segment));
        }
        self.probe.forget();
        self.course.begin_after_timeout(send, reduces);
    }
}
