//! A timer has expired; and the retransmission timer (RFC 6298).

use bentpipe_types::{Ctx, Span, Time};

use super::{Early, Purpose};
use crate::congestion::Congestion;
use crate::connection::{Connection, Events, Sender, State};
use crate::recovery::{Again, LossRecovery, TimedOut};
use crate::ticks;

/// tcp_syn_linear_timeouts
const EVEN_SYNS: u32 = 4;

impl Connection {
    pub(in crate::connection) fn timers_expire(&mut self, cx: &mut Ctx<'_>) {
        if self.pacer_lets_go(cx) {
            return;
        }
        if self.sender.timers.delayed_acknowledgment <= cx.now {
            self.sender.timers.acknowledged();
            self.receive.acknowledge_now = true;
            if let Some(sizing) = &mut self.receive.sizing {
                sizing.waited_in_vain(self.sender.rtt.rto());
            }
        }
        if self.sender.timers.pacing <= cx.now {
            self.sender.timers.pace(None);
        }
        if self.sender.timers.early <= cx.now {
            self.sender.timers.early = Time::NEVER;
            match self.sender.timers.early_purpose {
                Early::Reordering => {
                    self.sender.reordering_is_over(cx.now);
                    self.sender.run_instead_of_early(cx.now);
                }
                Early::Probe if self.sender.recovery.has_probed() => {
                    self.sender.run_instead_of_early(cx.now);
                }
                Early::Probe => {
                    let probed = self.send_loss_probe(cx);
                    let in_ticks = self.sender.config.habits.times_in_ticks;
                    if in_ticks {
                        self.sender.timers.reviewed();
                    }
                    if in_ticks && !probed {
                        // The peer's window took no probe (tcp_send_loss_probe).
                        self.sender.run_instead_of_early(cx.now);
                    } else {
                        // RFC 8985 section 7.3: the retransmission timer starts again.
                        self.sender
                            .timers
                            .set(Purpose::Retransmit, cx.now + self.sender.rtt.rto());
                    }
                }
            }
        }
        if self.sender.is_main_timer_due(cx.now) {
            match self.sender.timers.purpose {
                Purpose::Retransmit | Purpose::RetransmitWithTick => {
                    self.retransmission_timeout(cx)
                }
                Purpose::Probe => self.probe(cx),
                // RFC 9293 section 3.10.8
                Purpose::TimeWait => self.closed(Events::NONE, cx.now),
                Purpose::KeepAlive => self.keep_alive(cx),
            }
        }
        self.output(cx);
    }

    /// RFC 6298 section 5.4 to 5.7
    fn retransmission_timeout(&mut self, cx: &mut Ctx<'_>) {
        let synchronized = self.state.is_synchronized();
        if synchronized && self.sender.send.window == 0 {
            // The window closed over data that was sent: the timer's segments are probes, and no
            // sign of congestion (RFC 9293 section 3.8.6.1).
            if self.sender.config.habits.probes_with_segment {
                self.probe_with_segment(cx);
            } else {
                self.sender.everything_is_lost(false, cx.now);
                self.probe(cx);
            }
            return;
        }
        let even = self.sender.config.habits.spaces_syns_evenly && self.state == State::SynSent;
        let maximum = if synchronized {
            self.sender.config.maximum_retransmissions
        } else {
            self.sender.config.maximum_syn_retransmissions + if even { EVEN_SYNS } else { 0 }
        };
        // RFC 9293 section 3.8.3: R2
        let counted = (self.sender.send.attempts).saturating_sub(self.sender.send.excused);
        if counted >= maximum || self.sender.user_timeout_is_over(cx.now) {
            self.closed(Events::TIMED_OUT, cx.now);
            return;
        }
        if synchronized {
            self.sender.suspect_black_hole(cx.now);
        }
        let doubles = !even || self.sender.send.attempts >= EVEN_SYNS;
        self.sender.back_off(doubles, cx.now);
        if !synchronized {
            self.sender.send.syns_lost = self.sender.send.syns_lost.saturating_add(1);
            self.send_syn(cx);
            return;
        }
        self.sender.timed_out(cx.now);
        // `output` sends the first.
    }

    /// RFC 9293 section 3.6: TIME-WAIT, or two maximum segment lifetimes of it more.
    pub(in crate::connection) fn wait_for_stragglers(&mut self, now: Time) {
        if self.state != State::TimeWait {
            // What waits has a limit of its own for what it answers (tcp_time_wait).
            self.receive.challenge_after = Time::ZERO;
        }
        self.state = State::TimeWait;
        let time_wait: Span = self.sender.config.time_wait;
        self.sender.timers.set(Purpose::TimeWait, now + time_wait);
    }
}

impl Sender {
    /// The time that a pacer, or what may only be reordered, was to wait for has come. True: the
    /// retransmission timer has expired. It is backed off and runs anew; what was sent goes again if
    /// the caller says that it is [`timed_out`](Self::timed_out).
    ///
    /// For a gateway that sends on behalf of another: a connection has more to see to.
    pub fn on_deadline(&mut self, now: Time) -> bool {
        if self.timers.pacing <= now {
            self.timers.pace(None);
        }
        if self.timers.early <= now {
            self.timers.early = Time::NEVER;
            if self.timers.early_purpose == Early::Reordering {
                self.reordering_is_over(now);
                self.run_instead_of_early(now);
            }
        }
        let expired = self.is_main_timer_due(now);
        if expired {
            self.back_off(true, now);
        }
        expired
    }

    /// Has the main timer expired? In Linux with the first tick that is late enough, which is looked up only now: most
    /// retransmission timers are set again before they expire.
    #[inline]
    fn is_main_timer_due(&mut self, now: Time) -> bool {
        if self.timers.at > now {
            return false;
        }
        if self.timers.purpose == Purpose::Retransmit && self.config.habits.times_in_ticks {
            let at = ticks::later_expiry(self.timers.at, self.rtt.rto());
            self.timers.set(Purpose::RetransmitWithTick, at);
        }
        self.timers.at <= now
    }

    /// In Linux a connection has one timer for all this: while it runs for what may be reordered, or for a probe, it does
    /// not run for a retransmission. When it does again, that is due a timeout after the first segment has left
    /// (tcp_rearm_rto).
    #[inline(never)]
    fn run_instead_of_early(&mut self, now: Time) {
        if self.config.habits.times_in_ticks && self.timers.retransmits() {
            let from = self.scoreboard.first_sent_at().unwrap_or(now);
            let wait = (from + self.rtt.rto()).since(now);
            let at = ticks::expiry(now, wait.max(Span::from_micros(1)));
            self.timers.set(Purpose::RetransmitWithTick, at);
        }
    }

    /// The same, where the early timer is running.
    #[inline]
    pub(in crate::connection) fn supersede_early(&mut self, now: Time) {
        if self.timers.early != Time::NEVER && self.config.habits.times_in_ticks {
            self.timers.early = Time::NEVER;
            self.run_instead_of_early(now);
        }
    }

    /// RFC 6298 section 5.5: the next timeout is twice as long, if it `doubles`.
    pub(super) fn back_off(&mut self, doubles: bool, now: Time) {
        if self.send.attempts == 0 {
            let first = self.scoreboard.first_sent_at();
            self.send.attempts_since = first.unwrap_or(now);
        }
        self.send.attempts += 1;
        self.statistics.timeouts += 1;
        self.check_app_limited_between_writes();
        if doubles {
            self.rtt.back_off();
        }
        self.timers.set(Purpose::Retransmit, self.timeout_from(now));
    }

    /// When the retransmission timer expires that runs from now on: it waits no longer than the user wants to
    /// (tcp_clamp_rto_to_user_timeout).
    #[inline]
    pub(in crate::connection) fn timeout_from(&self, now: Time) -> Time {
        let at = now + self.rtt.rto();
        match self.config.user_timeout {
            Some(limit) if self.send.attempts > 0 => {
                let over = self.send.attempts_since + limit;
                at.min(over.max(now + Span::from_millis(1)))
            }
            _ => at,
        }
    }

    /// The retransmission timer has expired for data: RFC 6298 section 5.4, RFC 5681 section 3.1. What
    /// is outstanding is to be sent again.
    pub fn timed_out(&mut self, now: Time) {
        let reduces = self.send.attempts == 1 && !self.recovery.is_reduced_for(&self.send.sequence);
        if reduces {
            // RFC 5681 section 3.1. FlightSize is what was sent since the last timeout, if that is
            // not recovered from yet: as in ns-2 and Linux, which halve cwnd.
            let in_flight = self.in_flight();
            self.all_lost(in_flight, now);
            // (Where a reduction is held that has come to its end, it is its window that was too large.)
            self.congestion.set_window(self.sending_window());
            let flight_size = if self.recovery.knows_segments() {
                self.congested_flight(self.send.sequence.outstanding())
            } else {
                in_flight.min(self.congestion.window().congestion_window)
            };
            self.reduce(Congestion::Timeout, flight_size, now);
            self.note_reduction();
        } else {
            // Fast recovery has halved the window for this loss already. Its outstanding data would
            // be a wrong measure: every duplicate has let a segment more go out, so that half of it
            // may be many times the window. So the threshold stays, but that it is no more than that half
            // (RFC 5681 section 3.1, of a segment that the timer has not sent before). Linux's tcp_enter_loss keeps it.
            let keeps = self.config.habits.keeps_threshold_in_recovery || self.send.attempts != 1;
            let flight_size = (!keeps).then(|| self.send.sequence.outstanding());
            self.congestion.on_repeated_timeout(flight_size);
            self.note_repeated_timeout();
        }
        self.everything_is_lost(reduces, now);
        self.send.window_limited = true;
    }

    /// RFC 5482: has the first unacknowledged segment waited for too long?
    pub(super) fn user_timeout_is_over(&self, now: Time) -> bool {
        self.send.attempts > 0
            && (self.config.user_timeout)
                .is_some_and(|limit| now.since(self.send.attempts_since) >= limit)
    }

    /// After a timeout: what is outstanding is sent again as the window opens.
    fn everything_is_lost(&mut self, reduces: bool, now: Time) {
        let timeout = TimedOut {
            reduces,
            smoothed_rtt: self.rtt.smoothed(),
            now,
        };
        let sequence = &mut self.send.sequence;
        let board = &mut self.scoreboard;
        if self.recovery.knows_segments() {
            board.forget_newly_lost();
        }
        match self.recovery.on_timeout(&timeout, sequence, board) {
            Again::Marked => {
                self.timers.review();
                self.note_losses(now);
            }
            Again::All => {
                self.send.timed_out_below = sequence.highest;
                sequence.next = sequence.unacknowledged;
            }
        }
    }

    /// RFC 6298 section 5.1
    #[inline]
    pub(in crate::connection) fn expect_acknowledgment(&mut self, now: Time) {
        if !self.timers.retransmits() {
            self.timers.set(Purpose::Retransmit, now + self.rtt.rto());
        }
    }
}
