//! When what has come is acknowledged: `tcp_input.c`'s __tcp_ack_snd_check, and what it goes by.

use bentpipe_types::{Span, Time};

use super::{RightSizing, Stream};
use crate::ticks;

/// TCP_MAX_QUICKACKS
const QUICK_ACKS: u8 = 16;

/// tcp_comp_sack_nr, tcp_comp_sack_delay_ns and tcp_comp_sack_slack_ns; the share of a round trip is
/// fixed. TCP_FASTRETRANS_THRESH.
const COMPRESSED: u8 = 44;
const COMPRESSION: Span = Span::from_micros(1_000);
const COMPRESSION_SLACK: Span = Span::from_micros(100);
const COMPRESSION_SHARE: u64 = 20;
const DUPLICATES: u8 = 3;

/// TCP_ATO_MIN: an acknowledgment waits for so long at first, and what is sent so soon after text has come is an answer.
pub(crate) const FIRST_PATIENCE: Span = Span::from_millis(40);

/// An acknowledgment waits for this long at most: tcp_delack_max, a tick less than TCP_RTO_MIN.
const LONGEST_DELAY: Span = Span::from_millis(196);

/// TCP_DELACK_MAX: no longer does the time grow for which one waits.
const LONGEST_PATIENCE: Span = Span::from_millis(200);

/// When to acknowledge what has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum When {
    Now,
    /// With the next segment, or when the timer for delayed acknowledgments expires.
    Delayed,
    /// After so long at most.
    Within(Span),
}

impl RightSizing {
    /// tcp_event_data_recv: a segment in order has come. `rto` is the timeout of this end.
    #[inline]
    pub(super) fn follows(&mut self, rto: impl Fn() -> Span, now: Time) {
        let now = self.as_clock(now);
        let least = self.part(self.first_patience, 2);
        match self.data_at.replace(now).map(|before| now.since(before)) {
            // It waits for about twice as long as one segment follows the other.
            Some(waited) if waited <= least => {
                self.patience = self.part(self.patience, 2) + least;
            }
            Some(waited) if waited < self.patience => {
                let longer = self.part(self.patience, 2) + waited;
                self.patience = self.within_limits(longer, rto());
            }
            Some(waited) if waited <= rto() => {}
            // The first, or the first after the sender was silent for long: it may be in slow start.
            _ => self.quicken(),
        }
    }

    /// What the kernel's clock says then.
    #[inline]
    fn as_clock(&self, now: Time) -> Time {
        if self.ticks {
            ticks::last_before(now)
        } else {
            now
        }
    }

    /// One of so many parts of a time, in whole ticks.
    #[inline]
    fn part(&self, whole: Span, parts: u64) -> Span {
        let part = whole / parts;
        if self.ticks {
            ticks::last_before(Time::ZERO + part).since(Time::ZERO)
        } else {
            part
        }
    }

    fn within_limits(&self, patience: Span, rto: Span) -> Span {
        patience
            .min(rto)
            .min(LONGEST_PATIENCE.max(self.first_patience))
    }

    /// The timer of an acknowledgment that waits for so long from now on.
    pub(crate) fn expiry(&self, now: Time, delay: Span) -> Time {
        if self.ticks {
            ticks::expiry(now, delay)
        } else {
            now + delay
        }
    }

    /// tcp_send_delayed_ack: one that waits for so long, but where the timer for another one would expire so soon (a
    /// quarter of that) that it is worth none, None.
    pub(crate) fn waits_until(&self, now: Time, delay: Span, before: Time) -> Option<Time> {
        let soon = self.expiry(now, self.part(delay, 4));
        (before > soon).then(|| self.expiry(now, delay))
    }

    /// tcp_enter_quickack_mode: something is odd about the segments that come.
    pub(crate) fn is_odd(&mut self) {
        self.quicken();
        self.interactive = false;
        self.patience = self.first_patience;
    }

    /// The same, for two acknowledgments: what comes is marked, or was sent again for want of an answer.
    pub(crate) fn should_hurry(&mut self) {
        let quick = self.quick;
        self.is_odd();
        self.quick = quick.max(self.quick.min(2));
    }

    /// What is acknowledged next asks for no acknowledgment (inet_csk_ack_scheduled): it is old altogether, or nothing has
    /// come, and it is the window that the peer should know.
    pub(crate) fn is_unasked(&mut self) {
        self.unasked = true;
    }

    /// tcp_send_delayed_ack: how long may the acknowledgment wait?
    pub(crate) fn delay(&self, srtt: Option<Span>) -> Span {
        let mut delay = self.patience;
        if delay > self.first_patience
            && let Some(srtt) = srtt
        {
            let srtt = if self.ticks {
                Span::from_nanos(ticks::whole(srtt.as_nanos()))
            } else {
                srtt
            };
            delay = delay.min(srtt.max(self.first_patience));
        }
        delay.min(LONGEST_DELAY.max(self.first_patience))
    }

    /// Is what is sent now an answer to a segment that has come then (tcp_event_data_sent)?
    pub(crate) fn is_answered(&self, at: Time, now: Time) -> bool {
        self.as_clock(now).since(self.as_clock(at)) < self.patience
    }

    /// __tcp_ack_snd_check: `unacknowledged` bytes have come since the last acknowledgment.
    pub(crate) fn when(
        &mut self,
        unacknowledged: u64,
        stream: &Stream,
        now_due: bool,
        sack: bool,
        srtt: Option<Span>,
    ) -> When {
        if now_due
            || unacknowledged > u64::from(self.segment)
            || self.quick > 0 && !self.interactive
        {
            return When::Now;
        }
        if stream.highest.is_none() {
            return When::Delayed;
        }
        if !sack || self.compressed >= COMPRESSED {
            return When::Now;
        }
        if self.duplicates_at != stream.next {
            self.duplicates_at = stream.next;
            self.duplicates = 0;
        }
        if self.duplicates < DUPLICATES {
            self.duplicates += 1;
            return When::Now;
        }
        self.compressed += 1;
        let mut rtt = Span::from_nanos(self.rtt * 125);
        if let Some(srtt) = srtt {
            rtt = rtt.min(srtt);
        }
        When::Within(COMPRESSION.min(rtt / COMPRESSION_SHARE) + COMPRESSION_SLACK)
    }

    /// tcp_event_ack_sent: an acknowledgment has gone out, because it was due `now`, or of text that is `new`.
    #[inline]
    pub(crate) fn acknowledged(&mut self, now: bool, new: bool) {
        self.compressed = 0;
        let scheduled = new || now && !self.unasked;
        self.unasked = false;
        if scheduled {
            if self.quick == 1 {
                self.patience = self.first_patience;
            }
            self.quick = self.quick.saturating_sub(1);
            self.pushed = 0;
        }
    }

    /// The connection is interactive: what is sent carries acknowledgments ("pingpong mode").
    #[inline]
    pub(crate) fn answers(&mut self) {
        self.interactive = true;
    }

    /// Has any segment come in order? icsk_ack.ato is 0 before.
    pub(crate) fn has_received(&self) -> bool {
        self.data_at.is_some()
    }

    /// tcp_delack_timer_handler: nothing was sent that could carry the acknowledgment.
    pub(crate) fn waited_in_vain(&mut self, rto: Span) {
        if self.compressed > 0 {
            return; // tcp_compressed_ack_kick
        }
        self.patience = if self.interactive {
            self.first_patience
        } else {
            self.within_limits(self.patience * 2, rto)
        };
        self.interactive = false;
    }

    /// tcp_incr_quickack
    pub(super) fn quicken(&mut self) {
        let half = match self.window / (2 * u64::from(self.segment)) {
            0 => 2,
            half => half,
        };
        let acknowledgments = half.min(u64::from(QUICK_ACKS)) as u8;
        self.quick = self.quick.max(acknowledgments);
    }
}
