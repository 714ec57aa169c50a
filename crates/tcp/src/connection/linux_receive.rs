//! The receiving half with Linux's receive buffer or ACK policy: input to
//! `receive_buffer_autotuning`, and scheduling of acknowledgments.

use bentpipe_types::{Flags, Packet, Span, Time};

use super::{Connection, State};
use crate::reassembly::Range;
use crate::receive_buffer_autotuning::{AckTime, Segment, StreamState};

impl Connection {
    /// Processes an in-order segment, which may have filled a gap, for the receive buffer and the
    /// ACK policy.
    pub(super) fn linux_in_order(&mut self, packet: &Packet, start: u64, gap: bool, now: Time) {
        let length = u32::from(packet.payload_length);
        let mut segment = self.linux_segment(packet, length);
        segment.schedules_quick_acks = self.record_mark(packet);
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
        if receive.linux_ack_policy {
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
    pub(super) fn linux_out_of_order(
        &mut self,
        packet: &Packet,
        range: Range,
        new: bool,
        due: bool,
        now: Time,
    ) {
        let segment = self.linux_segment(packet, u32::from(packet.payload_length));
        let receive = &mut self.receive;
        let stream = receive.stream();
        let Some(sizing) = &mut receive.sizing else {
            return;
        };
        let sack = self.sender.negotiated.sack;
        sizing.out_of_order(&segment, (range.start, range.end), new, &stream, sack);
        if receive.linux_ack_policy {
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
        if receive.is_autotuned
            && unacknowledged > sizing.segment()
            && sizing.window_would_shrink(&stream, receive.shift)
        {
            unacknowledged = 0;
        }
        let sack = self.sender.negotiated.sack;
        match sizing.ack_time(unacknowledged, &stream, due, sack, smoothed) {
            AckTime::Now => self.receive.acknowledge_now = true,
            AckTime::Within(span) => self.sender.timers.delay_acknowledgment(now + span),
            AckTime::Delayed => {
                let (timers, delay) = (&mut self.sender.timers, sizing.delay(smoothed));
                match sizing.delayed_ack_expiry(now, delay, timers.acknowledges_at()) {
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
    pub(super) fn reconsiders_delayed_ack(&self, packet: &Packet) -> bool {
        self.receive.linux_ack_policy
            && packet.payload_length == 0
            && self.sender.timers.acknowledges_at() != Time::NEVER
            && self.deviates_from_linux_prediction(packet)
    }

    /// Whether the segment does not match Linux's pred_flags.
    #[inline(never)]
    pub(super) fn deviates_from_linux_prediction(&self, packet: &Packet) -> bool {
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
    pub(super) fn reconsider_delayed_ack(&mut self, now: Time) {
        if self.sender.timers.acknowledges_at() != Time::NEVER {
            self.acknowledge_as_linux(self.receive.acknowledge_now, now);
        }
    }

    fn linux_segment(&self, packet: &Packet, length: u32) -> Segment {
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
            schedules_quick_acks: false,
        }
    }

    /// Records that the application has read on from `before`.
    #[inline]
    pub(super) fn after_read(&mut self, before: u64, now: Time) {
        let receive = &mut self.receive;
        let Some(sizing) = &mut receive.sizing else {
            return;
        };
        sizing.free_read(receive.read);
        if sizing.is_measurement_over(now) {
            // Linux checks after each segment that the application reads; only the first of several
            // read at once changes anything.
            let first = receive.read.min(before + sizing.segment());
            let stream = StreamState {
                read: first,
                ..receive.stream()
            };
            if let Some(sizing) = &mut receive.sizing {
                sizing.end_measurement(&stream, now);
            }
        }
        if receive.linux_ack_policy {
            receive.acknowledge_after_read();
        }
    }

    /// Delays the acknowledgment of a FIN, so that our data or FIN may carry it, as Linux does
    /// where we have not closed (tcp_fin). If `due`, there was a reason for an immediate
    /// acknowledgment, or a gap is filled. A D-SACK for the data before the FIN is dropped.
    pub(super) fn delay_fin_acknowledgment(&mut self, due: bool, now: Time) {
        let receive = &mut self.receive;
        if !receive.linux_ack_policy || self.state != State::Established {
            return;
        }
        let Some(sizing) = &mut receive.sizing else {
            return;
        };
        sizing.enter_interactive_mode();
        receive.duplicate = None;
        receive.acknowledge_now = false;
        if !due && !sizing.has_received() {
            // Before any data, the delay is not determined yet: the next tick is used.
            let at = self.sender.config.clock.expiry(now, Span::ZERO);
            self.sender.timers.delay_acknowledgment(at);
            return;
        }
        self.acknowledge_as_linux(due, now);
    }
}
