//! Timers: retransmission, zero-window probes, TIME-WAIT, delayed acknowledgments.
//!
//! A timer is a field. Setting it costs a store; the driver asks for the earliest after each call.

use bentpipe_types::{Ctx, Span, Time};

use super::{Connection, Events, State};
use crate::congestion::Congestion;
use crate::recovery::LossRecovery;

/// Later than any deadline.
const NEVER: Time = Time::from_nanos(u64::MAX);

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
    purpose: Purpose,
}

impl Timers {
    pub(super) const fn new() -> Self {
        Self {
            at: NEVER,
            delayed_acknowledgment: NEVER,
            purpose: Purpose::Retransmit,
        }
    }

    #[inline]
    pub(super) fn next(&self) -> Option<Time> {
        let earliest = self.at.min(self.delayed_acknowledgment);
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
        // Section 5.5
        self.rtt.back_off();
        self.timers
            .set(Purpose::Retransmit, cx.now + self.rtt.rto());
        if !synchronized {
            self.send.syn_lost = true;
            self.send_syn(cx);
            return;
        }
        if self.send.attempts == 1 {
            // RFC 5681 section 3.1: FlightSize is all that is outstanding, however far a previous
            // timeout's retransmissions have come.
            let flight_size = self.send.sequence.highest - self.send.sequence.unacknowledged;
            self.congestion
                .on_congestion(Congestion::Timeout, flight_size, cx.now);
        } else {
            self.congestion.on_repeated_timeout();
        }
        // Go back to the first segment not acknowledged, and send all again as the window opens.
        self.send.sequence.next = self.send.sequence.unacknowledged;
        self.recovery.on_timeout(&self.send.sequence);
        self.send.window_limited = true;
        // `output` sends the first.
    }

    /// RFC 9293 section 3.8.6.1: the peer's window is too small to send; does it still live?
    fn probe(&mut self, cx: &mut Ctx<'_>) {
        // As long as the peer answers, this goes on; an answer resets `attempts`.
        if self.send.attempts >= self.config.maximum_retransmissions {
            self.closed(Events::TIMED_OUT);
            return;
        }
        self.send.attempts += 1;
        self.rtt.back_off();
        let position = self.send.sequence.unacknowledged;
        self.send.sequence.next = position;
        if self.send.has_unsent() {
            self.statistics.window_probes += 1;
            // At least one byte, and whatever a small window takes: that is also the override
            // timeout of RFC 9293 section 3.8.6.2.1, rule 4.
            let length = (self.send.end - position)
                .min(self.send.window.max(1))
                .min(u64::from(self.negotiated.segment));
            let small_end = self.send.small_end;
            self.send_segment(position, length as u32, cx);
            if length > 0 {
                // The probe is not a small segment for Nagle to wait for, and its bytes are sent
                // again with those that follow.
                self.send.small_end = small_end;
                self.send.sequence.next = position;
            }
        }
        self.timers.set(Purpose::Probe, cx.now + self.rtt.rto());
    }

    /// The timer that runs while the peer's window is what keeps us from sending.
    pub(super) fn expect_window(&mut self, now: Time) {
        if !self.timers.runs(Purpose::Probe) {
            self.timers.set(Purpose::Probe, now + self.rtt.rto());
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
