//! Linux's ACK policy: `tcp_input.c`'s __tcp_ack_snd_check, and its inputs.

use bentpipe_types::{Span, Time};

use super::{RightSizing, Stream};
use crate::ticks;

/// Linux's TCP_MAX_QUICKACKS.
const QUICK_ACKS: u8 = 16;

/// tcp_comp_sack_nr, tcp_comp_sack_delay_ns and tcp_comp_sack_slack_ns; the share of a round trip
/// is fixed. TCP_FASTRETRANS_THRESH.
const COMPRESSED: u8 = 44;
const COMPRESSION: Span = Span::from_micros(1_000);
const COMPRESSION_SLACK: Span = Span::from_micros(100);
const COMPRESSION_SHARE: u64 = 20;
const DUPLICATES: u8 = 3;

/// TCP_ATO_MIN: initial ACK delay. Data sent within this time after data was received is an answer.
pub(crate) const FIRST_PATIENCE: Span = Span::from_millis(40);

/// Maximum ACK delay: tcp_delack_max, a tick less than TCP_RTO_MIN.
const LONGEST_DELAY: Span = Span::from_millis(196);

/// TCP_DELACK_MAX: maximum of the adaptive ACK delay.
const LONGEST_PATIENCE: Span = Span::from_millis(200);

/// When to acknowledge received data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum When {
    Now,
    /// With the next segment, or when the delayed ACK timer expires.
    Delayed,
    /// After this time at most.
    Within(Span),
}

impl RightSizing {
    /// tcp_event_data_recv: adapts the ACK delay to an in-order segment. `rto`: retransmission
    /// timeout of this end.
    #[inline]
    pub(super) fn follows(&mut self, rto: impl Fn() -> Span, now: Time) {
        let now = self.as_clock(now);
        let least = self.part(self.first_patience, 2);
        match self.data_at.replace(now).map(|before| now.since(before)) {
            // The delay approaches twice the interval between segments.
            Some(waited) if waited <= least => {
                self.patience = self.part(self.patience, 2) + least;
            }
            Some(waited) if waited < self.patience => {
                let longer = self.part(self.patience, 2) + waited;
                self.patience = self.within_limits(longer, rto());
            }
            Some(waited) if waited <= rto() => {}
            // First segment, or first after a long idle period: the sender may be in slow start.
            _ => self.quicken(),
        }
    }

    /// Reading of the kernel's clock at `now`.
    #[inline]
    fn as_clock(&self, now: Time) -> Time {
        if self.ticks {
            ticks::last_before(now)
        } else {
            now
        }
    }

    /// A fraction of a time, in whole ticks.
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

    /// Expiry of a delayed ACK timer started now.
    pub(crate) fn expiry(&self, now: Time, delay: Span) -> Time {
        if self.ticks {
            ticks::expiry(now, delay)
        } else {
            now + delay
        }
    }

    /// tcp_send_delayed_ack: expiry of an acknowledgment with this delay. `None` if the timer of a
    /// previous one expires within a quarter of that, in which case it is sent at once.
    pub(crate) fn waits_until(&self, now: Time, delay: Span, before: Time) -> Option<Time> {
        let soon = self.expiry(now, self.part(delay, 4));
        (before > soon).then(|| self.expiry(now, delay))
    }

    /// tcp_enter_quickack_mode: enters quick ACK mode after an unexpected segment.
    pub(crate) fn is_odd(&mut self) {
        self.quicken();
        self.interactive = false;
        self.patience = self.first_patience;
    }

    /// Enters quick ACK mode for two acknowledgments, because of an ECN mark or a retransmission.
    pub(crate) fn should_hurry(&mut self) {
        let quick = self.quick;
        self.is_odd();
        self.quick = quick.max(self.quick.min(2));
    }

    /// Marks the next acknowledgment as not scheduled by new data (inet_csk_ack_scheduled): it
    /// answers an old segment or updates the window.
    pub(crate) fn is_unasked(&mut self) {
        self.unasked = true;
    }

    /// tcp_send_delayed_ack: the delay of an acknowledgment.
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

    /// Whether data sent now is an answer to a segment received at `at` (tcp_event_data_sent).
    pub(crate) fn is_answered(&self, at: Time, now: Time) -> bool {
        self.as_clock(now).since(self.as_clock(at)) < self.patience
    }

    /// __tcp_ack_snd_check: decides when to acknowledge; `unacknowledged` bytes have arrived since
    /// the last acknowledgment.
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

    /// tcp_event_ack_sent: records an acknowledgment, which was due `now`, or acknowledges `new`
    /// data.
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

    /// Enters interactive mode ("pingpong"): data that is sent carries acknowledgments.
    #[inline]
    pub(crate) fn answers(&mut self) {
        self.interactive = true;
    }

    /// Whether any in-order segment has arrived; before that, icsk_ack.ato is 0.
    pub(crate) fn has_received(&self) -> bool {
        self.data_at.is_some()
    }

    /// tcp_delack_timer_handler: no data was sent that could carry the acknowledgment.
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

    /// Schedules quick ACKs for half of the advertised window (tcp_incr_quickack).
    pub(super) fn quicken(&mut self) {
        let half = match self.window / (2 * u64::from(self.segment)) {
            0 => 2,
            half => half,
        };
        let acknowledgments = half.min(u64::from(QUICK_ACKS)) as u8;
        self.quick = self.quick.max(acknowledgments);
    }
}
