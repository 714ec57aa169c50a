//! The receiving half with Linux's receive buffer or ACK policy: input to `right_sizing`, and
//! scheduling of acknowledgments.

use bentpipe_types::{Flags, Packet, Span, Time};

use super::{Connection, State};
use crate::reassembly::Range;
use crate::right_sizing::{Segment, Stream, When};
use crate::ticks;

impl Connection {
    /// Processes an in-order segment, which may have filled a gap, for the receive buffer and the
    /// ACK policy.
    pub(super) fn sized_in_order(&mut self, packet: &Packet, start: u64, gap: bool, now: Time) {
        let length = u32::from(packet.payload_length);
        let mut segment = self.sized(packet, length);
        segment.hurries = self.mark_of_text(packet);
        let rto = || self.sender.rtt.rto();
        let receive = &mut self.receive;
        let stream = receive.stream();
        let Some(sizing) = &mut receive.sizing else {
            return;
        };
        let end = (start + u64::from(length)).min(stream.next);
        sizing.queue(&segment, start, end, receive.sink);
        sizing.in_order(&segment, &stream, rto, now);
        sizing.advance(end);
        if receive.quick_as_linux {
            // RFC 5681 section 4.2, in Linux's variant: the last gap was filled.
            let due = receive.acknowledge_now || gap && stream.highest.is_none();
            self.acknowledge_as_linux(due, now);
        } else if gap {
            receive.acknowledge_now = true;
        } else {
            self.delay_acknowledgment(length, now);
        }
    }

    /// Processes an out-of-order segment. `due`: an acknowledgment was due before.
    #[inline(never)]
    pub(super) fn sized_out_of_order(
        &mut self,
        packet: &Packet,
        range: Range,
        new: bool,
        due: bool,
        now: Time,
    ) {
        let segment = self.sized(packet, u32::from(packet.payload_length));
        let receive = &mut self.receive;
        let stream = receive.stream();
        let Some(sizing) = &mut receive.sizing else {
            return;
        };
        let sack = self.sender.negotiated.sack;
        sizing.out_of_order(&segment, (range.start, range.end), new, &stream, sack);
        if receive.quick_as_linux {
            receive.acknowledge_now = false;
            self.acknowledge_as_linux(due, now);
        }
    }

    /// Schedules an acknowledgment by Linux's rules. `due`: there is a reason for an immediate one.
    pub(super) fn acknowledge_as_linux(&mut self, due: bool, now: Time) {
        // A route with RTAX_QUICKACK (tcp_in_quickack_mode): out-of-order data is acknowledged at
        // once, too.
        if self.sender.config.delayed_ack.is_none() {
            self.receive.acknowledge_now = true;
            return;
        }
        let smoothed = self.sender.rtt.smoothed();
        let receive = &mut self.receive;
        let stream = receive.stream();
        let Some(sizing) = &mut receive.sizing else {
            return;
        };
        let mut unacknowledged = receive.next - receive.last_acknowledged;
        if receive.grows
            && unacknowledged > sizing.segment()
            && sizing.has_no_news(&stream, receive.shift)
        {
            unacknowledged = 0;
        }
        let sack = self.sender.negotiated.sack;
        match sizing.when(unacknowledged, &stream, due, sack, smoothed) {
            When::Now => self.receive.acknowledge_now = true,
            When::Within(span) => self.sender.timers.delay_acknowledgment(now + span),
            When::Delayed => {
                let (timers, delay) = (&mut self.sender.timers, sizing.delay(smoothed));
                match sizing.waits_until(now, delay, timers.acknowledges_at()) {
                    Some(at) => timers.delay_acknowledgment(at),
                    None => self.receive.acknowledge_now = true,
                }
            }
        }
    }

    /// Whether a segment without data makes Linux reconsider a delayed acknowledgment. All do,
    /// except those on the fast path of its header prediction (tcp_rcv_established,
    /// tcp_ack_snd_check).
    #[inline]
    pub(super) fn asks_again(&self, packet: &Packet) -> bool {
        self.receive.quick_as_linux
            && packet.payload_length == 0
            && self.sender.timers.acknowledges_at() != Time::NEVER
            && self.is_unexpected(packet)
    }

    /// Whether the segment does not match Linux's pred_flags.
    #[inline(never)]
    pub(super) fn is_unexpected(&self, packet: &Packet) -> bool {
        let (receive, send) = (&self.receive, &self.sender.send);
        let expected = self.state == State::Established
            && packet.flags.without(Flags::PSH) == Flags::ACK
            && !packet.has_sack_blocks()
            && packet.timestamps().is_some() == self.sender.negotiated.timestamps
            && u64::from(packet.window) << self.sender.negotiated.send_shift == send.window
            && packet.sequence == receive.wire()
            && (packet.acknowledgment).distance_from(send.wire(send.sequence.unacknowledged)) >= 0
            && receive.reassembly.is_empty()
            && receive.window() > 0;
        // A FIN is processed elsewhere.
        !expected && !packet.flags.has(Flags::FIN)
    }

    /// Reconsiders a delayed acknowledgment, unless it was sent meanwhile.
    #[cold]
    pub(super) fn ask_again(&mut self, now: Time) {
        if self.sender.timers.acknowledges_at() != Time::NEVER {
            self.acknowledge_as_linux(self.receive.acknowledge_now, now);
        }
    }

    fn sized(&self, packet: &Packet, length: u32) -> Segment {
        let echo = packet
            .timestamps()
            .filter(|_| self.sender.negotiated.timestamps)
            .map(|(_, echo)| echo);
        Segment {
            length,
            packet: packet.length().get() as u32,
            stamped: self.sender.negotiated.timestamps,
            flags: packet.flags,
            echo,
            hurries: false,
        }
    }

    /// Records that the application has read on from `before`.
    #[inline]
    pub(super) fn has_read(&mut self, before: u64, now: Time) {
        let receive = &mut self.receive;
        let Some(sizing) = &mut receive.sizing else {
            return;
        };
        sizing.eat(receive.read);
        if sizing.is_round_over(now) {
            // Linux checks after each segment that the application reads; only the first of several
            // read at once changes anything.
            let first = receive.read.min(before + sizing.segment());
            let stream = Stream {
                read: first,
                ..receive.stream()
            };
            if let Some(sizing) = &mut receive.sizing {
                sizing.round_is_over(&stream, now);
            }
        }
        if receive.quick_as_linux {
            receive.acknowledge_what_is_read();
        }
    }

    /// Delays the acknowledgment of a FIN, so that our data or FIN may carry it, as Linux does
    /// where we have not closed (tcp_fin). If `due`, there was a reason for an immediate
    /// acknowledgment, or a gap is filled. A D-SACK for the data before the FIN is dropped.
    pub(super) fn delay_fin_acknowledgment(&mut self, due: bool, now: Time) {
        let receive = &mut self.receive;
        if !receive.quick_as_linux || self.state != State::Established {
            return;
        }
        let Some(sizing) = &mut receive.sizing else {
            return;
        };
        sizing.answers();
        receive.duplicate = None;
        receive.acknowledge_now = false;
        if !due && !sizing.has_received() {
            // Before any data, the delay is not determined yet: the next tick is used.
            let at = ticks::expiry(now, Span::ZERO);
            self.sender.timers.delay_acknowledgment(at);
            return;
        }
        self.acknowledge_as_linux(due, now);
    }
}
