//! Processing of an arriving segment (RFC 9293 section 3.10.7).

use bentpipe_types::{Ctx, Flags, Packet, PacketRef, SackBlocks, Span, Time};

use super::receive::UNSET;
use super::specialization::General;
use super::timers::Purpose;
use super::{Accepted, Connection, Events, State};
use crate::reassembly::Range;

/// Minimum interval between two acknowledgments of unacceptable segments without payload, as
/// Linux's tcp_invalid_ratelimit. Without it, two ends that disagree would acknowledge each other
/// for ever (RFC 5961 section 7).
const CHALLENGE_INTERVAL: Span = Span::from_millis(500);

/// RFC 7323 section 5.5: age after which TS.Recent is invalid (24 days).
const TIMESTAMP_LIFETIME: Span = Span::from_secs(24 * 24 * 3600);

impl Connection {
    /// Processes an arriving segment. `KEPT`: the feeder of the stream keeps its bytes.
    #[inline(always)]
    pub(super) fn process_segment<const KEPT: bool>(
        &mut self,
        reference: PacketRef,
        cx: &mut Ctx<'_>,
    ) -> Option<Accepted> {
        self.sender.statistics.segments_received += 1;
        match self.process_predicted::<KEPT>(reference, cx) {
            Some(accepted) => accepted,
            None => self.process_on_general_path(reference, cx),
        }
    }

    /// Processes a segment on the general path.
    #[inline(never)]
    fn process_on_general_path(
        &mut self,
        reference: PacketRef,
        cx: &mut Ctx<'_>,
    ) -> Option<Accepted> {
        self.invalidate_fast_path();
        let packet = *cx.packets.get(reference);
        let accepted = match self.process_ordinary(reference, &packet, cx) {
            Some(accepted) => accepted,
            None => self.process_unusual_segment(reference, &packet, cx),
        };
        self.check_space::<General>(cx.now);
        accepted
    }

    /// Processes a segment that [does not pass every check](Self::process_ordinary).
    fn process_unusual_segment(
        &mut self,
        reference: PacketRef,
        packet: &Packet,
        cx: &mut Ctx<'_>,
    ) -> Option<Accepted> {
        if self.state == State::Closed {
            super::reset_reply(reference, self.egress, cx);
            return None;
        }
        // RFC 7323 section 2.2: the options of a segment without SYN change no window scale.
        let options = cx.packets.syn_options(reference);
        let sack = (packet.has_sack_blocks() && self.sender.negotiated.sack)
            .then(|| cx.packets.sack_blocks(reference));
        cx.packets.release(reference);
        let accepted = if self.state == State::SynSent {
            self.syn_sent(packet, &options, cx)
        } else {
            self.process_by_rfc_steps(packet, sack.as_ref(), cx)
        };
        self.output(cx);
        accepted
    }

    /// Processes a segment in any state from SYN-RECEIVED on, in the order of
    /// RFC 9293 section 3.10.7.4.
    fn process_by_rfc_steps(
        &mut self,
        packet: &Packet,
        sack: Option<&SackBlocks>,
        cx: &mut Ctx<'_>,
    ) -> Option<Accepted> {
        let mut packet = *packet;
        let syn_again = self.state == State::SynReceived
            && self.is_repeated_syn(&packet)
            && self.accepts_repeated_syn(&packet);
        if syn_again {
            if !packet.flags.has(Flags::ACK) {
                self.resend_syn_ack(cx);
                return None;
            }
            // Simultaneous open, and this is the peer's SYN+ACK. Its SYN is old, but its
            // acknowledgment is not: the segment is trimmed to the window
            // (RFC 9293 section 3.10.7.4).
            packet.sequence += 1;
            packet.payload_length = 0;
            packet.flags = Flags::SYN.with(Flags::ACK);
        }
        let start = i64::from(packet.sequence.distance_from(self.receive.wire()));

        // RFC 9293 section 3.10.7.4 step 1: the sequence number. RFC 7323 section 5.3: the
        // timestamp is checked before.
        let timely = self.timestamp_is_acceptable(&packet, cx.now);
        if !timely || !self.is_acceptable(&packet, start) {
            self.sender.statistics.unacceptable += 1;
            if timely || !self.is_ignorable_old_acknowledgment(&packet, start) {
                self.answer_unacceptable(&packet, start, cx.now);
            }
            if timely && start < 0 {
                self.process_old_acknowledgment(&packet, start, sack, cx);
            }
            return None;
        }
        // RFC 9293 section 3.10.7.4 step 2: RST.
        if packet.flags.has(Flags::RST) {
            self.process_reset(&packet, start, cx.now);
            return None;
        }
        // RFC 9293 section 3.10.7.4 step 3 (security) is empty. Step 4: SYN. RFC 5961 section 4.2:
        // in any synchronized state, a SYN is answered with a challenge ACK.
        if packet.flags.has(Flags::SYN) && !syn_again {
            self.sender.statistics.unacceptable += 1;
            self.send_challenge_ack(&packet, cx.now);
            return None;
        }
        // RFC 9293 section 3.10.7.4 step 5: ACK.
        if !packet.flags.has(Flags::ACK) {
            return None;
        }
        let asks = self.reconsiders_delayed_ack(&packet);
        if self.state == State::SynReceived {
            // RFC 9293 section 3.10.7.4 step 5: SND.UNA < SEG.ACK =< SND.NXT.
            let Some(position) = self.syn_acknowledged(&packet) else {
                self.sender.statistics.unacceptable += 1;
                self.send_reset(packet.acknowledgment, false, cx);
                return None;
            };
            self.established(&packet, sack, position, cx);
            if syn_again && self.quirks().handshake.simultaneous_open_repeats_options {
                // RFC 2883 section 4: the peer's SYN was received twice.
                self.receive.duplicate = Some(Range { start: 0, end: 1 });
                self.receive.acknowledge_now = true;
            }
        } else if !self.acknowledgment(&packet, sack, cx.now) {
            return None;
        }
        self.process_ecn(&packet, start, cx.now);
        // The timestamp of a dropped segment must not be recorded.
        self.update_timestamp(&packet, start, cx.now);
        if self.sender.send.fin_acknowledged() {
            self.fin_acknowledged(cx);
        }
        let accepted = self.process_data_and_fin(&packet, start, cx);
        if asks {
            self.reconsider_delayed_ack(cx.now);
        }
        accepted
    }

    /// Steps 6 to 8 of RFC 9293 section 3.10.7.4, for a segment whose data begins `start` after
    /// RCV.NXT.
    pub(super) fn process_data_and_fin(
        &mut self,
        packet: &Packet,
        start: i64,
        cx: &mut Ctx<'_>,
    ) -> Option<Accepted> {
        // RFC 9293 section 3.10.7.4 step 6: URG. The urgent pointer is not carried; urgent data is
        // ordinary data (RFC 6093). Step 7: text.
        let text_end = start + i64::from(packet.payload_length);
        let over = self.state == State::TimeWait;
        // RFC 9293 section 3.10.7.4 step 7: data after the peer's FIN is ignored.
        let follows_fin = self.state.has_peers_fin() && start >= 0;
        // Linux treats an out-of-order FIN like out-of-order data (tcp_rcv_state_process).
        let fin = packet.flags.has(Flags::FIN) && self.quirks().acks.sacks_fin;
        if self.receive.reader_gone
            && !over
            && !follows_fin
            && (packet.payload_length > 0 || fin)
            && text_end > 0
        {
            self.reset_for_data(packet, cx);
            return None;
        }
        let due = self.receive.acknowledge_now || !self.receive.reassembly.is_empty();
        let accepted = if packet.payload_length > 0 && self.state.can_receive() {
            self.accept_data(packet, start, cx.now)
        } else {
            None
        };
        // Both ends have closed. A segment that is out of order or not empty comes from a peer with
        // a different state. RFC 9293 acknowledges only its FIN, Linux's tcp_timewait_state_process
        // any such segment.
        if over && (start > 0 || packet.sequence_length() > 0) {
            self.send_challenge_ack(packet, cx.now);
        }
        // RFC 9293 section 3.10.7.4 step 8: FIN.
        if self.state.can_receive() {
            if packet.flags.has(Flags::FIN) {
                self.record_fin(packet, start, accepted);
            }
            if self.fin_in_order() {
                self.delay_fin_acknowledgment(due, cx.now);
                self.on_peer_fin(cx);
            }
        }
        accepted
    }

    /// Whether the connection is in SYN-RECEIVED and answers as Linux's listener does.
    pub(super) fn answers_like_listener(&self) -> bool {
        self.state == State::SynReceived && self.quirks().handshake.answers_as_listener
    }

    /// Whether the peer's repeated SYN is processed rather than treated as an old segment. Linux
    /// does so for the SYN of a client, and for the SYN+ACK of a simultaneous open.
    fn accepts_repeated_syn(&self, packet: &Packet) -> bool {
        if !self.answers_like_listener() {
            return true;
        }
        let acknowledges = packet.flags.has(Flags::ACK);
        self.passive != acknowledges && (!acknowledges || self.syn_acknowledged(packet).is_some())
    }

    /// In SYN-RECEIVED: whether this is a retransmission of the peer's SYN.
    fn is_repeated_syn(&self, packet: &Packet) -> bool {
        packet.flags.has(Flags::SYN)
            && !packet.flags.has(Flags::RST)
            && packet.sequence == self.receive.initial
    }

    /// Sends the SYN+ACK again, because the peer has not received it. RFC 9293 would acknowledge
    /// the old SYN with a plain ACK; Linux and BSD repeat the SYN+ACK, which the peer needs. The
    /// rate is limited. This is no timeout: the congestion window does not change.
    fn resend_syn_ack(&mut self, cx: &mut Ctx<'_>) {
        if cx.now >= self.receive.challenge_after {
            self.receive.challenge_after = cx.now + CHALLENGE_INTERVAL;
            self.send_syn(cx);
            self.syn_answered_again = true;
            if self.answers_like_listener() {
                let at = cx.now + self.sender.rtt.rto();
                self.sender.timers.set(Purpose::Retransmit, at);
            }
        }
    }

    /// RFC 9293 section 3.4: acceptability test, for a segment that starts `start` after RCV.NXT.
    fn is_acceptable(&self, packet: &Packet, start: i64) -> bool {
        let length = i64::from(packet.sequence_length());
        let window = self.receive.window() as i64;
        let whole = self.quirks().acceptance.accepts_beyond_window;
        // tcp_sequence: a segment is old only before the last position acknowledged (rcv_wup).
        let mut old = 0;
        if whole && start < 0 {
            old = self.receive.last_acknowledged as i64 - self.receive.next as i64;
        }
        if length == 0 {
            // The right edge is included, as in Linux: a sender that has filled the window
            // acknowledges from there.
            return (old..=window).contains(&start);
        }
        // If no more data is accepted, the general check for old segments applies.
        let text = packet.payload_length > 0 && self.state.can_receive();
        if whole && text && start + length <= 0 {
            return start + length >= old;
        }
        if whole && start + i64::from(packet.payload_length) > window {
            let read = self.receive.read >= self.receive.in_order_end();
            return start <= window && start + length > 0 && read;
        }
        // Acceptable if any part lies in the window. Also at the left edge of a closed window,
        // because valid ACKs and RSTs are accepted then (RFC 9293 section 3.10.7.4). As in Linux
        // also a FIN, which needs no room.
        start + length > 0 && (start < window || start <= 0)
    }

    /// RFC 7323 section 5.3, R1: PAWS test.
    fn timestamp_is_acceptable(&self, packet: &Packet, now: Time) -> bool {
        // RFC 7323 section 5.2: a RST is not subject to PAWS, and its timestamp is not recorded.
        if !self.sender.negotiated.timestamps || packet.flags.has(Flags::RST) {
            return true;
        }
        // RFC 7323 section 3.2: once timestamps are negotiated, a segment without the option is
        // dropped.
        let Some((value, _)) = packet.timestamps() else {
            return self.quirks().acceptance.accepts_missing_timestamps;
        };
        (value.wrapping_sub(self.receive.timestamp_recent) as i32) >= 0
            || now.since(self.receive.timestamp_recent_at) > TIMESTAMP_LIFETIME
    }

    /// Whether a segment that fails PAWS is a pure acknowledgment that was reordered.
    fn is_ignorable_old_acknowledgment(&self, packet: &Packet, start: i64) -> bool {
        self.quirks().acceptance.ignores_old_acks_failing_paws
            && packet.flags.has(Flags::ACK)
            && packet.sequence_length() == 0
            && start < 0
    }

    /// RFC 7323 section 4.3 (2): updates TS.Recent if the segment starts at or before the last
    /// acknowledgment sent, so that the echo times the earliest unacknowledged segment.
    #[inline]
    pub(super) fn update_timestamp(&mut self, packet: &Packet, start: i64, now: Time) {
        if self.sender.negotiated.timestamps {
            self.record_timestamp(packet, start, now);
        }
    }

    /// Updates TS.Recent, where a segment has a timestamp only if they are negotiated.
    #[inline]
    pub(super) fn record_timestamp(&mut self, packet: &Packet, start: i64, now: Time) {
        let receive = &mut self.receive;
        let behind = (receive.next - receive.last_acknowledged) as i64;
        if let Some((value, _)) = packet.timestamps()
            && start + behind <= 0
        {
            receive.timestamp_recent = value;
            receive.timestamp_recent_at = now;
        }
    }

    /// Answers a segment that fails the acceptability test or PAWS.
    fn answer_unacceptable(&mut self, packet: &Packet, start: i64, now: Time) {
        if packet.flags.has(Flags::RST) {
            return;
        }
        // RFC 7323 section 3.2: dropped silently.
        let silent = !self.quirks().acceptance.accepts_missing_timestamps;
        if silent && self.sender.negotiated.timestamps && packet.timestamps().is_none() {
            return;
        }
        // RFC 9293 section 3.10.7.4 step 8: a retransmitted FIN in TIME-WAIT restarts the timer.
        if self.state == State::TimeWait && packet.flags.has(Flags::FIN) {
            self.enter_time_wait(now);
        }
        let whole = self.quirks().acceptance.accepts_beyond_window;
        if packet.payload_length > 0 && (start < 0 || !whole) {
            self.receive.on_unexpected_segment();
        }
        if whole && let Some(sizing) = &mut self.receive.sizing {
            sizing.mark_unscheduled(); // tcp_send_dupack
        }
        let fin = self.quirks().acks.sacks_fin
            && packet.flags.has(Flags::FIN)
            && self.state != State::TimeWait;
        if (packet.payload_length > 0 || fin) && start < 0 {
            self.sender.statistics.duplicates_received += 1;
            let position = |after: i64| self.receive.next.saturating_add_signed(after);
            let mut end = start + i64::from(packet.payload_length) + i64::from(fin);
            if whole {
                end = end.min(0); // tcp_send_dupack
            }
            // RFC 2883 section 4: not more than a window back, where it may belong to another
            // connection.
            if start >= -(1 << 30) && end <= 0 && position(start) > 0 {
                self.receive.duplicate = Some(Range {
                    start: position(start),
                    end: position(end),
                });
            }
        }
        self.send_challenge_ack(packet, now);
    }

    /// Processes the acknowledgment of an entirely old segment, which begins `start` after RCV.NXT.
    /// RFC 9293 drops it. Two ends that both retransmit what the other has would then never see
    /// each other's progress, so new acknowledgments count, as in BSD. Unlike BSD, only where the
    /// peer may have to retransmit the segment: the peer knows that older data has arrived. A
    /// forged acknowledgment must then also match a sequence number in that range
    /// (RFC 5961 section 5), not half of the sequence space. Other fields are ignored, for example
    /// ECE.
    fn process_old_acknowledgment(
        &mut self,
        packet: &Packet,
        start: i64,
        sack: Option<&SackBlocks>,
        cx: &mut Ctx<'_>,
    ) {
        let unusual = Flags::SYN.with(Flags::RST);
        let sequence = &self.sender.send.sequence;
        let expected = self.sender.send.wire(sequence.unacknowledged);
        let distance = i64::from(packet.acknowledgment.distance_from(expected));
        if self.state.is_synchronized()
            && packet.flags.has(Flags::ACK)
            && !packet.flags.has(unusual)
            && start >= -(self.receive.outstanding_maximum() as i64)
            && (1..=sequence.outstanding_ever() as i64).contains(&distance)
        {
            let mut packet = *packet;
            packet.flags = packet.flags.without(Flags::ECE);
            self.acknowledgment(&packet, sack, cx.now);
            if self.sender.send.fin_acknowledged() {
                self.fin_acknowledged(cx);
            }
        }
    }

    /// Sends a challenge ACK, which states our position, in answer to an unacceptable segment. At
    /// once for a segment with payload, which its sender retransmits; otherwise rate-limited.
    pub(super) fn send_challenge_ack(&mut self, packet: &Packet, now: Time) {
        let limited = packet.sequence_length() == 0 || packet.flags.has(Flags::SYN);
        if limited {
            self.send_rate_limited_challenge_ack(now);
        } else {
            self.receive.acknowledge_now = true;
        }
    }

    /// Sends a challenge ACK at most once per interval, whatever the segment contains.
    pub(super) fn send_rate_limited_challenge_ack(&mut self, now: Time) {
        if now >= self.receive.challenge_after {
            self.receive.challenge_after = now + CHALLENGE_INTERVAL;
            self.receive.acknowledge_now = true;
        }
    }

    /// RFC 9293 section 3.5.3, RFC 9293 section 3.10.7.4 step 2 and RFC 5961 section 3.2. Only
    /// a RST at exactly RCV.NXT resets; any other in the window is answered with a challenge ACK.
    fn process_reset(&mut self, packet: &Packet, start: i64, now: Time) {
        if start != 0 {
            self.send_challenge_ack(packet, now);
            return;
        }
        let ended = matches!(
            self.state,
            State::Closing | State::LastAck | State::TimeWait
        );
        // RFC 9293 section 3.10.7.4 step 2: in SYN-RECEIVED after a passive open, return to LISTEN:
        // "The user need not be informed."
        let quiet = ended || self.is_half_open();
        let why = if quiet { Events::NONE } else { Events::RESET };
        self.enter_closed(why, now);
    }

    /// Records the position of the peer's FIN, if all data before it was accepted.
    fn record_fin(&mut self, packet: &Packet, start: i64, accepted: Option<Accepted>) {
        let length = i64::from(packet.payload_length);
        // `start` was computed before the data was accepted; RCV.NXT may have advanced since.
        let position = match accepted {
            // All data before the FIN was accepted.
            Some(taken) if i64::from(taken.skip + taken.length) == length => {
                taken.offset + 1 + u64::from(taken.length)
            }
            Some(_) => return,
            // No data: the FIN is the next in sequence or out of order.
            None if length == 0 => self.receive.next.saturating_add_signed(start),
            // Old data and a new FIN.
            None if start + length == 0 => self.receive.next,
            None => return,
        };
        let beyond = self
            .receive
            .reassembly
            .highest()
            .is_some_and(|h| h > position);
        if self.receive.fin == UNSET && position >= self.receive.next && !beyond {
            self.receive.fin = position;
        }
        if position == self.receive.fin
            && position > self.receive.next
            && self.quirks().acks.sacks_fin
        {
            let sack = self.sender.negotiated.sack;
            self.receive.store_out_of_order_fin(position, sack);
        }
        // RFC 9293 section 3.10.7.4 step 8: a FIN is acknowledged at once; an out-of-order FIN like
        // any segment out of order.
        self.receive.acknowledge_now = true;
    }
}
