//! NewReno: fast recovery that outlasts partial acknowledgments (RFC 6582).

use bentpipe_types::Time;
use serde::{Deserialize, Serialize};

use super::fast_retransmit::FastRetransmit;
use super::{
    Acknowledgment, Again, LossRecovery, Reaction, Retransmission, Scoreboard, SendSequence,
    TimedOut,
};

/// Recovery that sends one lost segment again per round trip, until all that was outstanding when it
/// began is acknowledged.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewReno {
    fast: FastRetransmit,
    impatient: bool,
    first_partial: bool,
    // RFC 6582 section 3.2: the highest position sent when the last recovery or timeout began.
    recover: u64,
}

impl NewReno {
    /// With or without limited transmit; `impatient` restarts the retransmission timer on the first
    /// partial acknowledgment only (RFC 6582 section 4).
    #[must_use]
    pub const fn new(limited_transmit: bool, impatient: bool) -> Self {
        Self {
            fast: FastRetransmit::new(limited_transmit),
            impatient,
            first_partial: true,
            recover: 0,
        }
    }

    fn on_new_data(&mut self, acknowledged: u64, send: &SendSequence) -> Reaction {
        if send.unacknowledged >= self.recover {
            self.fast.reset();
            // RFC 6582 section 3.2 step 3, full acknowledgment, option 1: no burst
            let segment = u64::from(send.segment);
            return Reaction::Exit {
                limit: Some(send.outstanding().max(segment) + segment),
            };
        }
        // Step 3, partial acknowledgment
        self.fast.deflate(acknowledged, send);
        let restart_timer = self.first_partial || !self.impatient;
        self.first_partial = false;
        Reaction::Partial { restart_timer }
    }
}

impl LossRecovery for NewReno {
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
            return self.on_new_data(ack.acknowledged, send);
        }
        if !ack.duplicate {
            return Reaction::Hold;
        }
        if self.fast.is_recovering() {
            self.fast.inflate(send);
        } else if send.unacknowledged > self.recover
            // RFC 6582 section 3.2 step 2: only if more than `recover` is acknowledged
            && let Some(flight_size) = self.fast.count_duplicate(send)
        {
            self.recover = send.highest;
            self.first_partial = true;
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
        // RFC 6582 section 3.2 step 4
        self.recover = send.highest;
        Again::All
    }
}
