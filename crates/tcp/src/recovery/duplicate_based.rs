//! Recovery by duplicate acknowledgments alone: the common part of Reno and NewReno.

use std::fmt::Debug;

use bentpipe_types::Time;
use serde::{Deserialize, Serialize};

use super::fast_retransmit::FastRetransmit;
use super::{
    Acknowledgment, LossRecovery, Reaction, Retransmission, RetransmitScope, Scoreboard,
    SendSequence, TimedOut,
};

/// The difference between Reno and NewReno.
pub(super) trait Variant: Debug {
    /// Enters fast recovery, at the third duplicate. Returns the new value of `recover`.
    fn on_enter(&mut self, recover: u64, send: &SendSequence) -> u64;

    /// Reaction to an acknowledgment of new data in fast recovery.
    fn on_new_data(
        &mut self,
        acknowledged: u64,
        recover: u64,
        fast: &mut FastRetransmit,
        send: &SendSequence,
    ) -> Reaction;
}

/// Recovery by duplicate acknowledgments.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ByDuplicates<V> {
    fast: FastRetransmit,
    // RFC 6582's `recover`: duplicates up to this position may be due to retransmissions, and are
    // ignored.
    recover: u64,
    variant: V,
}

impl<V> ByDuplicates<V> {
    pub(super) const fn of(limited_transmit: bool, variant: V) -> Self {
        Self {
            fast: FastRetransmit::new(limited_transmit),
            recover: 0,
            variant,
        }
    }
}

impl<V: Variant> LossRecovery for ByDuplicates<V> {
    #[inline]
    fn on_ack(
        &mut self,
        ack: &Acknowledgment,
        send: &SendSequence,
        _board: &mut Scoreboard,
    ) -> Reaction {
        let fast = &mut self.fast;
        if ack.acknowledged > 0 {
            if !fast.is_recovering() {
                fast.forget_duplicates();
                return Reaction::Grow;
            }
            return (self.variant).on_new_data(ack.acknowledged, self.recover, fast, send);
        }
        if !ack.duplicate {
            return Reaction::Hold;
        }
        if fast.is_recovering() {
            fast.inflate(send);
        } else if send.unacknowledged > self.recover
            // RFC 6582 section 3.2 step 2: only if more than `recover` is acknowledged.
            && let Some(flight_size) = fast.count_duplicate(send)
        {
            self.recover = self.variant.on_enter(self.recover, send);
            return Reaction::Enter { flight_size };
        }
        Reaction::Hold
    }

    #[inline]
    fn wants_retransmit(&self, _board: &Scoreboard) -> bool {
        self.fast.wants_retransmit()
    }

    fn next_retransmit(
        &mut self,
        send: &SendSequence,
        _board: &mut Scoreboard,
    ) -> Option<Retransmission> {
        self.fast.next_retransmit(send)
    }

    fn on_retransmitted(&mut self, _position: u64, _now: Time, _board: &mut Scoreboard) {
        self.fast.on_retransmitted();
    }

    #[inline]
    fn in_flight(&self, send: &SendSequence, _board: &Scoreboard) -> u64 {
        self.fast.in_flight(send)
    }

    fn is_recovering(&self) -> bool {
        self.fast.is_recovering()
    }

    #[inline]
    fn is_loss_free(&self, _send: &SendSequence, _board: &Scoreboard) -> bool {
        self.fast.is_loss_free()
    }

    fn on_timeout(
        &mut self,
        _timeout: &TimedOut,
        send: &SendSequence,
        _board: &mut Scoreboard,
    ) -> RetransmitScope {
        self.on_shortened(send)
    }

    fn on_shortened(&mut self, send: &SendSequence) -> RetransmitScope {
        self.fast.reset();
        // RFC 6582 section 3.2 step 4.
        self.recover = send.highest;
        RetransmitScope::All
    }
}
