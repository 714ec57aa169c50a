//! What may be sent, and sending it.

use bentpipe_types::{Ctx, Flags, Packet, PacketRef, Time};

use super::known::{Known, Nothing, Plain};
use super::next::Next;
use super::prediction::Foresight;
use super::room::Burst;
use super::{Connection, Sender, State};
use crate::config::IdleRestart;
use crate::limited::Limit;
use crate::options::{TIMESTAMPS_LENGTH, sack_length, syn_options_length};
use crate::recovery::{LossRecovery, Standing};
use crate::timestamp;

impl Connection {
    /// Sends what may be sent, and an acknowledgment if one is due and nothing carried it.
    #[inline]
    pub(super) fn output(&mut self, cx: &mut Ctx<'_>) {
        self.changed();
        let again = self
            .sender
            .recovery
            .wants_retransmit(&self.sender.scoreboard);
        if (again || self.sender.send.has_unsent()) && (self.state.can_send() || self.sends_early())
        {
            self.transmit::<Nothing>(None, cx);
        } else if self.sender.statistics.limited.is_any() {
            self.review_limit(cx.now);
        }
        self.sender
            .review_early_timer::<Nothing>(self.state.is_synchronized(), cx.now);
        if self.receive.acknowledge_now
            && (self.state.is_synchronized() || self.answers_unestablished())
        {
            self.send_acknowledgment(cx);
        }
    }

    /// Sends what the windows and the pacer let out. `in_flight`: so much is, if it is known.
    #[inline]
    pub(super) fn transmit<K: Known>(&mut self, mut in_flight: Option<u64>, cx: &mut Ctx<'_>) {
        debug_assert!(in_flight.is_none_or(|known| known == self.in_flight()));
        self.sender.send.left_in_parts = false;
        // (An idle time ends when something may leave again, not when a closed window is probed: tcp_ack_update_window.)
        if !K::PLAIN && self.sender.send.is_idle() && self.sender.send.window > 0 {
            self.sender.restart_after_idle(cx.now);
        }
        // Before the windows: they are of no less than a segment, however long that may be now.
        let looked_after = !K::PLAIN && self.sender.path_mtu.is_looked_after(cx.now);
        if looked_after {
            self.sender.look_after_path_mtu(cx.now);
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
        let standing = if K::QUIET {
            Standing {
                window: congestion_window,
                wants_retransmit: false,
                is_recovering: false,
            }
        } else {
            (self.sender.recovery).standing(congestion_window, &self.sender.scoreboard)
        };
        let window = standing.window;
        // Where the scoreboard has no room left, the window is larger than can be.
        let mut limit = Limit::CongestionWindow;
        if standing.wants_retransmit {
            let left = self.retransmit_lost(window, allowance, cx);
            (allowance, sent, paced) = (left.allowance, left.sent, left.paced);
            in_flight = None;
        }
        // (With Fast Open, our SYN may be outstanding still. It is no data.)
        let syn = u64::from(!K::PLAIN && self.sender.send.sequence.unacknowledged == 0);
        let in_flight = in_flight.unwrap_or_else(|| self.sender.in_flight_if(K::QUIET));
        let mut room = (window + syn).saturating_sub(in_flight);
        if looked_after && let Some(length) = self.path_mtu_probe(room.min(allowance)) {
            let start = self.sender.send.sequence.next;
            self.send_segment(start, length, cx);
            self.sender.on_path_mtu_probe(start, length);
            room -= u64::from(length);
            allowance -= u64::from(length);
            sent = true;
        }
        let mut burst = Burst::default();
        // (Nothing that is sent changes it.)
        let open = self.sender.send.open_until();
        while self.sender.scoreboard.has_room() {
            match self.next_to_send::<K>(room, open) {
                Next::Send(length) if allowance < u64::from(length) => {
                    paced = true;
                    break;
                }
                Next::Send(length) => {
                    if self
                        .sender
                        .before_next::<K>(&mut burst, room, allowance, cx.now)
                    {
                        // With more to send than the congestion window has room for, it is the window, unless it is the call that
                        // goes on.
                        let send = &self.sender.send;
                        limited = room <= send.unsent() && send.lets_leave() == 0;
                        break;
                    }
                    self.send_next::<K>(length, cx);
                    self.sender.after_next::<K>(&mut burst);
                    // What is sent is in flight.
                    room = room.saturating_sub(u64::from(length));
                    allowance -= u64::from(length);
                    sent = true;
                }
                Next::CongestionWindow => {
                    // What left first may have opened the window: BBR 1's, where a silence has ended its probe of the round trip.
                    // (Linux looks it up for each buffer: tcp_cwnd_test.)
                    let window = self.congestion_window();
                    if K::PLAIN || window <= congestion_window || standing.is_recovering {
                        limited = true;
                        break;
                    }
                    room += window - congestion_window;
                    congestion_window = window;
                }
                // (Only in Linux's profile. Text is left, since it is the window that ends here.)
                Next::PeerWindow if burst.ends_at_edge && self.sender.send.usable() > 0 => {
                    burst.ends_at_edge = false;
                    let usable = self.sender.send.usable().min(self.sender.send.unsent());
                    let length = usable.min(u64::from(self.payload_limit())) as u32;
                    self.sender
                        .before_next::<K>(&mut burst, room, allowance, cx.now);
                    self.send_next::<K>(length, cx);
                    self.sender.after_next::<K>(&mut burst);
                    room = room.saturating_sub(u64::from(length));
                    allowance = allowance.saturating_sub(u64::from(length));
                    sent = true;
                }
                next @ (Next::PeerWindow | Next::Corked) => {
                    let idle = !K::PLAIN && self.sender.send.sequence.outstanding() == 0;
                    limit = match next {
                        // (Where neither has room, the congestion window was asked first: tcp_write_xmit.)
                        Next::PeerWindow if !idle && room < segment => limit,
                        Next::PeerWindow => Limit::ReceiveWindow,
                        _ => Limit::Application,
                    };
                    if idle {
                        self.sender.expect_window(cx.now);
                    }
                    break;
                }
                Next::Nothing => {
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
        let recovering = standing.is_recovering;
        debug_assert_eq!(recovering, self.sender.recovery.is_recovering());
        if recovering && !limited && !paced && self.sender.send.lets_leave() == 0 {
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
        self.note_limit(stopped, recovering, cx.now);
    }

    /// The same as [`transmit`](Self::transmit) does of a sender that paces and is plain.
    #[inline(always)]
    pub(super) fn transmit_paced<K: Known>(&mut self, in_flight: Option<u64>, cx: &mut Ctx<'_>) {
        if self.only_pacer_holds::<K>(in_flight, cx.now) {
            self.sender.send.left_in_parts = false;
            self.sender.pace(0, 0, true, cx.now);
            let recovering = !K::QUIET && self.sender.recovery.is_recovering();
            self.note_limit(Limit::Pacing, recovering, cx.now);
        } else {
            self.transmit_burst::<K>(in_flight, cx);
        }
    }

    #[inline(never)]
    fn transmit_burst<K: Known>(&mut self, in_flight: Option<u64>, cx: &mut Ctx<'_>) {
        self.transmit::<K>(in_flight, cx);
    }

    /// Would the windows let a full segment out that is new, and the pacer none yet? (Nor then what is to be sent again.)
    #[inline(always)]
    fn only_pacer_holds<K: Known>(&self, in_flight: Option<u64>, now: Time) -> bool {
        let sender = &self.sender;
        let send = &sender.send;
        let full = u64::from(sender.negotiated.segment);
        if !sender.waits_for_pacer(now) || send.sequence.next + full > send.open_until() {
            return false;
        }
        let in_flight = in_flight.unwrap_or_else(|| sender.in_flight_if(K::QUIET));
        let window = if K::QUIET {
            sender.congestion_window()
        } else {
            sender.sending_window()
        };
        in_flight + full <= window && sender.scoreboard.has_room()
    }

    /// Notes what stopped the sender; in loss recovery it is that, whatever else.
    #[inline]
    fn note_limit(&mut self, stopped: Limit, recovering: bool, now: Time) {
        let sender = &mut self.sender;
        let limit = if recovering {
            Limit::Recovery
        } else if stopped == Limit::CongestionWindow && sender.congestion.window().in_slow_start() {
            Limit::SlowStart
        } else {
            stopped
        };
        sender.statistics.limited.set(limit, now);
    }

    /// There is nothing to send: is anything still on its way?
    fn review_limit(&mut self, now: Time) {
        if self.sender.send.is_idle() {
            self.sender.statistics.limited.set(Limit::Idle, now);
        } else if !self.sender.send.writer_waits {
            let recovering = self.sender.recovery.is_recovering();
            self.note_limit(Limit::Application, recovering, now);
        }
    }

    /// Sends `length` bytes from `position` on, with a FIN if it follows them.
    #[inline(never)]
    pub(super) fn send_segment(&mut self, position: u64, length: u32, cx: &mut Ctx<'_>) {
        self.send_from::<Nothing, false>(position, length, cx);
    }

    /// Sends the next `length` bytes: what nearly every segment is, so that it is compiled into the loop
    /// around it.
    #[inline(always)]
    fn send_next<K: Known>(&mut self, length: u32, cx: &mut Ctx<'_>) {
        self.send_from::<K, false>(self.sender.send.sequence.next, length, cx);
    }

    /// `AGAIN`: all of it was sent before, and there is text behind it.
    #[inline(always)]
    pub(super) fn send_from<K: Known, const AGAIN: bool>(
        &mut self,
        position: u64,
        length: u32,
        cx: &mut Ctx<'_>,
    ) {
        let send = &mut self.sender.send;
        let data_end = position + u64::from(length);
        let mut flags = Flags::ACK;
        let mut end = data_end;
        let ends_record =
            !K::PLAIN && !send.records.is_empty() && send.records.binary_search(&data_end).is_ok();
        if ends_record || !K::SIMPLE && send.ends_burst {
            flags = flags.with(Flags::PSH);
        }
        if !AGAIN && data_end == send.end {
            // RFC 9293 section 3.9.1.2: nothing more is queued
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
        debug_assert!(data_end <= send.end, "nobody has written that");
        debug_assert!(!AGAIN || length > 0 && data_end <= highest && data_end < send.end);
        self.sender.note_sent::<K, AGAIN>(position, end, cx.now);
        // A FIN on its own is no answer (__tcp_transmit_skb calls tcp_event_data_sent of what has text).
        if K::PLAIN || length > 0 {
            self.notice_answer::<K>(cx.now);
        }
        let send = &mut self.sender.send;
        if AGAIN || length > 0 {
            send.last_sent_at = cx.now;
            if length < self.sender.negotiated.segment && data_end != self.fast_open.text_end {
                self.note_short(length, end, AGAIN || data_end <= highest);
            }
            self.sender.statistics.segments_sent += 1;
            if AGAIN || !K::PLAIN && data_end <= highest {
                self.sender.statistics.segments_retransmitted += 1;
            }
            if !K::PLAIN && !AGAIN && self.sender.statistics.first_data_at.is_none() {
                self.sender.statistics.first_data_at = Some(cx.now);
            }
        } else {
            self.sender.statistics.control_segments_sent += 1;
            self.sender.scoreboard.measure_last(end);
        }
        self.sender.ecn.fresh = K::PLAIN || !AGAIN && position >= highest;
        self.emit::<K>(position, length, flags, cx);
        self.sender.expect_acknowledgment(cx.now);
    }

    /// So many bytes of text, less than a full segment, are sent up to here, `again` or for the first time.
    #[inline(never)]
    fn note_short(&mut self, length: u32, end: u64, again: bool) {
        let habits = &self.sender.config.habits;
        // (In Linux what goes again is none that Nagle's algorithm waits for, nor what is full beside SACK blocks:
        // tcp_minshall_update.)
        let full = habits.fits_blocks && length >= self.payload_limit();
        if !(full || again && habits.counts_short_segments) {
            let fin = end > self.sender.send.end;
            self.sender.send.small_end = end - u64::from(fin);
        }
        self.sender.scoreboard.measure_last(end);
        self.foresight = Foresight::Unknown;
    }

    /// A segment is sent: is it an answer to what has come?
    #[inline(always)]
    pub(super) fn notice_answer<K: Known>(&mut self, now: Time) {
        if !K::SIMPLE
            && self.sender.config.habits.recognises_dialogue
            && (self.receive.quick_acks > 0 || self.receive.sizing.is_some())
            && self.receive.is_answered
            && self.receive.is_answer(now)
        {
            // "Pingpong mode": the connection is interactive, and acknowledgments are delayed.
            self.receive.quick_acks = 0;
            if let Some(sizing) = &mut self.receive.sizing {
                sizing.answers();
            }
        }
    }

    /// An acknowledgment without data.
    #[inline(never)]
    fn send_acknowledgment(&mut self, cx: &mut Ctx<'_>) {
        self.sender.statistics.control_segments_sent += 1;
        self.emit::<Nothing>(self.acceptable_position(), 0, Flags::ACK, cx);
    }

    /// A probe of a closed window as Linux's tcp_xmit_probe_skb has it: a sequence number that the
    /// peer has, so that it has to answer.
    pub(super) fn send_empty_probe(&mut self, cx: &mut Ctx<'_>) {
        self.sender.statistics.control_segments_sent += 1;
        let position = self.sender.send.sequence.unacknowledged - 1;
        self.emit::<Nothing>(position, 0, Flags::ACK, cx);
    }

    /// A sequence number for segments without text that the peer finds acceptable. RFC 9293 says
    /// SND.NXT; after a timeout that is below what the peer expects, and a peer that took its window
    /// back doesn't accept beyond it.
    pub(super) fn acceptable_position(&self) -> u64 {
        let sequence = &self.sender.send.sequence;
        let edge = sequence.unacknowledged + self.sender.send.window;
        if sequence.highest <= edge {
            return sequence.highest;
        }
        let shift = self.sender.negotiated.receive_shift;
        let rounded = self.sender.config.habits.overlooks_rounding
            && shift > 0
            && sequence.highest < edge + (1 << shift);
        if rounded { sequence.highest } else { edge }
    }

    /// The same, where nothing is outstanding and no mark is to be told of, in the place of the segment that is
    /// acknowledged: most acknowledgments are made so.
    #[inline]
    pub(super) fn acknowledge_in_place(&mut self, segment: PacketRef, cx: &mut Ctx<'_>) {
        self.sender.statistics.control_segments_sent += 1;
        let position = self.sender.send.sequence.highest;
        debug_assert_eq!(position, self.acceptable_position());
        let (reference, packet) = cx.packets.replace(segment, &self.template);
        self.fill_in(packet, position, 0, Flags::ACK, cx.now);
        if !self.receive.has_blocks() || self.add_few_blocks(packet) {
            self.emit_filled::<Plain>(reference, 0, cx);
        } else {
            self.emit_filled::<Nothing>(reference, 0, cx);
        }
    }

    /// Sends one segment that is no SYN.
    #[inline(always)]
    fn emit<K: Known>(&mut self, position: u64, length: u32, flags: Flags, cx: &mut Ctx<'_>) {
        let (reference, packet) = cx.packets.insert_copy(&self.template);
        self.fill_in(packet, position, length, flags, cx.now);
        self.emit_filled::<K>(reference, length, cx);
    }

    /// The template without options, which it has when they are agreed upon.
    pub(super) fn bare_template(&self) -> Packet {
        let mut template = self.template;
        if template.timestamps().is_some() {
            template.header_length -= TIMESTAMPS_LENGTH;
            template.clear_timestamps();
        }
        template
    }

    /// Makes a segment of a copy of the template where it lies, as a record put together elsewhere would be
    /// copied field by field.
    #[inline(always)]
    pub(super) fn fill_in(
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
            packet.renew_timestamps(timestamp(now), self.receive.timestamp_recent);
        }
    }

    #[inline(always)]
    fn emit_filled<K: Known>(&mut self, reference: PacketRef, length: u32, cx: &mut Ctx<'_>) {
        if !K::PLAIN && self.receive.has_blocks() {
            self.add_sack(reference, length, cx);
        }
        if !K::PLAIN && self.sender.ecn.is_on() {
            self.mark_outgoing(reference, length, cx.packets);
        }
        self.receive.acknowledged();
        self.sender.timers.acknowledged();
        cx.emit(self.egress, reference);
    }

    /// Adds the SACK option to a segment without payload. False: there is more to tell than fits into its record.
    #[inline(always)]
    fn add_few_blocks(&self, packet: &mut Packet) -> bool {
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
            self.sack_blocks_beside(length)
        };
        let blocks = match self.receive.duplicate.take() {
            None => {
                let blocks = self.receive.sack_blocks().unwrap_or_default();
                blocks.as_slice().iter().copied().take(most).collect()
            }
            Some(duplicate) => self.receive.sack_blocks_after(duplicate, most),
        };
        cx.packets.set_sack_blocks(reference, &blocks);
        cx.packets.get_mut(reference).header_length += sack_length(blocks.as_slice().len());
    }

    /// The most SACK blocks beside `length` bytes of payload.
    #[inline(never)]
    fn sack_blocks_beside(&self, length: u32) -> usize {
        if !self.sender.negotiated.sack {
            return 0;
        }
        // A segment that is sent again as it was may leave less room than a new one.
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
        let repeats = self.sender.config.habits.repeats_offer && !self.passive;
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
        packet.flags = packet.flags.with(self.ecn_setup(received));
        if timestamps {
            packet.set_timestamps(timestamp(cx.now), self.receive.timestamp_recent);
        }
        packet.header_length += syn_options_length(&self.offered, timestamps);
        if self.sender.send.sequence.highest == 0 && !received {
            packet.payload_length = self.fast_open.on_syn as u16;
        }
        let reference = cx.packets.insert(packet);
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
        self.sender.expect_acknowledgment(cx.now);
    }
}

impl Sender {
    /// Linux's tcp_cwnd_validate (after RFC 2861 and RFC 7661): remembers whether the congestion
    /// window was what stopped us, and the most that was outstanding, per window of data.
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

    /// May an acknowledgment grow the congestion window?
    #[inline]
    pub(super) fn window_may_grow(&self) -> bool {
        let window = self.congestion.window();
        // Linux's tcp_is_cwnd_limited: in slow start, up to twice what was outstanding
        self.send.window_limited
            || !self.config.window_validation
            || window.in_slow_start()
                && window.congestion_window < 2 * self.send.outstanding_maximum
    }

    /// RFC 5681 section 4.1: after an idle time, the path may have changed.
    pub(super) fn restart_after_idle(&mut self, now: Time) {
        self.congestion.on_application_limited();
        let rto = self.rtt.rto();
        let idle = now.since(self.send.last_sent_at);
        // Linux's tcp_slow_start_after_idle_check leaves a rule that models the path alone.
        if idle <= rto || self.statistics.first_data_at.is_none() || self.delivery_rate.is_some() {
            return;
        }
        let window = *self.congestion.window();
        // (tcp_init_cwnd knows nothing of that.)
        let lost = self.send.syns_lost > 0 && !self.config.habits.forgives_lost_syn;
        let restart = window.congestion_window.min(self.initial_window(lost));
        match self.config.idle_restart {
            IdleRestart::Off => {}
            IdleRestart::RestartWindow => {
                self.congestion
                    .restart(restart, window.slow_start_threshold);
            }
            IdleRestart::Decay => {
                // Linux's tcp_cwnd_restart: the threshold remembers three quarters of the window.
                let halvings = (idle.as_nanos() - 1) / rto.as_nanos().max(1);
                // (In segments, where the window counts those.)
                let unit = if self.config.habits.counts_short_segments {
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
