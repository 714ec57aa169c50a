//! Packets from the host (gaid1998 section 4.2): forwarded, with the gateway's acknowledgment
//! number.

use bentpipe_types::{Flags, Packet, PacketRef, Time};

use super::context::HybridContext;
use super::relay::Relay;
use super::tracked_connection::Verdict;

impl Relay {
    /// Processes a packet of the host, other than a SYN.
    pub(super) fn on_host_packet(
        &mut self,
        reference: PacketRef,
        packet: &Packet,
        context: &mut HybridContext,
    ) -> Verdict {
        let now = context.cx.now;
        self.host_heard_at = now;
        if packet.flags.has(Flags::RST) {
            return self.reset_by_host(reference, packet, context);
        }
        if !packet.flags.has(Flags::ACK) {
            return Verdict::Forward;
        }
        // An ACK without data at the expected sequence number. One at another number, such as a
        // keep-alive probe, is for the server.
        let bare = packet.sequence_length() == 0 && packet.sequence.at_or_after(self.host_next);
        self.update_from_host(packet);
        let before = self.held();
        self.on_host_acknowledgment(reference, packet, context);
        self.send(context);
        context.totals.record_held(before, self.held());

        let wanted = self.take_expected_answer();
        if bare && !wanted && !self.has_update_for_server(context) {
            // A repeated ACK would look like a loss to the server.
            context.totals.consumed += 1;
            context.cx.packets.release(reference);
            return Verdict::Consume;
        }
        self.set_acknowledgment_fields(reference, None, context);
        Verdict::Forward
    }

    /// Updates the state of the host's own stream.
    fn update_from_host(&mut self, packet: &Packet) {
        let end = packet.sequence_end();
        // The host cannot have sent more than the server's window allows.
        let beyond = i64::from(end.distance_from(self.server_acknowledgment));
        let most = i64::try_from(self.server_window_maximum).unwrap_or(i64::MAX);
        // A segment without data only shows that data before it was lost on the way to the gateway.
        if packet.sequence_length() > 0 && end.after(self.host_next) && beyond <= most {
            self.host_next = end;
        }
        if packet.flags.has(Flags::FIN) && end == self.host_next {
            self.host_fin = Some(end);
        }
        if let Some((value, _)) = packet.timestamps()
            && value.wrapping_sub(self.host_timestamp) as i32 >= 0
        {
            self.host_timestamp = value;
        }
    }

    /// Processes the acknowledgment number: releases the segments that it covers
    /// (gaid1998 section 4.2).
    fn on_host_acknowledgment(
        &mut self,
        reference: PacketRef,
        packet: &Packet,
        context: &mut HybridContext,
    ) {
        let now = context.cx.now;
        let distance = i64::from(
            packet
                .acknowledgment
                .distance_from(self.wire(self.acknowledged)),
        );
        let most = (self.unsent() - self.acknowledged) as i64;
        if distance > most {
            // Acknowledges data beyond SND.NXT, which the host cannot have received from the
            // gateway. Data that was forwarded while the connection opened may be missing in the
            // gateway's state.
            self.resynchronize(distance, packet, now);
            return;
        }
        let advances = distance > 0;
        self.update_host_window(packet, advances, now);
        if let Some(sender) = &mut self.sender {
            // Duplicate ACKs report losses, which are ignored with the timer alone.
            if advances || !context.settings.is_timer_only() {
                let sack = (packet.has_sack_blocks() && self.negotiated.sack)
                    .then(|| context.cx.packets.sack_blocks(reference));
                let _ = sender.on_acknowledgment(packet, sack.as_ref(), now);
            }
            if advances {
                // Segments are not divided for small windows. If each has to wait for the timer,
                // the timeout must not back off for each of them.
                sender.reset_backoff();
            }
        }
        if !advances {
            return;
        }
        self.note_acknowledged(self.acknowledged + distance as u64, context);
        self.acknowledged += distance as u64;
        self.progress_at = now;
        self.store
            .acknowledge(self.acknowledged, context.cx.packets);
        if let Some((from, to)) = self.resend_positions {
            let from = from.max(self.acknowledged);
            self.resend_positions = (from < to).then_some((from, to));
        }
        self.check_closed();
    }

    /// Resynchronizes with a host that acknowledges data which was forwarded before both ends were
    /// established. Only if nothing is stored, and if the server's own sequence numbers confirm it.
    fn resynchronize(&mut self, distance: i64, packet: &Packet, now: Time) {
        let position = self.acknowledged.saturating_add_signed(distance);
        let seen = self.window_edge.max(self.receive_next);
        let passed = i64::from(self.server_sequence.distance_from(self.wire(position)));
        if self.store.is_empty()
            && self.fin.is_none()
            && position > self.receive_next
            && position <= seen
            && passed >= 0
        {
            self.acknowledged = position;
            self.receive_next = position;
            self.acknowledged_to_server = self.acknowledged_to_server.max(position);
            self.sender = None;
            self.update_host_window(packet, true, now);
        }
    }

    /// Processes a RST from the host, which is forwarded. The connection ends if the server will
    /// accept the RST.
    fn reset_by_host(
        &mut self,
        reference: PacketRef,
        packet: &Packet,
        context: &mut HybridContext,
    ) -> Verdict {
        let believed =
            packet.sequence == self.host_next || packet.sequence == self.server_acknowledgment;
        if believed {
            context.totals.resets += 1;
            self.closed_by_reset = Some(false);
        }
        if packet.flags.has(Flags::ACK) {
            self.set_acknowledgment_fields(reference, None, context);
        }
        Verdict::Forward
    }
}
