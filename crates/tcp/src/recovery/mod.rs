//! What was lost, and what to send again.
//!
//! A recovery algorithm sees acknowledgments and says what they mean ([`Reaction`]), what to send
//! again, and how much is in flight. It knows nothing of how the window grows: that is
//! [`congestion`](crate::congestion).

mod fast_retransmit;
mod newreno;
mod reno;

use bentpipe_types::SackBlocks;

use crate::Config;

pub use newreno::NewReno;
pub use reno::Reno;

/// Which loss recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RecoveryKind {
    /// RFC 5681 section 3.2: recovery ends with the first acknowledgment of new data.
    Reno,
    /// RFC 6582: recovery ends when all that was outstanding at its start is acknowledged.
    #[default]
    NewReno,
}

/// The sender's sequence variables (RFC 9293 section 3.3.1), as positions: sequence numbers
/// unwrapped to 64 bits and counted from our SYN, which is 0. Byte n of the stream is 1 + n.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendSequence {
    /// SND.UNA: the first position not acknowledged.
    pub unacknowledged: u64,
    /// SND.NXT: the next position to send. After a timeout it goes back to `unacknowledged`.
    pub next: u64,
    /// The position after the highest ever sent.
    pub highest: u64,
    /// Payload of a full segment.
    pub segment: u32,
}

impl SendSequence {
    /// What was sent and is not acknowledged: RFC 5681's FlightSize.
    #[must_use]
    pub const fn outstanding(&self) -> u64 {
        self.next.saturating_sub(self.unacknowledged)
    }

    /// The same, with what a timeout has marked to be sent again: all that may be acknowledged.
    #[must_use]
    pub const fn outstanding_ever(&self) -> u64 {
        self.highest.saturating_sub(self.unacknowledged)
    }
}

/// An acknowledgment, as loss recovery sees it. [`SendSequence::unacknowledged`] is updated already.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledgment<'a> {
    /// Positions newly acknowledged; 0 for a duplicate or a window update.
    pub acknowledged: u64,
    /// It is a duplicate by RFC 5681 section 2: data is outstanding, it carries none, and neither
    /// acknowledgment number nor window differ from the last one's.
    pub duplicate: bool,
    /// Its SACK blocks, when SACK is in use.
    pub sack: Option<&'a SackBlocks>,
}

/// What an acknowledgment means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reaction {
    /// All is well: the window may grow.
    Grow,
    /// Nothing to grow on: a duplicate, or recovery goes on.
    Hold,
    /// Something is lost, and recovery begins. `flight_size` is RFC 5681's FlightSize.
    Enter {
        /// Bytes outstanding that count for the new threshold.
        flight_size: u64,
    },
    /// New data is acknowledged and recovery goes on.
    Partial {
        /// Restart the retransmission timer?
        restart_timer: bool,
    },
    /// Recovery is over.
    Exit {
        /// The window may be no larger than this.
        limit: Option<u64>,
    },
}

/// A segment to send again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retransmission {
    /// Where it starts; a full segment, or what there is.
    pub position: u64,
    /// It goes whatever the congestion window says.
    pub regardless_of_window: bool,
}

/// A loss recovery.
pub trait LossRecovery {
    /// An acknowledgment has arrived.
    fn on_ack(&mut self, ack: &Acknowledgment<'_>, send: &SendSequence) -> Reaction;

    /// The retransmission timer has expired: everything from `unacknowledged` on will be sent
    /// again.
    fn on_timeout(&mut self, send: &SendSequence);

    /// What to send again before anything new.
    fn next_retransmit(&self, send: &SendSequence) -> Option<Retransmission>;

    /// What `next_retransmit` named has been sent, up to `end`.
    fn on_retransmitted(&mut self, end: u64);

    /// Bytes believed to be in the network.
    fn in_flight(&self, send: &SendSequence) -> u64;

    /// Is recovery under way?
    fn is_recovering(&self) -> bool;
}

/// The loss recovery of one connection.
#[derive(Clone, Debug)]
pub(crate) enum Recovery {
    Reno(Reno),
    NewReno(NewReno),
}

/// Calls the algorithm, whichever it is.
macro_rules! dispatch {
    ($recovery:expr, $inner:ident => $call:expr) => {
        match $recovery {
            Recovery::Reno($inner) => $call,
            Recovery::NewReno($inner) => $call,
        }
    };
}

impl Recovery {
    pub(crate) fn new(config: &Config) -> Self {
        match config.recovery {
            RecoveryKind::Reno => Self::Reno(Reno::new(config.limited_transmit)),
            RecoveryKind::NewReno => Self::NewReno(NewReno::new(
                config.limited_transmit,
                config.newreno_impatient,
            )),
        }
    }
}

impl LossRecovery for Recovery {
    #[inline]
    fn on_ack(&mut self, ack: &Acknowledgment<'_>, send: &SendSequence) -> Reaction {
        dispatch!(self, r => r.on_ack(ack, send))
    }

    fn on_timeout(&mut self, send: &SendSequence) {
        dispatch!(self, r => r.on_timeout(send));
    }

    #[inline]
    fn next_retransmit(&self, send: &SendSequence) -> Option<Retransmission> {
        dispatch!(self, r => r.next_retransmit(send))
    }

    fn on_retransmitted(&mut self, end: u64) {
        dispatch!(self, r => r.on_retransmitted(end));
    }

    #[inline]
    fn in_flight(&self, send: &SendSequence) -> u64 {
        dispatch!(self, r => r.in_flight(send))
    }

    fn is_recovering(&self) -> bool {
        dispatch!(self, r => r.is_recovering())
    }
}

#[cfg(test)]
mod tests;
