//! What loss recovery makes of an acknowledgment, and what becomes of the window for it.

use bentpipe_types::{Packet, Time};

use crate::congestion::Congestion;
use crate::connection::Sender;
use crate::recovery::{Acknowledgment, LossRecovery, Reaction};

impl Sender {
    /// What loss recovery makes of an acknowledgment of this many new positions.
    #[inline(always)]
    pub(super) fn recover(
        &mut self,
        packet: &Packet,
        acknowledged: u64,
        duplicate: bool,
        one_more: bool,
        now: Time,
    ) -> Reaction {
        let sequence = &self.send.sequence;
        let edge = sequence.unacknowledged + self.send.window;
        let ack = Acknowledgment {
            acknowledged,
            duplicate,
            now,
            echo: self.echo(packet),
            smoothed_rtt: self.rtt.smoothed(),
            can_send_new: self.send.has_unsent() && sequence.next < edge,
            one_more,
        };
        self.recovery.on_ack(&ack, sequence, &mut self.scoreboard)
    }

    /// What loss recovery asks for, window growth aside.
    #[inline]
    pub(in crate::connection) fn react(&mut self, reaction: Reaction, now: Time) {
        let goes_on = matches!(
            reaction,
            Reaction::Grow | Reaction::Hold | Reaction::Partial { .. }
        );
        if !goes_on {
            self.react_to_turn(reaction, now);
        }
    }

    /// Recovery begins, or is over.
    #[inline(never)]
    fn react_to_turn(&mut self, reaction: Reaction, now: Time) {
        match reaction {
            Reaction::Grow | Reaction::Hold | Reaction::Partial { .. } => {}
            Reaction::Enter { flight_size } => self.enter_recovery(flight_size, now),
            Reaction::Exit { limit } => self.congestion.on_recovery_exit(limit, now),
            Reaction::ExitAndEnter { flight_size } => {
                self.congestion.on_recovery_exit(None, now);
                self.enter_recovery(flight_size, now);
            }
            Reaction::Repaired { flight_size } => {
                self.enter_recovery(flight_size, now);
                self.congestion.on_recovery_exit(None, now);
            }
            Reaction::Undo => self.undo(),
            Reaction::UndoAndEnter { flight_size } => {
                self.undo();
                self.enter_recovery(flight_size, now);
            }
        }
    }

    /// The last congestion was none.
    fn undo(&mut self) {
        self.statistics.spurious += 1;
        if self.may_restore_window() {
            self.congestion.on_spurious();
        }
    }

    fn enter_recovery(&mut self, flight_size: u64, now: Time) {
        if self.path_mtu_probe_lost(now) {
            return;
        }
        self.statistics.fast_recoveries += 1;
        if self.ecn.is_on() && self.is_reduced_for_mark() {
            return;
        }
        let flight_size = self.congested_flight(flight_size);
        self.reduce(Congestion::Loss, flight_size, now);
        self.note_reduction();
        if self.config.habits.reduces_window && self.delivery_rate.is_none() {
            let by_timer = self.scoreboard.delivered().bytes() == 0;
            let segment = self.negotiated.segment;
            let counted = if by_timer { u64::from(segment) } else { 0 };
            let before = self.congestion.window_before().congestion_window;
            self.recovery.reduce_from(before, counted, segment);
        }
    }

    /// The window rule hears of congestion. Linux's windows are whole segments: of 19 the half is 9 (tcp_reno_ssthresh).
    pub(in crate::connection) fn reduce(&mut self, event: Congestion, flight_size: u64, now: Time) {
        self.congestion.on_congestion(event, flight_size, now);
        if self.config.habits.reduces_window && self.delivery_rate.is_none() {
            self.congestion.drop_parts_of_segments();
        }
    }

    /// What of `outstanding` counts for a new threshold. More may be outstanding than the window lets into the
    /// network at once: with SACK, what is SACKed has left it; and Reno's recovery ends with a window of half of what
    /// was in flight, all of which is outstanding still: half of that again would be no second reduction. (RFC 5681's
    /// equation 4 is a most; ns-2 and BSD halve the window.)
    pub(in crate::connection) fn congested_flight(&self, outstanding: u64) -> u64 {
        let window = self.congestion.window().congestion_window;
        if self.config.habits.reduces_window {
            return window;
        }
        outstanding.min(window)
    }

    /// Does the acknowledgment that has ended recovery grow the window?
    #[inline]
    pub(super) fn counts_last_of_recovery(&self, reaction: Reaction) -> bool {
        self.config.habits.counts_last_of_recovery
            && matches!(reaction, Reaction::Exit { .. } | Reaction::Undo)
            && !self.recovery.is_recovering()
    }

    /// The same as [`regulate`](Self::regulate), of an acknowledgment of something new: seldom enough.
    #[inline(never)]
    pub(super) fn regulate_as_it_advances(&mut self) {
        let _ = self.regulate(true, self.newly_delivered());
    }

    /// Sets the window that fast recovery allows until the next acknowledgment; this one tells of so many bytes. Returns
    /// what is in flight, if it had to be known.
    #[inline(always)]
    pub(in crate::connection) fn regulate(
        &mut self,
        advances: bool,
        delivered: u64,
    ) -> Option<u64> {
        // A rule that models the path regulates recovery itself.
        if self.delivery_rate.is_some() {
            return None;
        }
        let target = self.congestion.window().congestion_window;
        let (send, board) = (&self.send.sequence, &self.scoreboard);
        self.recovery
            .regulate(target, delivered, advances, send, board)
    }
}
