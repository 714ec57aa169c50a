//! What goes to the host: new segments, segments again, probes.

use bentpipe_tcp::Admission;
use bentpipe_types::{Ecn, Flags, Span, Time};

use super::narrow::{Part, copy};
use super::relay::Relay;
use super::settings::Anticipation;
use super::store::Held;
use super::tracked::Hall;

/// The longest wait between two probes of a window of zero.
const LONGEST_PROBE: Span = Span::from_secs(60);

impl Relay {
    /// Sends what may be sent.
    pub(super) fn send(&mut self, hall: &mut Hall) {
        if self.store.bytes() == 0 {
            return;
        }
        if self.host_window == 0 {
            // It is obeyed (section 4.2), and asked about (RFC 9293 section 3.8.6.1).
            if self.probe_at == Time::NEVER {
                self.probe_wait = self.sender(hall).rto().min(LONGEST_PROBE);
                self.probe_at = hall.cx.now + self.probe_wait;
            }
            return;
        }
        if hall.settings.by_timer() {
            self.send_again(hall);
        } else {
            self.send_lost(hall);
        }
        let limited = self.send_new(hall);
        let now = hall.cx.now;
        self.sender(hall).pause(limited, now);
    }

    /// What loss recovery says is lost. Only the first transmission anticipates the host's window: what
    /// goes again goes because the host has not got on.
    fn send_lost(&mut self, hall: &mut Hall) {
        let limit = self.limit(Anticipation::Strict);
        while let Some(again) = self.sender(hall).next_retransmission() {
            let Some(held) = self.store.at(again.position).copied() else {
                debug_assert!(false, "lost, and not held: {again:?}");
                break;
            };
            if again.position >= limit {
                break;
            }
            // (A segment that is held may have gone as several.)
            let end = again.length.map_or(held.end, |length| {
                held.end.min(again.position + u64::from(length))
            });
            self.depart(again.position, end, held, hall);
            let now = hall.cx.now;
            self.sender(hall).retransmitted(again.position, now);
        }
    }

    /// What met a closed window; but what has only just left is the timer's, lest a window that opens
    /// and closes with each segment make each segment many.
    fn send_again(&mut self, hall: &mut Hall) {
        if self.again.is_none() {
            return;
        }
        let now = hall.cx.now;
        let timeout = self.sender(hall).rto();
        let limit = self.limit(Anticipation::Strict);
        while let Some((from, to)) = self.again {
            let held = self
                .store
                .at(from)
                .copied()
                .filter(|held| from < to && now.since(held.sent_at) >= timeout);
            let Some(held) = held else {
                self.again = None;
                break;
            };
            if held.end > limit {
                break;
            }
            self.depart(from, held.end, held, hall);
            self.again = Some((held.end, to));
        }
    }

    /// What the host has not been sent, or what goes again from the first on, in its order. Was it the
    /// congestion window that ended it?
    fn send_new(&mut self, hall: &mut Hall) -> bool {
        let anticipation = hall.settings.anticipation;
        let (limit, window) = (self.limit(anticipation), self.limit(Anticipation::Strict));
        let by_timer = hall.settings.by_timer();
        let now = hall.cx.now;
        loop {
            let position = self.sender(hall).next();
            let Some(held) = self.store.at(position).copied() else {
                return false;
            };
            let again = position < self.unsent();
            let limit = if again { window } else { limit };
            // A segment is not divided: one that is larger than the window goes alone.
            if held.end > limit && position > self.acknowledged {
                return false;
            }
            if !by_timer {
                match self.sender(hall).admits(held.end - position, now) {
                    Admission::Now => {}
                    Admission::WindowFull => return true,
                    Admission::At(_) => return false,
                }
            }
            self.depart(position, held.end, held, hall);
        }
    }

    /// Sends what is held of a segment from `position` to `end`: a copy of it, or, where the way to the host takes no
    /// such long packets, parts; where it may not, no more than that.
    fn depart(&mut self, position: u64, end: u64, held: Held, hall: &mut Hall) {
        let room = self.room_on_path(held.packet, hall);
        let packet = hall.cx.packets.get(held.packet);
        let text = u64::from(packet.payload_length);
        let begins = held.end - u64::from(packet.sequence_length());
        if end == held.end && text <= room && (position <= begins || !self.minds_length()) {
            self.emit(position, end, held, None, hall);
            return;
        }
        // A FIN goes with the last byte: it takes no room.
        let fin = held.end - u64::from(packet.flags.has(Flags::FIN));
        let mut start = position;
        while start < end {
            let cut = end.min(start.saturating_add(room));
            let cut = if cut == fin { end } else { cut };
            self.emit(start, cut, held, Some(Part { start, end: cut }), hall);
            hall.totals.parts += 1;
            start = cut;
        }
    }

    /// Sends a copy, from `position` on, with what the server has last said (section 4.1).
    fn emit(&mut self, position: u64, end: u64, held: Held, part: Option<Part>, hall: &mut Hall) {
        let now = hall.cx.now;
        let sender = self.sender(hall);
        let first = end > sender.highest();
        sender.depart(position, end, now);
        self.store.sent(position, now);
        if first {
            hall.totals.segments += 1;
        } else {
            hall.totals.retransmissions += 1;
        }
        if end > self.acknowledged + self.host_window {
            hall.totals.beyond_window += 1;
        }
        let copy = copy(held, part, hall.cx.packets);
        let length = hall.cx.packets.get(copy).length().get();
        self.doubt.goes(length, end, now);
        let packet = hall.cx.packets.get_mut(copy);
        packet.acknowledgment = self.server_acknowledgment;
        packet.window = self.server_window;
        if packet.timestamps().is_some() {
            packet.set_timestamps(self.server_timestamp.0, self.server_timestamp.1);
        }
        if !first {
            // RFC 3168 section 6.1.5
            packet.set_ecn(Ecn::NotCapable);
        }
        hall.cx.emit(hall.totals.toward_host, copy);
    }

    /// Asks a host whose window is closed: a sequence number that it has, so that it answers.
    pub(super) fn probe(&mut self, hall: &mut Hall) {
        if self.host_window > 0 || self.store.bytes() == 0 {
            self.probe_at = Time::NEVER;
            return;
        }
        let before = self.acknowledged.saturating_sub(1);
        self.to_host(before, Flags::ACK, hall);
        hall.totals.probes += 1;
        self.probe_wait = (self.probe_wait + self.probe_wait).min(LONGEST_PROBE);
        self.probe_at = hall.cx.now + self.probe_wait;
    }

    /// The timer of the first unacknowledged segment has expired: it goes again, and with it what is
    /// as old and in the host's window. What was sent beyond that the host may have dropped for want
    /// of what is missing; it goes once the window has moved on.
    fn send_expired(&mut self, hall: &mut Hall) {
        let now = hall.cx.now;
        let timeout = self.sender(hall).rto();
        let limit = self.acknowledged + self.host_window;
        let highest = self.unsent();
        let mut position = self.acknowledged;
        while let Some(held) = self.store.at(position).copied()
            && held.end <= highest
            && (position == self.acknowledged
                || held.end <= limit && now.since(held.sent_at) >= timeout)
        {
            self.depart(position, held.end, held, hall);
            position = held.end;
            if self.doubt.tries_short() {
                // The first tells whether short ones arrive.
                break;
            }
        }
    }

    /// The sender's timers.
    pub(super) fn sender_deadline(&mut self, hall: &mut Hall) {
        if self.store.bytes() == 0 || self.host_window == 0 {
            return;
        }
        let (now, by_timer) = (hall.cx.now, hall.settings.by_timer());
        let Some(sender) = &mut self.sender else {
            return;
        };
        if sender.next_deadline().is_none_or(|at| at > now) {
            return;
        }
        if sender.on_deadline(now) {
            hall.totals.timeouts += 1;
            self.suspect_black_hole(hall);
            let Some(sender) = &mut self.sender else {
                return;
            };
            if by_timer {
                self.send_expired(hall);
            } else {
                sender.timed_out(now);
            }
        }
        self.send(hall);
    }
}
