//! RACK: what has not arrived although something sent later has, a while ago, is lost (RFC 8985
//! section 6).

use bentpipe_types::{Span, Time};
use serde::{Deserialize, Serialize};

use super::Scoreboard;
use super::scoreboard::{Overdue, Transmission};
use crate::habits::Habits;

/// RFC 8985 section 6.2.1 step 4: DupThresh, where segments and not time tell.
const DUPLICATE_THRESHOLD: u64 = 3;

/// RFC 8985 section 6.2 step 4: recoveries without a D-SACK before the reordering window shrinks.
const PERSISTENCE: u32 = 16;

/// How long a round trip counts for the shortest, at least: RFC 8985 section 6.2 step 1 leaves it
/// open, Linux has five minutes.
const MINIMUM_RTT_WINDOW: Span = Span::from_secs(300);

/// The shortest round trip of the last five to ten minutes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct MinimumRtt {
    this: Span,
    last: Span,
    since: Time,
}

/// No round trip was measured.
const UNKNOWN: Span = Span::from_nanos(u64::MAX);

impl MinimumRtt {
    const fn new() -> Self {
        Self {
            this: UNKNOWN,
            last: UNKNOWN,
            since: Time::ZERO,
        }
    }

    #[inline]
    fn record(&mut self, rtt: Span, now: Time) {
        if now.since(self.since) >= MINIMUM_RTT_WINDOW {
            self.last = self.this;
            self.this = UNKNOWN;
            self.since = now;
        }
        self.this = self.this.min(rtt);
    }

    fn get(&self) -> Option<Span> {
        let least = self.this.min(self.last);
        (least != UNKNOWN).then_some(least)
    }
}

/// RFC 8985 section 5.2's variables.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Rack {
    // RACK.xmit_ts and RACK.end_seq
    newest: Option<Transmission>,
    // RACK.rtt
    rtt: Span,
    minimum_rtt: MinimumRtt,
    reordering_seen: bool,
    // RACK.reo_wnd_mult and RACK.reo_wnd_persist
    multiple: u64,
    persist: u32,
    // Habits::times_last_in_sequence and Habits::widens_for_reordering
    times_last: bool,
    widens_for_reordering: bool,
    // RACK.dsack_round
    duplicate_round: Option<u64>,
    deadline: Option<Time>,
}

/// What RACK has to know besides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Surroundings {
    /// The time.
    pub now: Time,
    /// In fast recovery, or in recovery from a timeout.
    pub recovering: bool,
    /// The smoothed round-trip time.
    pub smoothed_rtt: Option<Span>,
}

impl Rack {
    pub(super) const fn new(habits: &Habits) -> Self {
        Self {
            times_last: habits.times_last_in_sequence,
            widens_for_reordering: habits.widens_for_reordering,
            newest: None,
            rtt: Span::ZERO,
            minimum_rtt: MinimumRtt::new(),
            reordering_seen: false,
            multiple: 1,
            persist: 0,
            duplicate_round: None,
            deadline: None,
        }
    }

    /// The shortest round trip.
    pub(super) fn minimum_rtt(&self) -> Span {
        self.minimum_rtt.get().unwrap_or(Span::ZERO)
    }

    /// A round trip was measured: section 6.2 step 1.
    #[inline]
    pub(super) fn on_rtt(&mut self, rtt: Span, now: Time) {
        self.minimum_rtt.record(rtt, now);
    }

    /// An acknowledgment has come: section 6.2 steps 2 to 4. `unacknowledged` and `next` are
    /// SND.UNA and SND.NXT. `plainly`: all that it tells of was sent once, and has come neither late nor twice; this
    /// is the last of it.
    #[inline(always)]
    pub(super) fn on_ack(
        &mut self,
        board: &Scoreboard,
        unacknowledged: u64,
        next: u64,
        plainly: Option<Transmission>,
        now: Time,
    ) {
        let delivered = board.delivered();
        if let Some(newest) = plainly.or(delivered.newest()) {
            let timed = if self.times_last && plainly.is_none() {
                delivered.last_sent_at().unwrap_or(newest.sent_at)
            } else {
                newest.sent_at
            };
            self.rtt = now.since(timed);
            // RACK_sent_after
            if newest.is_newer_than(self.newest.as_ref()) {
                self.newest = Some(newest);
            }
        }
        // Step 4: a window for each round that sees a D-SACK of what was sent again
        if self
            .duplicate_round
            .is_some_and(|round| unacknowledged >= round)
        {
            self.duplicate_round = None;
        }
        if plainly.is_none()
            && board.explains_duplicate()
            && self.duplicate_round.is_none()
            && (self.reordering_seen || !self.widens_for_reordering)
        {
            self.duplicate_round = Some(next);
            self.multiple += 1;
            self.persist = PERSISTENCE;
        }
        if plainly.is_none() {
            self.reordering_seen |= delivered.is_reordered();
        }
    }

    /// Something has come late.
    pub(super) fn sees_reordering(&mut self) {
        self.reordering_seen = true;
    }

    /// Recovery, from a timeout or not, is over: section 6.2 step 4.
    pub(super) fn on_exit(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.multiple = 1;
        }
    }

    /// Marks what is lost: section 6.2 step 5. What may be lost in a while has a
    /// [`deadline`](Self::deadline).
    #[inline(always)]
    pub(super) fn detect(&mut self, board: &mut Scoreboard, around: Surroundings) -> Overdue {
        self.deadline = None;
        let Some(newest) = self.newest else {
            return Overdue::default();
        };
        if !board.may_be_overdue(newest) {
            return Overdue::default();
        }
        let window = self.reordering_window(board.sacked_segments(), around);
        let allowance = self.rtt + window;
        let overdue = board.mark_overdue(newest, allowance, around.now);
        self.deadline = overdue
            .pending
            .map(|last| (last + allowance).max(around.now));
        overdue
    }

    /// When to look again, though no acknowledgment comes.
    #[inline]
    pub(super) fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    /// Nobody waits until then.
    pub(super) fn forget_deadline(&mut self) {
        self.deadline = None;
    }

    /// A timeout: how long ago a transmission left that is still given time (section 6.3).
    pub(super) fn on_timeout(&mut self, board: &Scoreboard, around: Surroundings) -> Span {
        self.deadline = None;
        self.rtt + self.reordering_window(board.sacked_segments(), around)
    }

    /// RACK_update_reo_wnd
    fn reordering_window(&self, sacked_segments: u64, around: Surroundings) -> Span {
        if !self.reordering_seen && (around.recovering || sacked_segments >= DUPLICATE_THRESHOLD) {
            return Span::ZERO;
        }
        let window = self.minimum_rtt() * self.multiple / 4;
        around.smoothed_rtt.map_or(window, |srtt| window.min(srtt))
    }
}
