//! Transmission of segments.

use bentpipe_types::{Ctx, Flags, Packet, PacketRef, Time};

use super::next_segment::NextSegment;
use super::send_buffer::Burst;
use super::specialization::{General, NewDataOnly, Specialization};
use super::{Connection, Sender, State};
use crate::config::IdleRestart;
use crate::options::{TIMESTAMPS_LENGTH, sack_length, syn_options_length};
use crate::recovery::{LossRecovery, RecoveryStatus};
use crate::sender_limits::Limit;

impl Connection {
    /// Sends what may be sent, and an acknowledgment if one is due and no data segment carried it.
    #[inline]
    pub(super) fn output(&mut self, cx: &mut Ctx<'_>) {
        self.invalidate_fast_path();
        let again = self
            .sender
            .recovery
            .wants_retransmit(&self.sender.scoreboard);
        if (again || self.sender.send.has_unsent())
            && (self.state.can_send() || self.may_send_before_established())
        {
            self.transmit::<General>(None, cx);
        } else if self.sender.statistics.limited.is_any() {
            self.update_limit(cx.now);
        }
        self.sender
            .update_early_timer::<General>(self.state.is_synchronized(), cx.now);
        if self.receive.acknowledge_now
            && (self.state.is_synchronized() || self.answers_like_listener())
        {
            self.send_acknowledgment(cx);
        }
    }

    /// Sends what the windows and the pacer admit. `in_flight`: bytes in flight, if known.
    #[inline]
    pub(super) fn transmit<K: Specialization>(
        &mut self,
        mut in_flight: Option<u64>,
        cx: &mut Ctx<'_>,
    ) {
        debug_assert!(in_flight.is_none_or(|known| known == self.in_flight()));
        self.sender.send.left_in_parts = false;
        // An idle period ends when data may be sent again, not at a probe of a closed window
        // (tcp_ack_update_window).
        if !K::NEW_DATA_ONLY && self.sender.send.is_idle() && self.sender.send.window > 0 {
            self.sender.restart_after_idle(cx.now);
        }
        // Path MTU discovery comes before the windows, because it may change the segment size, and
        // a window is at least one segment.
        let path_mtu_active = !K::NEW_DATA_ONLY && self.sender.path_mtu.is_active(cx.now);
        if path_mtu_active {
            self.sender.update_path_mtu(cx.now);
        }
        let mut limited = false;
        let mut sent = false;
        let mut paced = false;
        let mut allowance = if K::PACED {
            self.sender.pacing_allowance(cx.now)
        } else {
            u64::MAX
        };
        let sent_before = self.sender.statistics.segments_sent;
        let allowed = allowance;
        let segment = u64::from(self.sender.negotiated.segment);
        let mut congestion_window = self.congestion_window();
        let status = if K::LOSS_FREE {
            RecoveryStatus {
                window: congestion_window,
                wants_retransmit: false,
                is_recovering: false,
            }
        } else {
            (self.sender.recovery).status(congestion_window, &self.sender.scoreboard)
        };
        let window = status.window;
        // If the scoreboard has no room left, the congestion window is larger than the scoreboard
        // allows.
        let mut limit = Limit::CongestionWindow;
        if status.wants_retransmit {
            let left = self.retransmit_lost(window, allowance, cx);
            (allowance, sent, paced) = (left.allowance, left.sent, left.paced);
            in_flight = None;
        }
        // With Fast Open, our SYN may still be outstanding. It is not data.
        let syn = u64::from(!K::NEW_DATA_ONLY && self.sender.send.sequence.unacknowledged == 0);
        let in_flight = in_flight.unwrap_or_else(|| self.sender.in_flight_if(K::LOSS_FREE));
        let mut room = (window + syn).saturating_sub(in_flight);
        if path_mtu_active && let Some(length) = self.path_mtu_probe(room.min(allowance)) {
            let start = self.sender.send.sequence.next;
            self.send_segment(start, length, cx);
            self.sender.on_path_mtu_probe(start, length);
            room -= u64::from(length);
            allowance -= u64::from(length);
            sent = true;
        }
        let mut burst = Burst::default();
        // Transmission does not change this limit.
        let open = self.sender.send.open_until();
        while self.sender.scoreboard.has_room() {
            match self.next_segment::<K>(room, open) {
                NextSegment::Send(length) if allowance < u64::from(length) => {
                    paced = true;
                    break;
                }
                NextSegment::Send(length) => {
                    if self
                        .sender
                        .prepare_next_segment::<K>(&mut burst, room, allowance, cx.now)
                    {
                        // If more is unsent than the congestion window has room for, the window is
                        // the limit, unless the deferral is due to a write that is still in
                        // progress.
                        let send = &self.sender.send;
                        limited = room <= send.unsent() && send.buffer_limit() == 0;
                        break;
                    }
                    self.send_next::<K>(length, cx);
                    self.sender.finish_segment::<K>(&mut burst);
                    // Sent data is in flight.
                    room = room.saturating_sub(u64::from(length));
                    allowance -= u64::from(length);
                    sent = true;
                }
                NextSegment::CongestionWindow => {
                    // The first segment of the burst may have opened the window: with BBRv1,
                    // sending after an idle period ends its ProbeRTT. (Linux checks the window for
                    // each buffer: tcp_cwnd_test.)
                    let window = self.congestion_window();
                    if K::NEW_DATA_ONLY || window <= congestion_window || status.is_recovering {
                        limited = true;
                        break;
                    }
                    room += window - congestion_window;
                    congestion_window = window;
                }
                // Only with Linux's burst behaviour. Unsent data remains, since the peer's window
                // ends here.
                NextSegment::PeerWindow if burst.ends_at_edge && self.sender.send.usable() > 0 => {
                    burst.ends_at_edge = false;
                    let usable = self.sender.send.usable().min(self.sender.send.unsent());
                    let length = usable.min(u64::from(self.payload_limit())) as u32;
                    self.sender
                        .prepare_next_segment::<K>(&mut burst, room, allowance, cx.now);
                    self.send_next::<K>(length, cx);
                    self.sender.finish_segment::<K>(&mut burst);
                    room = room.saturating_sub(u64::from(length));
                    allowance = allowance.saturating_sub(u64::from(length));
                    sent = true;
                }
                next @ (NextSegment::PeerWindow | NextSegment::Corked) => {
                    let idle = !K::NEW_DATA_ONLY && self.sender.send.sequence.outstanding() == 0;
                    limit = match next {
                        // If neither window has room, the congestion window counts (checked first
                        // in tcp_write_xmit).
                        NextSegment::PeerWindow if !idle && room < segment => limit,
                        NextSegment::PeerWindow => Limit::ReceiveWindow,
                        _ => Limit::Application,
                    };
                    if idle {
                        self.sender.start_probe_timer(cx.now);
                    }
                    break;
                }
                NextSegment::Nothing => {
                    limited = room < segment;
                    if !self.sender.send.writer_waits {
                        limit = Limit::Application;
                    } else if !limited {
                        limit = Limit::SendBuffer;
                    }
                    break;
                }
            }
        }
        let recovering = status.is_recovering;
        debug_assert_eq!(recovering, self.sender.recovery.is_recovering());
        if recovering && !limited && !paced && self.sender.send.buffer_limit() == 0 {
            let (bytes, stopped) = self.transmit_suspects(window, allowance, cx);
            allowance -= bytes;
            sent |= bytes > 0;
            paced = stopped;
        }
        if K::PACED && self.sender.pacer.is_on() {
            self.sender
                .pace(allowed - allowance, sent_before, paced, cx.now);
        }
        if sent || limited {
            self.sender.validate_window(limited);
        }
        let stopped = if paced { Limit::Pacing } else { limit };
        self.record_limit(stopped, recovering, cx.now);
    }

    /// Like [`transmit`](Self::transmit), for a sender that paces and sends only new data.
    #[inline(always)]
    pub(super) fn transmit_paced<K: Specialization>(
        &mut self,
        in_flight: Option<u64>,
        cx: &mut Ctx<'_>,
    ) {
        if self.only_pacer_holds::<K>(in_flight, cx.now) {
            self.sender.send.left_in_parts = false;
            self.sender.pace(0, 0, true, cx.now);
            let recovering = !K::LOSS_FREE && self.sender.recovery.is_recovering();
            self.record_limit(Limit::Pacing, recovering, cx.now);
        } else {
            self.transmit_burst::<K>(in_flight, cx);
        }
    }

    #[inline(never)]
    fn transmit_burst<K: Specialization>(&mut self, in_flight: Option<u64>, cx: &mut Ctx<'_>) {
        self.transmit::<K>(in_flight, cx);
    }

    /// Whether the windows admit a new full segment and only the pacer holds it back, and with it
    /// any retransmission.
    #[inline(always)]
    fn only_pacer_holds<K: Specialization>(&self, in_flight: Option<u64>, now: Time) -> bool {
        let sender = &self.sender;
        let send = &sender.send;
        let full = u64::from(sender.negotiated.segment);
        if !sender.waits_for_pacer(now) || send.sequence.next + full > send.open_until() {
            return false;
        }
        let in_flight = in_flight.unwrap_or_else(|| sender.in_flight_if(K::LOSS_FREE));
        let window = if K::LOSS_FREE {
            sender.congestion_window()
        } else {
            sender.sending_window()
        };
        in_flight + full <= window && sender.scoreboard.has_room()
    }

    /// Records what stopped the sender. In loss recovery it is the recovery algorithm, which sets
    /// the window and the order of transmission, unless the receive window or the send buffer did.
    #[inline]
    fn record_limit(&mut self, stopped: Limit, recovering: bool, now: Time) {
        let sender = &mut self.sender;
        let limit = if recovering && !stopped.is_buffer() {
            Limit::Recovery
        } else if stopped == Limit::CongestionWindow && sender.congestion.window().in_slow_start() {
            Limit::SlowStart
        } else {
            stopped
        };
        sender.statistics.limited.set(limit, now);
    }

    /// Records what limits a sender that has nothing left to send.
    fn update_limit(&mut self, now: Time) {
        if self.sender.send.is_idle() {
            self.sender.statistics.limited.set(Limit::Idle, now);
            return;
        }
        let recovering = self.sender.recovery.is_recovering();
        let stopped = if !self.sender.send.writer_waits {
            Limit::Application
        } else if self.sender.has_window_for_segment() {
            Limit::SendBuffer
        } else {
            Limit::CongestionWindow
        };
        self.record_limit(stopped, recovering, now);
    }

    /// Sends `length` bytes from `position` on, with the FIN if it follows them.
    #[inline(never)]
    pub(super) fn send_segment(&mut self, position: u64, length: u32, cx: &mut Ctx<'_>) {
        self.send_range::<General, false>(position, length, cx);
    }

    /// Sends the next `length` bytes. Inlined into the transmission loop, because nearly every
    /// segment is sent here.
    #[inline(always)]
    fn send_next<K: Specialization>(&mut self, length: u32, cx: &mut Ctx<'_>) {
        self.send_range::<K, false>(self.sender.send.sequence.next, length, cx);
    }

    /// Sends `length` bytes from `position` on. `AGAIN`: a retransmission, with more data behind
    /// it.
    #[inline(always)]
    pub(super) fn send_range<K: Specialization, const AGAIN: bool>(
        &mut self,
        position: u64,
        length: u32,
        cx: &mut Ctx<'_>,
    ) {
        let send = &mut self.sender.send;
        let data_end = position + u64::from(length);
        let mut flags = Flags::ACK;
        let mut end = data_end;
        let ends_record = !K::NEW_DATA_ONLY
            && !send.records.is_empty()
            && send.records.binary_search(&data_end).is_ok();
        if ends_record || !K::SIMPLE && send.ends_burst {
            flags = flags.with(Flags::PSH);
        }
        if !AGAIN && data_end == send.end {
            // RFC 9293 section 3.9.1.2: PSH, if no more data is queued.
            if length > 0 && send.pushed == data_end {
                flags = flags.with(Flags::PSH);
                self.sender.scoreboard.note_pushed(data_end);
            }
            if send.fin {
                flags = flags.with(Flags::FIN);
                end += 1;
            }
        }
        let highest = send.sequence.highest;
        debug_assert!(data_end <= send.end, "beyond the data written");
        debug_assert!(!AGAIN || length > 0 && data_end <= highest && data_end < send.end);
        self.sender.record_sent::<K, AGAIN>(position, end, cx.now);
        // A FIN without data does not count as an answer (__tcp_transmit_skb calls
        // tcp_event_data_sent only for segments with data).
        if K::NEW_DATA_ONLY || length > 0 {
            self.detect_answer::<K>(cx.now);
        }
        let send = &mut self.sender.send;
        if AGAIN || length > 0 {
            send.last_sent_at = cx.now;
            if length < self.sender.negotiated.segment && data_end != self.fast_open.text_end {
                self.record_short_segment(length, end, AGAIN || data_end <= highest);
            }
            self.sender.statistics.segments_sent += 1;
            if AGAIN || !K::NEW_DATA_ONLY && data_end <= highest {
                self.sender.statistics.segments_retransmitted += 1;
            }
            if !K::NEW_DATA_ONLY && !AGAIN && self.sender.statistics.first_data_at.is_none() {
                self.sender.statistics.first_data_at = Some(cx.now);
            }
        } else {
            self.sender.statistics.control_segments_sent += 1;
            self.sender.scoreboard.measure_last(end);
        }
        self.sender.ecn.fresh = K::NEW_DATA_ONLY || !AGAIN && position >= highest;
        self.emit::<K>(position, length, flags, cx);
        self.sender.start_retransmission_timer(cx.now);
    }

    /// Records a segment of `length` bytes, shorter than a full one, that ends at `end`. `again`: a
    /// retransmission.
    #[inline(never)]
    fn record_short_segment(&mut self, length: u32, end: u64, again: bool) {
        let quirks = &self.sender.config.linux_quirks;
        // In Linux, Nagle's algorithm does not wait for retransmissions or for segments that are
        // full except for SACK blocks (tcp_minshall_update).
        let full = quirks.acks.fits_sack_blocks && length >= self.payload_limit();
        if !(full || again && quirks.sending.counts_short_segments) {
            let fin = end > self.sender.send.end;
            self.sender.send.small_end = end - u64::from(fin);
        }
        self.sender.scoreboard.measure_last(end);
        self.invalidate_fast_path();
    }

    /// Enters interactive mode if the segment being sent is an answer to received data.
    #[inline(always)]
    pub(super) fn detect_answer<K: Specialization>(&mut self, now: Time) {
        if !K::SIMPLE
            && self.quirks().acks.pingpong_mode
            && (self.receive.quick_acks > 0 || self.receive.sizing.is_some())
            && self.receive.answer_pending
            && self.receive.is_answer(now)
        {
            // "Pingpong mode" in Linux: acknowledgments are delayed.
            self.receive.quick_acks = 0;
            if let Some(sizing) = &mut self.receive.sizing {
                sizing.enter_interactive_mode();
            }
        }
    }

    /// Sends an acknowledgment without data.
    #[inline(never)]
    fn send_acknowledgment(&mut self, cx: &mut Ctx<'_>) {
        self.sender.statistics.control_segments_sent += 1;
        self.emit::<General>(self.acceptable_position(), 0, Flags::ACK, cx);
    }

    /// Sends a probe without data, as Linux's tcp_xmit_probe_skb: its sequence number is old, so
    /// that the peer has to answer.
    pub(super) fn send_empty_probe(&mut self, cx: &mut Ctx<'_>) {
        self.sender.statistics.control_segments_sent += 1;
        let position = self.sender.send.sequence.unacknowledged - 1;
        self.emit::<General>(position, 0, Flags::ACK, cx);
    }

    /// Sequence number for segments without data that the peer accepts. RFC 9293 uses SND.NXT.
    /// After a timeout, SND.NXT is below what the peer expects, and a peer that shrank its window
    /// does not accept a number beyond it.
    pub(super) fn acceptable_position(&self) -> u64 {
        let sequence = &self.sender.send.sequence;
        let edge = sequence.unacknowledged + self.sender.send.window;
        if sequence.highest <= edge {
            return sequence.highest;
        }
        let shift = self.sender.negotiated.receive_shift;
        let rounded = self.quirks().acceptance.tolerates_window_rounding
            && shift > 0
            && sequence.highest < edge + (1 << shift);
        if rounded { sequence.highest } else { edge }
    }

    /// Sends an acknowledgment in the memory of the acknowledged packet, where nothing is
    /// outstanding and ECN is not in use. Most acknowledgments are sent this way.
    #[inline]
    pub(super) fn acknowledge_in_place(&mut self, segment: PacketRef, cx: &mut Ctx<'_>) {
        self.sender.statistics.control_segments_sent += 1;
        let position = self.sender.send.sequence.highest;
        debug_assert_eq!(position, self.acceptable_position());
        let (reference, packet) = cx.packets.replace(segment, &self.template);
        self.fill_segment(packet, position, 0, Flags::ACK, cx.now);
        if !self.receive.has_blocks() || self.add_sack_in_place(packet) {
            self.emit_filled::<NewDataOnly>(reference, 0, cx);
        } else {
            self.emit_filled::<General>(reference, 0, cx);
        }
    }

    /// Sends one segment that is no SYN.
    #[inline(always)]
    fn emit<K: Specialization>(
        &mut self,
        position: u64,
        length: u32,
        flags: Flags,
        cx: &mut Ctx<'_>,
    ) {
        let (reference, packet) = cx.packets.insert_copy(&self.template);
        self.fill_segment(packet, position, length, flags, cx.now);
        self.emit_filled::<K>(reference, length, cx);
    }

    /// The template without the timestamps option, which is added after negotiation.
    pub(super) fn bare_template(&self) -> Packet {
        let mut template = self.template;
        if template.timestamps().is_some() {
            template.header_length -= TIMESTAMPS_LENGTH;
            template.clear_timestamps();
        }
        template
    }

    /// Fills in a copy of the template in place, because a record built elsewhere would be copied
    /// field by field.
    #[inline(always)]
    pub(super) fn fill_segment(
        &mut self,
        packet: &mut Packet,
        position: u64,
        length: u32,
        flags: Flags,
        now: Time,
    ) {
        packet.sequence = self.sender.send.wire(position);
        packet.acknowledgment = self.receive.wire();
        packet.window = self.receive.window_field();
        packet.flags = flags;
        if length > 0 {
            packet.payload_length = length as u16;
            packet.payload_offset = position - 1;
        }
        if self.sender.negotiated.timestamps {
            let stamp = self.sender.config.clock.timestamp(now);
            packet.renew_timestamps(stamp, self.receive.timestamp_recent);
        }
    }

    #[inline(always)]
    fn emit_filled<K: Specialization>(
        &mut self,
        reference: PacketRef,
        length: u32,
        cx: &mut Ctx<'_>,
    ) {
        if !K::NEW_DATA_ONLY && self.receive.has_blocks() {
            self.add_sack(reference, length, cx);
        }
        if !K::NEW_DATA_ONLY && self.sender.ecn.is_on() {
            self.set_ecn_fields(reference, length, cx.packets);
        }
        self.receive.on_ack_sent();
        self.sender.timers.on_ack_sent();
        cx.emit(self.egress, reference);
    }

    /// Adds the SACK option to a segment without payload. Returns false if the blocks do not fit
    /// into its record.
    #[inline(always)]
    fn add_sack_in_place(&self, packet: &mut Packet) -> bool {
        let most = self.maximum_sack_blocks();
        let blocks = self.receive.sack_blocks();
        let few = blocks.filter(|_| self.sender.negotiated.sack);
        let Some(blocks) = few.filter(|blocks| packet.set_few_sack_blocks(blocks, most)) else {
            return false;
        };
        packet.header_length += sack_length(blocks.as_slice().len().min(most));
        true
    }

    /// Adds the SACK option to a segment with `length` bytes of payload.
    #[inline(never)]
    pub(super) fn add_sack(&mut self, reference: PacketRef, length: u32, cx: &mut Ctx<'_>) {
        let most = if length == 0 && self.sender.negotiated.sack {
            self.maximum_sack_blocks()
        } else {
            self.sack_blocks_with_payload(length)
        };
        let blocks = match self.receive.duplicate.take() {
            None => {
                let blocks = self.receive.sack_blocks().unwrap_or_default();
                blocks.as_slice().iter().copied().take(most).collect()
            }
            Some(duplicate) => self.receive.dsack_and_sack_blocks(duplicate, most),
        };
        cx.packets.set_sack_blocks(reference, &blocks);
        cx.packets.get_mut(reference).header_length += sack_length(blocks.as_slice().len());
    }

    /// Maximum number of SACK blocks in a segment with `length` bytes of payload.
    #[inline(never)]
    fn sack_blocks_with_payload(&self, length: u32) -> usize {
        if !self.sender.negotiated.sack {
            return 0;
        }
        // A retransmission of unchanged length may leave less room than a new segment.
        let room = self.sender.negotiated.segment.saturating_sub(length);
        let fits = |blocks: &usize| u32::from(sack_length(*blocks)) <= room;
        (1..=self.maximum_sack_blocks())
            .rev()
            .find(fits)
            .unwrap_or(0)
    }

    /// Sends our SYN, or SYN+ACK.
    pub(super) fn send_syn(&mut self, cx: &mut Ctx<'_>) {
        let received = self.state == State::SynReceived;
        let repeats = self.quirks().handshake.simultaneous_open_repeats_options && !self.passive;
        let timestamps = if received && !repeats {
            self.sender.negotiated.timestamps
        } else {
            self.sender.config.timestamps
        };
        let mut packet = self.bare_template();
        packet.sequence = self.sender.send.initial;
        packet.flags = Flags::SYN;
        packet.window = self.receive.syn_window_field();
        if received {
            packet.flags = Flags::SYN.with(Flags::ACK);
            packet.acknowledgment = self.receive.wire();
            self.receive.last_acknowledged = self.receive.next;
        }
        packet.flags = packet.flags.with(self.ecn_syn_flags(received));
        if timestamps {
            // RFC 7323 section 3.2: TSecr is 0 in a SYN without ACK.
            let stamp = self.sender.config.clock.timestamp(cx.now);
            packet.set_timestamps(stamp, self.receive.timestamp_recent);
        }
        packet.header_length += syn_options_length(&self.offered, timestamps);
        if self.sender.send.sequence.highest == 0 && !received {
            packet.payload_length = self.fast_open.on_syn as u16;
        }
        let reference = cx.packets.insert(packet);
        // RFC 9293 section 3.2: the MSS option is sent only in a SYN.
        cx.packets.set_syn_options(reference, self.offered);
        if self.sender.send.sequence.highest == 0 {
            self.sender.scoreboard.push(0, 1, cx.now);
        } else if received && repeats && self.sender.send.syns_lost == 0 {
            self.sender.scoreboard.renew_first(cx.now);
        } else {
            self.sender.send.ambiguous_below = 1;
        }
        self.sender.send.sequence.next = self.sender.send.sequence.next.max(1);
        self.sender.send.sequence.highest = self.sender.send.sequence.highest.max(1);
        self.sender.statistics.control_segments_sent += 1;
        cx.emit(self.egress, reference);
        self.sender.start_retransmission_timer(cx.now);
    }
}

impl Sender {
    /// Records per window of data whether the congestion window was the limit, and the maximum
    /// outstanding, as Linux's tcp_cwnd_validate (after RFC 2861 and RFC 7661).
    /// RFC 9438 section 4.6 requires this of a rule that reduces cwnd, not FlightSize.
    #[inline]
    pub(super) fn validate_window(&mut self, limited: bool) {
        let send = &mut self.send;
        let outstanding = if self.scoreboard.has_short() {
            self.scoreboard.segments() as u64 * u64::from(self.negotiated.segment)
        } else {
            send.sequence.outstanding()
        };
        if limited
            || send.sequence.unacknowledged >= send.validation_mark
            || (!send.window_limited && outstanding > send.outstanding_maximum)
        {
            send.window_limited = limited;
            send.outstanding_maximum = outstanding;
            send.validation_mark = send.sequence.next;
        }
    }

    /// Whether an acknowledgment may grow the congestion window.
    #[inline]
    pub(super) fn window_may_grow(&self) -> bool {
        let window = self.congestion.window();
        // tcp_is_cwnd_limited in Linux: in slow start up to twice the maximum outstanding.
        self.send.window_limited
            || !self.config.window_validation
            || window.in_slow_start()
                && window.congestion_window < 2 * self.send.outstanding_maximum
    }

    /// RFC 5681 section 4.1: reduces the window after an idle period longer than the RTO, because
    /// the path may have changed.
    pub(super) fn restart_after_idle(&mut self, now: Time) {
        self.congestion.on_application_limited();
        let rto = self.rtt.rto();
        let idle = now.since(self.send.last_sent_at);
        // tcp_slow_start_after_idle_check in Linux excludes model-based congestion control.
        if idle <= rto || self.statistics.first_data_at.is_none() || self.delivery_rate.is_some() {
            return;
        }
        let window = *self.congestion.window();
        // tcp_init_cwnd does not consider lost SYNs.
        let lost = self.send.syns_lost > 0 && !self.quirks().handshake.tolerates_one_lost_syn;
        let restart = window.congestion_window.min(self.initial_window(lost));
        match self.config.idle_restart {
            IdleRestart::Off => {}
            IdleRestart::RestartWindow => {
                self.congestion
                    .restart(restart, window.slow_start_threshold);
            }
            IdleRestart::Decay => {
                // tcp_cwnd_restart in Linux: the threshold remembers three quarters of the window.
                let halvings = (idle.as_nanos() - 1) / rto.as_nanos().max(1);
                // In segments, where the window counts segments.
                let unit = if self.quirks().sending.counts_short_segments {
                    u64::from(self.negotiated.segment.max(1))
                } else {
                    1
                };
                let whole = window.congestion_window / unit;
                let decayed = whole
                    .checked_shr(u32::try_from(halvings).unwrap_or(u32::MAX))
                    .unwrap_or(0)
                    * unit;
                let remembered = if unit > 1 {
                    (whole / 2 + whole / 4) * unit
                } else {
                    whole / 4 * 3
                };
                self.congestion.restart(
                    decayed.max(restart),
                    window.slow_start_threshold.max(remembered),
                );
            }
        }
    }
}
