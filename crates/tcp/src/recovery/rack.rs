//! RACK: a segment is lost if one sent sufficiently later has arrived (RFC 8985 section 6).

use bentpipe_types::{Span, Time};
use serde::{Deserialize, Serialize};

use super::Scoreboard;
use super::scoreboard::{Overdue, Transmission};
use crate::linux_quirks::LinuxQuirks;

/// RFC 8985 section 6.2.1 step 4: DupThresh, for detection by segment count.
const DUPLICATE_THRESHOLD: u64 = 3;

/// RFC 8985 section 6.2 step 4: number of recoveries without a D-SACK before the reordering window
/// shrinks.
const DSACK_PERSISTENCE: u32 = 16;

/// RFC 8985 section 6.2 step 1: minimum age at which the minimum round trip expires. The RFC leaves
/// it open; Linux uses five minutes.
const MINIMUM_RTT_WINDOW: Span = Span::from_secs(300);

/// Minimum round-trip time of the last five to ten minutes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct MinimumRtt {
    this: Span,
    last: Span,
    since: Time,
}

/// Value of a round-trip time that was not measured.
const UNMEASURED: Span = Span::from_nanos(u64::MAX);

impl MinimumRtt {
    const fn new() -> Self {
        Self {
            this: UNMEASURED,
            last: UNMEASURED,
            since: Time::ZERO,
        }
    }

    #[inline]
    fn record_rtt(&mut self, rtt: Span, now: Time) {
        if now.since(self.since) >= MINIMUM_RTT_WINDOW {
            self.last = self.this;
            self.this = UNMEASURED;
            self.since = now;
        }
        self.this = self.this.min(rtt);
    }

    fn get(&self) -> Option<Span> {
        let least = self.this.min(self.last);
        (least != UNMEASURED).then_some(least)
    }
}

/// The variables of RFC 8985 section 5.2.
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
    // See `RecoveryQuirks::rack_times_highest_sequence` and `dsack_widens_only_after_reordering`.
    times_last: bool,
    dsack_widens_only_after_reordering: bool,
    // RACK.dsack_round
    duplicate_round: Option<u64>,
    deadline: Option<Time>,
}

/// Further inputs of RACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct DetectionContext {
    /// The current time.
    pub now: Time,
    /// Fast recovery, or recovery after a timeout, is in progress.
    pub recovering: bool,
    /// The smoothed round-trip time.
    pub smoothed_rtt: Option<Span>,
}

impl Rack {
    pub(super) const fn new(linux_quirks: &LinuxQuirks) -> Self {
        Self {
            times_last: linux_quirks.recovery.rack_times_highest_sequence,
            dsack_widens_only_after_reordering: linux_quirks
                .recovery
                .dsack_widens_only_after_reordering,
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

    /// The minimum round-trip time.
    pub(super) fn minimum_rtt(&self) -> Span {
        self.minimum_rtt.get().unwrap_or(Span::ZERO)
    }

    /// RFC 8985 section 6.2 step 1: updates the minimum round-trip time.
    #[inline]
    pub(super) fn on_rtt(&mut self, rtt: Span, now: Time) {
        self.minimum_rtt.record_rtt(rtt, now);
    }

    /// Processes an acknowledgment (RFC 8985 section 6.2 steps 2 to 4). `unacknowledged` and `next`
    /// are SND.UNA and SND.NXT. If all reported segments were sent once and arrived in order,
    /// without duplicates, `in_order_last` is the last of them.
    #[inline(always)]
    pub(super) fn on_ack(
        &mut self,
        board: &Scoreboard,
        unacknowledged: u64,
        next: u64,
        in_order_last: Option<Transmission>,
        now: Time,
    ) {
        let delivered = board.delivered();
        if let Some(newest) = in_order_last.or(delivered.latest_sent()) {
            let timed = if self.times_last && in_order_last.is_none() {
                delivered.last_sent_at().unwrap_or(newest.sent_at)
            } else {
                newest.sent_at
            };
            self.rtt = now.since(timed);
            // RFC 8985 section 6.2 step 2: RACK_sent_after ().
            if newest.is_newer_than(self.newest.as_ref()) {
                self.newest = Some(newest);
            }
        }
        // RFC 8985 section 6.2 step 4: widens the window once per round with a D-SACK of a
        // retransmission.
        if self
            .duplicate_round
            .is_some_and(|round| unacknowledged >= round)
        {
            self.duplicate_round = None;
        }
        if in_order_last.is_none()
            && board.explains_duplicate()
            && self.duplicate_round.is_none()
            && (self.reordering_seen || !self.dsack_widens_only_after_reordering)
        {
            self.duplicate_round = Some(next);
            self.multiple += 1;
            self.persist = DSACK_PERSISTENCE;
        }
        if in_order_last.is_none() {
            self.reordering_seen |= delivered.is_reordered();
        }
    }

    /// Records that reordering was observed.
    pub(super) fn note_reordering(&mut self) {
        self.reordering_seen = true;
    }

    /// Ends recovery, after a timeout or not (RFC 8985 section 6.2 step 4).
    pub(super) fn on_exit(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.multiple = 1;
        }
    }

    /// Marks lost segments (RFC 8985 section 6.2 step 5). The [`deadline`](Self::deadline) is set
    /// for segments that may be lost later.
    #[inline(always)]
    pub(super) fn detect(&mut self, board: &mut Scoreboard, context: DetectionContext) -> Overdue {
        self.deadline = None;
        let Some(newest) = self.newest else {
            return Overdue::default();
        };
        if !board.may_be_overdue(newest) {
            return Overdue::default();
        }
        let window = self.reordering_window(board.sacked_segments(), context);
        let allowance = self.rtt + window;
        let overdue = board.mark_overdue(newest, allowance, context.now);
        self.deadline = overdue
            .pending
            .map(|last| (last + allowance).max(context.now));
        overdue
    }

    /// Time at which to detect again without an acknowledgment.
    #[inline]
    pub(super) fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    /// Cancels the deadline.
    pub(super) fn forget_deadline(&mut self) {
        self.deadline = None;
    }

    /// RFC 8985 section 6.3: at a timeout, returns the age below which a transmission is not yet
    /// considered lost.
    pub(super) fn on_timeout(&mut self, board: &Scoreboard, context: DetectionContext) -> Span {
        self.deadline = None;
        self.rtt + self.reordering_window(board.sacked_segments(), context)
    }

    /// RFC 8985 section 6.2 step 4: RACK_update_reo_wnd ().
    fn reordering_window(&self, sacked_segments: u64, context: DetectionContext) -> Span {
        if !self.reordering_seen && (context.recovering || sacked_segments >= DUPLICATE_THRESHOLD) {
            return Span::ZERO;
        }
        // RFC 8985 section 3.3.2: a quarter of the minimum round trip, times the multiple that
        // D-SACKs raise (RFC 8985 section 4); bounded by the smoothed round trip.
        let window = self.minimum_rtt() * self.multiple / 4;
        context.smoothed_rtt.map_or(window, |srtt| window.min(srtt))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8985 section 6.2 step 4: a widened reordering window lasts for 16 recoveries.
    #[test]
    fn the_window_is_widened_for_sixteen_recoveries() {
        let mut rack = Rack::new(&LinuxQuirks::default());
        rack.multiple = 3;
        rack.persist = DSACK_PERSISTENCE;
        for _ in 1..16 {
            rack.on_exit();
            assert_eq!(rack.multiple, 3);
        }
        rack.on_exit();
        assert_eq!(rack.multiple, 1);
        rack.on_exit();
        assert_eq!((rack.multiple, rack.persist), (1, 0));
    }
}
