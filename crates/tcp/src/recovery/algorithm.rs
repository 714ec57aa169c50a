//! The loss recovery algorithm of one connection.

use bentpipe_types::{Span, Time};
use serde::{Deserialize, Serialize};

use super::{
    Acknowledgment, LossRecovery, LostSegment, NewReno, Reaction, RecoveryKind,
    RecoveryWithoutSack, Reno, Retransmission, RetransmitScope, Scoreboard, Selective,
    SendSequence, TimedOut, Transmission,
};
use crate::{Config, RecoveryPhase};

/// The loss recovery of one connection.
// The enum has its own tag, because one placed in the niche of a field would slow down each match.
// The variant with the tag in the middle is compared first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[repr(u8)]
pub(crate) enum Recovery {
    Rare(Rare),
    Selective(Box<Selective>),
    NewReno(NewReno),
}

impl Recovery {
    /// See [`Connection::prefetch_senders`](crate::Connection::prefetch_senders).
    #[inline]
    pub(crate) fn prefetch(&self) {
        if let Self::Selective(selective) = self {
            selective.prefetch();
        }
    }
}

/// Algorithms that few connections use.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[repr(u8)]
pub(crate) enum Rare {
    Reno(Reno),
    RecoveryWithoutSack(Box<RecoveryWithoutSack>),
}

/// Moves rare code out of line, so that the common path stays short.
#[cold]
#[inline(never)]
fn out_of_line<T>(call: impl FnOnce() -> T) -> T {
    call()
}

/// Calls the method of the current algorithm.
macro_rules! dispatch {
    ($recovery:expr, $inner:ident => $call:expr) => {
        match $recovery {
            Recovery::NewReno($inner) => $call,
            Recovery::Selective($inner) => $call,
            Recovery::Rare(rare) => out_of_line(move || match rare {
                Rare::Reno($inner) => $call,
                Rare::RecoveryWithoutSack($inner) => $call,
            }),
        }
    };
}

impl Recovery {
    /// Creates the recovery for `config`. `sack`: SACK was negotiated.
    pub(crate) fn new(config: &Config, sack: bool) -> Self {
        match config.recovery {
            RecoveryKind::Reno => Self::Rare(Rare::Reno(Reno::new(config.limited_transmit))),
            RecoveryKind::Sack if sack => Self::Selective(Box::new(Selective::sack(config))),
            RecoveryKind::Fack if sack => Self::Selective(Box::new(Selective::fack(config))),
            RecoveryKind::Sack | RecoveryKind::Fack
                if config.linux_quirks.recovery.counts_duplicates_as_sacks =>
            {
                Self::Rare(Rare::RecoveryWithoutSack(Box::new(
                    RecoveryWithoutSack::new(config),
                )))
            }
            RecoveryKind::NewReno | RecoveryKind::Sack | RecoveryKind::Fack => {
                Self::NewReno(NewReno::new(config.limited_transmit, config.newreno))
            }
        }
    }

    /// Whether recovery uses SACK blocks. The loss of a retransmission is then detected too, and
    /// send times are checked between acknowledgments.
    #[inline]
    pub(crate) fn uses_sack(&self) -> bool {
        matches!(self, Self::Selective(_))
    }

    /// Whether duplicates count as SACKed segments.
    #[inline]
    pub(crate) fn counts_duplicates(&self) -> bool {
        matches!(self, Self::Rare(Rare::RecoveryWithoutSack(_)))
    }

    /// Whether recovery tracks individual segments, by SACK blocks or duplicates. Lost and
    /// retransmitted segments are then marked on the scoreboard, and SND.NXT does not go back after
    /// a timeout.
    pub(crate) fn tracks_segments(&self) -> bool {
        self.uses_sack() || self.counts_duplicates()
    }
}

/// State of loss recovery before a transmission.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecoveryStatus {
    /// Bytes that may be in flight.
    pub(crate) window: u64,
    /// See [`LossRecovery::wants_retransmit`].
    pub(crate) wants_retransmit: bool,
    /// See [`LossRecovery::is_recovering`].
    pub(crate) is_recovering: bool,
}

impl Recovery {
    /// State needed before a transmission, given the congestion window, in one call.
    #[inline(always)]
    pub(crate) fn status(&self, congestion_window: u64, board: &Scoreboard) -> RecoveryStatus {
        dispatch!(self, r => RecoveryStatus {
            window: r.window(congestion_window),
            wants_retransmit: r.wants_retransmit(board),
            is_recovering: r.is_recovering(),
        })
    }
}

impl LossRecovery for Recovery {
    #[inline(always)]
    fn observe_ack(
        &mut self,
        send: &SendSequence,
        board: &Scoreboard,
        in_order_last: Option<Transmission>,
        now: Time,
    ) {
        dispatch!(self, r => r.observe_ack(send, board, in_order_last, now));
    }

    fn count_duplicates(&mut self, send: &SendSequence, board: &mut Scoreboard, duplicate: bool) {
        dispatch!(self, r => r.count_duplicates(send, board, duplicate));
    }

    #[inline(always)]
    fn on_ack(
        &mut self,
        ack: &Acknowledgment,
        send: &SendSequence,
        board: &mut Scoreboard,
    ) -> Reaction {
        // A copy, so that only the callee needs one in memory.
        let ack = *ack;
        dispatch!(self, r => r.on_ack(&ack, send, board))
    }

    #[inline]
    fn wants_retransmit(&self, board: &Scoreboard) -> bool {
        dispatch!(self, r => r.wants_retransmit(board))
    }

    #[inline(always)]
    fn next_retransmit(
        &mut self,
        send: &SendSequence,
        board: &mut Scoreboard,
    ) -> Option<Retransmission> {
        dispatch!(self, r => r.next_retransmit(send, board))
    }

    #[inline(always)]
    fn on_retransmitted(&mut self, position: u64, now: Time, board: &mut Scoreboard) {
        dispatch!(self, r => r.on_retransmitted(position, now, board));
    }

    #[inline]
    fn in_flight(&self, send: &SendSequence, board: &Scoreboard) -> u64 {
        dispatch!(self, r => r.in_flight(send, board))
    }

    #[inline]
    fn is_recovering(&self) -> bool {
        dispatch!(self, r => r.is_recovering())
    }

    #[inline]
    fn is_loss_free(&self, send: &SendSequence, board: &Scoreboard) -> bool {
        dispatch!(self, r => r.is_loss_free(send, board))
    }

    fn on_timeout(
        &mut self,
        timeout: &TimedOut,
        send: &SendSequence,
        board: &mut Scoreboard,
    ) -> RetransmitScope {
        dispatch!(self, r => r.on_timeout(timeout, send, board))
    }

    fn on_shortened(&mut self, send: &SendSequence) -> RetransmitScope {
        dispatch!(self, r => r.on_shortened(send))
    }

    fn segments_ahead(&self, board: &Scoreboard) -> u64 {
        dispatch!(self, r => r.segments_ahead(board))
    }

    fn reordering(&self) -> u64 {
        dispatch!(self, r => r.reordering())
    }

    fn is_reduced_for(&self, send: &SendSequence) -> bool {
        dispatch!(self, r => r.is_reduced_for(send))
    }

    fn watches_retransmissions(&self) -> bool {
        dispatch!(self, r => r.watches_retransmissions())
    }

    fn phase(&self) -> RecoveryPhase {
        dispatch!(self, r => r.phase())
    }

    #[inline]
    fn minimum_rtt(&self) -> Span {
        dispatch!(self, r => r.minimum_rtt())
    }

    #[inline]
    fn on_rtt(&mut self, rtt: Span, now: Time) {
        dispatch!(self, r => r.on_rtt(rtt, now));
    }

    #[inline]
    fn on_sent(&mut self, bytes: u64) {
        dispatch!(self, r => r.on_sent(bytes));
    }

    #[inline]
    fn window(&self, window: u64) -> u64 {
        dispatch!(self, r => r.window(window))
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
        dispatch!(self, r => r.update_recovery_window(target, delivered, advances, send, board))
    }

    fn next_suspect(&mut self, board: &mut Scoreboard) -> Option<LostSegment> {
        dispatch!(self, r => r.next_suspect(board))
    }

    #[inline]
    fn reordering_deadline(&self) -> Option<Time> {
        dispatch!(self, r => r.reordering_deadline())
    }

    fn on_reordering_timer(
        &mut self,
        send: &SendSequence,
        board: &mut Scoreboard,
        smoothed_rtt: Option<Span>,
        now: Time,
    ) -> Reaction {
        dispatch!(self, r => r.on_reordering_timer(send, board, smoothed_rtt, now))
    }

    fn forget_reordering_deadline(&mut self) {
        dispatch!(self, r => r.forget_reordering_deadline());
    }

    #[inline]
    fn probes_tail(&self, board: &Scoreboard) -> bool {
        dispatch!(self, r => r.probes_tail(board))
    }

    fn has_probed(&self) -> bool {
        dispatch!(self, r => r.has_probed())
    }

    fn on_duplicate_while_idle(&mut self) {
        dispatch!(self, r => r.on_duplicate_while_idle());
    }

    fn on_probe(&mut self, send: &SendSequence, retransmission: bool) {
        dispatch!(self, r => r.on_probe(send, retransmission));
    }
}
