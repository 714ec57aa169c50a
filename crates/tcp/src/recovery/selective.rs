//! Recovery with SACK: one state machine for all loss detection algorithms.
//!
//! | what | where |
//! |---|---|
//! | outstanding, SACKed, lost and retransmitted segments | `scoreboard` |
//! | loss detection | `detection`: RFC 6675, FACK; `rack`: RFC 8985 |
//! | transmission in fast recovery | the window, or `proportional_rate_reduction` |
//! | losses at the end of a transfer | `tail_loss_probe` (RFC 8985 section 4: only with RACK) |
//! | spurious losses | `f_rto`, `undo` |

mod timers;

use bentpipe_types::{Span, Time, fetch_whole};
use serde::{Deserialize, Serialize};

use super::detection::Detection;
use super::f_rto::Evidence;
use super::proportional_rate_reduction::RecoveryAck;
use super::rack::Rack;
use super::recovery_progress::{RecoveryProgress, State};
use super::scoreboard::{LostSegment, Scoreboard, Transmission};
use super::tail_loss_probe::{ProbeOutcome, TailLossProbe};
use super::{
    Acknowledgment, LossRecovery, Reaction, Retransmission, RetransmitScope, SendSequence, TimedOut,
};
use crate::{Config, RecoveryPhase};

/// Recovery by selective acknowledgments.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[repr(C)]
pub struct Selective {
    limited_transmit: bool,
    // RFC 6675 section 4: RescueRxt of NextSeg () rule 4.
    rescued: bool,
    probes: bool,
    undoes_without_retransmissions_out: bool,
    probes_are_no_retransmissions: bool,
    clears_scoreboard: bool,
    detection: Detection,
    pub(super) progress: RecoveryProgress,
    probe: TailLossProbe,
}

impl Selective {
    /// See [`Connection::prefetch_senders`](crate::Connection::prefetch_senders).
    #[inline]
    pub(crate) fn prefetch(&self) {
        fetch_whole(self, &self.limited_transmit);
    }

    /// Combines [`next_retransmit`](LossRecovery::next_retransmit) and
    /// [`on_retransmitted`](LossRecovery::on_retransmitted) for up to `most` segments of this
    /// length that end at or before `edge`, except the first after a timeout. Calls `each` with
    /// each position. Returns the number of segments.
    #[inline(always)]
    pub(crate) fn retransmit_run(
        &mut self,
        length: u32,
        edge: u64,
        most: u64,
        now: Time,
        board: &mut Scoreboard,
        each: impl FnMut(u64),
    ) -> u64 {
        if most == 0 || !self.progress.wants_retransmit(board) {
            return 0;
        }
        let count = board.retransmit_run(length, edge, most, now, each);
        let stamp = board.clock().timestamp(now);
        self.progress.undo.on_retransmitted(stamp, count);
        count
    }

    /// Number of segments of this length that may be retransmitted before the window is full.
    pub(crate) fn retransmissions_that_fit(
        &self,
        window: u64,
        length: u32,
        send: &SendSequence,
        board: &Scoreboard,
    ) -> u64 {
        let room = window.saturating_sub(self.in_flight(send, board));
        match self.progress.state {
            // Retransmissions do not count as in flight here.
            State::Open if !self.counts_retransmissions() => {
                if room < u64::from(length) {
                    0
                } else {
                    u64::MAX
                }
            }
            _ => room / u64::from(length.max(1)),
        }
    }

    /// Whether retransmissions count as in flight outside of recovery. Without limited transmit
    /// they do not, because then exactly the outstanding data counts.
    fn counts_retransmissions(&self) -> bool {
        self.limited_transmit || matches!(self.detection, Detection::Forward(_))
    }

    /// Creates a recovery by RFC 6675, with RACK and the other options of `config`.
    #[must_use]
    pub fn sack(config: &Config) -> Self {
        let detection = if config.rack {
            Detection::Rack(Rack::new(&config.linux_quirks))
        } else {
            Detection::Sacked(0)
        };
        Self::new(detection, config)
    }

    /// Creates a recovery by FACK.
    #[must_use]
    pub fn fack(config: &Config) -> Self {
        Self {
            progress: RecoveryProgress::new(config, false),
            probes: false,
            ..Self::new(Detection::Forward(0), config)
        }
    }

    fn new(detection: Detection, config: &Config) -> Self {
        Self {
            // RFC 8985 section 7: a tail loss probe relies on RACK to evaluate its acknowledgment.
            probes: config.tail_loss_probe && matches!(detection, Detection::Rack(_)),
            detection,
            progress: RecoveryProgress::new(config, config.proportional_rate_reduction),
            limited_transmit: config.limited_transmit,
            rescued: false,
            probe: TailLossProbe::default(),
            undoes_without_retransmissions_out: config
                .linux_quirks
                .recovery
                .undoes_without_retransmissions_out,
            probes_are_no_retransmissions: config
                .linux_quirks
                .recovery
                .probes_are_no_retransmissions,
            clears_scoreboard: config.tcp_linux,
        }
    }

    fn enter(&mut self, send: &SendSequence, board: &Scoreboard) {
        self.progress.enter(send, board);
        self.probe.forget();
        self.rescued = false;
    }

    fn exit_recovery(&mut self) {
        self.progress.exit_recovery();
        self.detection.on_exit();
    }

    /// Undoes the marks of a spurious loss.
    fn undo_recovery(&mut self, board: &mut Scoreboard) {
        if !self.progress.is_open() {
            self.exit_recovery();
        }
        self.progress.undo.stop();
        board.unmark_lost();
    }

    /// Records a segment starting at `start` that arrived twice, the first time late. As in Linux,
    /// after a timeout and for acknowledged data this counts only while an undo is possible
    /// (tcp_is_sackblock_valid, tcp_sacktag_write_queue).
    #[cold]
    fn record_late_duplicate(&mut self, start: u64, una: u64, board: &mut Scoreboard) {
        let after_timeout = matches!(self.progress.state, State::AfterTimeout { .. });
        let counts = match self.progress.undo.marker() {
            Some(marker) => start > una || start >= marker,
            None => start > una && !after_timeout,
        };
        if counts {
            board.record_late_duplicate(start, una);
            self.detection.note_reordering();
        }
    }

    /// Whether segments may be retransmitted without evidence of their loss.
    #[inline]
    fn may_suspect(&self) -> bool {
        // RFC 8985 section 9.2: rules of RFC 6675 that RACK replaces.
        matches!(
            (self.progress.state, &self.detection),
            (State::Fast { .. }, Detection::Sacked(_))
        )
    }
}

impl LossRecovery for Selective {
    #[inline(always)]
    fn observe_ack(
        &mut self,
        send: &SendSequence,
        board: &Scoreboard,
        in_order_last: Option<Transmission>,
        now: Time,
    ) {
        self.detection.observe_ack(send, board, in_order_last, now);
    }

    #[inline(always)]
    fn on_ack(
        &mut self,
        ack: &Acknowledgment,
        send: &SendSequence,
        board: &mut Scoreboard,
    ) -> Reaction {
        let una = send.unacknowledged;
        let advances = ack.acknowledged > 0;
        let bytes = board.delivered().bytes();
        if !ack.one_more
            && let Some(range) = board.unnecessary_retransmission(una, ack.acknowledged)
        {
            self.progress.undo.on_duplicate(range, send.segment);
            if let Some(start) = board.late_duplicate() {
                self.record_late_duplicate(start, una, board);
            }
        }
        let pure_duplicate = !ack.one_more && ack.duplicate && bytes == 0;
        let probe_outcome = self.probe.on_ack(board, una, pure_duplicate);

        let original = advances && self.progress.undo.answers_original(ack.echo);
        let mut spurious = self.progress.undo.all_explained() || original;
        let mut left = false;
        match self.progress.state {
            State::Open => spurious &= !original,
            State::Fast { point } => {
                left = una >= point;
                if original && !left && self.undoes_without_retransmissions_out {
                    board.record_late_original(una - ack.acknowledged);
                    self.detection.note_reordering();
                    if board.retransmitted_segments() > 0 {
                        return Reaction::Partial {
                            restart_timer: true,
                        };
                    }
                }
            }
            State::AfterTimeout { point } => {
                spurious |= self.progress.is_spurious(&Evidence {
                    unacknowledged: una,
                    advances,
                    delivers: bytes > 0,
                    sacks: board.delivered().sacked() > 0,
                    delivers_original: board.delivered().has_original_below(point),
                    duplicate: ack.duplicate,
                    forward: board.forward(),
                    next: send.next,
                    can_send_new: ack.can_send_new,
                });
                left = una >= point;
            }
        }
        if spurious {
            self.undo_recovery(board);
            // Other outstanding data may be lost all the same, now or later.
            if !self.detection.detect(ack, send, board, false).something {
                return Reaction::Undo;
            }
            self.enter(send, board);
            return Reaction::UndoAndEnter {
                flight_size: send.outstanding() + ack.acknowledged,
            };
        }
        let was_fast = self.progress.is_fast();
        if was_fast && !left {
            self.detection.detect(ack, send, board, true);
            return if advances {
                Reaction::Partial {
                    restart_timer: true,
                }
            } else {
                Reaction::Hold
            };
        }
        if left {
            self.exit_recovery();
            if self.clears_scoreboard {
                board.clear_marks();
                return if was_fast {
                    Reaction::Exit { limit: None }
                } else {
                    Reaction::Grow
                };
            }
        }
        let recovering = !self.progress.is_open();
        let lost = self.detection.detect(ack, send, board, recovering);
        let enters = if recovering {
            // As in Linux, a lost retransmission is a separate sign of congestion.
            // RFC 5681 section 4.3, RFC 8985 section 9.3: the window is lowered twice.
            lost.retransmission
        } else {
            lost.something || left && board.lost() > 0
        };
        if enters {
            self.enter(send, board);
            let flight_size = send.outstanding() + ack.acknowledged;
            return if left && was_fast {
                Reaction::ExitAndEnter { flight_size }
            } else {
                Reaction::Enter { flight_size }
            };
        }
        match self.progress.state {
            _ if left && was_fast => Reaction::Exit { limit: None },
            // RFC 8985 section 7.4.2: the same reduction as for a fast recovery.
            State::Open if probe_outcome == ProbeOutcome::Repaired => Reaction::Repaired {
                flight_size: send.outstanding() + ack.acknowledged,
            },
            _ if advances => Reaction::Grow,
            _ => Reaction::Hold,
        }
    }

    #[inline]
    fn wants_retransmit(&self, board: &Scoreboard) -> bool {
        self.progress.wants_retransmit(board) || self.may_suspect()
    }

    #[inline(always)]
    fn next_retransmit(
        &mut self,
        _send: &SendSequence,
        board: &mut Scoreboard,
    ) -> Option<Retransmission> {
        self.progress.next_retransmit(board)
    }

    #[inline(always)]
    fn on_retransmitted(&mut self, position: u64, now: Time, board: &mut Scoreboard) {
        self.progress.on_retransmitted(position, now, board);
    }

    #[inline]
    fn in_flight(&self, send: &SendSequence, board: &Scoreboard) -> u64 {
        let outstanding = send.outstanding();
        match (&self.detection, self.progress.state) {
            // Mathis and Mahdavi 1996 section 2.1: awnd = snd.nxt - snd.fack + retran_data
            (Detection::Forward(_), State::Open | State::Fast { .. }) => {
                let forward = board.forward().max(send.unacknowledged);
                send.next.saturating_sub(forward) + board.retransmitted()
            }
            // RFC 6675 section 5 step 3: limited transmit.
            // RFC 5681 section 3.2: only new SACK information lets new data be sent.
            (_, State::Open) if !self.limited_transmit => outstanding,
            _ => board.pipe(outstanding),
        }
    }

    #[inline]
    fn is_recovering(&self) -> bool {
        self.progress.is_fast()
    }

    #[inline]
    fn is_loss_free(&self, send: &SendSequence, board: &Scoreboard) -> bool {
        // FACK uses the highest position ever SACKed, even if the peer has reneged on it.
        let ahead = || {
            matches!(self.detection, Detection::Forward(_)) && board.forward() > send.unacknowledged
        };
        self.progress.is_open() && board.is_clean() && !self.probe.is_outstanding() && !ahead()
    }

    fn is_reduced_for(&self, send: &SendSequence) -> bool {
        self.progress.is_reduced_for(send)
    }

    fn watches_retransmissions(&self) -> bool {
        matches!(self.detection, Detection::Rack(_))
    }

    fn phase(&self) -> RecoveryPhase {
        self.progress.phase()
    }

    fn minimum_rtt(&self) -> Span {
        self.detection.minimum_rtt()
    }

    #[inline]
    fn on_rtt(&mut self, rtt: Span, now: Time) {
        self.detection.on_rtt(rtt, now);
    }

    #[inline(always)]
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
        let in_flight = board.pipe(send.outstanding());
        let ack = RecoveryAck {
            delivered,
            in_flight,
            safe: advances && board.newly_lost() == 0,
        };
        self.progress
            .reduction
            .on_ack(target, board.sacked(), ack, send);
        Some(in_flight)
    }

    #[inline]
    fn window(&self, window: u64) -> u64 {
        self.progress.reduction.window(window)
    }

    #[inline]
    fn on_sent(&mut self, bytes: u64) {
        self.progress.reduction.on_sent(bytes);
    }

    fn next_suspect(&mut self, board: &mut Scoreboard) -> Option<LostSegment> {
        if !self.may_suspect() {
            return None;
        }
        let suspect = board.next_suspect();
        if suspect.is_some() || self.rescued {
            return suspect;
        }
        self.rescued = true;
        board.highest_not_sacked()
    }

    fn on_timeout(
        &mut self,
        timeout: &TimedOut,
        send: &SendSequence,
        board: &mut Scoreboard,
    ) -> RetransmitScope {
        self.handle_timeout(timeout, send, board);
        RetransmitScope::Marked
    }

    fn on_shortened(&mut self, send: &SendSequence) -> RetransmitScope {
        self.retransmit_shortened(send);
        RetransmitScope::Marked
    }

    fn on_reordering_timer(
        &mut self,
        send: &SendSequence,
        board: &mut Scoreboard,
        smoothed_rtt: Option<Span>,
        now: Time,
    ) -> Reaction {
        self.handle_reordering_timer(send, board, smoothed_rtt, now)
    }

    #[inline]
    fn reordering_deadline(&self) -> Option<Time> {
        self.detection.deadline()
    }

    fn forget_reordering_deadline(&mut self) {
        self.detection.forget_deadline();
    }

    #[inline]
    fn probes_tail(&self, board: &Scoreboard) -> bool {
        // During a reduction for a mark, Linux does not require that nothing is SACKed
        // (TCP_CA_CWR).
        self.probes
            && self.progress.is_open()
            && (board.sacked() == 0 || self.progress.is_marked())
            && (!self.probe.is_outstanding() || self.probes_are_no_retransmissions)
    }

    fn has_probed(&self) -> bool {
        self.probe.is_outstanding()
    }

    fn on_duplicate_while_idle(&mut self) {
        // RFC 8985 section 7.4.2: the receiver received the last segment twice and does not send
        // D-SACKs.
        self.probe.forget();
    }

    fn on_probe(&mut self, send: &SendSequence, retransmission: bool) {
        self.probe.on_sent(send.highest, retransmission);
        if retransmission && self.probes_are_no_retransmissions {
            self.progress.undo.exclude_probe();
        }
    }
}
