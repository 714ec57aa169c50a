//! What comes from the server (section 4.1): taken in, sent on, acknowledged.

use bentpipe_types::{Flags, Packet, PacketRef, Time};

use super::relay::Relay;
use super::store::Held;
use super::tracked::{Fate, Hall};

/// No window is larger (RFC 7323 section 2.3).
const FARTHEST: i64 = 1 << 30;

impl Relay {
    /// A packet of the server's, no SYN.
    pub(super) fn take_from_server(
        &mut self,
        reference: PacketRef,
        packet: &Packet,
        hall: &mut Hall,
    ) -> Fate {
        let start = i64::from(packet.sequence.distance_from(self.wire(self.next)));
        if packet.flags.has(Flags::RST) {
            return self.reset_by_server(reference, start, hall);
        }
        if !packet.flags.has(Flags::ACK) {
            return Fate::Passes;
        }
        self.hear_server(packet, start);
        let length = i64::from(packet.sequence_length());
        let end = start + length;
        if length == 0 {
            return self.bare(reference, start, hall);
        }
        if end <= 0 && self.store.is_empty() && packet.payload_length <= 1 {
            // A question whether the host is there (RFC 9293 section 3.8.4): its own to answer.
            self.expect_answer();
            return Fate::Passes;
        }
        let (packet, end) = self.cut(reference, packet, start, end, hall);
        let before = self.holds();
        if end <= 0 || start < -FARTHEST {
            hall.totals.duplicates += 1;
            hall.cx.packets.release(reference);
            self.acknowledge_again(&packet, hall);
        } else if !self.has_room(start, start + i64::from(packet.payload_length), hall) {
            hall.totals.no_room += 1;
            hall.cx.packets.release(reference);
            self.acknowledge(hall);
        } else if start > 0 {
            self.complain(reference, &packet, hall);
            self.keep_ahead(reference, start, end, hall);
            self.acknowledge(hall);
        } else {
            self.complain(reference, &packet, hall);
            self.accept(reference, &packet, start, end, hall);
        }
        hall.totals.held(before, self.holds());
        Fate::Taken
    }

    /// Of a segment that reaches beyond the window, what is in it (RFC 9293 section 3.10.7.4: trimmed
    /// to fit).
    fn cut(
        &self,
        reference: PacketRef,
        packet: &Packet,
        start: i64,
        end: i64,
        hall: &mut Hall,
    ) -> (Packet, i64) {
        let edge = self.edge.saturating_sub(self.next) as i64;
        if start >= edge || start + i64::from(packet.payload_length) <= edge {
            return (*packet, end);
        }
        let cut = hall.cx.packets.get_mut(reference);
        cut.payload_length = (edge - start) as u16;
        cut.flags = Flags(cut.flags.0 & !(Flags::FIN.0 | Flags::PSH.0));
        (*cut, edge)
    }

    /// What every segment of the server's says besides.
    fn hear_server(&mut self, packet: &Packet, start: i64) {
        let acknowledges = packet
            .acknowledgment
            .distance_from(self.server_acknowledgment);
        let sent = self.host_next.distance_from(self.server_acknowledgment);
        let advances = (1..=sent).contains(&acknowledges);
        if advances {
            self.server_acknowledgment = packet.acknowledgment;
            if self.host_fin == Some(packet.acknowledgment) {
                self.review_end();
            }
        }
        if advances || start <= 0 && self.server_sequence.at_or_before(packet.sequence) {
            self.server_window = packet.window;
            if start <= 0 {
                self.server_sequence = packet.sequence;
            }
            self.server_window_maximum = self
                .server_window_maximum
                .max(u64::from(packet.window) << self.agreed.server_shift);
        }
        if let Some((value, echo)) = packet.timestamps() {
            if value.wrapping_sub(self.server_timestamp.0) as i32 >= 0 {
                self.server_timestamp = (value, echo);
            }
            // RFC 7323 section 4.3: of a segment at or before what was acknowledged last
            let told = self.told as i64 - self.next as i64;
            if start <= told && value.wrapping_sub(self.timestamp_recent) as i32 >= 0 {
                self.timestamp_recent = value;
            }
        }
    }

    /// An acknowledgment without text. What it says is for the host, which has to find it acceptable:
    /// the server is ahead of what the host has.
    fn bare(&mut self, reference: PacketRef, start: i64, hall: &mut Hall) -> Fate {
        if start < 0 {
            self.expect_answer();
            if self.store.is_empty() {
                return Fate::Passes;
            }
        }
        let position = if self.host_window == 0 {
            self.acknowledged
        } else {
            self.unsent()
        };
        hall.cx.packets.get_mut(reference).sequence = self.wire(position);
        Fate::Passes
    }

    /// Is there room for text from `start` to `end` after RCV.NXT? A FIN takes none. What came ahead of a gap makes
    /// room for what fills it.
    fn has_room(&mut self, start: i64, end: i64, hall: &mut Hall) -> bool {
        let length = (end - start.max(0)).max(0) as u64;
        // After a FIN there is nothing.
        if self.fin.is_some()
            || start >= FARTHEST
            || self.next.saturating_add_signed(end) > self.edge
        {
            return false;
        }
        let before = self.holds();
        loop {
            let others = hall.totals.bytes - before.0;
            let fits = self.store.segments() < hall.settings.segments()
                && self.store.total() + length <= hall.settings.store()
                && others + self.store.total() + length <= hall.settings.memory;
            if fits || start > 0 || !self.store.drop_ahead(hall.cx.packets) {
                return fits;
            }
        }
    }

    fn keep_ahead(&mut self, reference: PacketRef, start: i64, end: i64, hall: &mut Hall) {
        hall.totals.ahead += 1;
        let held = Held {
            start: self.next + start as u64,
            end: self.next + end as u64,
            packet: reference,
            sent_at: Time::ZERO,
        };
        if !self.store.put_ahead(held) {
            hall.totals.duplicates += 1;
            hall.cx.packets.release(reference);
        }
    }

    /// The next in order.
    fn accept(
        &mut self,
        reference: PacketRef,
        packet: &Packet,
        start: i64,
        end: i64,
        hall: &mut Hall,
    ) {
        if self.store.bytes() == 0 {
            self.progress_at = hall.cx.now;
        }
        let gap = self.store.has_gap();
        let held = Held {
            start: self.next,
            end: self.next.saturating_add_signed(end),
            packet: reference,
            sent_at: Time::ZERO,
        };
        debug_assert!(start <= 0);
        self.append(held, packet.flags.has(Flags::FIN));
        while self.fin.is_none()
            && let Some(held) = self.store.take_ahead(self.next, hall.cx.packets)
        {
            let fin = hall.cx.packets.get(held.packet).flags.has(Flags::FIN);
            self.append(held, fin);
        }
        let next = self.next;
        self.sender(hall).extend(next);
        self.send(hall);
        self.owe_acknowledgment(gap, hall);
    }

    fn append(&mut self, held: Held, fin: bool) {
        self.next = held.end;
        if fin {
            self.fin = Some(held.end - 1);
        }
        self.store.append(held);
    }

    /// Section 6.3.5: it waits for something that goes to the server, until the timeout.
    fn owe_acknowledgment(&mut self, gap: bool, hall: &mut Hall) {
        let owed = self.acknowledgment().saturating_sub(self.told);
        let enough = hall.settings.ack_every.is_some_and(|segments| {
            owed >= u64::from(segments.max(1)) * u64::from(self.agreed.segment)
        });
        if gap || enough {
            // RFC 5681 section 4.2: a segment that fills a gap is acknowledged at once
            self.acknowledge(hall);
        } else if self.acknowledge_at == Time::NEVER && owed > 0 {
            self.acknowledge_at = hall.cx.now + hall.settings.ack_timeout;
        }
    }

    /// A RST from the server. Only one at exactly RCV.NXT is believed (RFC 5961 section 3.2); one in
    /// the window is challenged, as the host would.
    fn reset_by_server(&mut self, reference: PacketRef, start: i64, hall: &mut Hall) -> Fate {
        let window = self.edge.saturating_sub(self.next) as i64;
        let at_fin = self.fin.is_some() && start == -1;
        if start == 0 || at_fin {
            self.reset_where_the_host_stands(Flags::RST, hall);
            let position = self.unsent();
            hall.cx.packets.get_mut(reference).sequence = self.wire(position);
            hall.totals.resets += 1;
            self.over = Some(true);
            return Fate::Passes;
        }
        hall.cx.packets.release(reference);
        if (1..window).contains(&start) {
            self.acknowledge(hall);
        }
        Fate::Taken
    }

    /// Are both directions closed, and does each end know?
    pub(super) fn review_end(&mut self) {
        let server_done = self.fin.is_some_and(|fin| self.acknowledged > fin);
        let host_done = self.host_fin == Some(self.server_acknowledgment);
        if server_done && host_done {
            self.over = Some(false);
        }
    }
}
