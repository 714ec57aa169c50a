//! The send buffer: when it grows, and what leaves of it at once.

use bentpipe_types::{Span, Time};

use super::{Connection, Events, Sender};
use crate::CongestionControlKind;
use crate::recovery::LossRecovery;
use crate::send_sizing::{SendSizing, segments_at_once};

/// tcp_tso_win_divisor: so large a part of the window leaves at once, whatever may follow.
const WINDOW_DIVISOR: u64 = 3;

/// A sender that has sent nothing for longer sends all that it may.
const LAST_WRITE: Span = Span::from_millis(1);

/// Segments that leave as one buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Burst {
    /// Those of them that have not been sent.
    left: u64,
    /// How many there may be; 0: not known yet.
    most: u64,
    /// None of what leaves now waits.
    hurries: bool,
}

impl Connection {
    /// A segment has arrived, and what it lets us send is sent: Linux's tcp_check_space.
    #[inline]
    pub(super) fn check_space(&mut self) {
        if self.sender.send.writer_waits && self.sender.send.sizing.is_some() {
            self.expand_while_writer_waits();
        }
    }

    fn expand_while_writer_waits(&mut self) {
        let sender = &mut self.sender;
        // tcp_should_expand_sndbuf: what fills the congestion window needs no more.
        if sender.in_flight() < sender.sending_window() {
            sender.expand_send_buffer();
        }
        if sender.room_in_send_buffer() > 0 {
            self.events |= Events::WRITABLE;
        }
    }
}

impl Sender {
    /// Bytes that the application may write now.
    #[inline]
    pub(super) fn room_in_send_buffer(&self) -> u64 {
        match &self.send.sizing {
            Some(sizing) => self.room_as_sized(sizing),
            None => self.send.buffer_room(),
        }
    }

    #[inline(never)]
    fn room_as_sized(&self, sizing: &SendSizing) -> u64 {
        let send = &self.send;
        let sendable = if self.pacer.is_on() {
            0
        } else {
            let window = self.sending_window().saturating_sub(self.in_flight());
            let peer = send.sequence.unacknowledged + send.window;
            window.min(peer.saturating_sub(send.sequence.next))
        };
        sizing.room(&send.held(), send.writer_waits, sendable)
    }

    /// Something is about to be written.
    #[inline]
    pub(super) fn before_write(&mut self) {
        if self.send.sizing.is_some() {
            self.before_sized_write();
        }
    }

    fn before_sized_write(&mut self) {
        let held = self.send.held();
        let segment = u64::from(self.negotiated.segment);
        let largest = self.send.window_maximum;
        if let Some(sizing) = &mut self.send.sizing {
            sizing.written(&held, segment, largest);
        }
    }

    /// tcp_sndbuf_expand
    pub(super) fn expand_send_buffer(&mut self) {
        let segment = u64::from(self.negotiated.segment);
        let largest = self.send.window_maximum;
        let window = self.congestion.window().congestion_window / segment.max(1);
        let factor = match self.config.congestion_control {
            // bbr_sndbuf_expand: BBR may be slow to enter recovery.
            CongestionControlKind::Bbr1 | CongestionControlKind::Bbr3 => 3,
            _ => 2,
        };
        if let Some(sizing) = &mut self.send.sizing {
            sizing.expand(window, segment, factor);
            sizing.set_goal(segment, largest);
        }
    }

    /// Before the next segment is sent, with so much room in the congestion window: is it the last of
    /// those that leave at once? True: it waits until more can.
    #[inline]
    pub(super) fn before_next(
        &mut self,
        burst: &mut Burst,
        room: u64,
        allowance: u64,
        now: Time,
    ) -> bool {
        if self.config.habits.sends_in_bursts || self.send.sizing.is_some() {
            if burst.left == 0
                && self.config.habits.sends_in_bursts
                && self.defers(burst, room, now)
            {
                return true;
            }
            self.form_burst(burst, room.min(allowance));
        }
        false
    }

    /// tcp_tso_should_defer: what could leave, with `room` bytes in the congestion window, waits for the
    /// next acknowledgment if that lets more leave at once and is not far away.
    fn defers(&self, burst: &mut Burst, room: u64, now: Time) -> bool {
        let segment = u64::from(self.negotiated.segment.max(1));
        if burst.most == 0 {
            burst.most = self.segments_at_once(segment);
            // As captures have it, not only the first buffer of a sender that has waited leaves at once.
            burst.hurries = now.since(self.send.last_sent_at) > LAST_WRITE;
        }
        if burst.hurries {
            return false;
        }
        let sequence = &self.send.sequence;
        let unsent = self.send.end.saturating_sub(sequence.next);
        let usable =
            (sequence.unacknowledged.max(1) + self.send.window).saturating_sub(sequence.next);
        let limit = room.min(usable);
        // Most often, everything that leaves at once may leave.
        if limit >= burst.most * segment || unsent <= segment {
            return false;
        }
        // What is left of a buffer does not wait for the next one, with which it would leave.
        let sizing = self.send.sizing.as_deref();
        if sizing
            .and_then(|sizing| sizing.left_of_buffer(sequence.next))
            .is_some_and(|left| left <= limit && left < unsent)
        {
            return false;
        }
        // What gets no longer does not wait, and what a timeout has told of is no steady flow.
        let ends = self.send.fin || !self.send.records.is_empty();
        if ends || sequence.unacknowledged < self.send.timed_out_below {
            return false;
        }
        let chunk = self
            .send
            .window
            .min(self.congestion.window().congestion_window);
        limit < chunk / WINDOW_DIVISOR
            && !self.recovery.is_recovering()
            && self.scoreboard.first_sent_at().is_some_and(|first| {
                now.since(first) >= self.rtt.smoothed().unwrap_or_default() / 2
            })
    }

    fn form_burst(&mut self, burst: &mut Burst, room: u64) {
        if burst.left > 0 {
            burst.left -= 1;
        } else {
            let segment = u64::from(self.negotiated.segment.max(1));
            if burst.most == 0 {
                burst.most = self.segments_at_once(segment);
            }
            let sequence = &self.send.sequence;
            let unsent = self.send.end.saturating_sub(sequence.next);
            let usable =
                (sequence.unacknowledged.max(1) + self.send.window).saturating_sub(sequence.next);
            let segments = room.min(usable) / segment;
            burst.left = segments.min(unsent.div_ceil(segment)).min(burst.most);
            // tcp_cwnd_test: at least two buffers in a window
            let half = self.congestion.window().congestion_window / segment / 2;
            burst.left = burst.left.min(half).max(1) - 1;
            self.send.ends_burst = false;
            if burst.left == 0 {
                return; // on its own
            }
        }
        // tcp_transmit_skb: PSH, so that the receiver's driver passes on what it has put together
        self.send.ends_burst = burst.left == 0 && self.config.habits.sends_in_bursts;
    }

    #[inline]
    pub(super) fn after_next(&mut self, burst: &mut Burst) {
        self.send.ends_burst = false;
        if let Some(sizing) = &mut self.send.sizing
            && burst.left == 0
        {
            sizing.sent(self.send.sequence.highest);
        }
    }

    /// tcp_tso_autosize, at the rate of tcp_update_pacing_rate or the window rule's.
    fn segments_at_once(&self, segment: u64) -> u64 {
        let window = self.congestion.window();
        let rate = match self.congestion.pacing_rate() {
            Some(rate) => rate.bits_per_second() / 8,
            None => {
                let most = window
                    .congestion_window
                    .max(self.send.sequence.outstanding());
                // tcp_pacing_ss_ratio, tcp_pacing_ca_ratio
                let slow = window.congestion_window < window.slow_start_threshold / 2;
                let percent = if slow { 200 } else { 120 };
                let smoothed = self.rtt.smoothed().unwrap_or_default().as_nanos();
                let bytes = u128::from(most) * percent * 10_000_000;
                u64::try_from(bytes / u128::from(smoothed.max(1))).unwrap_or(u64::MAX)
            }
        };
        segments_at_once(rate, segment, self.rtt.minimum())
    }
}
