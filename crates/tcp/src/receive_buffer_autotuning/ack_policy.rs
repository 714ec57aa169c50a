//! Linux's ACK policy: `tcp_input.c`'s __tcp_ack_snd_check, and its inputs.

use bentpipe_types::{Span, Time};

use super::{ReceiveBufferAutotuning, StreamState};
use crate::{HostClock, linux_ticks};

/// Linux's TCP_MAX_QUICKACKS.
const MAXIMUM_QUICK_ACKS: u8 = 16;

/// tcp_comp_sack_nr, tcp_comp_sack_delay_ns and tcp_comp_sack_slack_ns; the share of a round trip
/// is fixed. TCP_FASTRETRANS_THRESH.
const MAXIMUM_COMPRESSED: u8 = 44;
const COMPRESSION_DELAY: Span = Span::from_micros(1_000);
const COMPRESSION_SLACK: Span = Span::from_micros(100);
const COMPRESSION_SHARE: u64 = 20;
const FAST_RETRANSMIT_THRESHOLD: u8 = 3;

/// TCP_ATO_MIN: initial ACK delay. Data sent within this time after data was received is an answer.
pub(crate) const INITIAL_ACK_DELAY: Span = Span::from_millis(40);

/// Maximum ACK delay: tcp_delack_max, a tick less than TCP_RTO_MIN.
const MAXIMUM_ACK_DELAY: Span = Span::from_millis(196);

/// TCP_DELACK_MAX: maximum of the adaptive ACK delay.
const MAXIMUM_ADAPTIVE_DELAY: Span = Span::from_millis(200);

/// When to acknowledge received data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AckTime {
    Now,
    /// With the next segment, or when the delayed ACK timer expires.
    Delayed,
    /// After this time at most.
    Within(Span),
}

impl ReceiveBufferAutotuning {
    /// tcp_event_data_recv: adapts the ACK delay to an in-order segment. `rto`: retransmission
    /// timeout of this end.
    #[inline]
    pub(super) fn adapt_ack_delay(&mut self, rto: impl Fn() -> Span, now: Time) {
        let now = self.clock_reading(now);
        let least = self.fraction(self.initial_ack_delay, 2);
        match self.data_at.replace(now).map(|before| now.since(before)) {
            // The delay approaches twice the interval between segments.
            Some(waited) if waited <= least => {
                self.ack_delay = self.fraction(self.ack_delay, 2) + least;
            }
            Some(waited) if waited < self.ack_delay => {
                let longer = self.fraction(self.ack_delay, 2) + waited;
                self.ack_delay = self.within_limits(longer, rto());
            }
            Some(waited) if waited <= rto() => {}
            // First segment, or first after a long idle period: the sender may be in slow start.
            _ => self.schedule_quick_acks(),
        }
    }

    /// Reading of the kernel's clock at `now`.
    #[inline]
    fn clock_reading(&self, now: Time) -> Time {
        if self.ticks {
            Time::ZERO + HostClock::TICK * self.clock.ticks(now)
        } else {
            now
        }
    }

    /// A fraction of a time, in whole ticks.
    #[inline]
    fn fraction(&self, whole: Span, parts: u64) -> Span {
        let part = whole / parts;
        if self.ticks {
            linux_ticks::whole_below(part)
        } else {
            part
        }
    }

    fn within_limits(&self, ack_delay: Span, rto: Span) -> Span {
        ack_delay
            .min(rto)
            .min(MAXIMUM_ADAPTIVE_DELAY.max(self.initial_ack_delay))
    }

    /// Expiry of a delayed ACK timer started now.
    pub(crate) fn expiry(&self, now: Time, delay: Span) -> Time {
        if self.ticks {
            self.clock.expiry(now, delay)
        } else {
            now + delay
        }
    }

    /// tcp_send_delayed_ack: expiry of an acknowledgment with this delay. `None` if the timer of a
    /// previous one expires within a quarter of that, in which case it is sent at once.
    pub(crate) fn delayed_ack_expiry(&self, now: Time, delay: Span, before: Time) -> Option<Time> {
        let soon = self.expiry(now, self.fraction(delay, 4));
        (before > soon).then(|| self.expiry(now, delay))
    }

    /// tcp_enter_quickack_mode: enters quick ACK mode after an unexpected segment.
    pub(crate) fn on_unexpected_segment(&mut self) {
        self.schedule_quick_acks();
        self.interactive = false;
        self.ack_delay = self.initial_ack_delay;
    }

    /// Enters quick ACK mode for two acknowledgments, because of an ECN mark or a retransmission.
    pub(crate) fn schedule_two_quick_acks(&mut self) {
        let quick = self.quick;
        self.on_unexpected_segment();
        self.quick = quick.max(self.quick.min(2));
    }

    /// Marks the next acknowledgment as not scheduled by new data (inet_csk_ack_scheduled): it
    /// answers an old segment or updates the window.
    pub(crate) fn mark_unscheduled(&mut self) {
        self.unscheduled = true;
    }

    /// tcp_send_delayed_ack: the delay of an acknowledgment.
    pub(crate) fn delay(&self, srtt: Option<Span>) -> Span {
        let mut delay = self.ack_delay;
        if delay > self.initial_ack_delay
            && let Some(srtt) = srtt
        {
            let srtt = if self.ticks {
                Span::from_nanos(linux_ticks::whole(srtt.as_nanos()))
            } else {
                srtt
            };
            delay = delay.min(srtt.max(self.initial_ack_delay));
        }
        delay.min(MAXIMUM_ACK_DELAY.max(self.initial_ack_delay))
    }

    /// Whether data sent now is an answer to a segment received at `at` (tcp_event_data_sent).
    pub(crate) fn is_answer(&self, at: Time, now: Time) -> bool {
        self.clock_reading(now).since(self.clock_reading(at)) < self.ack_delay
    }

    /// __tcp_ack_snd_check: decides when to acknowledge; `unacknowledged` bytes have arrived since
    /// the last acknowledgment.
    pub(crate) fn ack_time(
        &mut self,
        unacknowledged: u64,
        stream: &StreamState,
        now_due: bool,
        sack: bool,
        srtt: Option<Span>,
    ) -> AckTime {
        if now_due
            || unacknowledged > u64::from(self.segment)
            || self.quick > 0 && !self.interactive
        {
            return AckTime::Now;
        }
        if stream.highest.is_none() {
            return AckTime::Delayed;
        }
        if !sack || self.compressed >= MAXIMUM_COMPRESSED {
            return AckTime::Now;
        }
        if self.duplicates_at != stream.next {
            self.duplicates_at = stream.next;
            self.duplicates = 0;
        }
        if self.duplicates < FAST_RETRANSMIT_THRESHOLD {
            self.duplicates += 1;
            return AckTime::Now;
        }
        self.compressed += 1;
        let mut rtt = Span::from_nanos(self.rtt * 125);
        if let Some(srtt) = srtt {
            rtt = rtt.min(srtt);
        }
        AckTime::Within(COMPRESSION_DELAY.min(rtt / COMPRESSION_SHARE) + COMPRESSION_SLACK)
    }

    /// tcp_event_ack_sent: records an acknowledgment, which was due `now`, or acknowledges `new`
    /// data.
    #[inline]
    pub(crate) fn on_ack_sent(&mut self, now: bool, new: bool) {
        self.compressed = 0;
        let scheduled = new || now && !self.unscheduled;
        self.unscheduled = false;
        if scheduled {
            if self.quick == 1 {
                self.ack_delay = self.initial_ack_delay;
            }
            self.quick = self.quick.saturating_sub(1);
            self.pushed = 0;
        }
    }

    /// Enters interactive mode ("pingpong"): data that is sent carries acknowledgments.
    #[inline]
    pub(crate) fn enter_interactive_mode(&mut self) {
        self.interactive = true;
    }

    /// Whether any in-order segment has arrived; before that, icsk_ack.ato is 0.
    pub(crate) fn has_received(&self) -> bool {
        self.data_at.is_some()
    }

    /// tcp_delack_timer_handler: no data was sent that could carry the acknowledgment.
    pub(crate) fn on_delayed_ack_timer(&mut self, rto: Span) {
        if self.compressed > 0 {
            return; // tcp_compressed_ack_kick
        }
        self.ack_delay = if self.interactive {
            self.initial_ack_delay
        } else {
            self.within_limits(self.ack_delay * 2, rto)
        };
        self.interactive = false;
    }

    /// Schedules quick ACKs for half of the advertised window (tcp_incr_quickack).
    pub(super) fn schedule_quick_acks(&mut self) {
        let half = match self.window / (2 * u64::from(self.segment)) {
            0 => 2,
            half => half,
        };
        let acknowledgments = half.min(u64::from(MAXIMUM_QUICK_ACKS)) as u8;
        self.quick = self.quick.max(acknowledgments);
    }
}
