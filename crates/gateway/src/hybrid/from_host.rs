//! What comes from the host (section 4.2): forwarded, with the gateway's acknowledgment number.

use bentpipe_types::{Flags, Packet, PacketRef, Time};

use super::relay::Relay;
use super::tracked::{Fate, Hall};

impl Relay {
    /// A packet of the host's, no SYN.
    pub(super) fn take_from_host(
        &mut self,
        reference: PacketRef,
        packet: &Packet,
        hall: &mut Hall,
    ) -> Fate {
        let now = hall.cx.now;
        self.host_heard_at = now;
        if packet.flags.has(Flags::RST) {
            return self.reset_by_host(reference, packet, hall);
        }
        if !packet.flags.has(Flags::ACK) {
            return Fate::Passes;
        }
        // A bare acknowledgment where the host is expected to be; another one, a probe of whether the
        // server is there, say, is for the server.
        let bare = packet.sequence_length() == 0 && packet.sequence.at_or_after(self.host_next);
        self.hear_host(packet);
        let before = self.holds();
        self.take_acknowledgment(reference, packet, hall);
        self.send(hall);
        hall.totals.held(before, self.holds());

        let wanted = self.takes_answer();
        if bare && !wanted && !self.has_news(hall) {
            // Once more the same, it would tell the server of a loss that there is not.
            hall.totals.consumed += 1;
            hall.cx.packets.release(reference);
            return Fate::Taken;
        }
        self.tell(reference, None, hall);
        Fate::Passes
    }

    /// What the host has sent of its own stream.
    fn hear_host(&mut self, packet: &Packet) {
        let end = packet.sequence_end();
        // No farther than the server's window can have let it.
        let beyond = i64::from(end.distance_from(self.server_acknowledgment));
        let most = i64::try_from(self.server_window_maximum).unwrap_or(i64::MAX);
        // (One without text tells of what is lost on the way here, at best.)
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

    /// The acknowledgment number is picked, and the data that it covers flushed (section 4.2).
    fn take_acknowledgment(&mut self, reference: PacketRef, packet: &Packet, hall: &mut Hall) {
        let now = hall.cx.now;
        let distance = i64::from(
            packet
                .acknowledgment
                .distance_from(self.wire(self.acknowledged)),
        );
        let most = (self.unsent() - self.acknowledged) as i64;
        if distance > most {
            // Of what it was never sent: no host can have it. But before both ends were established,
            // something may have passed that the gateway doesn't know of.
            self.pick_up(distance, packet, now);
            return;
        }
        let advances = distance > 0;
        self.update_host_window(packet, advances, now);
        if let Some(sender) = &mut self.sender {
            // Duplicates tell of losses, which is not for who goes by the timer alone.
            if advances || !hall.settings.by_timer() {
                let sack = (packet.has_sack_blocks() && self.agreed.sack)
                    .then(|| hall.cx.packets.sack_blocks(reference));
                let _ = sender.on_acknowledgment(packet, sack.as_ref(), now);
            }
            if advances {
                // A segment isn't divided, however little of it the host takes: each goes again when
                // the timer expires, and backing off for each would take for ever.
                sender.forget_back_off();
            }
        }
        if !advances {
            return;
        }
        self.arrives(self.acknowledged + distance as u64, hall);
        self.acknowledged += distance as u64;
        self.progress_at = now;
        self.store.acknowledge(self.acknowledged, hall.cx.packets);
        if let Some((from, to)) = self.again {
            let from = from.max(self.acknowledged);
            self.again = (from < to).then_some((from, to));
        }
        self.review_end();
    }

    /// The host has what the gateway has never seen, or lies. Where nothing is held, the server's own
    /// sequence numbers tell.
    fn pick_up(&mut self, distance: i64, packet: &Packet, now: Time) {
        let position = self.acknowledged.saturating_add_signed(distance);
        let seen = self.edge.max(self.next);
        let passed = i64::from(self.server_sequence.distance_from(self.wire(position)));
        if self.store.is_empty()
            && self.fin.is_none()
            && position > self.next
            && position <= seen
            && passed >= 0
        {
            self.acknowledged = position;
            self.next = position;
            self.told = self.told.max(position);
            self.sender = None;
            self.update_host_window(packet, true, now);
        }
    }

    /// A RST from the host passes. It is believed where the server will believe it.
    fn reset_by_host(&mut self, reference: PacketRef, packet: &Packet, hall: &mut Hall) -> Fate {
        let believed =
            packet.sequence == self.host_next || packet.sequence == self.server_acknowledgment;
        if believed {
            hall.totals.resets += 1;
            self.over = Some(false);
        }
        if packet.flags.has(Flags::ACK) {
            self.tell(reference, None, hall);
        }
        Fate::Passes
    }
}
