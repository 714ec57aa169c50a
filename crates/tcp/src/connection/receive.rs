//! The receiving half: text, the window we advertise, when to acknowledge.

use bentpipe_types::{Packet, SackBlocks, Seq, Time};

use super::{Accepted, Connection};
use crate::Config;
use crate::options::Negotiated;
use crate::reassembly::{Inserted, Range, Reassembly};

/// No position.
pub(super) const NOWHERE: u64 = u64::MAX;

/// RFC 9293 section 3.3.1's receive sequence variables, and the rest of the receiving half.
#[derive(Debug)]
pub(super) struct Receive {
    /// RCV.NXT
    pub(super) next: u64,
    /// Up to where the application has read.
    pub(super) read: u64,
    /// The right edge of the window, as far as it was ever advertised: it never moves back
    /// (RFC 9293 section 3.8.6).
    pub(super) edge: u64,
    /// RFC 7323's Last.ACK.sent
    pub(super) last_acknowledged: u64,
    /// The application reads everything at once.
    pub(super) sink: bool,
    /// Nobody will read what still comes.
    pub(super) refuses: bool,
    /// An acknowledgment must go out now.
    pub(super) acknowledge_now: bool,
    /// RFC 7323's TS.Recent
    pub(super) timestamp_recent: u32,
    shift: u8,
    /// Acknowledgments that are not delayed, still to come.
    pub(super) quick_acks: u32,
    /// The largest payload that has come: what a full segment of the peer's is.
    largest_segment: u32,
    /// Linux: what the application sends soon after is an answer, and will carry acknowledgments.
    pub(super) is_answered: bool,
    /// When data last came, or the connection was established.
    pub(super) data_at: Time,
    /// When the peer last acknowledged something, old or new.
    pub(super) heard_at: Time,
    /// The window's right edge moves by this much at least.
    window_step: u64,
    buffer: u64,
    /// Nothing beyond is offered.
    pub(super) limit: u64,
    /// The peer's FIN is not confirmed before somebody says so.
    pub(super) holds_fin: bool,
    /// Where the peer's FIN is.
    pub(super) fin: u64,
    pub(super) reassembly: Reassembly,
    /// What has arrived twice, to be reported once (RFC 2883).
    pub(super) duplicate: Option<Range>,
    pub(super) timestamp_recent_at: Time,
    /// No acknowledgment of an unacceptable segment without payload before this.
    pub(super) challenge_after: Time,
    /// IRS
    pub(super) initial: Seq,
}

impl Receive {
    pub(super) fn new(config: &Config) -> Self {
        // RFC 7323 section 2.3: what 16 bits and a shift of 14 can say, at most
        let buffer = config.receive_buffer.min(u64::from(u16::MAX) << 14);
        // An honest peer's gaps are segments apart; 536 is the smallest MSS to expect.
        let ranges = (buffer / 536).clamp(64, 1 << 17) as usize;
        Self {
            next: 0,
            read: 1,
            edge: 1,
            last_acknowledged: 0,
            sink: false,
            refuses: false,
            acknowledge_now: false,
            timestamp_recent: 0,
            shift: 0,
            quick_acks: config.quick_acks,
            largest_segment: 0,
            is_answered: false,
            data_at: Time::ZERO,
            heard_at: Time::ZERO,
            window_step: 1,
            buffer,
            limit: config.first_window.map_or(NOWHERE, |first| 1 + first),
            holds_fin: false,
            fin: NOWHERE,
            reassembly: Reassembly::new(ranges),
            duplicate: None,
            timestamp_recent_at: Time::ZERO,
            challenge_after: Time::ZERO,
            initial: Seq::default(),
        }
    }

    /// The peer's SYN has come.
    pub(super) fn synchronize(&mut self, initial: Seq, negotiated: &Negotiated) {
        self.initial = initial;
        self.next = 1;
        self.shift = negotiated.receive_shift;
        // RFC 9293 section 3.8.6.2.2: min(Fr * RCV.BUFF, Eff.snd.MSS), Fr = 1/2
        self.window_step = (self.buffer / 2).min(u64::from(negotiated.segment)).max(1);
    }

    /// The sequence number that is expected next.
    #[inline]
    pub(super) fn wire(&self) -> Seq {
        self.initial + self.next as u32
    }

    /// The largest payload that has come; before the first, the least that a peer may send in full.
    pub(super) fn largest_segment(&self) -> u32 {
        self.largest_segment
    }

    /// What is advertised and not yet used.
    #[inline]
    pub(super) fn window(&self) -> u64 {
        self.edge.saturating_sub(self.next)
    }

    /// After the last byte that has arrived in order.
    #[inline]
    pub(super) fn in_order_end(&self) -> u64 {
        self.next.clamp(1, self.fin)
    }

    /// Where the window may end.
    #[inline]
    fn possible_edge(&self) -> u64 {
        (self.read + self.buffer).min(self.limit)
    }

    /// The window field of a SYN: never scaled (RFC 7323 section 2.2).
    pub(super) fn syn_window_field(&mut self) -> u16 {
        let window = (self.possible_edge() - 1).min(u64::from(u16::MAX));
        self.edge = self.edge.max(1 + window);
        window as u16
    }

    /// The window field of any other segment. Advertises it.
    #[inline]
    pub(super) fn window_field(&mut self) -> u16 {
        // RFC 9293 section 3.8.6.2.2: the edge stays where it is until it can move by enough.
        let possible = self.possible_edge();
        let edge = if possible >= self.edge + self.window_step {
            possible
        } else {
            self.edge
        };
        let field = (edge.saturating_sub(self.next) >> self.shift).min(u64::from(u16::MAX));
        self.edge = self.edge.max(self.next + (field << self.shift));
        field as u16
    }

    /// Has the application read enough that the peer should hear of it?
    pub(super) fn owes_window_update(&self) -> bool {
        let now = self.window();
        let field = u64::from(u16::MAX) << self.shift;
        let possible = (self.possible_edge()).saturating_sub(self.next).min(field);
        // RFC 9293 section 3.8.6.2.2, and as in Linux only when the window at least doubles:
        // acknowledgments of data carry smaller changes.
        possible >= now + self.window_step && possible >= 2 * now
    }

    /// Is there anything to report in a SACK option?
    #[inline]
    pub(super) fn has_blocks(&self) -> bool {
        !self.reassembly.is_empty() || self.duplicate.is_some()
    }

    /// The SACK option's blocks: a duplicate first (RFC 2883), then what is out of order.
    pub(super) fn sack_blocks(&mut self, maximum: usize) -> SackBlocks {
        let initial = self.initial;
        let duplicate = self.duplicate.take();
        // RFC 2883 section 4: a duplicate above the acknowledgment is followed by the block that
        // it is part of.
        let around = duplicate.and_then(|range| self.reassembly.containing(range.start));
        let rest = self
            .reassembly
            .blocks(initial)
            .filter(|block| Some(*block) != around.map(|range| range.block(initial)));
        duplicate
            .into_iter()
            .chain(around)
            .map(|range| range.block(initial))
            .chain(rest)
            .take(maximum)
            .collect()
    }
}

impl Connection {
    /// RFC 9293 section 3.10.7.4 step 7, for a segment whose text begins `start` after RCV.NXT
    /// (before it, if negative). Returns what was accepted.
    #[inline]
    pub(super) fn text(&mut self, packet: &Packet, start: i64, now: Time) -> Option<Accepted> {
        let length = i64::from(packet.payload_length);
        self.receive.data_at = now;
        self.receive.is_answered = true;
        if start == 0 && length <= self.receive.window() as i64 && self.receive.fin == NOWHERE {
            self.witness(packet, start);
            let offset = self.receive.next - 1;
            if self.receive.reassembly.is_empty() {
                self.receive.next += length as u64;
                self.delay_acknowledgment(length as u32, now);
            } else {
                self.in_order_before_a_gap(self.receive.next + length as u64);
            }
            self.deliver(now);
            return Some(Accepted {
                offset,
                length: length as u32,
                skip: 0,
            });
        }
        self.unusual_text(packet, start, now)
    }

    /// Text that is not simply the next: a part of it may be old, beyond the window, or ahead.
    fn unusual_text(&mut self, packet: &Packet, start: i64, now: Time) -> Option<Accepted> {
        let receive = &mut self.receive;
        // Whatever is odd about it, the peer should know at once where we stand.
        receive.acknowledge_now = true;
        let next = receive.next;
        let limit = receive.edge.min(receive.fin).saturating_sub(next) as i64;
        let end = start + i64::from(packet.payload_length);
        let from = start.max(0);
        let to = end.min(limit);
        if start < 0 {
            self.sender.statistics.duplicates_received += 1;
            // RFC 2883 section 4
            let old = Range {
                start: next.saturating_add_signed(start),
                end: next.saturating_add_signed(end.min(0)),
            };
            self.receive.duplicate = (old.start < old.end).then_some(old);
        }
        if from >= to {
            return None; // RFC 9293 section 3.4: with no window, nothing is taken
        }
        self.witness(packet, start);
        let range = Range {
            start: next + from as u64,
            end: next + to as u64,
        };
        if from == 0 {
            self.in_order_before_a_gap(range.end);
            self.deliver(now);
        } else {
            // RFC 5681 section 4.2: out of order, acknowledged at once
            self.sender.statistics.out_of_order += 1;
            match self.receive.reassembly.insert(range) {
                Inserted::New => {}
                Inserted::Overlapping(common) => {
                    self.sender.statistics.duplicates_received += 1;
                    self.receive.duplicate = Some(common);
                }
                Inserted::Refused => return None,
            }
        }
        Some(Accepted {
            offset: range.start - 1,
            length: (to - from) as u32,
            skip: (from - start) as u32,
        })
    }

    /// Data up to `end` is in order, and may join what waits behind a gap.
    fn in_order_before_a_gap(&mut self, end: u64) {
        let receive = &mut self.receive;
        // RFC 2883 section 4: it is partly new, and partly what waits behind the gap.
        let joined = receive.reassembly.first_within(end);
        receive.duplicate = receive.duplicate.or(joined);
        receive.next = receive.reassembly.advance(end);
        // RFC 5681 section 4.2: a segment that fills a gap, or a part of one
        self.receive.acknowledge_now = true;
    }

    /// RFC 9293 section 3.8.6.3, RFC 5681 section 4.2: every second full segment, or this late.
    #[inline]
    fn delay_acknowledgment(&mut self, length: u32, now: Time) {
        let receive = &mut self.receive;
        if length > receive.largest_segment {
            receive.largest_segment = length;
        }
        // As Linux has it: when more than one full segment is unacknowledged.
        if receive.next - receive.last_acknowledged > u64::from(receive.largest_segment) {
            receive.acknowledge_now = true;
            return;
        }
        match self.sender.config.delayed_ack {
            Some(delay) if receive.quick_acks == 0 => {
                self.sender.timers.delay_acknowledgment(now + delay)
            }
            _ => {
                receive.quick_acks = receive.quick_acks.saturating_sub(1);
                receive.acknowledge_now = true;
            }
        }
    }

    /// Hands what is in order to the application.
    #[inline]
    fn deliver(&mut self, now: Time) {
        if !self.receive.sink {
            self.events |= super::Events::READABLE;
            return;
        }
        let end = self.receive.in_order_end();
        self.sender.statistics.bytes_delivered += end - self.receive.read;
        self.sender.statistics.last_delivery_at = Some(now);
        self.receive.read = end;
    }

    /// Does the payload say of itself what its sequence number says?
    #[inline]
    fn witness(&mut self, packet: &Packet, start: i64) {
        let expected = (self.receive.next - 1).wrapping_add_signed(start);
        self.sender.statistics.ranges_checked += 1;
        if packet.payload_length > 0 && packet.payload_offset != expected {
            self.sender.statistics.payload_mismatches += 1;
        }
    }

    /// RFC 9293 section 3.10.7.4 step 8: the peer's FIN, if all before it is here.
    pub(super) fn fin_in_order(&mut self) -> bool {
        if self.receive.next != self.receive.fin {
            return false;
        }
        if self.receive.holds_fin {
            self.events |= super::Events::PEER_CLOSED;
            return false;
        }
        self.receive.next += 1;
        self.receive.acknowledge_now = true;
        true
    }
}
