//! Timer events of recovery with SACK.

use bentpipe_types::{Span, Time};

use super::super::rack::DetectionContext;
use super::super::{
    Acknowledgment, DEFAULT_REORDERING, Reaction, Scoreboard, SendSequence, TimedOut,
};
use super::Selective;

impl Selective {
    /// Handles the reordering timer (RFC 8985 section 6.2 step 5), after the scoreboard was given
    /// the time.
    pub(super) fn handle_reordering_timer(
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
        let recovering = !self.progress.is_open();
        let lost = self.detection.detect(&ack, send, board, recovering);
        if lost.something && self.progress.is_open() {
            self.enter(send, board);
            return Reaction::Enter {
                flight_size: send.outstanding(),
            };
        }
        Reaction::Hold
    }

    /// Retransmits data that was too long for the path, in shorter segments. Like a timeout, but
    /// without a check for spuriousness or an undo.
    pub(super) fn retransmit_shortened(&mut self, send: &SendSequence) {
        self.progress.undo.stop();
        self.probe.forget();
        self.progress.enter_loss(send);
    }

    /// Handles a retransmission timeout.
    pub(super) fn handle_timeout(
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
            self.progress.prepare_undo(send, board);
        }
        let first_time = self.progress.is_open();
        let context = DetectionContext {
            now,
            recovering: !first_time,
            smoothed_rtt,
        };
        let recent = self.detection.on_timeout(board, context);
        board.mark_after_timeout(recent, now);
        // Many segments were received out of order, and yet this was a loss: the reordering degree
        // was overestimated (tcp_enter_loss).
        if first_time && board.sacked_segments() >= DEFAULT_REORDERING {
            board.limit_reordering(DEFAULT_REORDERING * u64::from(send.segment));
        }
        self.probe.forget();
        self.progress.enter_loss_after_timeout(send, reduces);
    }
}
