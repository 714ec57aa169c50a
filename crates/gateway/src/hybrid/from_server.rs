//! Packets from the server (gaid1998 section 4.1): stored, sent on, acknowledged.

use bentpipe_types::{Flags, Packet, PacketRef, Time};

use super::context::HybridContext;
use super::relay::Relay;
use super::segment_store::HeldSegment;
use super::tracked_connection::Verdict;

/// Largest possible window (RFC 7323 section 2.3).
const MAX_WINDOW: i64 = 1 << 30;

impl Relay {
    /// Processes a packet of the server, other than a SYN.
    pub(super) fn on_server_packet(
        &mut self,
        reference: PacketRef,
        packet: &Packet,
        context: &mut HybridContext,
    ) -> Verdict {
        let start = i64::from(packet.sequence.distance_from(self.wire(self.receive_next)));
        if packet.flags.has(Flags::RST) {
            return self.reset_by_server(reference, start, context);
        }
        if !packet.flags.has(Flags::ACK) {
            return Verdict::Forward;
        }
        self.update_from_server(packet, start);
        let length = i64::from(packet.sequence_length());
        let end = start + length;
        if length == 0 {
            return self.on_bare_acknowledgment(reference, start, context);
        }
        if end <= 0 && self.store.is_empty() && packet.payload_length <= 1 {
            // RFC 9293 section 3.8.4: a keep-alive probe, which the host itself has to answer.
            self.expect_answer();
            return Verdict::Forward;
        }
        let (packet, end) = self.trim_to_window(reference, packet, start, end, context);
        let before = self.held();
        if end <= 0 || start < -MAX_WINDOW {
            context.totals.duplicates += 1;
            context.cx.packets.release(reference);
            self.acknowledge_duplicate(&packet, context);
        } else if !self.has_space(start, start + i64::from(packet.payload_length), context) {
            context.totals.no_room += 1;
            context.cx.packets.release(reference);
            self.acknowledge(context);
        } else if start > 0 {
            self.send_too_big(reference, &packet, context);
            self.hold_out_of_order(reference, start, end, context);
            self.acknowledge(context);
        } else {
            self.send_too_big(reference, &packet, context);
            self.accept(reference, &packet, start, end, context);
        }
        context.totals.record_held(before, self.held());
        Verdict::Consume
    }

    /// Trims a segment that reaches beyond the window. RFC 9293 section 3.10.7.4: "segments with
    /// sequence numbers outside the window are trimmed to fit".
    fn trim_to_window(
        &self,
        reference: PacketRef,
        packet: &Packet,
        start: i64,
        end: i64,
        context: &mut HybridContext,
    ) -> (Packet, i64) {
        let edge = self.window_edge.saturating_sub(self.receive_next) as i64;
        if start >= edge || start + i64::from(packet.payload_length) <= edge {
            return (*packet, end);
        }
        let cut = context.cx.packets.get_mut(reference);
        cut.payload_length = (edge - start) as u16;
        cut.flags = Flags(cut.flags.0 & !(Flags::FIN.0 | Flags::PSH.0));
        (*cut, edge)
    }

    /// Updates the state from the fields that every segment of the server has.
    fn update_from_server(&mut self, packet: &Packet, start: i64) {
        let acknowledges = packet
            .acknowledgment
            .distance_from(self.server_acknowledgment);
        let sent = self.host_next.distance_from(self.server_acknowledgment);
        let advances = (1..=sent).contains(&acknowledges);
        if advances {
            self.server_acknowledgment = packet.acknowledgment;
            if self.host_fin == Some(packet.acknowledgment) {
                self.check_closed();
            }
        }
        if advances || start <= 0 && self.server_sequence.at_or_before(packet.sequence) {
            self.server_window = packet.window;
            if start <= 0 {
                self.server_sequence = packet.sequence;
            }
            self.server_window_maximum = self
                .server_window_maximum
                .max(u64::from(packet.window) << self.negotiated.server_shift);
        }
        if let Some((value, echo)) = packet.timestamps() {
            if value.wrapping_sub(self.server_timestamp.0) as i32 >= 0 {
                self.server_timestamp = (value, echo);
            }
            // RFC 7323 section 4.3: only from a segment at or before the last acknowledgment sent.
            let acknowledged = self.acknowledged_to_server as i64 - self.receive_next as i64;
            if start <= acknowledged && value.wrapping_sub(self.timestamp_recent) as i32 >= 0 {
                self.timestamp_recent = value;
            }
        }
    }

    /// Forwards an ACK without data. The server's sequence number is ahead of what the host has
    /// received, so it is replaced by one that the host accepts.
    fn on_bare_acknowledgment(
        &mut self,
        reference: PacketRef,
        start: i64,
        context: &mut HybridContext,
    ) -> Verdict {
        if start < 0 {
            self.expect_answer();
            if self.store.is_empty() {
                return Verdict::Forward;
            }
        }
        let position = if self.host_window == 0 {
            self.acknowledged
        } else {
            self.unsent()
        };
        context.cx.packets.get_mut(reference).sequence = self.wire(position);
        Verdict::Forward
    }

    /// Returns true if there is space for data from `start` to `end` after RCV.NXT. A FIN takes
    /// none. Out-of-order segments are dropped to make space for the segment that fills the gap.
    fn has_space(&mut self, start: i64, end: i64, context: &mut HybridContext) -> bool {
        let length = (end - start.max(0)).max(0) as u64;
        // Nothing follows a FIN.
        if self.fin.is_some()
            || start >= MAX_WINDOW
            || self.receive_next.saturating_add_signed(end) > self.window_edge
        {
            return false;
        }
        let before = self.held();
        loop {
            let others = context.totals.bytes - before.0;
            let fits = self.store.segments() < context.settings.segments()
                && self.store.total() + length <= context.settings.store()
                && others + self.store.total() + length <= context.settings.memory;
            if fits || start > 0 || !self.store.drop_last_out_of_order(context.cx.packets) {
                return fits;
            }
        }
    }

    fn hold_out_of_order(
        &mut self,
        reference: PacketRef,
        start: i64,
        end: i64,
        context: &mut HybridContext,
    ) {
        context.totals.out_of_order += 1;
        let held = HeldSegment {
            start: self.receive_next + start as u64,
            end: self.receive_next + end as u64,
            packet: reference,
            sent_at: Time::ZERO,
        };
        if !self.store.insert_out_of_order(held) {
            context.totals.duplicates += 1;
            context.cx.packets.release(reference);
        }
    }

    /// Stores the next segment in order, and sends it on.
    fn accept(
        &mut self,
        reference: PacketRef,
        packet: &Packet,
        start: i64,
        end: i64,
        context: &mut HybridContext,
    ) {
        if self.store.bytes() == 0 {
            self.progress_at = context.cx.now;
        }
        let gap = self.store.has_gap();
        let held = HeldSegment {
            start: self.receive_next,
            end: self.receive_next.saturating_add_signed(end),
            packet: reference,
            sent_at: Time::ZERO,
        };
        debug_assert!(start <= 0);
        self.append(held, packet.flags.has(Flags::FIN));
        while self.fin.is_none()
            && let Some(held) = self
                .store
                .take_next_in_order(self.receive_next, context.cx.packets)
        {
            let fin = context.cx.packets.get(held.packet).flags.has(Flags::FIN);
            self.append(held, fin);
        }
        let next = self.receive_next;
        self.sender(context).extend(next);
        self.send(context);
        self.schedule_acknowledgment(gap, context);
    }

    fn append(&mut self, held: HeldSegment, fin: bool) {
        self.receive_next = held.end;
        if fin {
            self.fin = Some(held.end - 1);
        }
        self.store.append(held);
    }

    /// Delays the ACK until a packet is sent to the server, or until the timeout
    /// (gaid1998 section 6.3.5).
    fn schedule_acknowledgment(&mut self, gap: bool, context: &mut HybridContext) {
        let owed = self
            .acknowledgment()
            .saturating_sub(self.acknowledged_to_server);
        let enough = context.settings.ack_every.is_some_and(|segments| {
            owed >= u64::from(segments.max(1)) * u64::from(self.negotiated.segment)
        });
        if gap || enough {
            // RFC 5681 section 4.2: a segment that fills a gap is acknowledged at once.
            self.acknowledge(context);
        } else if self.acknowledge_at == Time::NEVER && owed > 0 {
            self.acknowledge_at = context.cx.now + context.settings.ack_timeout;
        }
    }

    /// Processes a RST from the server. RFC 5961 section 3.2: it is accepted only at exactly
    /// RCV.NXT; one elsewhere in the window is answered with a challenge ACK.
    fn reset_by_server(
        &mut self,
        reference: PacketRef,
        start: i64,
        context: &mut HybridContext,
    ) -> Verdict {
        let window = self.window_edge.saturating_sub(self.receive_next) as i64;
        let at_fin = self.fin.is_some() && start == -1;
        if start == 0 || at_fin {
            self.reset_at_host_acknowledgment(Flags::RST, context);
            let position = self.unsent();
            context.cx.packets.get_mut(reference).sequence = self.wire(position);
            context.totals.resets += 1;
            self.closed_by_reset = Some(true);
            return Verdict::Forward;
        }
        context.cx.packets.release(reference);
        if (1..window).contains(&start) {
            self.acknowledge(context);
        }
        Verdict::Consume
    }

    /// Ends the connection if both FINs are acknowledged.
    pub(super) fn check_closed(&mut self) {
        let server_done = self.fin.is_some_and(|fin| self.acknowledged > fin);
        let host_done = self.host_fin == Some(self.server_acknowledgment);
        if server_done && host_done {
            self.closed_by_reset = Some(false);
        }
    }
}
