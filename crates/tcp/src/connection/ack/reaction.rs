//! Reaction of loss recovery and of the congestion window to an acknowledgment.

use bentpipe_types::{Packet, Time};

use crate::congestion::Congestion;
use crate::connection::Sender;
use crate::recovery::{Acknowledgment, LossRecovery, Reaction};

impl Sender {
    /// Passes an acknowledgment of this many new positions to loss recovery. Returns its reaction.
    #[inline(always)]
    pub(super) fn run_loss_recovery(
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

    /// Carries out the reaction of loss recovery, except window growth.
    #[inline]
    pub(in crate::connection) fn react(&mut self, reaction: Reaction, now: Time) {
        let goes_on = matches!(
            reaction,
            Reaction::Grow | Reaction::Hold | Reaction::Partial { .. }
        );
        if !goes_on {
            self.react_to_transition(reaction, now);
        }
    }

    /// Carries out the start or end of recovery.
    #[inline(never)]
    fn react_to_transition(&mut self, reaction: Reaction, now: Time) {
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

    /// Undoes the last window reduction, which was spurious.
    fn undo(&mut self) {
        self.statistics.spurious += 1;
        if self.may_undo_reduction() {
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
        if self.quirks().window.reduces_from_window && self.delivery_rate.is_none() {
            let by_timer = self.scoreboard.delivered().bytes() == 0;
            let segment = self.negotiated.segment;
            let counted = if by_timer { u64::from(segment) } else { 0 };
            let before = self.congestion.window_before().congestion_window;
            self.recovery.start_reduction(before, counted, segment);
        }
    }

    /// Reports congestion to the window rule. Linux's windows are whole segments: half of 19 is 9
    /// (tcp_reno_ssthresh).
    pub(in crate::connection) fn reduce(&mut self, event: Congestion, flight_size: u64, now: Time) {
        self.congestion.on_congestion(event, flight_size, now);
        if self.quirks().window.reduces_from_window && self.delivery_rate.is_none() {
            self.congestion.round_down_to_segments();
        }
    }

    /// RFC 5681 section 3.1, equation 4: FlightSize for the new threshold, at most the congestion
    /// window. More may be outstanding than the window admits. With SACK, SACKed data has left the
    /// network. Reno's recovery ends with a window of half the flight size while all of that is
    /// still outstanding; half of it again would be no second reduction. (Equation 4 is an upper
    /// bound; ns-2 and BSD halve the window.)
    pub(in crate::connection) fn congested_flight(&self, outstanding: u64) -> u64 {
        let window = self.congestion.window().congestion_window;
        if self.quirks().window.reduces_from_window {
            return window;
        }
        outstanding.min(window)
    }

    /// Whether the acknowledgment that ended recovery also grows the window.
    #[inline]
    pub(super) fn grows_on_recovery_exit(&self, reaction: Reaction) -> bool {
        self.quirks().window.grows_on_recovery_exit
            && matches!(reaction, Reaction::Exit { .. } | Reaction::Undo)
            && !self.recovery.is_recovering()
    }

    /// Like [`Self::update_recovery_window`], for an acknowledgment of new data; rarely called.
    #[inline(never)]
    pub(super) fn update_recovery_window_on_progress(&mut self) {
        let _ = self.update_recovery_window(true, self.newly_delivered());
    }

    /// Sets the window of fast recovery until the next acknowledgment. `delivered`: bytes that this
    /// one newly reports. Returns the bytes in flight, if they were computed.
    #[inline(always)]
    pub(in crate::connection) fn update_recovery_window(
        &mut self,
        advances: bool,
        delivered: u64,
    ) -> Option<u64> {
        // Model-based congestion control regulates recovery itself.
        if self.delivery_rate.is_some() {
            return None;
        }
        let target = self.congestion.window().congestion_window;
        let (send, board) = (&self.send.sequence, &self.scoreboard);
        self.recovery
            .update_recovery_window(target, delivered, advances, send, board)
    }
}
