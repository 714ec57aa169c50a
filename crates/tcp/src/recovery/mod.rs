//! What was lost, and what to send again.
//!
//! A recovery algorithm sees acknowledgments and says what they mean ([`Reaction`]), what to send
//! again, and how much is in flight. It knows nothing of how the window grows: that is
//! [`congestion`](crate::congestion).

mod counted;
mod course;
mod detection;
mod duplicates;
mod f_rto;
mod fast_retransmit;
mod gradually;
mod newreno;
mod proportional_rate_reduction;
mod rack;
mod reduction;
mod reno;
mod scoreboard;
mod selective;
mod tail_loss_probe;
mod undo;

use bentpipe_types::{Span, Time, words};
use serde::{Deserialize, Serialize};

use crate::{Config, RecoveryPhase};

pub use counted::Counted;
pub use newreno::NewReno;
pub use proportional_rate_reduction::{ProportionalRateReduction, RecoveryAck};
pub use reno::Reno;
pub use scoreboard::{Arrival, Delivered, LostSegment, Order, Overdue, Scoreboard, Transmission};
pub(crate) use scoreboard::{Covered, Measured, Whole};
pub use selective::Selective;
pub(crate) use tail_loss_probe::tail_loss_timeout;

words! {
    /// A way of finding lost segments and sending them again.
    #[schemars(rename = "Recovery")]
    #[derive(Default)]
    RecoveryKind {
        /// Fast retransmit and fast recovery, one loss at a time (RFC 5681 section 3.2).
        Reno = "reno",
        /// Stays in recovery until all that was sent before it is acknowledged, one lost segment a
        /// round trip (RFC 6582).
        NewReno = "newreno",
        /// Knows every lost segment by the receiver's SACK blocks (RFC 6675), and with `rack` by time
        /// (RFC 8985).
        #[default]
        Sack = "sack",
        /// FACK: takes for lost all that lies below the highest SACKed segment (Mathis and Mahdavi
        /// 1996).
        Fack = "fack",
    }
}

/// The sender's sequence variables (RFC 9293 section 3.3.1), as positions: sequence numbers
/// unwrapped to 64 bits and counted from our SYN, which is 0. Byte n of the stream is 1 + n.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
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

/// An acknowledgment, as loss recovery sees it. [`SendSequence::unacknowledged`] and the
/// [`Scoreboard`] are updated already.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledgment {
    /// Positions newly acknowledged; 0 for a duplicate or a window update.
    pub acknowledged: u64,
    /// It is a duplicate by RFC 5681 section 2: data is outstanding, it carries none, and neither
    /// acknowledgment number nor window differ from the last one's.
    pub duplicate: bool,
    /// The time.
    pub now: Time,
    /// The timestamp it echoes, when timestamps are in use.
    pub echo: Option<u32>,
    /// The smoothed round-trip time.
    pub smoothed_rtt: Option<Span>,
    /// Is there data that was never sent, and room for it in the peer's window?
    pub can_send_new: bool,
    /// All that it tells is [one segment more](Scoreboard::covers_one_more).
    pub one_more: bool,
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
    /// Recovery is over, and the next one begins: of what was sent meanwhile, something is lost.
    ExitAndEnter {
        /// Bytes outstanding that count for the new threshold.
        flight_size: u64,
    },
    /// A probe has repaired a loss, before recovery had to begin: it counts as one.
    Repaired {
        /// Bytes outstanding that count for the new threshold.
        flight_size: u64,
    },
    /// The last congestion was none: the window is as it was before.
    Undo,
    /// The last congestion was none, but something else is lost, and recovery begins.
    UndoAndEnter {
        /// Bytes outstanding that count for the new threshold.
        flight_size: u64,
    },
}

/// A segment to send again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retransmission {
    /// Where it starts.
    pub position: u64,
    /// The sequence numbers it takes; `None`: a full segment, or what there is.
    pub length: Option<u32>,
    /// It goes whatever the congestion window says.
    pub regardless_of_window: bool,
    /// If it is the first one outstanding, the retransmission timer runs anew from when it goes. (A partial
    /// acknowledgment says that by itself.)
    pub restarts_timer: bool,
}

/// Linux's tcp_reordering: so many segments come before one that is late, and nobody wonders.
pub(crate) const USUAL_REORDERING: u64 = 3;

/// Linux's tcp_max_reordering.
pub(crate) const MOST_REORDERING: u64 = 300;

/// A loss recovery.
pub trait LossRecovery {
    /// An acknowledgment has arrived, and the scoreboard knows what it says. `plainly`: that is nothing but that
    /// [one segment more](Scoreboard::covers_one_more) has arrived, or [whole ones](Scoreboard::acknowledges_whole),
    /// the last of which was this transmission; the scoreboard need not be asked then.
    fn take_in(
        &mut self,
        _send: &SendSequence,
        _board: &Scoreboard,
        _plainly: Option<Transmission>,
        _now: Time,
    ) {
    }

    /// The same without SACK blocks, where it may be that duplicates are counted; it is one by RFC 5681 section 2, or
    /// not.
    fn count(&mut self, _send: &SendSequence, _board: &mut Scoreboard, _duplicate: bool) {}

    /// What the acknowledgment that was [taken in](Self::take_in) means. One that acknowledges something new
    /// when all [is quiet](Self::is_quiet) means [`Reaction::Grow`], and need not be asked about.
    fn on_ack(
        &mut self,
        ack: &Acknowledgment,
        send: &SendSequence,
        board: &mut Scoreboard,
    ) -> Reaction;

    /// Is there something to send again?
    fn wants_retransmit(&self, board: &Scoreboard) -> bool;

    /// What to send again before anything new.
    fn next_retransmit(
        &mut self,
        send: &SendSequence,
        board: &mut Scoreboard,
    ) -> Option<Retransmission>;

    /// What `next_retransmit` named, at `position`, has been sent.
    fn on_retransmitted(&mut self, position: u64, now: Time, board: &mut Scoreboard);

    /// Bytes believed to be in the network.
    fn in_flight(&self, send: &SendSequence, board: &Scoreboard) -> u64;

    /// Is fast recovery under way?
    fn is_recovering(&self) -> bool;

    /// Is nothing lost, for all that is known, nothing sent again and no duplicate counted, so that what is
    /// outstanding is in flight, and nothing but the window says how much may be?
    fn is_quiet(&self, send: &SendSequence, board: &Scoreboard) -> bool;

    /// The retransmission timer has expired. What is outstanding is to be sent again; where that means
    /// everything from SND.UNA on, the connection goes back there: [`Again::All`].
    fn on_timeout(
        &mut self,
        timeout: &TimedOut,
        send: &SendSequence,
        board: &mut Scoreboard,
    ) -> Again;

    /// What was too long for the path goes again in shorter segments, and is no sign of congestion. Where
    /// segments are known one by one, those on the scoreboard are split and marked already.
    fn on_shortened(&mut self, send: &SendSequence) -> Again;

    /// Is the window reduced already for what is outstanding, so that a timeout is no new sign of congestion?
    fn is_reduced_for(&self, _send: &SendSequence) -> bool {
        self.is_recovering()
    }

    // What follows is for recoveries that know of each segment what has become of it: Recovery::knows_segments.

    /// Segments that have arrived ahead of a gap, as far as is known.
    fn segments_ahead(&self, board: &Scoreboard) -> u64 {
        board.sacked_segments()
    }

    /// By how many segments they may come out of order before one is taken for lost, where that is counted.
    fn reordering(&self) -> u64 {
        0
    }

    /// Must the scoreboard watch retransmissions in the order of leaving?
    fn watches_retransmissions(&self) -> bool {
        false
    }

    /// Where it stands.
    fn phase(&self) -> RecoveryPhase {
        if self.is_recovering() {
            RecoveryPhase::FastRecovery
        } else {
            RecoveryPhase::Open
        }
    }

    /// The shortest round trip that it knows of.
    fn minimum_rtt(&self) -> Span {
        Arrival::default().minimum_rtt
    }

    /// A round trip was measured.
    fn on_rtt(&mut self, _rtt: Span, _now: Time) {}

    /// `bytes` were sent, for the first time or again.
    fn on_sent(&mut self, _bytes: u64) {}

    /// What may be in flight, where the window rule allows `window`.
    fn window(&self, window: u64) -> u64 {
        window
    }

    /// Sets the window of fast recovery, after each acknowledgment of it; `target` is where it is to
    /// arrive, `delivered` the bytes that it tells of. Returns what is [in flight](Self::in_flight), if that mattered.
    fn regulate(
        &mut self,
        _target: u64,
        _delivered: u64,
        _advances: bool,
        _send: &SendSequence,
        _board: &Scoreboard,
    ) -> Option<u64> {
        None
    }

    /// What to send again when the window has room and there is nothing new.
    fn next_suspect(&mut self, _board: &mut Scoreboard) -> Option<LostSegment> {
        None
    }

    /// When it wants to look again at what may be lost.
    fn reordering_deadline(&self) -> Option<Time> {
        None
    }

    /// That time has come; the scoreboard was told the time.
    fn on_reordering_timer(
        &mut self,
        _send: &SendSequence,
        _board: &mut Scoreboard,
        _smoothed_rtt: Option<Span>,
        _now: Time,
    ) -> Reaction {
        Reaction::Hold
    }

    /// Nobody waits until [then](Self::reordering_deadline).
    fn forget_reordering_deadline(&mut self) {}

    /// Is a probe due when acknowledgments stop coming, [soon](tail_loss_timeout)?
    fn probes_tail(&self, _board: &Scoreboard) -> bool {
        false
    }

    /// Is a probe under way?
    fn has_probed(&self) -> bool {
        false
    }

    /// An acknowledgment has come that tells of nothing, while nothing is outstanding.
    fn hear_duplicate_at_rest(&mut self) {}

    /// A probe was sent.
    fn on_probe(&mut self, _send: &SendSequence, _retransmission: bool) {}
}

/// The retransmission timer has expired.
#[derive(Clone, Copy, Debug)]
pub struct TimedOut {
    /// The window suffers for it.
    pub reduces: bool,
    /// The smoothed round-trip time.
    pub smoothed_rtt: Option<Span>,
    /// The time.
    pub now: Time,
}

/// What is to be sent again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Again {
    /// Everything from SND.UNA on.
    All,
    /// What the scoreboard has marked.
    Marked,
}

/// The loss recovery of one connection.
// A tag of its own: one hidden among an algorithm's fields would cost every look at it. What is compared first is the tag in
// the middle.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[repr(u8)]
pub(crate) enum Recovery {
    Rare(Rare),
    Selective(Box<Selective>),
    NewReno(NewReno),
}

impl Recovery {
    /// See [`Connection::fetch_senders`](crate::Connection::fetch_senders).
    #[inline]
    pub(crate) fn fetch(&self) {
        if let Self::Selective(selective) = self {
            selective.fetch();
        }
    }
}

/// Those that few connections have.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[repr(u8)]
pub(crate) enum Rare {
    Reno(Reno),
    Counted(Box<Counted>),
}

/// What is seldom done is compiled apart, so that what nearly every segment goes through is as short as without it.
#[cold]
#[inline(never)]
fn apart<T>(call: impl FnOnce() -> T) -> T {
    call()
}

/// Calls the algorithm, whichever it is.
macro_rules! dispatch {
    ($recovery:expr, $inner:ident => $call:expr) => {
        match $recovery {
            Recovery::NewReno($inner) => $call,
            Recovery::Selective($inner) => $call,
            Recovery::Rare(rare) => apart(move || match rare {
                Rare::Reno($inner) => $call,
                Rare::Counted($inner) => $call,
            }),
        }
    };
}

impl Recovery {
    /// The recovery that `config` asks for; `sack`: the peer does SACK.
    pub(crate) fn new(config: &Config, sack: bool) -> Self {
        match config.recovery {
            RecoveryKind::Reno => Self::Rare(Rare::Reno(Reno::new(config.limited_transmit))),
            RecoveryKind::Sack if sack => Self::Selective(Box::new(Selective::sack(config))),
            RecoveryKind::Fack if sack => Self::Selective(Box::new(Selective::fack(config))),
            RecoveryKind::Sack | RecoveryKind::Fack if config.habits.counts_duplicates => {
                Self::Rare(Rare::Counted(Box::new(Counted::new(config))))
            }
            RecoveryKind::NewReno | RecoveryKind::Sack | RecoveryKind::Fack => {
                Self::NewReno(NewReno::new(config.limited_transmit, config.newreno))
            }
        }
    }

    /// Does the peer tell of each segment whether it has arrived, by SACK blocks? Then one sent again is known from the
    /// first, and time is looked at between acknowledgments.
    #[inline]
    pub(crate) fn hears_blocks(&self) -> bool {
        matches!(self, Self::Selective(_))
    }

    /// Are duplicates counted as if they told of it?
    #[inline]
    pub(crate) fn counts_duplicates(&self) -> bool {
        matches!(self, Self::Rare(Rare::Counted(_)))
    }

    /// Is of each segment known, so or so, what has become of it? Then one that is lost or sent again is marked on the
    /// scoreboard, and after a timeout nothing goes back.
    pub(crate) fn knows_segments(&self) -> bool {
        self.hears_blocks() || self.counts_duplicates()
    }
}

/// What a sender has to know of loss recovery before it sends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    /// So much may be in flight.
    pub(crate) window: u64,
    /// See [`LossRecovery::wants_retransmit`].
    pub(crate) wants_retransmit: bool,
    /// See [`LossRecovery::is_recovering`].
    pub(crate) is_recovering: bool,
}

impl Recovery {
    /// Where it stands, with this congestion window: what is asked of it before something is sent, at once.
    #[inline(always)]
    pub(crate) fn standing(&self, congestion_window: u64, board: &Scoreboard) -> Standing {
        dispatch!(self, r => Standing {
            window: r.window(congestion_window),
            wants_retransmit: r.wants_retransmit(board),
            is_recovering: r.is_recovering(),
        })
    }
}

impl LossRecovery for Recovery {
    #[inline(always)]
    fn take_in(
        &mut self,
        send: &SendSequence,
        board: &Scoreboard,
        plainly: Option<Transmission>,
        now: Time,
    ) {
        dispatch!(self, r => r.take_in(send, board, plainly, now));
    }

    fn count(&mut self, send: &SendSequence, board: &mut Scoreboard, duplicate: bool) {
        dispatch!(self, r => r.count(send, board, duplicate));
    }

    #[inline(always)]
    fn on_ack(
        &mut self,
        ack: &Acknowledgment,
        send: &SendSequence,
        board: &mut Scoreboard,
    ) -> Reaction {
        // (A copy, so that nobody needs one in memory but who is called.)
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
    fn is_quiet(&self, send: &SendSequence, board: &Scoreboard) -> bool {
        dispatch!(self, r => r.is_quiet(send, board))
    }

    fn on_timeout(
        &mut self,
        timeout: &TimedOut,
        send: &SendSequence,
        board: &mut Scoreboard,
    ) -> Again {
        dispatch!(self, r => r.on_timeout(timeout, send, board))
    }

    fn on_shortened(&mut self, send: &SendSequence) -> Again {
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
    fn regulate(
        &mut self,
        target: u64,
        delivered: u64,
        advances: bool,
        send: &SendSequence,
        board: &Scoreboard,
    ) -> Option<u64> {
        dispatch!(self, r => r.regulate(target, delivered, advances, send, board))
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

    fn hear_duplicate_at_rest(&mut self) {
        dispatch!(self, r => r.hear_duplicate_at_rest());
    }

    fn on_probe(&mut self, send: &SendSequence, retransmission: bool) {
        dispatch!(self, r => r.on_probe(send, retransmission));
    }
}

#[cfg(test)]
mod tests;
