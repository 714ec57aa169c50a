//! The receiving half: text, the window we advertise, when to acknowledge.

use bentpipe_types::{Packet, SackBlocks, Seq, Time};
use serde::{Deserialize, Serialize};

use super::{Accepted, Connection};
use crate::options::{Negotiated, TIMESTAMPS_LENGTH, full_mss};
use crate::reassembly::{Inserted, Range, Reassembly};
use crate::right_sizing::{FIRST_PATIENCE, RightSizing, Stream, whole_units};
use crate::{Config, QuickAcks};

/// An IP header and a TCP header without options.
const HEADERS: u32 = 40;

/// No position.
pub(super) const NOWHERE: u64 = u64::MAX;

/// RFC 9293 section 3.3.1's receive sequence variables, and the rest of the receiving half.
#[derive(Debug, Serialize, Deserialize)]
#[repr(C)]
pub(super) struct Receive {
    /// The window's right edge moves by this much at least.
    window_step: u64,
    buffer: u64,
    /// A SYN offers whole segments of this many bytes.
    offer_unit: u64,
    /// No acknowledgment of an unacceptable segment without payload before this.
    pub(super) challenge_after: Time,
    /// RCV.NXT
    pub(super) next: u64,
    /// RFC 7323's Last.ACK.sent
    pub(super) last_acknowledged: u64,
    /// When the peer last acknowledged something, old or new.
    pub(super) heard_at: Time,
    pub(super) timestamp_recent_at: Time,
    /// RFC 7323's TS.Recent
    pub(super) timestamp_recent: u32,
    /// IRS
    pub(super) initial: Seq,
    /// The field that says it, as long as nothing has come or was read since it was worked out that moves it: who
    /// sends and receives nothing says the same in each segment, and so does who receives what is ahead of a gap into a
    /// buffer of one size.
    said: Option<u16>,
    /// An acknowledgment must go out now.
    pub(super) acknowledge_now: bool,
    /// The window is `sizing`'s.
    pub(super) grows: bool,
    /// The application reads everything at once.
    pub(super) sink: bool,
    /// Nobody will read what still comes.
    pub(super) refuses: bool,
    /// What Linux's window and acknowledgments go by, where they are asked for.
    pub(super) sizing: Option<Box<RightSizing>>,
    pub(super) reassembly: Reassembly,
    /// What has arrived twice, to be reported once (RFC 2883).
    pub(super) duplicate: Option<Range>,
    /// Up to where the application has read.
    pub(super) read: u64,
    /// The right edge of the window, as far as it was ever advertised: it never moves back
    /// (RFC 9293 section 3.8.6).
    pub(super) edge: u64,
    /// Nothing beyond is offered.
    pub(super) limit: u64,
    /// When data last came, or the connection was established.
    pub(super) data_at: Time,
    /// Where the peer's FIN is.
    pub(super) fin: u64,
    /// The largest payload that has come: what a full segment of the peer's is.
    largest_segment: u32,
    /// Acknowledgments that are not delayed, still to come.
    pub(super) quick_acks: u32,
    /// Linux: what the application sends soon after is an answer, and will carry acknowledgments.
    pub(super) is_answered: bool,
    /// The peer's FIN is not confirmed before somebody says so.
    pub(super) holds_fin: bool,
    says_again: bool,
    /// The acknowledgments are `sizing`'s.
    pub(super) quick_as_linux: bool,
    pub(super) shift: u8,
}

impl Receive {
    pub(super) fn new(config: &Config) -> Self {
        let buffer = config.most_received();
        let announced = u32::from(full_mss(config));
        let quick_as_linux = config.quick_acks == QuickAcks::Linux;
        let sizing = match config.receive_sizes {
            Some(sizes) => Some(RightSizing::new(sizes).clamped(config.window_clamp)),
            None => quick_as_linux
                .then(|| RightSizing::fixed(buffer, u32::from(config.mss), announced + HEADERS)),
        };
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
            quick_acks: match config.quick_acks {
                QuickAcks::First(count) => count,
                QuickAcks::Linux => 0,
            },
            largest_segment: 0,
            is_answered: false,
            data_at: Time::ZERO,
            heard_at: Time::ZERO,
            window_step: 1,
            buffer,
            limit: config.first_window.map_or(NOWHERE, |first| 1 + first),
            holds_fin: false,
            sizing: sizing.map(|sizing| {
                Box::new(sizing.waiting_for(config.delayed_ack, config.habits.times_in_ticks))
            }),
            grows: config.receive_sizes.is_some(),
            said: None,
            says_again: config.header_prediction,
            quick_as_linux,
            offer_unit: u64::from(announced),
            fin: NOWHERE,
            reassembly: Reassembly::new(ranges).forgetting(config.habits.forgets_blocks),
            duplicate: None,
            timestamp_recent_at: Time::ZERO,
            challenge_after: Time::ZERO,
            initial: Seq::default(),
        }
    }

    /// The peer's SYN has come.
    pub(super) fn synchronize(&mut self, initial: Seq, negotiated: &Negotiated) {
        self.initial = initial;
        self.reassembly.begin(initial);
        self.next = 1;
        self.shift = negotiated.receive_shift;
        if negotiated.timestamps {
            self.offer_unit -= u64::from(TIMESTAMPS_LENGTH).min(self.offer_unit - 1);
        }
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

    /// The connection is established.
    pub(super) fn established(&mut self, now: Time) {
        let next = self.next;
        let widest = self.widest_window();
        // What we have announced, whatever the peer has, less what options take.
        let segment = self.offer_unit;
        if let Some(sizing) = &mut self.sizing {
            sizing.established(segment, widest, next, now);
            self.said = None;
        }
    }

    /// The stream, as the receive buffer sees it.
    pub(super) fn stream(&self) -> Stream {
        Stream {
            next: self.in_order_end(),
            read: self.read,
            ahead: self.reassembly.bytes(),
            highest: self.reassembly.highest(),
        }
    }

    /// What is advertised and not yet used.
    #[inline]
    pub(super) fn window(&self) -> u64 {
        self.edge.saturating_sub(self.next)
    }

    /// The widest window that the field can say.
    fn widest_window(&self) -> u64 {
        u64::from(u16::MAX) << self.shift
    }

    /// So far before RCV.NXT may SND.UNA of the peer's be, at most. What it has outstanding lies in a window
    /// that some segment has said, but a FIN and a probe's byte, which need not; and that segment need not be
    /// ours, so that what we have ever said is no limit.
    pub(super) fn outstanding_maximum(&self) -> u64 {
        self.widest_window() + 2
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
        let mut possible = self.possible_edge();
        let unit = self.offer_unit;
        if let Some(sizing) = &mut self.sizing {
            let offered = sizing.initial_window(unit);
            if self.grows {
                possible = (1 + offered).min(self.limit);
            }
        }
        let window = (possible - 1).min(u64::from(u16::MAX));
        // Linux holds itself to the window that it would have said in a wider field.
        let offered = if self.grows { possible - 1 } else { window };
        self.edge = self.edge.max(1 + offered);
        self.reconsider_window();
        window as u16
    }

    /// The window field of any other segment. Advertises it.
    #[inline(always)]
    pub(super) fn window_field(&mut self) -> u16 {
        if let Some(field) = self.said {
            return field;
        }
        if self.grows {
            return self.growing_window_field();
        }
        // RFC 9293 section 3.8.6.2.2: the edge stays where it is until it can move by enough.
        let possible = self.possible_edge();
        let edge = if possible >= self.edge + self.window_step {
            possible
        } else {
            self.edge
        };
        let field = (edge.saturating_sub(self.next) >> self.shift).min(u64::from(u16::MAX));
        self.edge = self.edge.max(self.next + (field << self.shift));
        self.said = self.says_again.then_some(field as u16);
        field as u16
    }

    /// Linux's tcp_select_window: the window moves on with what arrives, and never back.
    #[inline(never)]
    fn growing_window_field(&mut self) -> u16 {
        let stream = self.stream();
        let (now, shift) = (self.window(), self.shift);
        let Some(sizing) = &mut self.sizing else {
            return 0;
        };
        let window = sizing
            .select_window(&stream, shift)
            .min(self.limit.saturating_sub(self.next))
            .max(whole_units(now, shift));
        sizing.advertised(window);
        let field = (window >> shift).min(u64::from(u16::MAX));
        self.edge = self.edge.max(self.next + (field << shift));
        // (Not scaled, it may go on from what was said last, without anything new.)
        self.said = (self.says_again && shift > 0).then_some(field as u16);
        field as u16
    }

    /// Text has come, whatever it is.
    #[inline]
    fn text_has_come(&mut self, now: Time) {
        self.reconsider_window();
        self.text_ahead_has_come(now);
    }

    /// Text has come that is all ahead of a gap: a window that does not grow stays what it is.
    #[inline]
    fn text_ahead_has_come(&mut self, now: Time) {
        self.data_at = now;
        self.is_answered = true;
        if self.grows {
            self.reconsider_window();
        }
    }

    /// Something has changed that the window depends on.
    #[inline]
    pub(super) fn reconsider_window(&mut self) {
        self.said = None;
    }

    /// Is what is sent now an answer to the last text that has come?
    pub(super) fn is_answer(&self, now: Time) -> bool {
        match &self.sizing {
            Some(sizing) => sizing.is_answered(self.data_at, now),
            None => now.since(self.data_at) < FIRST_PATIENCE,
        }
    }

    /// Linux's tcp_cleanup_rbuf: the application has read. More than a segment is acknowledged at once, and what the peer waits
    /// to hear of, where all was read.
    pub(super) fn acknowledge_what_is_read(&mut self) {
        let Some(sizing) = &self.sizing else {
            return;
        };
        let second = self.next - self.last_acknowledged > sizing.segment();
        let all = self.read == self.in_order_end() && self.reassembly.is_empty();
        self.acknowledge_now |= second || sizing.peer_waits() && all;
    }

    /// Has the application read enough that the peer should hear of it?
    pub(super) fn owes_window_update(&mut self) -> bool {
        let now = self.window();
        let stream = self.stream();
        if self.grows
            && let Some(sizing) = &mut self.sizing
        {
            return sizing.owes_update(&stream, now, self.shift);
        }
        let possible = (self.possible_edge())
            .saturating_sub(self.next)
            .min(self.widest_window());
        // RFC 9293 section 3.8.6.2.2, and as in Linux only when the window at least doubles:
        // acknowledgments of data carry smaller changes.
        possible >= now + self.window_step && possible >= 2 * now
    }

    /// The peer's FIN is ahead of a gap, and is told of like text there.
    #[cold]
    pub(super) fn keep_fin(&mut self, position: u64, sack: bool) {
        let range = Range {
            start: position,
            end: position + 1,
        };
        if let Inserted::Overlapping(common) = self.reassembly.insert(range) {
            self.duplicate = self.duplicate.or(Some(common));
        }
        let stream = self.stream();
        if let Some(sizing) = &mut self.sizing {
            sizing.fin_ahead(position, &stream, sack);
        }
        self.reconsider_window();
    }

    /// What comes makes no sense here.
    pub(super) fn is_odd(&mut self) {
        self.reconsider_window();
        if let Some(sizing) = &mut self.sizing {
            sizing.is_odd();
        }
    }

    /// An acknowledgment goes out.
    #[inline]
    pub(super) fn acknowledged(&mut self) {
        if let Some(sizing) = &mut self.sizing {
            sizing.acknowledged(self.acknowledge_now, self.next != self.last_acknowledged);
        }
        self.last_acknowledged = self.next;
        self.acknowledge_now = false;
    }

    /// Is there anything to report in a SACK option?
    #[inline]
    pub(super) fn has_blocks(&self) -> bool {
        !self.reassembly.is_empty() || self.duplicate.is_some()
    }

    /// The SACK option's blocks, if that is all there is to report: what is out of order.
    #[inline(always)]
    pub(super) fn sack_blocks(&self) -> Option<SackBlocks> {
        if self.duplicate.is_some() {
            return None;
        }
        self.reassembly.blocks()
    }

    /// The same, after what has arrived twice (RFC 2883).
    #[inline(never)]
    pub(super) fn sack_blocks_after(&self, duplicate: Range, maximum: usize) -> SackBlocks {
        let initial = self.initial;
        // RFC 2883 section 4: a duplicate above the acknowledgment is followed by the block that
        // it is part of.
        // (Linux's is the first of those that are remembered.)
        let around = (self.reassembly.containing(duplicate.start))
            .filter(|_| !self.reassembly.forgets_blocks());
        let blocks = self.reassembly.blocks().unwrap_or_default();
        let rest = (blocks.as_slice().iter().copied())
            .filter(|block| Some(*block) != around.map(|range| range.block(initial)));
        std::iter::once(duplicate)
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
        if start == 0 && length <= self.receive.window() as i64 && self.receive.fin == NOWHERE {
            return self.next_in_order(packet, now);
        }
        self.receive.text_has_come(now);
        self.unusual_text(packet, start, now)
    }

    /// The same, of text that begins `start` after RCV.NXT and lies in the window, before the peer's FIN has
    /// come.
    #[inline(always)]
    pub(super) fn next_ahead(
        &mut self,
        packet: &Packet,
        start: i64,
        now: Time,
    ) -> Option<Accepted> {
        self.receive.text_ahead_has_come(now);
        if !self.takes_ahead(self.receive.next + start as u64) {
            return None;
        }
        if self.receive.quick_as_linux {
            self.receive.duplicate = None;
        }
        let due = std::mem::replace(&mut self.receive.acknowledge_now, true);
        self.witness(packet, start);
        let length = u32::from(packet.payload_length);
        let from = self.receive.next + start as u64;
        let range = Range {
            start: from,
            end: from + u64::from(length),
        };
        self.keep_ahead(packet, range, due, now)
            .then_some(Accepted {
                offset: range.start - 1,
                length,
                skip: 0,
            })
    }

    /// Keeps text ahead of a gap; `due`: an acknowledgment was due before. False: there is no room for it.
    #[inline(always)]
    fn keep_ahead(&mut self, packet: &Packet, range: Range, due: bool, now: Time) -> bool {
        // RFC 5681 section 4.2: out of order, acknowledged at once
        self.sender.statistics.out_of_order += 1;
        let new = match self.receive.reassembly.insert(range) {
            Inserted::New => true,
            Inserted::Overlapping(common) => {
                self.sender.statistics.duplicates_received += 1;
                self.receive.duplicate = Some(common);
                false
            }
            Inserted::Refused => return false,
        };
        if self.receive.sizing.is_some() {
            self.sized_out_of_order(packet, range, new, due, now);
        }
        true
    }

    /// The same, of text that begins at RCV.NXT and lies in the window, before the peer's FIN has come.
    #[inline(always)]
    pub(super) fn next_in_order(&mut self, packet: &Packet, now: Time) -> Option<Accepted> {
        let length = u32::from(packet.payload_length);
        self.receive.text_has_come(now);
        if self.receive.asks_first() && !self.takes_next(packet, true) {
            return None;
        }
        self.witness(packet, 0);
        let offset = self.receive.next - 1;
        if self.receive.reassembly.is_empty() {
            self.receive.next += u64::from(length);
            if self.receive.sizing.is_some() {
                self.sized_in_order(packet, self.receive.next - u64::from(length), false, now);
            } else {
                self.delay_acknowledgment(length, now);
            }
        } else {
            let start = self.receive.next;
            self.in_order_before_a_gap(packet, start, start + u64::from(length), now);
        }
        debug_assert_eq!(self.receive.next, self.receive.in_order_end());
        self.deliver(self.receive.next, now);
        Some(Accepted {
            offset,
            length,
            skip: 0,
        })
    }

    /// Text that is not simply the next: a part of it may be old, beyond the window, or ahead.
    fn unusual_text(&mut self, packet: &Packet, start: i64, now: Time) -> Option<Accepted> {
        let receive = &mut self.receive;
        // Whatever is odd about it, the peer should know at once where we stand.
        let due = std::mem::replace(&mut receive.acknowledge_now, true);
        if receive.quick_as_linux {
            receive.duplicate = None; // (tcp_data_queue: told of or not)
        }
        let next = receive.next;
        let window = receive.window() as i64;
        let mut limit = receive.edge.min(receive.fin).saturating_sub(next) as i64;
        if self.sender.config.habits.takes_whole_segments && start < window && window > 0 {
            limit = receive.fin.saturating_sub(next).min(1 << 32) as i64;
        }
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
            self.receive.is_odd();
            if self.receive.quick_as_linux {
                self.receive.acknowledge_now = due;
                self.acknowledge_as_linux(due, now);
            }
            return None; // RFC 9293 section 3.4: with no window, nothing is taken
        }
        if from > 0 {
            self.mark_ahead(packet);
        }
        if self.receive.is_overfull() {
            self.receive.acknowledge_now = due;
            let room = match from {
                0 => self.takes_next(packet, false),
                _ => self.takes_ahead(next + from as u64),
            };
            if !room {
                return None;
            }
            self.receive.acknowledge_now = true;
        }
        self.witness(packet, start);
        let range = Range {
            start: next + from as u64,
            end: next + to as u64,
        };
        if from == 0 {
            if self.receive.quick_as_linux {
                // That a part of it is old is no reason (tcp_data_queue).
                self.receive.acknowledge_now = due;
            }
            let begins = next.saturating_add_signed(start);
            self.in_order_before_a_gap(packet, begins, range.end, now);
            self.deliver(self.receive.in_order_end(), now);
        } else if !self.keep_ahead(packet, range, due, now) {
            return None;
        }
        Some(Accepted {
            offset: range.start - 1,
            length: (to - from) as u32,
            skip: (from - start) as u32,
        })
    }

    /// A segment from `start` up to `end` is in order, and may join what waits behind a gap.
    fn in_order_before_a_gap(&mut self, packet: &Packet, start: u64, end: u64, now: Time) {
        let receive = &mut self.receive;
        let gap = !receive.reassembly.is_empty() || !receive.quick_as_linux;
        // RFC 2883 section 4: it is partly new, and partly what waits behind the gap.
        let joined = receive.reassembly.first_within(end);
        receive.duplicate = receive.duplicate.or(joined);
        receive.next = receive.reassembly.advance(end).min(receive.fin);
        if self.receive.sizing.is_some() {
            return self.sized_in_order(packet, start, gap, now);
        }
        // RFC 5681 section 4.2: a segment that fills a gap, or a part of one
        self.receive.acknowledge_now = true;
    }

    /// RFC 9293 section 3.8.6.3, RFC 5681 section 4.2: every second full segment, or this late.
    #[inline]
    pub(super) fn delay_acknowledgment(&mut self, length: u32, now: Time) {
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

    /// Hands what is in order, up to `end`, to the application.
    #[inline]
    fn deliver(&mut self, end: u64, now: Time) {
        if !self.receive.sink {
            self.events |= super::Events::READABLE;
            return;
        }
        let before = std::mem::replace(&mut self.receive.read, end);
        self.sender.statistics.bytes_delivered += end - before;
        self.sender.statistics.last_delivery_at = Some(now);
        if self.receive.sizing.is_some() {
            self.has_read(before, now);
        }
    }

    /// Does the payload say of itself what its sequence number says?
    #[inline]
    fn witness(&mut self, packet: &Packet, start: i64) {
        debug_assert!(packet.payload_length > 0, "no text");
        let expected = (self.receive.next - 1).wrapping_add_signed(start);
        self.sender.statistics.ranges_checked += 1;
        if packet.payload_offset != expected {
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
        if let Some(sizing) = &mut self.receive.sizing {
            sizing.fin_is_next(self.receive.next);
        }
        self.receive.next += 1;
        self.receive.reconsider_window();
        self.receive.acknowledge_now = true;
        true
    }
}
