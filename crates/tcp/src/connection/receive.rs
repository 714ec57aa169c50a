//! The receiving half: data, advertised window, and ACK policy.

use bentpipe_types::{Packet, SackBlocks, Seq, Time};
use serde::{Deserialize, Serialize};

use super::{Accepted, Connection};
use crate::options::{Negotiated, TIMESTAMPS_LENGTH, full_mss};
use crate::reassembly::{Inserted, Range, Reassembly};
use crate::receive_buffer_autotuning::{
    INITIAL_ACK_DELAY, ReceiveBufferAutotuning, StreamState, whole_units,
};
use crate::{Config, QuickAcks};

/// Length of an IPv4 header and a TCP header without options.
const HEADERS: u32 = 40;

/// Value of a position that is not set.
pub(super) const UNSET: u64 = u64::MAX;

/// The receive sequence variables of RFC 9293 section 3.3.1, and the rest of the receiving half.
#[derive(Debug, Serialize, Deserialize)]
#[repr(C)]
pub(super) struct Receive {
    /// Minimum by which the right edge of the window moves.
    window_step: u64,
    buffer: u64,
    /// The window of a SYN is a multiple of this many bytes.
    offer_unit: u64,
    /// Earliest time of the next rate-limited challenge ACK.
    pub(super) challenge_after: Time,
    /// RCV.NXT.
    pub(super) next: u64,
    /// RFC 7323 section 4.3: Last.ACK.sent, the last acknowledgment number sent.
    pub(super) last_acknowledged: u64,
    /// Arrival time of the peer's last acknowledgment, of old or new data.
    pub(super) last_received_at: Time,
    pub(super) timestamp_recent_at: Time,
    /// RFC 7323 section 4.3: TS.Recent, the timestamp to echo (RFC 7323 section 3.2: TSecr).
    pub(super) timestamp_recent: u32,
    /// Initial receive sequence number (IRS).
    pub(super) initial: Seq,
    /// Cached window field. Valid until received or read data changes the window. It saves work for
    /// an end that neither sends nor receives data, and for out-of-order data in a buffer of fixed
    /// size.
    cached_field: Option<u16>,
    /// An acknowledgment must be sent now.
    pub(super) acknowledge_now: bool,
    /// The window is determined by `sizing`.
    pub(super) is_autotuned: bool,
    /// The application reads everything at once.
    pub(super) sink: bool,
    /// The application has ended: arriving data is answered with a RST.
    pub(super) reader_gone: bool,
    /// Linux's receive buffer and ACK policy, if configured.
    pub(super) sizing: Option<Box<ReceiveBufferAutotuning>>,
    pub(super) reassembly: Reassembly,
    /// RFC 2883 section 4: a duplicate range to report once in a D-SACK.
    pub(super) duplicate: Option<Range>,
    /// Position up to which the application has read.
    pub(super) read: u64,
    /// RFC 9293 section 3.8.6: the right edge of the window as advertised; it never moves back. So
    /// all data that any window admitted is accepted (RFC 7323 section 2.4).
    pub(super) edge: u64,
    /// No window is advertised beyond this position.
    pub(super) limit: u64,
    /// Time of the last data, or of the establishment of the connection.
    pub(super) data_at: Time,
    /// Position of the peer's FIN.
    pub(super) fin: u64,
    /// The largest payload received: the estimate of the peer's full segment.
    largest_segment: u32,
    /// Remaining number of acknowledgments that are not delayed (quick ACKs).
    pub(super) quick_acks: u32,
    /// Linux: data that the application sends soon is an answer and carries the acknowledgment.
    pub(super) answer_pending: bool,
    /// The peer's FIN is not acknowledged before `confirm_close`.
    pub(super) holds_fin: bool,
    caches_field: bool,
    /// Acknowledgments follow Linux's policy in `sizing`.
    pub(super) linux_ack_policy: bool,
    pub(super) shift: u8,
}

impl Receive {
    pub(super) fn new(config: &Config) -> Self {
        let buffer = config.maximum_received();
        let announced = u32::from(full_mss(config));
        let linux_ack_policy = config.quick_acks == QuickAcks::Linux;
        let sizing = match config.receive_sizes {
            Some(sizes) => {
                Some(ReceiveBufferAutotuning::new(sizes).with_clamp(config.window_clamp))
            }
            None => linux_ack_policy.then(|| {
                ReceiveBufferAutotuning::fixed(buffer, u32::from(config.mss), announced + HEADERS)
            }),
        };
        // An honest peer's gaps are segments apart; 536 is the smallest MSS to expect.
        let ranges = (buffer / 536).clamp(64, 1 << 17) as usize;
        Self {
            next: 0,
            read: 1,
            edge: 1,
            last_acknowledged: 0,
            sink: false,
            reader_gone: false,
            acknowledge_now: false,
            timestamp_recent: 0,
            shift: 0,
            quick_acks: match config.quick_acks {
                QuickAcks::First(count) => count,
                QuickAcks::Linux => 0,
            },
            largest_segment: 0,
            answer_pending: false,
            data_at: Time::ZERO,
            last_received_at: Time::ZERO,
            window_step: 1,
            buffer,
            limit: config.first_window.map_or(UNSET, |first| 1 + first),
            holds_fin: false,
            sizing: sizing.map(|sizing| {
                let ticks = config.linux_quirks.timers.ticks;
                let delaying = sizing.with_ack_delay(config.delayed_ack, ticks);
                Box::new(delaying.with_clock(config.clock))
            }),
            is_autotuned: config.receive_sizes.is_some(),
            cached_field: None,
            caches_field: config.header_prediction,
            linux_ack_policy,
            offer_unit: u64::from(announced),
            fin: UNSET,
            reassembly: Reassembly::new(ranges)
                .with_linux_blocks(config.linux_quirks.acks.remembers_four_sack_blocks),
            duplicate: None,
            timestamp_recent_at: Time::ZERO,
            challenge_after: Time::ZERO,
            initial: Seq::default(),
        }
    }

    /// Initialises the receiving half from the peer's SYN.
    pub(super) fn synchronize(&mut self, initial: Seq, negotiated: &Negotiated) {
        self.initial = initial;
        self.reassembly.begin(initial);
        self.next = 1;
        self.shift = negotiated.receive_shift;
        if negotiated.timestamps {
            self.offer_unit -= u64::from(TIMESTAMPS_LENGTH).min(self.offer_unit - 1);
        }
        // RFC 9293 section 3.8.6.2.2: min(Fr * RCV.BUFF, Eff.snd.MSS), Fr = 1/2.
        self.window_step = (self.buffer / 2).min(u64::from(negotiated.segment)).max(1);
    }

    /// The sequence number of RCV.NXT.
    #[inline]
    pub(super) fn wire(&self) -> Seq {
        self.initial + self.next as u32
    }

    /// The largest payload received; 0 before the first.
    pub(super) fn largest_segment(&self) -> u32 {
        self.largest_segment
    }

    /// Initialises Linux's receive buffer when the connection is established.
    pub(super) fn established(&mut self, now: Time) {
        let next = self.next;
        let widest = self.widest_window();
        // The MSS that we announced, whatever the peer's is, less the options.
        let segment = self.offer_unit;
        if let Some(sizing) = &mut self.sizing {
            sizing.established(segment, widest, next, now);
            self.cached_field = None;
        }
    }

    /// State of the stream for the receive buffer.
    pub(super) fn stream(&self) -> StreamState {
        StreamState {
            next: self.in_order_end(),
            read: self.read,
            ahead: self.reassembly.bytes(),
            highest: self.reassembly.highest(),
        }
    }

    /// Advertised window that is not used yet.
    #[inline]
    pub(super) fn window(&self) -> u64 {
        self.edge.saturating_sub(self.next)
    }

    /// The largest window that the field can express.
    fn widest_window(&self) -> u64 {
        u64::from(u16::MAX) << self.shift
    }

    /// Maximum distance of the peer's SND.UNA behind RCV.NXT. Its outstanding data lies within a
    /// window that some segment advertised, plus a FIN and the byte of a window probe. That segment
    /// need not be ours, so the windows that we advertised are no limit.
    pub(super) fn outstanding_maximum(&self) -> u64 {
        self.widest_window() + 2
    }

    /// Position after the last byte received in order.
    #[inline]
    pub(super) fn in_order_end(&self) -> u64 {
        self.next.clamp(1, self.fin)
    }

    /// The furthest right edge that the buffer and the limit allow.
    #[inline]
    fn possible_edge(&self) -> u64 {
        (self.read + self.buffer).min(self.limit)
    }

    /// RFC 7323 section 2.2: the window field of a SYN is never scaled.
    pub(super) fn syn_window_field(&mut self) -> u16 {
        let mut possible = self.possible_edge();
        let unit = self.offer_unit;
        if let Some(sizing) = &mut self.sizing {
            let offered = sizing.initial_window(unit);
            if self.is_autotuned {
                possible = (1 + offered).min(self.limit);
            }
        }
        let window = (possible - 1).min(u64::from(u16::MAX));
        // Linux counts on the window that a wider field would have expressed.
        let offered = if self.is_autotuned {
            possible - 1
        } else {
            window
        };
        self.edge = self.edge.max(1 + offered);
        self.invalidate_window_field();
        window as u16
    }

    /// The window field of a segment that is no SYN. Records it as advertised.
    #[inline(always)]
    pub(super) fn window_field(&mut self) -> u16 {
        if let Some(field) = self.cached_field {
            return field;
        }
        if self.is_autotuned {
            return self.growing_window_field();
        }
        // RFC 9293 section 3.8.6.2.2: the right edge stays until it can move by enough.
        let possible = self.possible_edge();
        let edge = if possible >= self.edge + self.window_step {
            possible
        } else {
            self.edge
        };
        // RFC 7323 section 2.3: the field is shifted right.
        let field = (edge.saturating_sub(self.next) >> self.shift).min(u64::from(u16::MAX));
        self.edge = self.edge.max(self.next + (field << self.shift));
        self.cached_field = self.caches_field.then_some(field as u16);
        field as u16
    }

    /// The window field with receive buffer autotuning, as Linux's tcp_select_window.
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
        // An unscaled window may move on without an event that would invalidate the cache.
        self.cached_field = (self.caches_field && shift > 0).then_some(field as u16);
        field as u16
    }

    /// Records the arrival of data.
    #[inline]
    fn record_data(&mut self, now: Time) {
        self.invalidate_window_field();
        self.record_out_of_order_data(now);
    }

    /// Records the arrival of out-of-order data, which does not change a window of fixed size.
    #[inline]
    fn record_out_of_order_data(&mut self, now: Time) {
        self.data_at = now;
        self.answer_pending = true;
        if self.is_autotuned {
            self.invalidate_window_field();
        }
    }

    /// Invalidates the cached window field.
    #[inline]
    pub(super) fn invalidate_window_field(&mut self) {
        self.cached_field = None;
    }

    /// Whether a segment sent now is an answer to the last received data.
    pub(super) fn is_answer(&self, now: Time) -> bool {
        match &self.sizing {
            Some(sizing) => sizing.is_answer(self.data_at, now),
            None => now.since(self.data_at) < INITIAL_ACK_DELAY,
        }
    }

    /// Requests an acknowledgment after a read, as Linux's tcp_cleanup_rbuf: at once for more than
    /// a segment, or if everything was read and the peer waits for it.
    pub(super) fn acknowledge_after_read(&mut self) {
        let Some(sizing) = &self.sizing else {
            return;
        };
        let second = self.next - self.last_acknowledged > sizing.segment();
        let all = self.read == self.in_order_end() && self.reassembly.is_empty();
        self.acknowledge_now |= second || sizing.peer_waits() && all;
    }

    /// Whether a window update is due after a read.
    pub(super) fn owes_window_update(&mut self) -> bool {
        let now = self.window();
        let stream = self.stream();
        if self.is_autotuned
            && let Some(sizing) = &mut self.sizing
        {
            return sizing.owes_update(&stream, now, self.shift);
        }
        let possible = (self.possible_edge())
            .saturating_sub(self.next)
            .min(self.widest_window());
        // RFC 9293 section 3.8.6.2.2. As in Linux, only if the window at least doubles:
        // acknowledgments of data report smaller changes.
        possible >= now + self.window_step && possible >= 2 * now
    }

    /// Records an out-of-order FIN, which is then reported in SACK blocks like data.
    #[cold]
    pub(super) fn store_out_of_order_fin(&mut self, position: u64, sack: bool) {
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
        self.invalidate_window_field();
    }

    /// Records an unexpected segment.
    pub(super) fn on_unexpected_segment(&mut self) {
        self.invalidate_window_field();
        if let Some(sizing) = &mut self.sizing {
            sizing.on_unexpected_segment();
        }
    }

    /// Records that an acknowledgment is sent.
    #[inline]
    pub(super) fn on_ack_sent(&mut self) {
        if let Some(sizing) = &mut self.sizing {
            sizing.on_ack_sent(self.acknowledge_now, self.next != self.last_acknowledged);
        }
        self.last_acknowledged = self.next;
        self.acknowledge_now = false;
    }

    /// Whether there is anything to report in a SACK option.
    #[inline]
    pub(super) fn has_blocks(&self) -> bool {
        !self.reassembly.is_empty() || self.duplicate.is_some()
    }

    /// The SACK blocks of the out-of-order data; `None` if a D-SACK is to be reported too.
    #[inline(always)]
    pub(super) fn sack_blocks(&self) -> Option<SackBlocks> {
        if self.duplicate.is_some() {
            return None;
        }
        self.reassembly.blocks()
    }

    /// RFC 2883 section 4: the D-SACK block, followed by the SACK blocks.
    #[inline(never)]
    pub(super) fn dsack_and_sack_blocks(&self, duplicate: Range, maximum: usize) -> SackBlocks {
        let initial = self.initial;
        // RFC 2883 section 4: a duplicate above the acknowledgment is followed by the block that
        // contains it. (In Linux by the first remembered block.)
        let around = (self.reassembly.containing(duplicate.start))
            .filter(|_| !self.reassembly.has_linux_blocks());
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
    /// Accepts the data of a segment that begins `start` after RCV.NXT, or before it if negative
    /// (RFC 9293 section 3.10.7.4 step 7). Returns what was accepted.
    #[inline]
    pub(super) fn accept_data(
        &mut self,
        packet: &Packet,
        start: i64,
        now: Time,
    ) -> Option<Accepted> {
        let length = i64::from(packet.payload_length);
        if start == 0 && length <= self.receive.window() as i64 && self.receive.fin == UNSET {
            return self.accept_in_order(packet, now);
        }
        self.receive.record_data(now);
        self.accept_unusual_data(packet, start, now)
    }

    /// Accepts out-of-order data that begins `start` after RCV.NXT and lies in the window, while no
    /// FIN was received.
    #[inline(always)]
    pub(super) fn accept_out_of_order(
        &mut self,
        packet: &Packet,
        start: i64,
        now: Time,
    ) -> Option<Accepted> {
        self.receive.record_out_of_order_data(now);
        if !self.has_room_out_of_order(self.receive.next + start as u64) {
            return None;
        }
        if self.receive.linux_ack_policy {
            self.receive.duplicate = None;
        }
        let due = std::mem::replace(&mut self.receive.acknowledge_now, true);
        self.check_payload_offset(packet, start);
        let length = u32::from(packet.payload_length);
        let from = self.receive.next + start as u64;
        let range = Range {
            start: from,
            end: from + u64::from(length),
        };
        self.store_out_of_order(packet, range, due, now)
            .then_some(Accepted {
                offset: range.start - 1,
                length,
                skip: 0,
            })
    }

    /// Stores out-of-order data. `due`: an acknowledgment was due before. Returns false if there is
    /// no room.
    #[inline(always)]
    fn store_out_of_order(&mut self, packet: &Packet, range: Range, due: bool, now: Time) -> bool {
        // RFC 5681 section 4.2: out-of-order data is acknowledged at once.
        // RFC 5681 section 3.2: so that the sender detects the gap.
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
            self.linux_out_of_order(packet, range, new, due, now);
        }
        true
    }

    /// Accepts data that begins at RCV.NXT and lies in the window, while no FIN was received.
    #[inline(always)]
    pub(super) fn accept_in_order(&mut self, packet: &Packet, now: Time) -> Option<Accepted> {
        let length = u32::from(packet.payload_length);
        self.receive.record_data(now);
        if self.receive.checks_before_acceptance() && !self.has_room_in_order(packet, true) {
            return None;
        }
        self.check_payload_offset(packet, 0);
        let offset = self.receive.next - 1;
        if self.receive.reassembly.is_empty() {
            self.receive.next += u64::from(length);
            if self.receive.sizing.is_some() {
                self.linux_in_order(packet, self.receive.next - u64::from(length), false, now);
            } else {
                self.delay_acknowledgment(length, now);
            }
        } else {
            let start = self.receive.next;
            self.accept_before_gap(packet, start, start + u64::from(length), now);
        }
        debug_assert_eq!(self.receive.next, self.receive.in_order_end());
        self.deliver(self.receive.next, now);
        Some(Accepted {
            offset,
            length,
            skip: 0,
        })
    }

    /// Accepts data of which a part may be old, beyond the window or out of order.
    fn accept_unusual_data(&mut self, packet: &Packet, start: i64, now: Time) -> Option<Accepted> {
        let receive = &mut self.receive;
        // An unexpected segment is acknowledged at once, to inform the peer of our position.
        let due = std::mem::replace(&mut receive.acknowledge_now, true);
        if receive.linux_ack_policy {
            receive.duplicate = None; // tcp_data_queue: the D-SACK is dropped, reported or not.
        }
        let next = receive.next;
        let window = receive.window() as i64;
        let mut limit = receive.edge.min(receive.fin).saturating_sub(next) as i64;
        if self.sender.quirks().acceptance.accepts_beyond_window && start < window && window > 0 {
            limit = receive.fin.saturating_sub(next).min(1 << 32) as i64;
        }
        let end = start + i64::from(packet.payload_length);
        let from = start.max(0);
        let to = end.min(limit);
        if start < 0 {
            self.sender.statistics.duplicates_received += 1;
            // RFC 2883 section 4: old data is reported in a D-SACK.
            let old = Range {
                start: next.saturating_add_signed(start),
                end: next.saturating_add_signed(end.min(0)),
            };
            self.receive.duplicate = (old.start < old.end).then_some(old);
        }
        if from >= to {
            self.receive.on_unexpected_segment();
            if self.receive.linux_ack_policy {
                self.receive.acknowledge_now = due;
                self.acknowledge_as_linux(due, now);
            }
            return None; // RFC 9293 section 3.4: no data is accepted with a zero window.
        }
        if from > 0 {
            self.record_out_of_order_mark(packet);
        }
        if self.receive.is_overfull() {
            self.receive.acknowledge_now = due;
            let room = match from {
                0 => self.has_room_in_order(packet, false),
                _ => self.has_room_out_of_order(next + from as u64),
            };
            if !room {
                return None;
            }
            self.receive.acknowledge_now = true;
        }
        self.check_payload_offset(packet, start);
        let range = Range {
            start: next + from as u64,
            end: next + to as u64,
        };
        if from == 0 {
            if self.receive.linux_ack_policy {
                // In Linux, a partly old segment is no reason for an immediate acknowledgment
                // (tcp_data_queue).
                self.receive.acknowledge_now = due;
            }
            let begins = next.saturating_add_signed(start);
            self.accept_before_gap(packet, begins, range.end, now);
            self.deliver(self.receive.in_order_end(), now);
        } else if !self.store_out_of_order(packet, range, due, now) {
            return None;
        }
        Some(Accepted {
            offset: range.start - 1,
            length: (to - from) as u32,
            skip: (from - start) as u32,
        })
    }

    /// Accepts in-order data from `start` to `end`, which may join out-of-order data behind a gap.
    fn accept_before_gap(&mut self, packet: &Packet, start: u64, end: u64, now: Time) {
        let receive = &mut self.receive;
        let gap = !receive.reassembly.is_empty() || !receive.linux_ack_policy;
        // RFC 2883 section 4: the segment may overlap out-of-order data.
        let joined = receive.reassembly.first_within(end);
        receive.duplicate = receive.duplicate.or(joined);
        receive.next = receive.reassembly.advance(end).min(receive.fin);
        if self.receive.sizing.is_some() {
            return self.linux_in_order(packet, start, gap, now);
        }
        // RFC 5681 section 4.2: "send an immediate ACK when it receives a data segment that fills
        // in all or part of a gap in the sequence space."
        self.receive.acknowledge_now = true;
    }

    /// Delays an acknowledgment (RFC 9293 section 3.8.6.3, RFC 5681 section 4.2): one for every
    /// second full segment (`Config::ack_every`), or at the latest after the configured delay.
    #[inline]
    pub(super) fn delay_acknowledgment(&mut self, length: u32, now: Time) {
        let receive = &mut self.receive;
        if length > receive.largest_segment {
            receive.largest_segment = length;
        }
        // As in Linux: more than one full segment is unacknowledged, or one less than `ack_every`.
        let delayed = u64::from(self.sender.config.ack_every - 1);
        if receive.next - receive.last_acknowledged > delayed * u64::from(receive.largest_segment) {
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

    /// Makes in-order data up to `end` available to the application.
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
            self.after_read(before, now);
        }
    }

    /// Checks that the payload's own stream offset matches its sequence number.
    #[inline]
    fn check_payload_offset(&mut self, packet: &Packet, start: i64) {
        debug_assert!(packet.payload_length > 0, "no data");
        let expected = (self.receive.next - 1).wrapping_add_signed(start);
        self.sender.statistics.ranges_checked += 1;
        if packet.payload_offset != expected {
            self.sender.statistics.payload_mismatches += 1;
        }
    }

    /// Accepts the peer's FIN, if all data before it was received (RFC 9293 section 3.10.7.4 step
    /// 8).
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
        self.receive.invalidate_window_field();
        self.receive.acknowledge_now = true;
        true
    }
}
