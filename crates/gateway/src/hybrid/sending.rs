//! Transmission to the host: new segments, retransmissions and probes.

use bentpipe_tcp::Admission;
use bentpipe_types::{Ecn, Flags, Span, Time};

use super::context::HybridContext;
use super::relay::Relay;
use super::relay::{Part, copy};
use super::segment_store::HeldSegment;
use super::settings::Anticipation;

/// Longest interval between two zero-window probes.
const MAX_PROBE_INTERVAL: Span = Span::from_secs(60);

impl Relay {
    /// Sends all that may be sent.
    pub(super) fn send(&mut self, context: &mut HybridContext) {
        if self.store.bytes() == 0 {
            return;
        }
        if self.host_window == 0 {
            // A zero window is obeyed (gaid1998 section 4.2), and probed
            // (RFC 9293 section 3.8.6.1).
            if self.probe_at == Time::NEVER {
                self.probe_wait = self.sender(context).rto().min(MAX_PROBE_INTERVAL);
                self.probe_at = context.cx.now + self.probe_wait;
            }
            return;
        }
        if context.settings.is_timer_only() {
            self.resend_range(context);
        } else {
            self.retransmit_lost(context);
        }
        let limited = self.send_new(context);
        let now = context.cx.now;
        self.sender(context).pause(limited, now);
    }

    /// Retransmits what loss recovery declares lost. Only first transmissions anticipate the host's
    /// window; retransmissions stay within it, because the host has made no progress.
    fn retransmit_lost(&mut self, context: &mut HybridContext) {
        let limit = self.send_limit(Anticipation::Strict);
        while let Some(again) = self.sender(context).next_retransmission() {
            let Some(held) = self.store.at(again.position).copied() else {
                debug_assert!(false, "lost, and not held: {again:?}");
                break;
            };
            if again.position >= limit {
                break;
            }
            // A stored segment may have been sent as several parts.
            let end = again.length.map_or(held.end, |length| {
                held.end.min(again.position + u64::from(length))
            });
            self.transmit(again.position, end, held, context);
            let now = context.cx.now;
            self.sender(context).retransmitted(again.position, now);
        }
    }

    /// Retransmits data that was sent into a closed window, except for what was sent within the
    /// last timeout. Otherwise a window that opens and closes with every segment would multiply
    /// them.
    fn resend_range(&mut self, context: &mut HybridContext) {
        if self.resend_positions.is_none() {
            return;
        }
        let now = context.cx.now;
        let timeout = self.sender(context).rto();
        let limit = self.send_limit(Anticipation::Strict);
        while let Some((from, to)) = self.resend_positions {
            let held = self
                .store
                .at(from)
                .copied()
                .filter(|held| from < to && now.since(held.sent_at) >= timeout);
            let Some(held) = held else {
                self.resend_positions = None;
                break;
            };
            if held.end > limit {
                break;
            }
            self.transmit(from, held.end, held, context);
            self.resend_positions = Some((held.end, to));
        }
    }

    /// Sends new data, or everything again after a timeout, in order. Returns true if the
    /// congestion window was the limit.
    fn send_new(&mut self, context: &mut HybridContext) -> bool {
        let anticipation = context.settings.anticipation;
        let (limit, window) = (
            self.send_limit(anticipation),
            self.send_limit(Anticipation::Strict),
        );
        let is_timer_only = context.settings.is_timer_only();
        let now = context.cx.now;
        loop {
            let position = self.sender(context).next();
            let Some(held) = self.store.at(position).copied() else {
                return false;
            };
            let again = position < self.unsent();
            let limit = if again { window } else { limit };
            // A segment is not divided for the window: one that is larger than the window is sent
            // alone.
            if held.end > limit && position > self.acknowledged {
                return false;
            }
            if !is_timer_only {
                match self.sender(context).admits(held.end - position, now) {
                    Admission::Now => {}
                    Admission::WindowFull => return true,
                    Admission::At(_) => return false,
                }
            }
            self.transmit(position, held.end, held, context);
        }
    }

    /// Sends the positions from `position` to `end` of a stored segment, either in one packet or in
    /// parts that fit the path MTU.
    fn transmit(
        &mut self,
        position: u64,
        end: u64,
        held: HeldSegment,
        context: &mut HybridContext,
    ) {
        let room = self.path_space(held.packet, context);
        let packet = context.cx.packets.get(held.packet);
        let text = u64::from(packet.payload_length);
        let begins = held.end - u64::from(packet.sequence_length());
        if end == held.end && text <= room && (position <= begins || !self.is_length_limited()) {
            self.emit_copy(position, end, held, None, context);
            return;
        }
        // A FIN is sent with the last byte, and takes no space.
        let fin = held.end - u64::from(packet.flags.has(Flags::FIN));
        let mut start = position;
        while start < end {
            let cut = end.min(start.saturating_add(room));
            let cut = if cut == fin { end } else { cut };
            self.emit_copy(start, cut, held, Some(Part { start, end: cut }), context);
            context.totals.parts += 1;
            start = cut;
        }
    }

    /// Sends a copy, with the latest acknowledgment, window and timestamps of the server (gaid1998
    /// section 4.1).
    fn emit_copy(
        &mut self,
        position: u64,
        end: u64,
        held: HeldSegment,
        part: Option<Part>,
        context: &mut HybridContext,
    ) {
        let now = context.cx.now;
        let sender = self.sender(context);
        let first = end > sender.highest();
        sender.depart(position, end, now);
        self.store.sent(position, now);
        if first {
            context.totals.segments += 1;
        } else {
            context.totals.retransmissions += 1;
        }
        if end > self.acknowledged + self.host_window {
            context.totals.beyond_window += 1;
        }
        let copy = copy(held, part, context.cx.packets);
        let length = context.cx.packets.get(copy).length().get();
        self.black_hole.note_sent(length, end, now);
        let packet = context.cx.packets.get_mut(copy);
        packet.acknowledgment = self.server_acknowledgment;
        packet.window = self.server_window;
        if packet.timestamps().is_some() {
            packet.set_timestamps(self.server_timestamp.0, self.server_timestamp.1);
        }
        if !first {
            // RFC 3168 section 6.1.5: retransmitted packets are not ECN-capable.
            packet.set_ecn(Ecn::NotCapable);
        }
        context.cx.emit(context.totals.toward_host, copy);
    }

    /// Sends a zero-window probe: a segment with an old sequence number, which the host has to
    /// answer.
    pub(super) fn probe(&mut self, context: &mut HybridContext) {
        if self.host_window > 0 || self.store.bytes() == 0 {
            self.probe_at = Time::NEVER;
            return;
        }
        let before = self.acknowledged.saturating_sub(1);
        self.to_host(before, Flags::ACK, context);
        context.totals.probes += 1;
        self.probe_wait = (self.probe_wait + self.probe_wait).min(MAX_PROBE_INTERVAL);
        self.probe_at = context.cx.now + self.probe_wait;
    }

    /// Retransmits the first unacknowledged segment after its timeout, and further ones that are as
    /// old and within the host's window. The host may have dropped data beyond that window; it is
    /// sent again once the window has moved.
    fn retransmit_expired(&mut self, context: &mut HybridContext) {
        let now = context.cx.now;
        let timeout = self.sender(context).rto();
        let limit = self.acknowledged + self.host_window;
        let highest = self.unsent();
        let mut position = self.acknowledged;
        while let Some(held) = self.store.at(position).copied()
            && held.end <= highest
            && (position == self.acknowledged
                || held.end <= limit && now.since(held.sent_at) >= timeout)
        {
            self.transmit(position, held.end, held, context);
            position = held.end;
            if self.black_hole.is_probing_short() {
                // The first packet shows whether short ones arrive.
                break;
            }
        }
    }

    /// Runs the sender's timers.
    pub(super) fn sender_deadline(&mut self, context: &mut HybridContext) {
        if self.store.bytes() == 0 || self.host_window == 0 {
            return;
        }
        let (now, is_timer_only) = (context.cx.now, context.settings.is_timer_only());
        let Some(sender) = &mut self.sender else {
            return;
        };
        if sender.next_deadline().is_none_or(|at| at > now) {
            return;
        }
        if sender.on_deadline(now) {
            context.totals.timeouts += 1;
            self.check_for_black_hole(context);
            let Some(sender) = &mut self.sender else {
                return;
            };
            if is_timer_only {
                self.retransmit_expired(context);
            } else {
                sender.timed_out(now);
            }
        }
        self.send(context);
    }
}
