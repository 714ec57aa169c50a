//! Timer expiry, and the retransmission timer (RFC 6298).

use bentpipe_types::{Ctx, Span, Time};

use super::timers::{Early, Purpose};
use crate::congestion::Congestion;
use crate::connection::{Connection, Events, Sender, State};
use crate::recovery::{LossRecovery, RetransmitScope, TimedOut};

/// Linux's tcp_syn_linear_timeouts: number of SYN timeouts without backoff.
const LINEAR_SYN_TIMEOUTS: u32 = 4;

impl Connection {
    pub(super) fn timers_expire(&mut self, cx: &mut Ctx<'_>) {
        if self.run_pacing_timer(cx) {
            return;
        }
        if self.sender.timers.delayed_acknowledgment <= cx.now {
            self.sender.timers.on_ack_sent();
            self.receive.acknowledge_now = true;
            if let Some(sizing) = &mut self.receive.sizing {
                sizing.on_delayed_ack_timer(self.sender.rtt.rto());
            }
        }
        if self.sender.timers.pacing <= cx.now {
            self.sender.timers.pace(None);
        }
        if self.sender.timers.early <= cx.now {
            self.sender.timers.early = Time::NEVER;
            match self.sender.timers.early_purpose {
                Early::Reordering => {
                    self.sender.reordering_timer_expired(cx.now);
                    self.sender.rearm_after_early(cx.now);
                }
                Early::Probe if self.sender.recovery.has_probed() => {
                    self.sender.rearm_after_early(cx.now);
                }
                Early::Probe => {
                    let probed = self.send_loss_probe(cx);
                    let in_ticks = self.quirks().timers.ticks;
                    if in_ticks {
                        self.sender.timers.clear_review();
                    }
                    if in_ticks && !probed {
                        // The peer's window admitted no probe (tcp_send_loss_probe).
                        self.sender.rearm_after_early(cx.now);
                    } else {
                        // RFC 8985 section 7.3: the retransmission timer is restarted.
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
                Purpose::Probe => self.on_probe_timer(cx),
                // RFC 9293 section 3.10.8: TIME-WAIT timeout.
                Purpose::TimeWait => self.enter_closed(Events::NONE, cx.now),
                Purpose::KeepAlive => self.on_keep_alive_timer(cx),
            }
        }
        self.output(cx);
    }

    /// Handles the retransmission timeout (RFC 6298 section 5.4, RFC 6298 section 5.5,
    /// RFC 6298 section 5.6).
    fn retransmission_timeout(&mut self, cx: &mut Ctx<'_>) {
        let synchronized = self.state.is_synchronized();
        if synchronized && self.sender.send.window == 0 {
            // RFC 9293 section 3.8.6.1: the window closed over sent data. Retransmissions are then
            // probes, and their timeout is no sign of congestion. RFC 9293 section 3.8.6: data
            // beyond the window does not time out.
            if self.quirks().timers.probes_with_segment {
                self.probe_with_segment(cx);
            } else {
                self.sender.mark_all_lost(false, cx.now);
                self.on_probe_timer(cx);
            }
            return;
        }
        let even = self.quirks().handshake.linear_syn_timeouts && self.state == State::SynSent;
        let maximum = if synchronized {
            self.sender.config.maximum_retransmissions
        } else {
            self.sender.config.maximum_syn_retransmissions
                + if even { LINEAR_SYN_TIMEOUTS } else { 0 }
        };
        // RFC 9293 section 3.8.3: R2, the limit of retransmissions.
        let counted = (self.sender.send.attempts).saturating_sub(self.sender.send.excused);
        if counted >= maximum || self.sender.user_timeout_is_over(cx.now) {
            self.enter_closed(Events::TIMED_OUT, cx.now);
            return;
        }
        if synchronized {
            self.sender.suspect_black_hole(cx.now);
        }
        let doubles = !even || self.sender.send.attempts >= LINEAR_SYN_TIMEOUTS;
        self.sender.back_off(doubles, cx.now);
        self.sender.count_timeout();
        if !synchronized {
            self.sender.send.syns_lost = self.sender.send.syns_lost.saturating_add(1);
            self.send_syn(cx);
            return;
        }
        self.sender.timed_out(cx.now);
        // `output` sends the first segment.
    }

    /// RFC 9293 section 3.6.1: enters TIME-WAIT, or restarts its timer. "When a connection is
    /// closed actively, it MUST linger in the TIME-WAIT state for a time 2xMSL."
    pub(super) fn enter_time_wait(&mut self, now: Time) {
        if self.state != State::TimeWait {
            // A socket in TIME-WAIT has its own rate limit for answers (tcp_time_wait).
            self.receive.challenge_after = Time::ZERO;
        }
        self.state = State::TimeWait;
        let time_wait: Span = self.sender.config.time_wait;
        self.sender.timers.set(Purpose::TimeWait, now + time_wait);
    }
}

impl Sender {
    /// Runs the pacing and reordering timers if due. Returns true if the retransmission timer has
    /// expired. It is then backed off and restarted; the caller decides whether to declare a
    /// [timeout](Self::timed_out), which retransmits the outstanding data.
    ///
    /// For a gateway that sends on behalf of another host; a connection has further timers.
    pub fn on_deadline(&mut self, now: Time) -> bool {
        if self.timers.pacing <= now {
            self.timers.pace(None);
        }
        if self.timers.early <= now {
            self.timers.early = Time::NEVER;
            if self.timers.early_purpose == Early::Reordering {
                self.reordering_timer_expired(now);
                self.rearm_after_early(now);
            }
        }
        let expired = self.is_main_timer_due(now);
        if expired {
            self.back_off(true, now);
            self.count_timeout();
        }
        expired
    }

    /// Whether the main timer has expired. With ticks (Linux's or `Config::timer_granularity`), it
    /// expires at the first tick after its time. The tick is only computed now, because most
    /// retransmission timers are restarted before they expire.
    #[inline]
    fn is_main_timer_due(&mut self, now: Time) -> bool {
        if self.timers.at > now {
            return false;
        }
        if self.timers.purpose == Purpose::Retransmit && self.quirks().timers.ticks {
            let at = self
                .config
                .clock
                .later_expiry(self.timers.at, self.rtt.rto());
            self.timers.set(Purpose::RetransmitWithTick, at);
        } else if self.timers.purpose == Purpose::Retransmit
            && let Some(tick) = self.config.timer_granularity
        {
            let ticks = self.timers.at.as_nanos().div_ceil(tick.as_nanos().max(1));
            let at = Time::from_nanos(ticks * tick.as_nanos().max(1));
            self.timers.set(Purpose::RetransmitWithTick, at);
        }
        self.timers.at <= now
    }

    /// Restarts the retransmission timer after the early timer. In Linux a connection has one timer
    /// for all: while it runs for reordering or a probe, it does not run for a retransmission. The
    /// restarted timeout counts from the first segment's transmission (tcp_rearm_rto).
    #[inline(never)]
    fn rearm_after_early(&mut self, now: Time) {
        if self.quirks().timers.ticks && self.timers.retransmits() {
            let from = self.scoreboard.first_sent_at().unwrap_or(now);
            let wait = (from + self.rtt.rto()).since(now);
            let at = self
                .config
                .clock
                .expiry(now, wait.max(Span::from_micros(1)));
            self.timers.set(Purpose::RetransmitWithTick, at);
        }
    }

    /// Replaces a running early timer by the retransmission timer, in Linux's variant.
    #[inline]
    pub(super) fn replace_early_timer(&mut self, now: Time) {
        if self.timers.early != Time::NEVER && self.quirks().timers.ticks {
            self.timers.early = Time::NEVER;
            self.rearm_after_early(now);
        }
    }

    /// Counts a retransmission timeout. A probe of a closed window is not counted, as in Linux,
    /// where `tcp_retransmit_timer` handles it before it counts (`TCPTimeouts`).
    fn count_timeout(&mut self) {
        self.statistics.timeouts += 1;
        if !self.send.has_outstanding_data() {
            self.statistics.control_timeouts += 1;
        }
    }

    /// RFC 6298 section 5.5: doubles the next timeout, if `doubles`, and restarts the timer.
    pub(super) fn back_off(&mut self, doubles: bool, now: Time) {
        if self.send.attempts == 0 {
            let first = self.scoreboard.first_sent_at();
            self.send.attempts_since = first.unwrap_or(now);
        }
        self.send.attempts += 1;
        self.check_app_limited_between_writes();
        if doubles {
            self.rtt.back_off();
        }
        // RFC 6298 section 5: no segment is retransmitted by the timer within an RTO.
        self.timers.set(Purpose::Retransmit, self.timeout_from(now));
    }

    /// Expiry of a retransmission timer started now. With a user timeout it expires no later than
    /// that (tcp_clamp_rto_to_user_timeout).
    #[inline]
    pub(super) fn timeout_from(&self, now: Time) -> Time {
        let at = now + self.rtt.rto();
        match self.config.user_timeout {
            Some(limit) if self.send.attempts > 0 => {
                let over = self.send.attempts_since + limit;
                at.min(over.max(now + Span::from_millis(1)))
            }
            _ => at,
        }
    }

    /// Reacts to a retransmission timeout for data (RFC 6298 section 5.4, RFC 5681 section 3.1):
    /// the outstanding data is to be retransmitted.
    pub fn timed_out(&mut self, now: Time) {
        let reduces = self.send.attempts == 1 && !self.recovery.is_reduced_for(&self.send.sequence);
        if reduces {
            // RFC 5681 section 3.1: reduces the window. FlightSize is the data sent since the last
            // timeout, if recovery from that is incomplete, as in ns-2 and Linux, which halve cwnd.
            let in_flight = self.in_flight();
            self.report_all_lost(in_flight, now);
            // During a gradual reduction, the window reached so far was too large.
            self.congestion.set_window(self.sending_window());
            let flight_size = if self.recovery.tracks_segments() {
                self.congested_flight(self.send.sequence.outstanding())
            } else {
                in_flight.min(self.congestion.window().congestion_window)
            };
            self.reduce(Congestion::Timeout, flight_size, now);
            self.note_reduction();
        } else {
            // Fast recovery has halved the window for this loss already. Its outstanding data would
            // be a wrong measure for a second reduction: half of it may be many times the window,
            // because each duplicate ACK has let another segment out. So the threshold stays, but
            // is limited to that half (RFC 5681 section 3.1, for a segment that the timer has not
            // retransmitted before). Linux's tcp_enter_loss keeps it.
            let keeps = self.quirks().window.keeps_threshold_in_recovery || self.send.attempts != 1;
            let flight_size = (!keeps).then(|| self.send.sequence.outstanding());
            self.congestion.on_repeated_timeout(flight_size);
            self.note_repeated_timeout();
        }
        self.mark_all_lost(reduces, now);
        self.send.window_limited = true;
    }

    /// RFC 5482: whether the first unacknowledged segment has exceeded the user timeout.
    pub(super) fn user_timeout_is_over(&self, now: Time) -> bool {
        self.send.attempts > 0
            && (self.config.user_timeout)
                .is_some_and(|limit| now.since(self.send.attempts_since) >= limit)
    }

    /// Marks all outstanding data as lost after a timeout; it is retransmitted as the window opens.
    fn mark_all_lost(&mut self, reduces: bool, now: Time) {
        let timeout = TimedOut {
            reduces,
            smoothed_rtt: self.rtt.smoothed(),
            now,
        };
        let sequence = &mut self.send.sequence;
        let board = &mut self.scoreboard;
        if self.recovery.tracks_segments() {
            board.forget_newly_lost();
        }
        match self.recovery.on_timeout(&timeout, sequence, board) {
            RetransmitScope::Marked => {
                self.timers.request_restart();
                self.report_losses(now);
            }
            RetransmitScope::All => {
                self.send.timed_out_below = sequence.highest;
                sequence.next = sequence.unacknowledged;
            }
        }
    }

    /// RFC 6298 section 5.1: starts the retransmission timer if it is not running.
    #[inline]
    pub(super) fn start_retransmission_timer(&mut self, now: Time) {
        if !self.timers.retransmits() {
            self.timers.set(Purpose::Retransmit, now + self.rtt.rto());
        }
    }
}
