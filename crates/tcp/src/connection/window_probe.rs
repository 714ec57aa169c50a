//! Zero-window probes (RFC 9293 section 3.8.6.1) and the override timeout for small windows
//! (RFC 9293 section 3.8.6.2.1).

use bentpipe_types::{Ctx, Span, Time};

use super::timers::Purpose;
use crate::connection::{Connection, Events, Sender};

/// RFC 9293 section 3.8.6.2.1: the override timeout, 0.1 to 1 s, after which a small window is used
/// as it is.
const OVERRIDE_TIMEOUT: Span = Span::from_millis(500);

impl Connection {
    /// Probes a window that closed over sent data with its first segment, unchanged. All
    /// outstanding data counts as lost, as after any timeout. Probing continues as long as the peer
    /// answers.
    pub(super) fn probe_with_segment(&mut self, cx: &mut Ctx<'_>) {
        if self.sender.send.attempts >= self.sender.config.maximum_retransmissions
            || self.sender.user_timeout_is_over(cx.now)
        {
            self.enter_closed(Events::TIMED_OUT, cx.now);
            return;
        }
        // The kernel does not check for a black hole here. If the window is not really closed, it
        // keeps sending the same segment into the black hole until it gives up; a single forged
        // header is enough for that. This implementation checks.
        self.sender.suspect_black_hole(cx.now);
        self.sender.back_off(true, cx.now);
        self.sender.timed_out(cx.now);
        self.sender.statistics.window_probes += 1;
        self.retransmit_first(cx);
    }

    /// Handles the probe timer: the peer's window has been too small for too long.
    pub(super) fn on_probe_timer(&mut self, cx: &mut Ctx<'_>) {
        let position = self.sender.send.sequence.unacknowledged;
        let selective = self.sender.recovery.tracks_segments();
        if selective && position < self.sender.send.sequence.next && self.sender.send.window > 0 {
            // The byte of an earlier probe is retransmitted like any lost data.
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
            // RFC 9293 section 3.8.6.2.1, rule 4: a small window is used as it is. Corked data is
            // sent too, because it has waited long enough.
            // RFC 9293 section 3.9.1.2: data without PUSH does not wait for ever.
            if position + unsent == self.sender.send.end {
                self.sender.send.pushed = self.sender.send.end;
            }
            // tcp_write_wakeup
            self.sender.send.ends_burst = self.quirks().sending.sends_in_bursts;
            let small_end = self.sender.send.small_end;
            self.send_segment(position, unsent.min(self.sender.send.window) as u32, cx);
            self.sender.send.ends_burst = false;
            if self.quirks().sending.counts_short_segments {
                // tcp_write_xmit alone reports small segments to Nagle's algorithm
                // (tcp_minshall_update).
                self.sender.send.small_end = small_end;
            }
            let end = self.sender.send.sequence.next;
            self.sender.scoreboard.note_pushed(end);
            if self.quirks().timers.ticks {
                self.sender.timers.clear_review(); // No tail loss probe is scheduled for it.
            }
            return;
        }
        // RFC 9293 section 3.8.6.1: probing continues as long as the peer answers; an answer resets
        // `attempts`.
        if self.sender.send.attempts >= self.sender.config.maximum_retransmissions {
            self.enter_closed(Events::TIMED_OUT, cx.now);
            return;
        }
        self.sender.send.attempts += 1;
        let counts_apart = self.quirks().timers.restarts_probe_timer;
        if counts_apart {
            self.sender.rtt.back_off_probe();
        } else {
            self.sender.rtt.back_off();
        }
        self.sender.statistics.window_probes += 1;
        if position < self.sender.send.sequence.next {
            self.probe_with_sent_data(position, cx);
        } else if self.quirks().timers.sends_empty_probes {
            self.send_empty_probe(cx);
        } else if self.sender.send.has_unsent() {
            let small_end = self.sender.send.small_end;
            self.send_segment(position, unsent.min(1) as u32, cx);
            if unsent > 0 {
                // The probe is no small segment for Nagle's algorithm, and its byte is
                // retransmitted together with the following ones.
                self.sender.send.small_end = small_end;
                if selective {
                    // To be retransmitted as soon as the window opens.
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
        self.sender.set_probe_timer(wait, cx.now);
    }

    /// Sends a probe with data sent before: its first byte, or the FIN.
    fn probe_with_sent_data(&mut self, position: u64, cx: &mut Ctx<'_>) {
        let length = self.sender.send.end.saturating_sub(position).min(1);
        let small_end = self.sender.send.small_end;
        self.send_segment(position, length as u32, cx);
        self.sender.send.small_end = small_end;
        self.sender.scoreboard.on_retransmitted(position, cx.now);
        self.sender.scoreboard.mark_first();
    }
}

impl Sender {
    /// Delay before a window that is too small is probed.
    fn probe_interval(&self) -> Span {
        if self.send.window == 0 || self.quirks().timers.restarts_probe_timer {
            return self.rtt.rto();
        }
        self.rtt.rto().min(OVERRIDE_TIMEOUT)
    }

    /// Restarts the probe interval after a window update that leaves the window closed.
    #[inline(never)]
    pub(super) fn restart_probe_timer(&mut self, now: Time) {
        let head = self.send.unsent().min(u64::from(self.negotiated.segment));
        if head <= self.send.usable() {
            // Data held back by the application waits for another interval (tcp_ack_probe,
            // tcp_check_probe_timer).
            self.rtt.forget_probes();
            self.set_probe_timer(self.rtt.rto(), now);
        } else if self.send.window == 0 {
            // The kernel also postpones the use of a small window. Two ends that probe each other
            // could then keep each other from sending for ever.
            self.set_probe_timer(self.rtt.probe_wait(), now);
        }
    }

    /// Sets the probe timer.
    fn set_probe_timer(&mut self, wait: Span, now: Time) {
        let at = if self.quirks().timers.ticks {
            self.config.clock.expiry(now, wait)
        } else {
            now + wait
        };
        self.timers.set(Purpose::Probe, at);
    }

    /// Starts the probe timer, which runs while the peer's window prevents sending.
    pub(super) fn start_probe_timer(&mut self, now: Time) {
        if !self.timers.runs(Purpose::Probe) {
            self.set_probe_timer(self.probe_interval(), now);
        }
    }
}
