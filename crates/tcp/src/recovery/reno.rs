//! Reno: fast retransmit and fast recovery (RFC 5681 section 3.2).

use bentpipe_types::Time;
use serde::{Deserialize, Serialize};

use super::fast_retransmit::FastRetransmit;
use super::{
    Acknowledgment, Again, LossRecovery, Reaction, Retransmission, Scoreboard, SendSequence,
    TimedOut,
};

/// Recovery that ends with the first acknowledgment of new data, however much is still missing. Of
/// two segments lost in a window, the second costs a second halving, or a timeout.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reno {
    fast: FastRetransmit,
    // Duplicates up to here come of what the timer had sent again. Unlike RFC 6582's `recover` it
    // is not moved by a fast retransmit: classic Reno has several in one window (as ns-2's has,
    // after a fast retransmit; Fall and Floyd 1996).
    recover: u64,
}

impl Reno {
    /// With or without limited transmit.
    #[must_use]
    pub const fn new(limited_transmit: bool) -> Self {
        Self {
            fast: FastRetransmit::new(limited_transmit),
            recover: 0,
        }
    }
}

impl LossRecovery for Reno {
    #[inline]
    fn on_ack(
        &mut self,
        ack: &Acknowledgment,
        send: &SendSequence,
        _board: &mut Scoreboard,
    ) -> Reaction {
        if ack.acknowledged > 0 {
            if !self.fast.is_recovering() {
                self.fast.forget_duplicates();
                return Reaction::Grow;
            }
            // RFC 5681 section 3.2 step 6: the window is deflated to ssthresh
            self.fast.reset();
            return Reaction::Exit { limit: None };
        }
        if !ack.duplicate {
            return Reaction::Hold;
        }
        if self.fast.is_recovering() {
            self.fast.inflate(send);
        } else if send.unacknowledged > self.recover
            && let Some(flight_size) = self.fast.count_duplicate(send)
        {
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
    fn is_quiet(&self, _board: &Scoreboard) -> bool {
        self.fast.is_quiet()
    }

    fn on_timeout(
        &mut self,
        _timeout: &TimedOut,
        send: &SendSequence,
        _board: &mut Scoreboard,
    ) -> Again {
        self.on_shortened(send)
    }

    fn on_shortened(&mut self, send: &SendSequence) -> Again {
        self.fast.reset();
        self.recover = send.highest;
        Again::All
    }
}
