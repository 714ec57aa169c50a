//! Timers that expire before a retransmission timeout: the reordering timer and the tail loss probe
//! (RFC 8985).

use bentpipe_types::{Span, Time};

use super::timers::Early;
use crate::connection::Sender;
use crate::connection::specialization::Specialization;
use crate::linux_ticks;
use crate::recovery::{Arrival, LossRecovery, tail_loss_timeout};

impl Sender {
    /// Sets the early timer, if a transmission or an acknowledgment requested it.
    #[inline(always)]
    pub(super) fn update_early_timer<K: Specialization>(&mut self, synchronized: bool, now: Time) {
        if self.timers.review {
            self.set_early_timer::<K>(synchronized, now);
        }
    }

    #[inline(always)]
    fn set_early_timer<K: Specialization>(&mut self, synchronized: bool, now: Time) {
        self.timers.review = false;
        let anew = std::mem::take(&mut self.timers.probe_anew);
        if !K::SIMPLE && !self.recovery.uses_sack() {
            return;
        }
        if !K::SIMPLE && self.quirks().timers.ticks {
            self.set_early_timer_in_ticks(synchronized, anew, now);
            return;
        }
        if let Some(at) = self.recovery.reordering_deadline() {
            // RFC 8985 section 8 would stop the retransmission timer. Here it continues.
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
            // RFC 8985 section 7.2: not later than the retransmission timer.
            self.timers.early = at.min(self.timers.at);
        }
    }

    /// Whether a tail loss probe may be scheduled.
    #[inline(always)]
    fn may_probe(&self, synchronized: bool) -> bool {
        self.recovery.probes_tail(&self.scoreboard)
            && synchronized
            && !self.send.is_idle()
            && self.timers.retransmits()
    }

    /// Sets the early timer as Linux does, where it takes the place of the main timer while it
    /// runs.
    #[inline(never)]
    fn set_early_timer_in_ticks(&mut self, synchronized: bool, anew: bool, now: Time) {
        if anew
            && self.has_just_sent(now)
            && self.recovery.is_reducing_for_mark()
            && self.may_probe(synchronized)
        {
            // tcp_write_xmit: a transmission during a reduction for a mark schedules a probe in
            // place of any other timer. Otherwise no probe is scheduled while reordering is
            // possible.
            self.recovery.forget_reordering_deadline();
        }
        if let Some(at) = self.recovery.reordering_deadline() {
            // tcp_rack_mark_lost
            let wait = (at.since(now) + linux_ticks::TIMER_SLACK).min(self.rtt.rto());
            self.timers.early = self.config.clock.expiry(now, wait);
            self.timers.early_purpose = Early::Reordering;
        } else if self.may_probe(synchronized) {
            // An acknowledgment without new data sets no timer (tcp_ack, FLAG_SET_XMIT_TIMER), also
            // after a probe was sent.
            if !anew {
                return;
            }
            self.timers.early_purpose = Early::Probe;
            let one_segment = self.scoreboard.segments() == 1;
            let mut wait = tail_loss_timeout(self.rtt.smoothed(), one_segment);
            if !one_segment {
                wait += linux_ticks::TIMER_SLACK;
            }
            self.timers.early = self
                .config
                .clock
                .expiry(now, self.limit_probe_delay(wait, now));
        } else if self.timers.early_purpose == Early::Probe || self.send.is_idle() {
            self.timers.early = Time::NEVER;
        } // The reordering timer runs until the main timer is restarted.
        if self.timers.early != Time::NEVER && self.timers.at < self.timers.early {
            self.timers.at = self.timers.early;
        }
    }

    /// Delay of a probe: `wait`, but at most until a retransmission would be due. That is counted
    /// from the first segment's transmission if new data was sent just now, else from now
    /// (tcp_schedule_loss_probe). No timer exceeds the maximum retransmission timeout
    /// (inet_csk_reset_xmit_timer).
    #[inline]
    fn limit_probe_delay(&self, wait: Span, now: Time) -> Span {
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

    /// Whether new data was sent at this time.
    #[inline]
    fn has_just_sent(&self, now: Time) -> bool {
        let fin_left = || self.send.fin && self.scoreboard.latest_sent_at() == Some(now);
        self.send.last_sent_at == now || fin_left()
    }

    /// RFC 8985 section 6.2 step 5: the reordering timer has expired; marks segments lost.
    pub(super) fn reordering_timer_expired(&mut self, now: Time) {
        let sequence = &self.send.sequence;
        // No acknowledgment arrives with it.
        self.scoreboard.begin(Arrival {
            now,
            ..Arrival::default()
        });
        let smoothed_rtt = self.rtt.smoothed();
        let board = &mut self.scoreboard;
        let reaction = (self.recovery).on_reordering_timer(sequence, board, smoothed_rtt, now);
        self.timers.request_restart();
        self.react(reaction, now);
        self.report_losses(now);
        let _ = self.update_recovery_window(false, self.newly_delivered());
    }
}
