//! State of a scoreboard-based recovery: its phase, window reduction, and retransmissions.

use bentpipe_types::Time;
use serde::{Deserialize, Serialize};

use super::f_rto::{Evidence, ForwardRto};
use super::prr_state::Reduction;
use super::undo::Undo;
use super::{Retransmission, Scoreboard, SendSequence};
use crate::{Config, RecoveryPhase};

/// Phase of recovery, with the position at which it ends: RFC 6675's RecoveryPoint, Linux's
/// high_seq.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum State {
    Open,
    Fast { point: u64 },
    AfterTimeout { point: u64 },
}

/// The state of one connection's recovery.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RecoveryProgress {
    pub(super) state: State,
    // In the open state: end of a window reduction for an ECN mark, which lasts until more than
    // this is acknowledged (Linux's TCP_CA_CWR); 0 without one.
    marked: u64,
    // RFC 6675 section 5 step 4.3: the next retransmission is sent even if the window is full.
    ignores_window: bool,
    pub(super) reduction: Reduction,
    forward_rto: bool,
    any_original_shows_spurious_timeout: bool,
    pub(super) forward: ForwardRto,
    undoes: bool,
    pub(super) undo: Undo,
}

impl RecoveryProgress {
    /// The initial state. `reduces`: proportional rate reduction is used.
    pub(super) fn new(config: &Config, reduces: bool) -> Self {
        Self {
            state: State::Open,
            marked: 0,
            ignores_window: false,
            reduction: Reduction::new(reduces),
            forward_rto: config.f_rto,
            any_original_shows_spurious_timeout: config
                .linux_quirks
                .recovery
                .any_original_shows_spurious_timeout,
            forward: ForwardRto::Off,
            undoes: config.undo,
            undo: Undo::default(),
        }
    }

    /// Enters fast recovery. A reduction for a mark continues and keeps its end
    /// (tcp_enter_recovery).
    pub(super) fn enter(&mut self, send: &SendSequence, board: &Scoreboard) {
        let point = if self.is_marked() {
            std::mem::take(&mut self.marked)
        } else {
            self.exit_recovery();
            send.highest
        };
        // RFC 6675 section 5 step 4.1: RecoveryPoint.
        self.state = State::Fast { point };
        self.ignores_window = !self.reduction.is_wanted();
        self.prepare_undo(send, board);
    }

    /// Leaves recovery. The scoreboard stays as it is (RFC 6675 section 5, step A).
    pub(super) fn exit_recovery(&mut self) {
        self.state = State::Open;
        self.marked = 0;
        self.forward = ForwardRto::Off;
        self.reduction.end();
        self.ignores_window = false;
    }

    /// Prepares for an undo of the window reduction that follows.
    pub(super) fn prepare_undo(&mut self, send: &SendSequence, board: &Scoreboard) {
        if self.undoes {
            self.undo
                .start(send.unacknowledged, board.retransmitted_segments());
        }
    }

    /// Enters the phase after a timeout: lost data is retransmitted as the window allows, until
    /// everything sent so far is acknowledged.
    pub(super) fn enter_loss(&mut self, send: &SendSequence) {
        self.exit_recovery();
        // RFC 6675 section 5.1: RecoveryPoint is HighData; no recovery starts before it.
        self.state = State::AfterTimeout {
            point: send.highest,
        };
    }

    /// Enters the phase after a timeout, which `reduces` the window or not. F-RTO, if enabled,
    /// checks for a spurious timeout if no recovery was in progress (RFC 5682 section 3.1 step 1).
    /// In Linux also after a repeated timeout for the same segment (tcp_enter_loss).
    pub(super) fn enter_loss_after_timeout(&mut self, send: &SendSequence, reduces: bool) {
        let again = matches!(self.state, State::AfterTimeout { .. }) && !reduces;
        let doubts = self.is_open() || again && self.any_original_shows_spurious_timeout;
        self.enter_loss(send);
        self.ignores_window = true;
        if self.forward_rto && doubts {
            self.forward = ForwardRto::start(send.highest);
        }
    }

    /// Whether the acknowledgment shows that the timeout was spurious.
    pub(super) fn is_spurious(&mut self, evidence: &Evidence) -> bool {
        if self.any_original_shows_spurious_timeout {
            self.forward.on_ack_at_once(evidence)
        } else {
            self.forward.on_ack(evidence)
        }
    }

    /// Whether there is something to retransmit.
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
            regardless_of_window: self.ignores_window,
            restarts_timer: true,
        })
    }

    #[inline(always)]
    pub(super) fn on_retransmitted(&mut self, position: u64, now: Time, board: &mut Scoreboard) {
        board.on_retransmitted(position, now);
        self.ignores_window = false;
        self.undo.on_retransmitted(board.clock().timestamp(now), 1);
    }

    /// Whether no recovery is in progress. (`==` would also compare the end positions.)
    #[inline]
    pub(super) const fn is_open(&self) -> bool {
        matches!(self.state, State::Open)
    }

    #[inline]
    pub(super) fn is_fast(&self) -> bool {
        matches!(self.state, State::Fast { .. })
    }

    /// Whether a proportional reduction is in progress.
    #[inline]
    pub(super) fn reduces(&self) -> bool {
        self.reduction.is_wanted() && (self.is_fast() || self.is_marked())
    }

    /// Whether a reduction for an ECN mark is in progress.
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

    /// Ends the reduction for a mark if `unacknowledged` is beyond its end: the peer has then
    /// received CWR.
    pub(super) fn end_reduction_for_mark(&mut self, unacknowledged: u64) {
        if self.is_marked() && unacknowledged > self.marked {
            self.marked = 0;
            self.reduction.end();
        }
    }

    /// Whether the window is reduced already for the outstanding data.
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

    /// See [`Recovery::start_reduction`](super::Recovery::start_reduction).
    pub(super) fn start_reduction(&mut self, window: u64, counted: u64, segment: u32) {
        if self.reduces() {
            self.reduction.begin_from(window, counted, segment);
        }
    }
}
