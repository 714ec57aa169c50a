//! Timers: retransmission, zero-window probes, keep-alive, TIME-WAIT, delayed acknowledgments.
//!
//! A timer is a field. Setting it costs a store; the driver asks for the earliest after each call.

use bentpipe_types::{Ctx, Span, Time};
use serde::{Deserialize, Serialize};

use super::{Connection, Events, Sender, State};
use crate::congestion::Congestion;
use crate::recovery::{Again, Arrival, LossRecovery, TimedOut, tail_loss_timeout};
use crate::ticks;

/// RFC 9293 section 3.8.6.2.1: the override timeout, 0.1 to 1 s, after which a small window is used
/// as it is.
const OVERRIDE: Span = Span::from_millis(500);

/// What the main timer is for: these exclude one another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Purpose {
    Retransmit,
    /// The same, in ticks already (`Habits::times_in_ticks`).
    RetransmitWithTick,
    /// RFC 9293 section 3.8.6.1
    Probe,
    TimeWait,
    /// RFC 9293 section 3.8.4
    KeepAlive,
}

/// What the early timer is for. It expires before the main one, or with it, and takes nothing from
/// it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Early {
    /// RFC 8985 section 6.2 step 5: something may be lost by now.
    Reordering,
    /// RFC 8985 section 7: the tail may be lost.
    Probe,
}

/// The timers of one connection.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Timers {
    at: Time,
    delayed_acknowledgment: Time,
    // When the pacer lets the next segment go, while one waits for it.
    pacing: Time,
    early: Time,
    purpose: Purpose,
    early_purpose: Early,
    // Something has changed that the early timer depends on.
    review: bool,
    // Something was sent, or acknowledged cumulatively.
    probe_anew: bool,
}

impl Timers {
    pub(super) const fn new() -> Self {
        Self {
            at: Time::NEVER,
            delayed_acknowledgment: Time::NEVER,
            pacing: Time::NEVER,
            early: Time::NEVER,
            purpose: Purpose::Retransmit,
            early_purpose: Early::Probe,
            review: false,
            probe_anew: false,
        }
    }

    #[inline]
    pub(super) fn next(&self) -> Option<Time> {
        self.next_before(Time::NEVER)
    }

    /// The next that expires, if that is before this time.
    #[inline]
    pub(super) fn next_before(&self, time: Time) -> Option<Time> {
        let earliest = (self.at.min(self.early)).min(self.delayed_acknowledgment.min(self.pacing));
        (earliest < time).then_some(earliest)
    }

    #[inline]
    pub(super) fn set(&mut self, purpose: Purpose, at: Time) {
        self.purpose = purpose;
        self.at = at;
    }

    /// Is the main timer running, for this?
    #[inline]
    pub(super) fn runs(&self, purpose: Purpose) -> bool {
        self.at != Time::NEVER && self.purpose == purpose
    }

    /// Does no other timer run?
    pub(super) fn runs_only(&self, purpose: Purpose) -> bool {
        let others = self.early.min(self.delayed_acknowledgment.min(self.pacing));
        self.runs(purpose) && others == Time::NEVER
    }

    /// Is the main timer running, for retransmission?
    #[inline]
    pub(super) fn retransmits(&self) -> bool {
        self.at != Time::NEVER
            && matches!(
                self.purpose,
                Purpose::Retransmit | Purpose::RetransmitWithTick
            )
    }

    /// Is the main timer not running?
    #[inline]
    pub(super) fn is_stopped(&self) -> bool {
        self.at == Time::NEVER
    }

    /// Stops the main timer.
    #[inline]
    pub(super) fn stop(&mut self) {
        self.at = Time::NEVER;
    }

    /// The early timer is to be set anew: something was sent, or acknowledged.
    #[inline]
    pub(super) fn review(&mut self) {
        self.review = true;
        self.probe_anew = true;
    }

    /// The early timer is to be looked at. A probe is not put off by an acknowledgment that
    /// acknowledges nothing new (RFC 8985 section 7.2).
    #[inline]
    pub(super) fn look(&mut self) {
        self.review = true;
    }

    /// The early timer stays as it is.
    fn reviewed(&mut self) {
        self.review = false;
        self.probe_anew = false;
    }

    /// Is the early timer to be looked at, or set anew?
    #[inline]
    pub(super) fn is_to_be_reviewed(&self) -> bool {
        self.review
    }

    pub(super) fn stop_all(&mut self) {
        *self = Self::new();
    }

    /// An acknowledgment may wait until `deadline`, or until an earlier one it waits for already.
    #[inline]
    pub(super) fn delay_acknowledgment(&mut self, deadline: Time) {
        self.delayed_acknowledgment = self.delayed_acknowledgment.min(deadline);
    }

    /// When an acknowledgment goes that waits, if nothing else carries it before.
    pub(super) fn acknowledges_at(&self) -> Time {
        self.delayed_acknowledgment
    }

    /// A segment waits for the pacer until `at`, or none does.
    #[inline]
    pub(super) fn pace(&mut self, at: Option<Time>) {
        self.pacing = at.unwrap_or(Time::NEVER);
    }

    /// Does a segment wait for the pacer no longer than until now?
    #[inline]
    pub(super) fn has_paced_until(&self, now: Time) -> bool {
        self.pacing <= now
    }

    /// Is the pacer's time the only one that has come?
    #[inline]
    pub(super) fn only_paces(&self, now: Time) -> bool {
        self.pacing <= now && self.at.min(self.early).min(self.delayed_acknowledgment) > now
    }

    /// An acknowledgment has gone out.
    #[inline]
    pub(super) fn acknowledged(&mut self) {
        self.delayed_acknowledgment = Time::NEVER;
    }
}

/// tcp_syn_linear_timeouts
const EVEN_SYNS: u32 = 4;

impl Connection {
    pub(super) fn timers_expire(&mut self, cx: &mut Ctx<'_>) {
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

    /// The window closed over data that was sent, whose first segment goes again as it was; all that is outstanding
    /// counts as lost, as after any timeout. As long as the peer answers that goes on.
    fn probe_with_segment(&mut self, cx: &mut Ctx<'_>) {
        if self.sender.send.attempts >= self.sender.config.maximum_retransmissions
            || self.sender.user_timeout_is_over(cx.now)
        {
            self.closed(Events::TIMED_OUT, cx.now);
            return;
        }
        // The kernel does not look for a black hole here, and where there is one sends the same segment into it until it gives
        // up, if the window is not really closed. Ours does: a single falsified header is enough for that.
        self.sender.suspect_black_hole(cx.now);
        self.sender.back_off(true, cx.now);
        self.sender.timed_out(cx.now);
        self.sender.statistics.window_probes += 1;
        self.retransmit_first(cx);
    }

    /// The peer's window was too small to send for too long.
    fn probe(&mut self, cx: &mut Ctx<'_>) {
        let position = self.sender.send.sequence.unacknowledged;
        let selective = self.sender.recovery.knows_segments();
        if selective && position < self.sender.send.sequence.next && self.sender.send.window > 0 {
            // A probe's byte, sent before: it goes again like anything that is lost.
            self.sender.scoreboard.mark_first();
            self.sender
                .timers
                .set(Purpose::Retransmit, cx.now + self.sender.rtt.rto());
            return;
        }
        if !selective {
            self.sender.send.sequence.next = position;
        }
        let unsent = (self.sender.send.end.saturating_sub(position))
            .min(u64::from(self.sender.negotiated.segment));
        if self.sender.send.window > 0 && self.sender.send.has_unsent() {
            // RFC 9293 section 3.8.6.2.1, rule 4: a small window is used as it is. And what the
            // application said there would be more of has waited for long enough.
            if position + unsent == self.sender.send.end {
                self.sender.send.pushed = self.sender.send.end;
            }
            // (tcp_write_wakeup)
            self.sender.send.ends_burst = self.sender.config.habits.sends_in_bursts;
            let small_end = self.sender.send.small_end;
            self.send_segment(position, unsent.min(self.sender.send.window) as u32, cx);
            self.sender.send.ends_burst = false;
            if self.sender.config.habits.counts_short_segments {
                // (tcp_write_xmit alone tells Nagle's algorithm of it: tcp_minshall_update.)
                self.sender.send.small_end = small_end;
            }
            let end = self.sender.send.sequence.next;
            self.sender.scoreboard.note_pushed(end);
            if self.sender.config.habits.times_in_ticks {
                self.sender.timers.reviewed(); // no loss probe is scheduled for it
            }
            return;
        }
        // RFC 9293 section 3.8.6.1: as long as the peer answers, probing goes on; an answer resets
        // `attempts`.
        if self.sender.send.attempts >= self.sender.config.maximum_retransmissions {
            self.closed(Events::TIMED_OUT, cx.now);
            return;
        }
        self.sender.send.attempts += 1;
        let counts_apart = self.sender.config.habits.restarts_probe_timer;
        if counts_apart {
            self.sender.rtt.back_off_probe();
        } else {
            self.sender.rtt.back_off();
        }
        self.sender.statistics.window_probes += 1;
        if position < self.sender.send.sequence.next {
            self.probe_again(position, cx);
        } else if self.sender.config.habits.sends_empty_probes {
            self.send_empty_probe(cx);
        } else if self.sender.send.has_unsent() {
            let small_end = self.sender.send.small_end;
            self.send_segment(position, unsent.min(1) as u32, cx);
            if unsent > 0 {
                // The probe is not a small segment for Nagle to wait for, and its byte is sent
                // again with those that follow.
                self.sender.send.small_end = small_end;
                if selective {
                    // To be sent again as soon as the window opens
                    self.sender.scoreboard.mark_first();
                } else {
                    self.sender.send.sequence.next = position;
                }
            }
        }
        let wait = if counts_apart {
            self.sender.rtt.probe_wait()
        } else {
            self.sender.rtt.rto()
        };
        self.sender.probe_within(wait, cx.now);
    }

    /// A probe of what was sent before: its first byte, or the FIN.
    fn probe_again(&mut self, position: u64, cx: &mut Ctx<'_>) {
        let length = self.sender.send.end.saturating_sub(position).min(1);
        let small_end = self.sender.send.small_end;
        self.send_segment(position, length as u32, cx);
        self.sender.send.small_end = small_end;
        self.sender.scoreboard.on_retransmitted(position, cx.now);
        self.sender.scoreboard.mark_first();
    }

    /// RFC 9293 section 3.6: TIME-WAIT, or two maximum segment lifetimes of it more.
    pub(super) fn wait_for_stragglers(&mut self, now: Time) {
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
    pub(super) fn supersede_early(&mut self, now: Time) {
        if self.timers.early != Time::NEVER && self.config.habits.times_in_ticks {
            self.timers.early = Time::NEVER;
            self.run_instead_of_early(now);
        }
    }

    /// RFC 6298 section 5.5: the next timeout is twice as long, if it `doubles`.
    fn back_off(&mut self, doubles: bool, now: Time) {
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
            self.congestion
                .on_congestion(Congestion::Timeout, flight_size, now);
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

    /// Sets the early timer, when something was sent or acknowledged.
    #[inline(always)]
    pub(super) fn review_early_timer(&mut self, synchronized: bool, now: Time) {
        if self.timers.review {
            self.set_early_timer(synchronized, now);
        }
    }

    #[inline(always)]
    fn set_early_timer(&mut self, synchronized: bool, now: Time) {
        self.timers.review = false;
        let anew = std::mem::take(&mut self.timers.probe_anew);
        if !self.recovery.hears_blocks() {
            return;
        }
        if self.config.habits.times_in_ticks {
            self.set_early_timer_in_ticks(synchronized, anew, now);
            return;
        }
        if let Some(at) = self.recovery.reordering_deadline() {
            self.timers.early = at;
            self.timers.early_purpose = Early::Reordering;
            return;
        }
        let purpose = std::mem::replace(&mut self.timers.early_purpose, Early::Probe);
        if !self.may_probe(synchronized) {
            self.timers.early = Time::NEVER;
        } else if anew || purpose != Early::Probe || self.timers.early == Time::NEVER {
            let one_segment = self.scoreboard.segments() == 1;
            let at = now + tail_loss_timeout(self.rtt.smoothed(), one_segment);
            // RFC 8985 section 7.2: no later than the retransmission timer
            self.timers.early = at.min(self.timers.at);
        }
    }

    /// Is a probe due if acknowledgments stop coming?
    #[inline(always)]
    fn may_probe(&self, synchronized: bool) -> bool {
        self.recovery.probes_tail(&self.scoreboard)
            && synchronized
            && !self.send.is_idle()
            && self.timers.retransmits()
    }

    /// The same as Linux has it, where the early timer is the main one for as long as it runs.
    #[inline(never)]
    fn set_early_timer_in_ticks(&mut self, synchronized: bool, anew: bool, now: Time) {
        if anew
            && self.has_just_sent(now)
            && self.recovery.is_reducing_for_mark()
            && self.may_probe(synchronized)
        {
            // What leaves while the window comes down for a mark has the probe's time in the place of any other (tcp_write_xmit;
            // else none is set where something may be reordered).
            self.recovery.forget_reordering_deadline();
        }
        if let Some(at) = self.recovery.reordering_deadline() {
            // (tcp_rack_mark_lost)
            let wait = (at.since(now) + ticks::LEAST).min(self.rtt.rto());
            self.timers.early = ticks::expiry(now, wait);
            self.timers.early_purpose = Early::Reordering;
        } else if self.may_probe(synchronized) {
            // What acknowledges nothing new sets no timer (tcp_ack, FLAG_SET_XMIT_TIMER), also where a probe has gone.
            if !anew {
                return;
            }
            self.timers.early_purpose = Early::Probe;
            let one_segment = self.scoreboard.segments() == 1;
            let mut wait = tail_loss_timeout(self.rtt.smoothed(), one_segment);
            if !one_segment {
                wait += ticks::LEAST;
            }
            self.timers.early = ticks::expiry(now, self.at_timeout(wait, now));
        } else if self.timers.early_purpose == Early::Probe || self.send.is_idle() {
            self.timers.early = Time::NEVER;
        } // What may be reordered is waited for until the main timer is restarted.
        if self.timers.early != Time::NEVER && self.timers.at < self.timers.early {
            self.timers.at = self.timers.early;
        }
    }

    /// How long a probe waits that is to wait for so long, but not for longer than a retransmission would: that is counted
    /// from when the first segment left where something new was sent just now, and from now where not
    /// (tcp_schedule_loss_probe). No timer waits for longer than the longest retransmission timeout
    /// (inet_csk_reset_xmit_timer).
    #[inline]
    fn at_timeout(&self, wait: Span, now: Time) -> Span {
        let mut timeout = self.rtt.rto();
        if self.has_just_sent(now)
            && let Some(first) = self.scoreboard.first_sent_at()
        {
            timeout = (first + timeout).since(now);
        }
        let wait = wait.min(self.config.maximum_rto);
        if timeout == Span::ZERO {
            wait
        } else {
            wait.min(timeout)
        }
    }

    /// Was something new sent just now?
    #[inline]
    fn has_just_sent(&self, now: Time) -> bool {
        let fin_left = || self.send.fin && self.scoreboard.latest_sent_at() == Some(now);
        self.send.last_sent_at == now || fin_left()
    }

    /// RFC 8985 section 6.2 step 5: what has not arrived by now is lost.
    fn reordering_is_over(&mut self, now: Time) {
        let sequence = &self.send.sequence;
        // Nothing has arrived.
        self.scoreboard.begin(Arrival {
            now,
            ..Arrival::default()
        });
        let smoothed_rtt = self.rtt.smoothed();
        let board = &mut self.scoreboard;
        let reaction = (self.recovery).on_reordering_timer(sequence, board, smoothed_rtt, now);
        self.timers.review();
        self.react(reaction, now);
        self.note_losses(now);
        let _ = self.regulate(false, self.newly_delivered());
    }

    /// RFC 5482: has the first unacknowledged segment waited for too long?
    fn user_timeout_is_over(&self, now: Time) -> bool {
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

    /// How long a window that is too small may keep us from sending.
    fn probe_interval(&self) -> Span {
        if self.send.window == 0 || self.config.habits.restarts_probe_timer {
            return self.rtt.rto();
        }
        self.rtt.rto().min(OVERRIDE)
    }

    /// The peer has told of its window: if that is closed still, the next probe is due a whole interval after that.
    #[inline(never)]
    pub(super) fn put_off_probe(&mut self, now: Time) {
        let head = self.send.unsent().min(u64::from(self.negotiated.segment));
        if head <= self.send.usable() {
            // What is held back by the application waits as long again (tcp_ack_probe, tcp_check_probe_timer).
            self.rtt.forget_probes();
            self.probe_within(self.rtt.rto(), now);
        } else if self.send.window == 0 {
            // (The kernel puts off what would use a small window, too. Two ends that probe one another then may keep each
            // other from ever sending.)
            self.probe_within(self.rtt.probe_wait(), now);
        }
    }

    /// The next probe is due after so long.
    fn probe_within(&mut self, wait: Span, now: Time) {
        let at = if self.config.habits.times_in_ticks {
            ticks::expiry(now, wait)
        } else {
            now + wait
        };
        self.timers.set(Purpose::Probe, at);
    }

    /// The timer that runs while the peer's window is what keeps us from sending.
    pub(super) fn expect_window(&mut self, now: Time) {
        if !self.timers.runs(Purpose::Probe) {
            self.probe_within(self.probe_interval(), now);
        }
    }

    /// RFC 6298 section 5.1
    #[inline]
    pub(super) fn expect_acknowledgment(&mut self, now: Time) {
        if !self.timers.retransmits() {
            self.timers.set(Purpose::Retransmit, now + self.rtt.rto());
        }
    }
}
