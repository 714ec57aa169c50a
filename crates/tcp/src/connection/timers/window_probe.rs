//! Zero-window probes: as long as the peer's window keeps us from sending (RFC 9293 sections 3.8.6.1 and 3.8.6.2.1).

use bentpipe_types::{Ctx, Span, Time};

use super::Purpose;
use crate::connection::{Connection, Events, Sender};
use crate::ticks;

/// RFC 9293 section 3.8.6.2.1: the override timeout, 0.1 to 1 s, after which a small window is used
/// as it is.
const OVERRIDE: Span = Span::from_millis(500);

impl Connection {
    /// The window closed over data that was sent, whose first segment goes again as it was; all that is outstanding
    /// counts as lost, as after any timeout. As long as the peer answers that goes on.
    pub(super) fn probe_with_segment(&mut self, cx: &mut Ctx<'_>) {
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
    pub(super) fn probe(&mut self, cx: &mut Ctx<'_>) {
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
}

impl Sender {
    /// How long a window that is too small may keep us from sending.
    fn probe_interval(&self) -> Span {
        if self.send.window == 0 || self.config.habits.restarts_probe_timer {
            return self.rtt.rto();
        }
        self.rtt.rto().min(OVERRIDE)
    }

    /// The peer has told of its window: if that is closed still, the next probe is due a whole interval after that.
    #[inline(never)]
    pub(in crate::connection) fn put_off_probe(&mut self, now: Time) {
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
    pub(in crate::connection) fn expect_window(&mut self, now: Time) {
        if !self.timers.runs(Purpose::Probe) {
            self.probe_within(self.probe_interval(), now);
        }
    }
}
