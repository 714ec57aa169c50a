//! Timers: retransmission, zero-window probes, TIME-WAIT, delayed acknowledgments.
//!
//! A timer is a field. Setting it costs a store; the driver asks for the earliest after each call.

use bentpipe_types::{Ctx, Span, Time};

use super::{Connection, Events, State};
use crate::congestion::Congestion;
use crate::recovery::LossRecovery;

/// Later than any deadline.
const NEVER: Time = Time::from_nanos(u64::MAX);

/// RFC 9293 section 3.8.6.2.1: the override timeout, 0.1 to 1 s, after which a small window is used
/// as it is.
const OVERRIDE: Span = Span::from_millis(500);

/// What the main timer is for: these exclude one another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    Retransmit,
    /// RFC 9293 section 3.8.6.1
    Probe,
    TimeWait,
}

/// The timers of one connection.
#[derive(Debug)]
pub(super) struct Timers {
    at: Time,
    delayed_acknowledgment: Time,
    // When the pacer lets the next segment go, while one waits for it.
    pacing: Time,
    purpose: Purpose,
}

impl Timers {
    pub(super) const fn new() -> Self {
        Self {
            at: NEVER,
            delayed_acknowledgment: NEVER,
            pacing: NEVER,
            purpose: Purpose::Retransmit,
        }
    }

    #[inline]
    pub(super) fn next(&self) -> Option<Time> {
        let earliest = self.at.min(self.delayed_acknowledgment).min(self.pacing);
        (earliest != NEVER).then_some(earliest)
    }

    #[inline]
    pub(super) fn set(&mut self, purpose: Purpose, at: Time) {
        self.purpose = purpose;
        self.at = at;
    }

    /// Is the main timer running, for this?
    #[inline]
    pub(super) fn runs(&self, purpose: Purpose) -> bool {
        self.at != NEVER && self.purpose == purpose
    }

    /// Stops the main timer.
    #[inline]
    pub(super) fn stop(&mut self) {
        self.at = NEVER;
    }

    pub(super) fn stop_all(&mut self) {
        *self = Self::new();
    }

    /// An acknowledgment may wait until `deadline`, or until an earlier one it waits for already.
    #[inline]
    pub(super) fn delay_acknowledgment(&mut self, deadline: Time) {
        self.delayed_acknowledgment = self.delayed_acknowledgment.min(deadline);
    }

    /// A segment waits for the pacer until `at`, or none does.
    #[inline]
    pub(super) fn pace(&mut self, at: Option<Time>) {
        self.pacing = at.unwrap_or(NEVER);
    }

    /// An acknowledgment has gone out.
    #[inline]
    pub(super) fn acknowledged(&mut self) {
        self.delayed_acknowledgment = NEVER;
    }
}

impl Connection {
    pub(super) fn timers_expire(&mut self, cx: &mut Ctx<'_>) {
        if self.timers.delayed_acknowledgment <= cx.now {
            self.timers.acknowledged();
            self.receive.acknowledge_now = true;
        }
        if self.timers.pacing <= cx.now {
            self.timers.pace(None);
        }
        if self.timers.at <= cx.now {
            match self.timers.purpose {
                Purpose::Retransmit => self.retransmission_timeout(cx),
                Purpose::Probe => self.probe(cx),
                // RFC 9293 section 3.10.8
                Purpose::TimeWait => self.closed(Events::NONE),
            }
        }
        self.output(cx);
    }

    /// RFC 6298 section 5.4 to 5.7
    fn retransmission_timeout(&mut self, cx: &mut Ctx<'_>) {
        let synchronized = self.state.is_synchronized();
        if synchronized && self.send.window == 0 {
            // The window closed over data that was sent: the timer's segments are probes, and no
            // sign of congestion (RFC 9293 section 3.8.6.1).
            self.recovery.on_timeout(&self.send.sequence);
            self.probe(cx);
            return;
        }
        let maximum = if synchronized {
            self.config.maximum_retransmissions
        } else {
            self.config.maximum_syn_retransmissions
        };
        // RFC 9293 section 3.8.3: R2
        if self.send.attempts >= maximum {
            self.closed(Events::TIMED_OUT);
            return;
        }
        self.send.attempts += 1;
        self.statistics.timeouts += 1;
        self.check_app_limited();
        // Section 5.5
        self.rtt.back_off();
        self.timers
            .set(Purpose::Retransmit, cx.now + self.rtt.rto());
        if !synchronized {
            self.send.syn_lost = true;
            self.send_syn(cx);
            return;
        }
        if self.send.attempts == 1 && !self.recovery.is_recovering() {
            // RFC 5681 section 3.1. FlightSize is what was sent since the last timeout, if that is
            // not recovered from yet: as in ns-2 and Linux, which halve cwnd.
            let flight_size = self.recovery.in_flight(&self.send.sequence);
            self.all_lost(flight_size);
            self.congestion
                .on_congestion(Congestion::Timeout, flight_size, cx.now);
        } else {
            // Fast recovery has halved the window for this loss already. Its outstanding data would
            // be a wrong measure: every duplicate has let a segment more go out, so that half of it
            // may be many times the window. Linux's tcp_enter_loss keeps the threshold, too.
            self.congestion.on_repeated_timeout();
        }
        self.send.timed_out_below = self.send.sequence.highest;
        // Go back to the first segment not acknowledged, and send all again as the window opens.
        self.send.sequence.next = self.send.sequence.unacknowledged;
        self.recovery.on_timeout(&self.send.sequence);
        self.send.window_limited = true;
        // `output` sends the first.
    }

    /// The peer's window was too small to send for too long.
    fn probe(&mut self, cx: &mut Ctx<'_>) {
        let position = self.send.sequence.unacknowledged;
        self.send.sequence.next = position;
        let unsent =
            (self.send.end.saturating_sub(position)).min(u64::from(self.negotiated.segment));
        if self.send.window > 0 && self.send.has_unsent() {
            // RFC 9293 section 3.8.6.2.1, rule 4: a small window is used as it is.
            self.send_segment(position, unsent.min(self.send.window) as u32, cx);
            return;
        }
        // RFC 9293 section 3.8.6.1: as long as the peer answers, probing goes on; an answer resets
        // `attempts`.
        if self.send.attempts >= self.config.maximum_retransmissions {
            self.closed(Events::TIMED_OUT);
            return;
        }
        self.send.attempts += 1;
        self.rtt.back_off();
        self.statistics.window_probes += 1;
        if self.send.has_unsent() {
            let small_end = self.send.small_end;
            self.send_segment(position, unsent.min(1) as u32, cx);
            if unsent > 0 {
                // The probe is not a small segment for Nagle to wait for, and its byte is sent
                // again with those that follow.
                self.send.small_end = small_end;
                self.send.sequence.next = position;
            }
        }
        self.timers.set(Purpose::Probe, cx.now + self.rtt.rto());
    }

    /// How long a window that is too small may keep us from sending.
    fn probe_interval(&self) -> Span {
        if self.send.window == 0 {
            return self.rtt.rto();
        }
        self.rtt.rto().min(OVERRIDE)
    }

    /// The timer that runs while the peer's window is what keeps us from sending.
    pub(super) fn expect_window(&mut self, now: Time) {
        if !self.timers.runs(Purpose::Probe) {
            let wait = self.probe_interval();
            self.timers.set(Purpose::Probe, now + wait);
        }
    }

    /// RFC 6298 section 5.1
    #[inline]
    pub(super) fn expect_acknowledgment(&mut self, now: Time) {
        if !self.timers.runs(Purpose::Retransmit) {
            self.timers.set(Purpose::Retransmit, now + self.rtt.rto());
        }
    }

    /// RFC 9293 section 3.6: TIME-WAIT, or two maximum segment lifetimes of it more.
    pub(super) fn wait_for_stragglers(&mut self, now: Time) {
        self.state = State::TimeWait;
        let time_wait: Span = self.config.time_wait;
        self.timers.set(Purpose::TimeWait, now + time_wait);
    }
}
