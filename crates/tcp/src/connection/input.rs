//! A segment arrives: RFC 9293 section 3.10.7.

use bentpipe_types::{Ctx, Flags, Packet, PacketRef, SackBlocks, Span, Time};

use super::known::{
    Nothing, PacedQuiet, PacedRepairing, Quiet, Repairing, SimpleQuiet, SimpleRepairing,
};
use super::prediction::{Foresight, Manner, Way};
use super::receive::NOWHERE;
use super::timers::Purpose;
use super::{Accepted, Connection, Events, State};
use crate::reassembly::Range;

/// Between two acknowledgments of unacceptable segments without payload, at least. Linux's
/// tcp_invalid_ratelimit: without it, two ends that disagree would acknowledge each other for ever
/// (RFC 5961 section 7).
const CHALLENGE_INTERVAL: Span = Span::from_millis(500);

/// RFC 7323 section 5.5: a timestamp older than this says nothing.
const TIMESTAMP_LIFETIME: Span = Span::from_secs(24 * 24 * 3600);

/// What an ordinary segment has no other flag than.
const UNUSUAL: Flags = Flags(Flags::SYN.0 | Flags::FIN.0 | Flags::RST.0 | Flags::URG.0);

impl Connection {
    /// `KEPT`: whoever feeds the stream keeps its bytes.
    #[inline(always)]
    pub(super) fn segment_arrives<const KEPT: bool>(
        &mut self,
        reference: PacketRef,
        cx: &mut Ctx<'_>,
    ) -> Option<Accepted> {
        self.sender.statistics.segments_received += 1;
        let packet = cx.packets.get(reference);
        match self.foresight() {
            Foresight::Text => {
                if let Some(start) = self.only_brings_text(packet) {
                    return self.next_text(reference, start, cx);
                }
            }
            Foresight::Acknowledgment(manner) => {
                if let Some(newly) = self.only_acknowledges(packet, cx.now) {
                    match manner {
                        Manner::Simple => {
                            self.next_acknowledgment::<SimpleQuiet, KEPT>(reference, newly, cx);
                        }
                        Manner::Unpaced => {
                            self.next_acknowledgment::<Quiet, KEPT>(reference, newly, cx);
                        }
                        Manner::Paced => {
                            self.next_acknowledgment::<PacedQuiet, KEPT>(reference, newly, cx);
                        }
                    }
                    return None;
                }
            }
            Foresight::Duplicate(manner) => {
                if self.only_repeats(packet, cx.now) {
                    match manner {
                        Manner::Simple => self.next_duplicate::<SimpleRepairing>(reference, cx),
                        Manner::Unpaced => self.next_duplicate::<Repairing>(reference, cx),
                        Manner::Paced => self.next_duplicate::<PacedRepairing>(reference, cx),
                    }
                    return None;
                }
            }
            Foresight::Nothing | Foresight::Unknown => {}
        }
        self.any_segment(reference, cx)
    }

    /// A segment that no shorter way was open for.
    #[inline(never)]
    fn any_segment(&mut self, reference: PacketRef, cx: &mut Ctx<'_>) -> Option<Accepted> {
        self.changed();
        let packet = *cx.packets.get(reference);
        let accepted = match self.is_ordinary(&packet) {
            Some(start) => {
                Way::Ordinary.taken();
                let sack = packet
                    .has_sack_blocks()
                    .then(|| cx.packets.sack_blocks(reference));
                cx.packets.release(reference);
                self.ordinary_segment(&packet, start, sack.as_ref(), cx)
            }
            None => self.unusual_segment(reference, &packet, cx),
        };
        self.check_space::<Nothing>(cx.now);
        accepted
    }

    /// Like [`in_order_of_the_rfc`](Self::in_order_of_the_rfc), of a segment that passes every check.
    #[inline]
    fn ordinary_segment(
        &mut self,
        packet: &Packet,
        start: i64,
        sack: Option<&SackBlocks>,
        cx: &mut Ctx<'_>,
    ) -> Option<Accepted> {
        let mut accepted = None;
        let asks = self.asks_again(packet);
        if self.acknowledgment(packet, sack, cx.now) {
            self.update_timestamp(packet, start, cx.now);
            if self.sender.send.fin_acknowledged() {
                self.fin_acknowledged(cx);
            }
            if self.receive.refuses && packet.payload_length > 0 {
                self.refuse(packet, cx);
            } else if packet.payload_length > 0 {
                accepted = self.text(packet, start, cx.now);
            }
            if asks {
                self.ask_again(cx.now);
            }
        }
        self.output(cx);
        accepted
    }

    /// Header prediction: the connection is established, this segment is in the window or an
    /// acknowledgment, and there is nothing else to it, but SACK blocks perhaps. Every check of the long way
    /// is passed. Returns how far after RCV.NXT it begins.
    #[inline]
    fn is_ordinary(&self, packet: &Packet) -> Option<i64> {
        let timestamps = match packet.timestamps() {
            Some((value, _)) => {
                self.sender.negotiated.timestamps
                    && value.wrapping_sub(self.receive.timestamp_recent) as i32 >= 0
            }
            None => !self.sender.negotiated.timestamps,
        };
        let start = i64::from(packet.sequence.distance_from(self.receive.wire()));
        let end = start + i64::from(packet.payload_length);
        let ordinary = self.sender.config.header_prediction
            && matches!(self.state, State::Established | State::FinWait1)
            && !packet.flags.has(UNUSUAL)
            && !self.sender.ecn.is_on()
            && packet.flags.has(Flags::ACK)
            && start >= 0
            && end <= self.receive.window() as i64
            && self.receive.fin == NOWHERE
            && timestamps
            && (self.sender.negotiated.sack || !packet.has_sack_blocks());
        ordinary.then_some(start)
    }

    fn unusual_segment(
        &mut self,
        reference: PacketRef,
        packet: &Packet,
        cx: &mut Ctx<'_>,
    ) -> Option<Accepted> {
        if self.state == State::Closed {
            super::reset_reply(reference, self.egress, cx);
            return None;
        }
        let options = cx.packets.syn_options(reference);
        let sack = (packet.has_sack_blocks() && self.sender.negotiated.sack)
            .then(|| cx.packets.sack_blocks(reference));
        cx.packets.release(reference);
        let accepted = if self.state == State::SynSent {
            self.syn_sent(packet, &options, cx)
        } else {
            self.in_order_of_the_rfc(packet, sack.as_ref(), cx)
        };
        self.output(cx);
        accepted
    }

    /// RFC 9293 section 3.10.7.4: any state from SYN-RECEIVED on.
    fn in_order_of_the_rfc(
        &mut self,
        packet: &Packet,
        sack: Option<&SackBlocks>,
        cx: &mut Ctx<'_>,
    ) -> Option<Accepted> {
        let mut packet = *packet;
        let syn_again = self.state == State::SynReceived
            && self.is_syn_again(&packet)
            && self.takes_syn_again(&packet);
        if syn_again {
            if !packet.flags.has(Flags::ACK) {
                self.answer_syn(cx);
                return None;
            }
            // Both have opened at once, and this is the other's SYN+ACK: its SYN is old, its
            // acknowledgment is not (RFC 9293 section 3.10.7.4: trimmed to the window).
            packet.sequence += 1;
            packet.payload_length = 0;
            packet.flags = Flags::SYN.with(Flags::ACK);
        }
        let start = i64::from(packet.sequence.distance_from(self.receive.wire()));

        // First: the sequence number, and before it the timestamp (RFC 7323 section 5.3)
        let timely = self.timestamp_is_acceptable(&packet, cx.now);
        if !timely || !self.is_acceptable(&packet, start) {
            self.sender.statistics.unacceptable += 1;
            if timely || !self.overlooks(&packet, start) {
                self.unacceptable(&packet, start, cx.now);
            }
            if timely && start < 0 {
                self.acknowledgment_of_old(&packet, start, sack, cx);
            }
            return None;
        }
        // Second: RST
        if packet.flags.has(Flags::RST) {
            self.reset(&packet, start, cx.now);
            return None;
        }
        // (Third: security. RFC 9293 keeps the number and little else.)
        // Fourth: SYN. RFC 5961 section 4.2: in any synchronized state, a challenge.
        if packet.flags.has(Flags::SYN) && !syn_again {
            self.sender.statistics.unacceptable += 1;
            self.challenge(&packet, cx.now);
            return None;
        }
        // Fifth: ACK
        if !packet.flags.has(Flags::ACK) {
            return None;
        }
        let asks = self.asks_again(&packet);
        if self.state == State::SynReceived {
            // SND.UNA < SEG.ACK =< SND.NXT
            let Some(position) = self.syn_acknowledged(&packet) else {
                self.sender.statistics.unacceptable += 1;
                self.send_reset(packet.acknowledgment, false, cx);
                return None;
            };
            self.established(&packet, sack, position, cx);
            if syn_again && self.sender.config.habits.repeats_offer {
                // (RFC 2883: the peer's SYN has come twice.)
                self.receive.duplicate = Some(Range { start: 0, end: 1 });
                self.receive.acknowledge_now = true;
            }
        } else if !self.acknowledgment(&packet, sack, cx.now) {
            return None;
        }
        self.notified(&packet, start, cx.now);
        // Only now: a segment that is dropped has nothing to say, not even the time.
        self.update_timestamp(&packet, start, cx.now);
        if self.sender.send.fin_acknowledged() {
            self.fin_acknowledged(cx);
        }
        let accepted = self.text_and_fin(&packet, start, cx);
        if asks {
            self.ask_again(cx.now);
        }
        accepted
    }

    /// Steps six to eight, of a segment whose text begins `start` after RCV.NXT.
    pub(super) fn text_and_fin(
        &mut self,
        packet: &Packet,
        start: i64,
        cx: &mut Ctx<'_>,
    ) -> Option<Accepted> {
        // Sixth: URG. The urgent pointer is not carried; urgent data is data (RFC 6093).
        // Seventh: text
        let text_end = start + i64::from(packet.payload_length);
        let over = self.state == State::TimeWait;
        // What follows the peer's FIN is no text (RFC 9293 section 3.10.7.4 step 7).
        let follows_fin = self.state.has_peers_fin() && start >= 0;
        // Linux takes a FIN ahead of a gap for text there (tcp_rcv_state_process).
        let fin = packet.flags.has(Flags::FIN) && self.sender.config.habits.sacks_fin;
        if self.receive.refuses
            && !over
            && !follows_fin
            && (packet.payload_length > 0 || fin)
            && text_end > 0
        {
            self.refuse(packet, cx);
            return None;
        }
        let due = self.receive.acknowledge_now || !self.receive.reassembly.is_empty();
        let accepted = if packet.payload_length > 0 && self.state.can_receive() {
            self.text(packet, start, cx.now)
        } else {
            None
        };
        // Both ends have closed: whatever is neither the next nor empty is of a peer that doesn't know
        // where we stand. RFC 9293 tells it only of its FIN, Linux's tcp_timewait_state_process always.
        if over && (start > 0 || packet.sequence_length() > 0) {
            self.challenge(packet, cx.now);
        }
        // Eighth: FIN
        if self.state.can_receive() {
            if packet.flags.has(Flags::FIN) {
                self.note_fin(packet, start, accepted);
            }
            if self.fin_in_order() {
                self.delay_fin_acknowledgment(due, cx.now);
                self.peer_closed(cx);
            }
        }
        accepted
    }

    /// Is it about to be established, and answers as Linux does?
    pub(super) fn answers_unestablished(&self) -> bool {
        self.state == State::SynReceived && self.sender.config.habits.answers_as_listener
    }

    /// Is the peer's SYN, which has come again, more than an old segment? Linux takes it of a client, and the
    /// acknowledgment that comes with it of a host that has opened at the same time.
    fn takes_syn_again(&self, packet: &Packet) -> bool {
        if !self.answers_unestablished() {
            return true;
        }
        let acknowledges = packet.flags.has(Flags::ACK);
        self.passive != acknowledges && (!acknowledges || self.syn_acknowledged(packet).is_some())
    }

    /// In SYN-RECEIVED: is this the SYN that we have, once more?
    fn is_syn_again(&self, packet: &Packet) -> bool {
        packet.flags.has(Flags::SYN)
            && !packet.flags.has(Flags::RST)
            && packet.sequence == self.receive.initial
    }

    /// The peer has not seen our SYN+ACK. RFC 9293 would have its SYN acknowledged like any old
    /// segment; the SYN+ACK itself, as Linux and BSD send it, tells the peer what it needs. Only so
    /// often, and it is no timeout: the window doesn't suffer.
    fn answer_syn(&mut self, cx: &mut Ctx<'_>) {
        if cx.now >= self.receive.challenge_after {
            self.receive.challenge_after = cx.now + CHALLENGE_INTERVAL;
            self.send_syn(cx);
            self.syn_answered_again = true;
            if self.answers_unestablished() {
                let at = cx.now + self.sender.rtt.rto();
                self.sender.timers.set(Purpose::Retransmit, at);
            }
        }
    }

    /// RFC 9293 section 3.4's table, for a segment that starts `start` after RCV.NXT.
    fn is_acceptable(&self, packet: &Packet, start: i64) -> bool {
        let length = i64::from(packet.sequence_length());
        let window = self.receive.window() as i64;
        let whole = self.sender.config.habits.takes_whole_segments;
        // tcp_sequence: what was not acknowledged yet is not old (rcv_wup).
        let mut old = 0;
        if whole && start < 0 {
            old = self.receive.last_acknowledged as i64 - self.receive.next as i64;
        }
        if length == 0 {
            // The right edge included, as in Linux: a sender that has filled the window
            // acknowledges from there.
            return (old..=window).contains(&start);
        }
        // (Where no more text is taken, what tells so of any old segment does it.)
        let text = packet.payload_length > 0 && self.state.can_receive();
        if whole && text && start + length <= 0 {
            return start + length >= old;
        }
        if whole && start + i64::from(packet.payload_length) > window {
            let read = self.receive.read >= self.receive.in_order_end();
            return start <= window && start + length > 0 && read;
        }
        // Any part in the window; or at its left edge even when it is closed, because valid
        // acknowledgments and RSTs are then to be accepted (section 3.10.7.4), and, as in Linux, a
        // FIN that needs no room.
        start + length > 0 && (start < window || start <= 0)
    }

    /// RFC 7323 section 5.3, R1: PAWS
    fn timestamp_is_acceptable(&self, packet: &Packet, now: Time) -> bool {
        if !self.sender.negotiated.timestamps || packet.flags.has(Flags::RST) {
            return true;
        }
        // RFC 7323 section 3.2: a segment without the option, once it is negotiated, is dropped
        let Some((value, _)) = packet.timestamps() else {
            return self.sender.config.habits.takes_unstamped;
        };
        (value.wrapping_sub(self.receive.timestamp_recent) as i32) >= 0
            || now.since(self.receive.timestamp_recent_at) > TIMESTAMP_LIFETIME
    }

    /// Of what fails PAWS, is this a mere acknowledgment that others have overtaken?
    fn overlooks(&self, packet: &Packet, start: i64) -> bool {
        self.sender.config.habits.overlooks_old_acknowledgments
            && packet.flags.has(Flags::ACK)
            && packet.sequence_length() == 0
            && start < 0
    }

    /// RFC 7323 section 4.3 (2): TS.Recent, if the segment is at or before what we acknowledged
    /// last, so that the echo times the earliest segment not acknowledged.
    #[inline]
    pub(super) fn update_timestamp(&mut self, packet: &Packet, start: i64, now: Time) {
        if self.sender.negotiated.timestamps {
            self.note_timestamp(packet, start, now);
        }
    }

    /// The same, of a segment that has a timestamp only if they are in use.
    #[inline]
    pub(super) fn note_timestamp(&mut self, packet: &Packet, start: i64, now: Time) {
        let receive = &mut self.receive;
        let behind = (receive.next - receive.last_acknowledged) as i64;
        if let Some((value, _)) = packet.timestamps()
            && start + behind <= 0
        {
            receive.timestamp_recent = value;
            receive.timestamp_recent_at = now;
        }
    }

    /// A segment that fails the first check.
    fn unacceptable(&mut self, packet: &Packet, start: i64, now: Time) {
        if packet.flags.has(Flags::RST) {
            return;
        }
        // RFC 7323 section 3.2: silently
        let silent = !self.sender.config.habits.takes_unstamped;
        if silent && self.sender.negotiated.timestamps && packet.timestamps().is_none() {
            return;
        }
        // RFC 9293 section 3.10.7.4 step 8: the peer's FIN again, in TIME-WAIT
        if self.state == State::TimeWait && packet.flags.has(Flags::FIN) {
            self.wait_for_stragglers(now);
        }
        let whole = self.sender.config.habits.takes_whole_segments;
        if packet.payload_length > 0 && (start < 0 || !whole) {
            self.receive.is_odd();
        }
        if whole && let Some(sizing) = &mut self.receive.sizing {
            sizing.is_unasked(); // tcp_send_dupack
        }
        let fin = self.sender.config.habits.sacks_fin
            && packet.flags.has(Flags::FIN)
            && self.state != State::TimeWait;
        if (packet.payload_length > 0 || fin) && start < 0 {
            self.sender.statistics.duplicates_received += 1;
            let position = |after: i64| self.receive.next.saturating_add_signed(after);
            let mut end = start + i64::from(packet.payload_length) + i64::from(fin);
            if whole {
                end = end.min(0); // (tcp_send_dupack)
            }
            // RFC 2883 section 4: not beyond a window, where it may be of another connection
            if start >= -(1 << 30) && end <= 0 && position(start) > 0 {
                self.receive.duplicate = Some(Range {
                    start: position(start),
                    end: position(end),
                });
            }
        }
        self.challenge(packet, now);
    }

    /// The acknowledgment of a segment that is old altogether and begins `start` after RCV.NXT. RFC 9293
    /// drops it; two ends that both send again what the other has would then never hear of it, so that, as
    /// in BSD, what it newly acknowledges counts. Not as in BSD, only where the peer may have to send the
    /// segment again: what is further back it knows to have arrived, and whoever forges an acknowledgment
    /// must find a sequence number too (RFC 5961 section 5), not any of half of them. And nothing else of it counts: that it
    /// echoes a mark is not heard.
    fn acknowledgment_of_old(
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

    /// An acknowledgment that says where we stand, to a segment that makes no sense here. At once
    /// for one with payload, which its sender retransmits; otherwise only so often.
    pub(super) fn challenge(&mut self, packet: &Packet, now: Time) {
        let limited = packet.sequence_length() == 0 || packet.flags.has(Flags::SYN);
        if limited {
            self.challenge_within_limit(now);
        } else {
            self.receive.acknowledge_now = true;
        }
    }

    /// The same, whatever the segment brings, once in so long.
    pub(super) fn challenge_within_limit(&mut self, now: Time) {
        if now >= self.receive.challenge_after {
            self.receive.challenge_after = now + CHALLENGE_INTERVAL;
            self.receive.acknowledge_now = true;
        }
    }

    /// RFC 9293 section 3.10.7.4 step 2, with RFC 5961 section 3.2: only a RST at exactly RCV.NXT
    /// resets; another one in the window is challenged.
    fn reset(&mut self, packet: &Packet, start: i64, now: Time) {
        if start != 0 {
            self.challenge(packet, now);
            return;
        }
        let ended = matches!(
            self.state,
            State::Closing | State::LastAck | State::TimeWait
        );
        // In SYN-RECEIVED after a passive open: back to LISTEN, "the user need not be informed".
        let quiet = ended || self.is_unborn();
        let why = if quiet { Events::NONE } else { Events::RESET };
        self.closed(why, now);
    }

    /// Remembers where the peer's FIN is, if all the text before it was taken.
    fn note_fin(&mut self, packet: &Packet, start: i64, accepted: Option<Accepted>) {
        let length = i64::from(packet.payload_length);
        // `start` was before the text: what is in order now may be more.
        let position = match accepted {
            // All that was before the FIN
            Some(taken) if i64::from(taken.skip + taken.length) == length => {
                taken.offset + 1 + u64::from(taken.length)
            }
            Some(_) => return,
            // No text to take: the FIN itself may be the next, or lie ahead.
            None if length == 0 => self.receive.next.saturating_add_signed(start),
            // Old text and a new FIN
            None if start + length == 0 => self.receive.next,
            None => return,
        };
        let beyond = self
            .receive
            .reassembly
            .highest()
            .is_some_and(|h| h > position);
        if self.receive.fin == NOWHERE && position >= self.receive.next && !beyond {
            self.receive.fin = position;
        }
        if position == self.receive.fin
            && position > self.receive.next
            && self.sender.config.habits.sacks_fin
        {
            let sack = self.sender.negotiated.sack;
            self.receive.keep_fin(position, sack);
        }
        // RFC 9293 section 3.10.7.4 step 8: a FIN is acknowledged; one that is ahead, as any
        // segment out of order.
        self.receive.acknowledge_now = true;
    }
}
