//! A multiplexed connection: a leg to the host on this side, and a stream to the other gateway.
//!
//! The other gateway grants a stream a credit, the offset up to which it may send, only for memory
//! that it has reserved. So all data that arrives on a trunk finds space and is read at once. A
//! host that reads slowly, or not at all, slows down its own peer only.

use std::sync::Arc;

use bentpipe_tcp::{
    ActiveFastOpen, Config, Events, Opening, PassiveFastOpen, Payload, Socket, Source, State,
    TIMESTAMPS_LENGTH,
};
use bentpipe_types::{
    ConnectionReport, Ctx, Flags, FlowKey, HostAddress, Packet, PacketRef, Port, Seq, Time, filler,
};

use super::super::Confirmation;
use super::super::management::leg_report;
use super::super::split_connection::{MAX_FIN_HOLD, OPENER, RESPONDER, pushed_offset};
use super::frame::{
    self, AnswerFrame, DATA_HEADER, Frame, MAX_DATA, MAX_SYN_DATA, OpenFrame, ResetReason,
};

/// Index of the stream that comes from the host.
pub(super) const FROM_HOST: usize = 0;
/// Index of the stream that goes to the host.
pub(super) const TO_HOST: usize = 1;

/// Credit of the opening side before the SYN is answered: the smallest that the other gateway
/// offers. With early answers it saves a round trip.
pub(super) const EARLY_CREDIT: u64 = super::super::memory_budget::MIN_WINDOW;

/// A host's connection that is carried over a trunk.
#[derive(Debug)]
pub(in super::super) struct MultiplexedConnection<P> {
    /// Key of the packets that the host on this side sends.
    pub(super) key: FlowKey,
    /// [`OPENER`] or [`RESPONDER`]: the role of the host on this side.
    pub(super) side: usize,
    pub(in super::super) leg: Option<Socket<P>>,
    /// Port that leads to the host.
    pub(super) port: Port,
    /// The SYN that opened the connection, until it is answered.
    pub(in super::super) syn: Option<PacketRef>,
    pub(super) syn_sequence: Seq,
    /// Whether a fallback connection was opened, because no answer came in time.
    pub(super) has_fallback: bool,
    /// Slot of the trunk that carries it.
    pub(super) trunk: usize,
    /// Stream number for frames sent from here.
    pub(super) stream: u32,
    /// Trunk and stream number on which the peer sends, if both hosts have opened the connection at
    /// once.
    pub(super) alias: Option<(usize, u32)>,
    /// Initial receive window offered to each host.
    pub(super) initial_window: u64,
    /// Offset up to which the host's stream may be sent to the other gateway.
    credit: u64,
    /// Offset up to which it has been sent.
    sent: u64,
    /// Offset of the latest PSH of the host.
    push_offset: u64,
    /// Whether the end frame was sent.
    end_sent: bool,
    /// Time at which the host's FIN arrived.
    fin_received_at: Option<Time>,
    /// Whether the other host has acknowledged this host's FIN.
    fin_confirmed: bool,
    /// Bytes received of the other host's stream.
    received: u64,
    /// Credit granted to the other gateway, as an offset.
    credit_granted: u64,
    /// Credit announced to the other gateway.
    credit_announced: u64,
    /// Whether the other host has sent its FIN.
    peer_finished: bool,
    /// Whether an open frame has to be sent.
    open_pending: bool,
    /// Whether an answer frame has to be sent.
    answer_pending: bool,
    /// Whether the other gateway has yet to report the outcome of the SYN.
    awaiting_answer: bool,
    fin_confirmation: FinConfirmation,
    /// Bytes of the SYN's data that were sent with the SYN to the other host.
    syn_data: u64,
    /// Whether it is in its trunk's control queue.
    pub(super) control_queued: bool,
    /// Whether it is in its trunk's data queue.
    pub(super) data_queued: bool,
    /// Bytes promised to each stream, as last counted.
    pub(super) promised: [u64; 2],
    /// Bytes held of each stream, as last counted.
    pub(super) held: [u64; 2],
    /// Received frames that differ from the simulated stream.
    pub(in super::super) mismatches: u64,
    /// Data frames compared with the simulated stream.
    pub(in super::super) checked: u64,
    /// Time of the SYN or open frame.
    pub(super) opened_at: Time,
    /// Time of the last packet or frame.
    pub(super) last_activity_at: Time,
    /// Whether only TIME-WAIT is left.
    pub(in super::super) has_ended: bool,
    pub(super) aborted: bool,
}

/// State of the acknowledgment of the other host's FIN by this host, which the other gateway has to
/// be told of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FinConfirmation {
    NotYet,
    Pending,
    Sent,
}

/// Outcome of opening the leg to the responding host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OpenOutcome {
    Pending,
    AnswerFrame,
    Failed(ResetReason),
}

impl<P: Payload> MultiplexedConnection<P> {
    /// Describes the connection for the operator. Only its leg to the host is here.
    pub(in super::super) fn report(&self, now: Time) -> ConnectionReport {
        let (here, there) = (self.key.source, self.key.destination);
        let leg = (self.leg.as_ref()).map(|leg| leg_report(leg, false, self.held[FROM_HOST]));
        let (ends, legs) = if self.side == OPENER {
            ([here, there], [leg, None])
        } else {
            ([there, here], [None, leg])
        };
        ConnectionReport {
            opener: ends[0],
            responder: ends[1],
            treatment: "multiplexed",
            age: Some(now.since(self.opened_at)),
            idle: Some(now.since(self.last_activity_at)),
            legs,
        }
    }

    fn new(
        key: FlowKey,
        side: usize,
        port: Port,
        (trunk, stream): (usize, u32),
        first: u64,
        now: Time,
    ) -> Self {
        Self {
            key,
            side,
            leg: None,
            port,
            syn: None,
            syn_sequence: Seq::default(),
            has_fallback: false,
            trunk,
            stream,
            alias: None,
            initial_window: first,
            credit: 0,
            sent: 0,
            push_offset: 0,
            end_sent: false,
            fin_received_at: None,
            fin_confirmed: false,
            received: 0,
            credit_granted: first,
            credit_announced: first,
            peer_finished: false,
            open_pending: false,
            answer_pending: false,
            awaiting_answer: false,
            fin_confirmation: FinConfirmation::NotYet,
            syn_data: 0,
            control_queued: false,
            data_queued: false,
            promised: [0; 2],
            held: [0; 2],
            mismatches: 0,
            checked: 0,
            opened_at: now,
            last_activity_at: now,
            has_ended: false,
            aborted: false,
        }
    }

    /// Sends a segment towards the other host, which makes it check whether the connection still
    /// exists.
    ///
    /// A host answers an old segment with an ACK (RFC 9293 section 3.10.7.4). The other gateway may
    /// have lost its state, and then forwards this ACK as one of a connection that it does not
    /// split. This side's host, which was reset, answers it with a RST that the other host accepts.
    pub(super) fn challenge_remote_host(&self, facing: Port, cx: &mut Ctx<'_>) {
        let Some(leg) = self.leg.as_ref().filter(|_| !self.has_ended) else {
            return;
        };
        let tcp = leg.connection();
        // On this side, too, the sequence numbers are those of the hosts.
        let Some(initial) = tcp.peer_initial_sequence() else {
            return;
        };
        let mut question = Packet::new(tcp.remote(), tcp.local(), tcp.ip_version());
        question.flags = Flags::ACK;
        question.sequence = initial;
        question.acknowledgment = tcp.initial_sequence() + 1;
        // RFC 7323 section 3.2: once timestamps are negotiated, a segment without them is dropped
        // silently. One with old timestamps is answered. Other hosts ignore the option.
        question.header_length += TIMESTAMPS_LENGTH;
        question.set_timestamps(0, 0);
        // One byte of garbage at the SYN's sequence number, as a keep-alive segment may have
        // (RFC 9293 section 3.8.4). Linux does not answer an old acknowledgment without data.
        question.payload_length = 1;
        question.payload_offset = u64::MAX;
        let question = cx.packets.insert(question);
        if let (HostAddress::Ip(here), HostAddress::Ip(beyond)) =
            (self.key.source.host, self.key.destination.host)
        {
            cx.packets.set_ip(question, (here, beyond));
        }
        cx.emit(facing, question);
    }

    /// Opens a connection for the host on this side. `syn` is kept until it is answered.
    pub(super) fn open(
        key: FlowKey,
        syn: PacketRef,
        port: Port,
        stream: (usize, u32),
        first: u64,
        cx: &Ctx<'_>,
    ) -> Self {
        Self {
            syn: Some(syn),
            syn_sequence: cx.packets.get(syn).sequence,
            credit: EARLY_CREDIT,
            open_pending: true,
            awaiting_answer: true,
            ..Self::new(key, OPENER, port, stream, first, cx.now)
        }
    }

    /// Opens a leg to the host on this side, for an open frame from the other gateway.
    pub(super) fn opened(
        key: FlowKey,
        open: &OpenFrame<'_>,
        port: Port,
        stream: (usize, u32),
        (config, first): (&Arc<Config>, u64),
        cx: &mut Ctx<'_>,
    ) -> Self {
        let opening = Opening {
            config,
            // The gateway takes the place of the host that opened the connection,
            local: open.source,
            remote: open.destination,
            egress: port,
            // with its sequence numbers.
            initial_sequence: open.sequence,
        };
        let fast = ActiveFastOpen {
            // RFC 7413 section 4.2.2: data without a cookie is not accepted; the host retransmits
            // it.
            room: if (open.fast_open).is_some_and(|option| !option.cookie().is_empty()) {
                open.text.len() as u16
            } else {
                0
            },
            bytes: 0,
            option: open.fast_open,
        };
        let source = Source::Bytes(&open.text[..usize::from(fast.room)]);
        let (leg, taken) = Socket::connect_fast(&opening, open.ip, fast, source, cx);
        Self {
            leg: Some(leg),
            syn_sequence: open.sequence,
            credit: open.credit,
            received: taken,
            syn_data: taken,
            answer_pending: true,
            ..Self::new(key, RESPONDER, port, stream, first, cx.now)
        }
    }

    /// Answers the host's SYN, with the other host's sequence number if that is known.
    pub(super) fn answer(
        &mut self,
        config: &Arc<Config>,
        answered: Option<&AnswerFrame>,
        cx: &mut Ctx<'_>,
    ) {
        let Some(syn) = self.syn.take() else {
            return;
        };
        let record = *cx.packets.get(syn);
        let opening = Opening {
            config,
            local: record.destination,
            remote: record.source,
            egress: self.port,
            initial_sequence: answered.map_or_else(
                || Seq::new(cx.random.bits() as u32),
                |answered| answered.sequence,
            ),
        };
        let fast = match answered.and_then(|answered| answered.cookie) {
            _ if self.syn_data > 0 => PassiveFastOpen::Accept,
            Some(cookie) => PassiveFastOpen::Offer(cookie),
            None => PassiveFastOpen::Ignore,
        };
        self.leg = Some(Socket::accept(&opening, syn, fast, cx));
    }

    /// Processes an answer frame.
    pub(super) fn on_answer(
        &mut self,
        config: &Arc<Config>,
        answered: &AnswerFrame,
        cx: &mut Ctx<'_>,
    ) {
        self.awaiting_answer = false;
        self.credit = self.credit.max(answered.credit);
        if self.syn.is_some() {
            self.syn_data = answered.taken.into();
            self.sent = self.syn_data;
            self.answer(config, Some(answered), cx);
        }
    }

    /// Returns true if the other gateway has yet to report the outcome of the SYN.
    pub(super) fn is_awaiting_answer(&self) -> bool {
        self.awaiting_answer
    }

    /// Returns the trunks and stream numbers that belong to this connection.
    pub(super) fn streams(&self) -> impl Iterator<Item = (usize, u32)> + use<P> {
        [Some((self.trunk, self.stream)), self.alias]
            .into_iter()
            .flatten()
    }

    /// With end-to-end confirmation, withholds the ACK of the host's FIN until the other host has
    /// acknowledged it.
    pub(super) fn hold_fin(&mut self, close: Confirmation, cx: &mut Ctx<'_>) {
        if let Some(leg) = &mut self.leg {
            leg.act(cx, |tcp, _| {
                tcp.set_holds_close(close == Confirmation::EndToEnd)
            });
        }
    }

    /// Processes a packet from the host, and consumes it.
    pub(super) fn on_packet(&mut self, packet: PacketRef, cx: &mut Ctx<'_>) {
        let Some(leg) = &mut self.leg else {
            cx.packets.release(packet);
            return;
        };
        self.last_activity_at = cx.now;
        if let Some(pushed) = pushed_offset(leg.connection(), cx.packets.get(packet)) {
            self.push_offset = self.push_offset.max(pushed);
        }
        leg.on_packet(packet, cx);
    }

    /// Processes a data frame. Returns false if it exceeds the credit.
    #[must_use]
    pub(super) fn on_data(&mut self, push: bool, bytes: &[u8], cx: &mut Ctx<'_>) -> bool {
        let length = bytes.len() as u64;
        if self.peer_finished || length > self.credit_granted - self.received {
            return false;
        }
        if !P::KEEPS_BYTES {
            self.checked += 1;
            self.mismatches += u64::from(filler::first_difference(self.received, bytes).is_some());
        }
        self.last_activity_at = cx.now;
        self.received += length;
        let Some(leg) = &mut self.leg else {
            // No data is expected before the connection is open.
            return false;
        };
        if leg.state() == State::Closed {
            return true;
        }
        let source = Source::Bytes(bytes);
        let written = if push {
            leg.write(source, cx)
        } else {
            leg.write_more(source, cx)
        };
        debug_assert_eq!(written, length, "data within the credit finds space");
        written == length
    }

    /// Processes a credit frame.
    pub(super) fn on_credit(&mut self, offset: u64) {
        self.credit = self.credit.max(offset);
    }

    /// Processes an end frame.
    pub(super) fn on_end(&mut self, now: Time) {
        self.peer_finished = true;
        self.last_activity_at = now;
    }

    /// Processes a confirm frame.
    pub(super) fn on_confirm(&mut self, now: Time) {
        self.fin_confirmed = true;
        self.last_activity_at = now;
    }

    /// Returns the outcome of opening the leg. Only the responding side has one.
    pub(super) fn open_outcome(&mut self) -> OpenOutcome {
        let Some(leg) = &mut self.leg else {
            return OpenOutcome::Pending;
        };
        if self.side == OPENER || !self.answer_pending {
            return OpenOutcome::Pending;
        }
        if leg.state() == State::Closed {
            return OpenOutcome::Failed(if leg.take_events().has(Events::RESET) {
                ResetReason::Refused
            } else {
                ResetReason::Unreachable
            });
        }
        if leg.state().is_synchronized() {
            return OpenOutcome::AnswerFrame;
        }
        OpenOutcome::Pending
    }

    /// Passes on what has ended. Returns false if the leg was closed other than by both hosts'
    /// FINs.
    #[must_use]
    pub(super) fn propagate_fins(&mut self, cx: &mut Ctx<'_>) -> bool {
        let Some(leg) = &mut self.leg else {
            return true;
        };
        let _ = leg.take_events();
        let tcp = leg.connection();
        if leg.state() == State::Closed && !(tcp.is_close_confirmed() && tcp.is_peer_done()) {
            return false;
        }
        // Data that was sent with the other gateway's SYN is not sent again. The leg may have
        // accepted less of it, for want of window; the host then retransmits the rest.
        if self.side == OPENER && self.syn_data > 0 {
            self.syn_data -= leg.read(self.syn_data, cx);
        }
        // A leg that is closed in SYN-SENT, with nothing written, would be dropped. The host has to
        // see that there was a connection.
        if self.peer_finished && leg.state() != State::SynSent {
            // Closing it again has no effect.
            leg.close(cx);
        }
        let tcp = leg.connection();
        if self.fin_confirmation == FinConfirmation::NotYet && tcp.is_close_confirmed() {
            self.fin_confirmation = FinConfirmation::Pending;
        }
        if tcp.is_peer_done() {
            let ended = *self.fin_received_at.get_or_insert(cx.now);
            if self.fin_confirmed || cx.now.since(ended) >= MAX_FIN_HOLD {
                leg.act(cx, bentpipe_tcp::Connection::confirm_close);
            }
        }
        true
    }

    /// Sends the host a window update, if the window has grown enough.
    pub(super) fn send_window_update(&mut self, cx: &mut Ctx<'_>) {
        if let Some(leg) = &mut self.leg {
            leg.act(cx, bentpipe_tcp::Connection::offer_window);
        }
    }

    /// Returns true if a frame other than data is ready to be sent.
    pub(super) fn has_control_frames(&self) -> bool {
        self.open_pending
            || (self.answer_pending
                && self
                    .leg
                    .as_ref()
                    .is_some_and(|leg| leg.state().is_synchronized()))
            || (!self.is_opening() && self.credit_granted > self.credit_announced)
            || (self.fin_confirmation == FinConfirmation::Pending && !self.is_opening())
    }

    /// Returns true if the other gateway has not been sent the open frame, or the answer frame,
    /// yet.
    fn is_opening(&self) -> bool {
        self.open_pending || self.answer_pending
    }

    /// Returns true if data, or the end frame, is ready to be sent.
    pub(super) fn has_data(&self) -> bool {
        let Some(leg) = &self.leg else {
            return false;
        };
        if self.is_opening() || (self.side == OPENER && self.syn_data > 0) {
            return false;
        }
        let tcp = leg.connection();
        (leg.readable() > 0 && self.credit > self.sent)
            || (leg.readable() == 0 && tcp.is_peer_done() && !self.end_sent)
    }

    /// Writes the frames other than data that are ready.
    pub(super) fn write_control_frames(&mut self, out: &mut Vec<u8>, cx: &Ctx<'_>) {
        if self.open_pending {
            self.open_pending = false;
            self.credit_announced = self.credit_granted;
            // If the SYN was answered early, it is gone, and it carried no data.
            self.write_open(out, cx);
        }
        let Some(leg) = &self.leg else {
            return;
        };
        if self.answer_pending && leg.state().is_synchronized() {
            self.answer_pending = false;
            self.credit_announced = self.credit_granted;
            let tcp = leg.connection();
            let answer = Frame::Answer(AnswerFrame {
                sequence: tcp.peer_initial_sequence().unwrap_or_default(),
                credit: self.credit_granted,
                taken: self.syn_data as u16,
                cookie: tcp.offered_cookie(),
            });
            frame::write(out, self.stream, &answer);
        }
        if self.is_opening() {
            return;
        }
        if self.credit_granted > self.credit_announced {
            self.credit_announced = self.credit_granted;
            frame::write(out, self.stream, &Frame::Credit(self.credit_granted));
        }
        if self.fin_confirmation == FinConfirmation::Pending {
            self.fin_confirmation = FinConfirmation::Sent;
            frame::write(out, self.stream, &Frame::Confirm);
        }
    }

    fn write_open(&self, out: &mut Vec<u8>, cx: &Ctx<'_>) {
        let mut filled = [0; MAX_SYN_DATA];
        let open = match (self.syn, &self.leg) {
            (Some(syn), _) => {
                let record = cx.packets.get(syn);
                let fast_open = cx.packets.syn_options(syn).fast_open;
                let length = usize::from(record.payload_length);
                let text = match cx.packets.payload(syn) {
                    // Without a cookie, no data is sent with the SYN.
                    _ if fast_open.is_none_or(|option| option.cookie().is_empty()) => &[],
                    Some(text) => &text[..length.min(MAX_SYN_DATA)],
                    None => {
                        let text = &mut filled[..length.min(MAX_SYN_DATA)];
                        filler::fill(0, text);
                        &*text
                    }
                };
                OpenFrame {
                    source: record.source,
                    destination: record.destination,
                    ip: cx.packets.ip(syn),
                    sequence: record.sequence,
                    credit: self.credit_granted,
                    fast_open,
                    text,
                }
            }
            (None, Some(leg)) => {
                let tcp = leg.connection();
                OpenFrame {
                    source: tcp.remote(),
                    destination: tcp.local(),
                    ip: ip_of(&self.key),
                    sequence: self.syn_sequence,
                    credit: self.credit_granted,
                    fast_open: None,
                    text: &[],
                }
            }
            (None, None) => return,
        };
        frame::write(out, self.stream, &Frame::Open(open));
    }

    /// Writes a data frame of at most `room` bytes, header included, and the end frame if that was
    /// all. Returns true if it is not to wait for more data.
    pub(super) fn send(&mut self, room: usize, out: &mut Vec<u8>, cx: &mut Ctx<'_>) -> bool {
        let Some(leg) = &mut self.leg else {
            return false;
        };
        let all = leg.connection().is_peer_done();
        let mut at_once = false;
        let room = room.saturating_sub(DATA_HEADER).min(MAX_DATA) as u64;
        let length = leg.readable().min(self.credit - self.sent).min(room);
        if length > 0 {
            let begins = leg.connection().delivered_offset();
            let mut text = [0; MAX_DATA];
            let text = &mut text[..length as usize];
            let read = leg.read_bytes(text, cx) as u64;
            debug_assert_eq!(read, length);
            self.sent += length;
            let ends = begins + length;
            let push = (begins < self.push_offset && self.push_offset <= ends)
                || (all && leg.readable() == 0);
            at_once = push;
            let bytes = &*text;
            frame::write(out, self.stream, &Frame::Data { push, bytes });
        }
        if all && leg.readable() == 0 && !self.end_sent {
            self.end_sent = true;
            frame::write(out, self.stream, &Frame::End);
            at_once = true;
        }
        // Without credit left no more data follows, so this segment does not wait for it.
        at_once || self.credit == self.sent
    }

    /// Returns the memory that a stream has promised and that it holds, in bytes.
    pub(super) fn promised_and_held(&self, stream: usize) -> (u64, u64) {
        let Some(leg) = &self.leg else {
            // The host is yet to be offered this window, and the other gateway was offered as much.
            return (self.initial_window, 0);
        };
        if leg.state() == State::Closed && !(leg.connection().is_peer_done() && leg.readable() > 0)
        {
            return (0, 0);
        }
        let tcp = leg.connection();
        if stream == TO_HOST {
            let held = self.received.saturating_sub(tcp.acknowledged_offset());
            let ends = if self.peer_finished {
                self.received
            } else {
                self.credit_granted
            };
            return (ends.saturating_sub(tcp.acknowledged_offset()), held);
        }
        let in_order = tcp.received_offset().saturating_sub(self.sent);
        if tcp.is_peer_done() {
            return (in_order, in_order);
        }
        let promised = tcp.offered_offset().saturating_sub(self.sent);
        (promised, in_order + tcp.out_of_order())
    }

    /// Limits the window offered to the host so that at most `allowed` bytes are promised.
    pub(super) fn limit_window(&mut self, allowed: u64, cx: &mut Ctx<'_>) {
        let Some(leg) = &mut self.leg else {
            return;
        };
        // A limit that grows with the bytes received keeps pace with slow start, and a host that
        // sends little is promised little.
        let earned = self.initial_window + 2 * leg.connection().received_offset();
        let limit = self.sent + allowed.min(earned.max(self.promised[FROM_HOST]));
        leg.act(cx, |tcp, _| tcp.set_window_limit(limit));
    }

    /// Grants the other gateway credit of at most `allowed` bytes, if the increase is worth a
    /// frame.
    pub(super) fn grant_credit(&mut self, allowed: u64) {
        let Some(leg) = &self.leg else {
            return;
        };
        if self.peer_finished || leg.state() == State::Closed {
            return;
        }
        let earned = self.initial_window + 2 * self.received;
        let window = allowed.min(earned.max(self.promised[TO_HOST]));
        let credit_granted = leg.connection().acknowledged_offset() + window;
        // RFC 9293 section 3.8.6.2.2 (silly window avoidance): a credit is announced when it is a
        // quarter of the window, or when the other gateway has none left.
        let more = credit_granted.saturating_sub(self.credit_granted);
        if more > 0 && (more >= window / 4 || self.credit_granted == self.received) {
            self.credit_granted = credit_granted;
        }
    }

    /// Resets the host.
    pub(super) fn abort(&mut self, cx: &mut Ctx<'_>) {
        if let Some(leg) = &mut self.leg
            && leg.state() != State::Closed
        {
            leg.abort(cx);
            self.aborted = true;
        }
    }

    /// Returns true if both streams have ended and nothing remains to be sent to the other gateway:
    /// the end of the stream and the confirmation of this host's ACK of the FIN were sent.
    fn has_sent_everything(&self) -> bool {
        self.end_sent && self.peer_finished && self.fin_confirmation == FinConfirmation::Sent
    }

    /// Returns true if nothing is left of the connection.
    pub(super) fn is_gone(&self) -> bool {
        let closed = |leg: &Socket<P>| leg.state() == State::Closed;
        self.has_sent_everything() && self.leg.as_ref().is_some_and(closed)
    }

    /// Returns true if nothing but TIME-WAIT is left.
    pub(super) fn only_time_wait_left(&self) -> bool {
        let over = |leg: &Socket<P>| matches!(leg.state(), State::Closed | State::TimeWait);
        self.has_sent_everything() && self.leg.as_ref().is_some_and(over)
    }

    /// Returns true if this SYN opens a new connection between the endpoints of this one, which has
    /// ended (RFC 6191 section 2).
    pub(super) fn is_replaced_by(&self, sequence: Seq) -> bool {
        let Some(leg) = &self.leg else {
            return true;
        };
        let tcp = leg.connection();
        let end = (tcp.received_offset() as u32).wrapping_add(1);
        tcp.peer_initial_sequence()
            .is_none_or(|initial| sequence.after(initial + end))
    }

    /// Returns true if this SYN of the other host opens such a connection.
    pub(super) fn is_replaced_by_peer(&self, sequence: Seq) -> bool {
        let Some(leg) = &self.leg else {
            return true;
        };
        let tcp = leg.connection();
        let end = (tcp.written_offset() as u32).wrapping_add(1);
        sequence.after(tcp.initial_sequence() + end)
    }

    /// Time of the next timer.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        let leg = self.leg.as_ref()?;
        match self
            .fin_received_at
            .filter(|_| leg.connection().is_close_held())
        {
            Some(ended) => {
                let at = ended + MAX_FIN_HOLD;
                Some(leg.next_deadline().map_or(at, |deadline| deadline.min(at)))
            }
            None => leg.next_deadline(),
        }
    }

    /// Runs the timers that have expired.
    pub(super) fn on_deadline(&mut self, cx: &mut Ctx<'_>) {
        if let Some(leg) = &mut self.leg
            && leg.next_deadline().is_some_and(|at| at <= cx.now)
        {
            leg.on_deadline(cx);
        }
    }
}

/// Returns the real addresses in a key, source first.
pub(super) fn ip_of(key: &FlowKey) -> Option<(std::net::IpAddr, std::net::IpAddr)> {
    use bentpipe_types::HostAddress::Ip;
    match (key.source.host, key.destination.host) {
        (Ip(source), Ip(destination)) => Some((source, destination)),
        _ => None,
    }
}
