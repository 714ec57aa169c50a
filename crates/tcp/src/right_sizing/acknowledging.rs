//! When what has come is acknowledged: `tcp_input.c`'s __tcp_ack_snd_check, and what it goes by.

use bentpipe_types::Span;

use super::{RightSizing, Stream};

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
            delay = delay.min(srtt.max(self.first_patience));
        }
        delay.min(LONGEST_DELAY.max(self.first_patience))
    }

    /// Is what is sent so long after a segment an answer (tcp_event_data_sent)?
    pub(crate) fn is_answered_within(&self, after: Span) -> bool {
        after < self.patience
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
            (self.patience * 2).min(rto)
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
