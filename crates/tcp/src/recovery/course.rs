//! The course of a recovery that marks on the scoreboard what is lost: where it stands, how the window comes down, and
//! what goes again.

use bentpipe_types::Time;
use serde::{Deserialize, Serialize};

use super::f_rto::{Evidence, ForwardRto};
use super::reduction::Reduction;
use super::undo::Undo;
use super::{Retransmission, Scoreboard, SendSequence};
use crate::{Config, RecoveryPhase};

/// Where recovery stands, and the position that it goes on to: RFC 6675's RecoveryPoint, Linux's high_seq.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum State {
    Open,
    Fast { point: u64 },
    AfterTimeout { point: u64 },
}

/// The course of one connection's recovery.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Course {
    pub(super) state: State,
    // While it is open: 0, or the window comes down for a mark until more than this is acknowledged (Linux's TCP_CA_CWR).
    marked: u64,
    // The next retransmission goes whatever the window says (RFC 6675 section 5 step 4.3).
    regardless: bool,
    pub(super) reduction: Reduction,
    forward_rto: bool,
    heeds_any_original: bool,
    pub(super) forward: ForwardRto,
    undoes: bool,
    pub(super) undo: Undo,
}

impl Course {
    /// None yet. `reduces`: the window is to come down proportionally.
    pub(super) fn new(config: &Config, reduces: bool) -> Self {
        Self {
            state: State::Open,
            marked: 0,
            regardless: false,
            reduction: Reduction::new(reduces),
            forward_rto: config.f_rto,
            heeds_any_original: config.habits.heeds_any_original,
            forward: ForwardRto::Off,
            undoes: config.undo,
            undo: Undo::default(),
        }
    }

    /// Fast recovery begins. A reduction that is under way for a mark goes on, and to where it would have (tcp_enter_recovery).
    pub(super) fn enter(&mut self, send: &SendSequence, board: &Scoreboard) {
        let point = if self.is_marked() {
            std::mem::take(&mut self.marked)
        } else {
            self.leave();
            send.highest
        };
        self.state = State::Fast { point };
        self.regardless = !self.reduction.is_wanted();
        self.may_be_undone(send, board);
    }

    /// Recovery is over.
    pub(super) fn leave(&mut self) {
        self.state = State::Open;
        self.marked = 0;
        self.forward = ForwardRto::Off;
        self.reduction.end();
        self.regardless = false;
    }

    /// The window is about to be reduced: what comes may tell that it need not have been.
    pub(super) fn may_be_undone(&mut self, send: &SendSequence, board: &Scoreboard) {
        if self.undoes {
            self.undo
                .start(send.unacknowledged, board.retransmitted_segments());
        }
    }

    /// What is lost goes again as the window lets it, until all that was sent is acknowledged.
    pub(super) fn begin_again(&mut self, send: &SendSequence) {
        self.leave();
        self.state = State::AfterTimeout {
            point: send.highest,
        };
    }

    /// The same after a timeout, which `reduces` the window or not. Whether it was spurious is to be found out where F-RTO is
    /// on and no recovery was under way (RFC 5682 section 3.1 step 1); in Linux after a timer that expires again for the same
    /// segment, too (tcp_enter_loss).
    pub(super) fn begin_after_timeout(&mut self, send: &SendSequence, reduces: bool) {
        let again = matches!(self.state, State::AfterTimeout { .. }) && !reduces;
        let doubts = self.is_open() || again && self.heeds_any_original;
        self.begin_again(send);
        self.regardless = true;
        if self.forward_rto && doubts {
            self.forward = ForwardRto::start(send.highest);
        }
    }

    /// An acknowledgment after a timeout: was that spurious?
    pub(super) fn is_spurious(&mut self, evidence: &Evidence) -> bool {
        if self.heeds_any_original {
            self.forward.on_ack_at_once(evidence)
        } else {
            self.forward.on_ack(evidence)
        }
    }

    /// Does something wait to be sent again?
    #[inline]
    pub(super) fn wants_retransmit(&self, board: &Scoreboard) -> bool {
        board.has_lost_to_send() && !self.forward.holds_retransmissions()
    }

    #[inline(always)]
    pub(super) fn next_retransmit(&self, board: &mut Scoreboard) -> Option<Retransmission> {
        if self.forward.holds_retransmissions() {
            return None;
        }
        let lost = board.next_lost()?;
        Some(Retransmission {
            position: lost.position,
            length: Some(lost.length),
            regardless_of_window: self.regardless,
            restarts_timer: true,
        })
    }

    #[inline(always)]
    pub(super) fn on_retransmitted(&mut self, position: u64, now: Time, board: &mut Scoreboard) {
        board.on_retransmitted(position, now);
        self.regardless = false;
        self.undo.on_retransmitted(now, 1);
    }

    /// Is nothing being repaired? (Not by `==`, which compares the points, too.)
    #[inline]
    pub(super) const fn is_open(&self) -> bool {
        matches!(self.state, State::Open)
    }

    #[inline]
    pub(super) fn is_fast(&self) -> bool {
        matches!(self.state, State::Fast { .. })
    }

    /// Does the window come down proportionally now?
    #[inline]
    pub(super) fn reduces(&self) -> bool {
        self.reduction.is_wanted() && (self.is_fast() || self.is_marked())
    }

    /// Does it because the path has marked?
    #[inline]
    pub(super) const fn is_marked(&self) -> bool {
        self.marked > 0
    }

    /// See [`Recovery::reduce_for_mark`](super::Recovery::reduce_for_mark).
    pub(super) fn reduce_for_mark(&mut self, window: u64, send: &SendSequence) {
        debug_assert!(self.is_open());
        self.undo.stop();
        self.marked = send.highest;
        self.reduction.begin_for_mark(window, send.segment);
    }

    /// Everything before `unacknowledged` is acknowledged. If that is more than what was sent before a mark, the peer has heard
    /// of the reduction, too (CWR), which is over.
    pub(super) fn end_of_mark(&mut self, unacknowledged: u64) {
        if self.is_marked() && unacknowledged > self.marked {
            self.marked = 0;
            self.reduction.end();
        }
    }

    /// Is the window reduced already for what is outstanding?
    pub(super) fn is_reduced_for(&self, send: &SendSequence) -> bool {
        self.is_fast() || send.unacknowledged < self.marked
    }

    pub(super) fn phase(&self) -> RecoveryPhase {
        match self.state {
            State::Open => RecoveryPhase::Open,
            State::Fast { .. } => RecoveryPhase::FastRecovery,
            State::AfterTimeout { .. } => RecoveryPhase::AfterTimeout,
        }
    }

    /// See [`LossRecovery::reduce_from`](super::LossRecovery::reduce_from).
    pub(super) fn reduce_from(&mut self, window: u64, counted: u64, segment: u32) {
        if self.reduces() {
            self.reduction.begin_from(window, counted, segment);
        }
    }
}
