//! A connection that is carried over a persistent one: a leg to the host on this side, and a stream.
//!
//! What a stream may send is the other gateway's to say: a credit, as an offset, for which it has the
//! memory. So whatever arrives on a persistent connection finds room, it is read at once, and a host that
//! reads slowly, or not at all, holds up nobody but its own peer.

use std::sync::Arc;

use bentpipe_tcp::{
    ActiveFastOpen, Config, Events, Opening, PassiveFastOpen, Payload, Socket, Source, State,
    TIMESTAMPS_LENGTH,
};
use bentpipe_types::{
    Ctx, Flags, FlowKey, HostAddress, Packet, PacketRef, Port, Seq, Time, filler,
};

use super::super::Answer;
use super::super::pair::{LONGEST_HOLD, OPENER, RESPONDER, pushed_offset};
use super::frame::{self, Answered, DATA_HEAD, Frame, MOST_DATA, MOST_ON_SYN, Open, Reason};

/// What comes in from the host,
pub(super) const FROM_HOST: usize = 0;
/// and what goes to it.
pub(super) const TO_HOST: usize = 1;

/// What the one that opens may send before it was answered: the least that the other side offers. With an
/// early answer, a round trip is saved so.
pub(super) const EAGER: u64 = super::super::budget::LEAST;

/// A connection.
#[derive(Debug)]
pub(in super::super) struct Carried<P> {
    /// Of the packets that the host on this side sends.
    pub(super) key: FlowKey,
    /// Which of the two this side is.
    pub(super) side: usize,
    pub(in super::super) leg: Option<Socket<P>>,
    /// Where its packets go.
    pub(super) port: Port,
    /// The SYN that opened it, until it is answered.
    pub(in super::super) syn: Option<PacketRef>,
    pub(super) syn_sequence: Seq,
    /// It was not answered in time, and has a part of its own beside the stream.
    pub(super) has_part: bool,
    /// The persistent connection,
    pub(super) trunk: usize,
    /// and the number of the stream there.
    pub(super) stream: u32,
    /// The other side speaks on another, where both hosts have opened at once.
    pub(super) alias: Option<(usize, u32)>,
    /// What each of the two is offered at first.
    pub(super) first: u64,
    /// Offset up to which the host's stream may go on.
    credit: u64,
    /// Offset up to which it has.
    sent: u64,
    /// Where the host said that what it had sent is to be delivered at once (PSH).
    pushed: u64,
    /// The host's end has gone on; it came then.
    end_sent: bool,
    ended: Option<Time>,
    /// The other host has confirmed it.
    confirmed: bool,
    /// Bytes of the other host's stream that have come,
    arrived: u64,
    /// that may come,
    offered: u64,
    /// and that the other side was told of.
    told: u64,
    /// The other host has sent all it will.
    finished: bool,
    /// What the other side has still to hear.
    opens: bool,
    answers: bool,
    /// The other side has still to say what has become of the SYN.
    awaits: bool,
    confirms: Confirms,
    /// Bytes of its text that have gone on with our own SYN.
    taken: u64,
    /// It stands in its connection's queues.
    pub(super) speaking: bool,
    pub(super) sending: bool,
    /// Bytes that have room promised, and that are held, as they were last counted.
    pub(super) promised: [u64; 2],
    pub(super) held: [u64; 2],
    /// Bytes that came and weren't the simulated stream's.
    pub(in super::super) mismatches: u64,
    pub(in super::super) checked: u64,
    /// When something last came.
    pub(super) touched: Time,
    /// Nothing more will come of it but what TIME-WAIT is for.
    pub(in super::super) over: bool,
    pub(super) aborted: bool,
}

/// Has the host confirmed the end of the other's stream?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Confirms {
    NotYet,
    Now,
    Told,
}

/// What has become of opening it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Opened {
    Waits,
    Answered,
    Failed(Reason),
}

impl<P: Payload> Carried<P> {
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
            has_part: false,
            trunk,
            stream,
            alias: None,
            first,
            credit: 0,
            sent: 0,
            pushed: 0,
            end_sent: false,
            ended: None,
            confirmed: false,
            arrived: 0,
            offered: first,
            told: first,
            finished: false,
            opens: false,
            answers: false,
            awaits: false,
            confirms: Confirms::NotYet,
            taken: 0,
            speaking: false,
            sending: false,
            promised: [0; 2],
            held: [0; 2],
            mismatches: 0,
            checked: 0,
            touched: now,
            over: false,
            aborted: false,
        }
    }

    /// Has the host beyond say something, if it has this connection: to a segment that it got long ago it answers where it stands (RFC
    /// 9293 section 3.10.7.4). The other gateway, which might tell it that all is over, may know of nothing any more. What it
    /// answers then passes as of a connection that nobody splits, and this side's host, which was reset, answers by a RST that
    /// it believes.
    pub(super) fn ask_beyond(&self, facing: Port, cx: &mut Ctx<'_>) {
        let Some(leg) = self.leg.as_ref().filter(|_| !self.over) else {
            return;
        };
        let tcp = leg.connection();
        // (Both hosts' numbers are their own, on this side, too.)
        let Some(initial) = tcp.peer_initial_sequence() else {
            return;
        };
        let mut question = Packet::new(tcp.remote(), tcp.local(), tcp.ip_version());
        question.flags = Flags::ACK;
        question.sequence = initial;
        question.acknowledgment = tcp.initial_sequence() + 1;
        // Who agreed on timestamps answers nothing without (RFC 7323 section 3.2), and to old ones; others overlook them.
        question.header_length += TIMESTAMPS_LENGTH;
        question.set_timestamps(0, 0);
        // Where the SYN was, a byte of garbage as keep-alive's may have (section 3.8.4): to an old acknowledgment without one Linux
        // says nothing.
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

    /// The host on this side opens a connection. `syn` stays until it is answered.
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
            credit: EAGER,
            opens: true,
            awaits: true,
            ..Self::new(key, OPENER, port, stream, first, cx.now)
        }
    }

    /// The other host opens a connection: so does a leg towards the one on this side.
    pub(super) fn opened(
        key: FlowKey,
        open: &Open<'_>,
        port: Port,
        stream: (usize, u32),
        (config, first): (&Arc<Config>, u64),
        cx: &mut Ctx<'_>,
    ) -> Self {
        let opening = Opening {
            config,
            // To this host the gateway is the one that opened,
            local: open.source,
            remote: open.destination,
            egress: port,
            // down to the sequence numbers.
            initial_sequence: open.sequence,
        };
        let fast = ActiveFastOpen {
            // Text without a cookie isn't Fast Open's: it comes again.
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
            arrived: taken,
            taken,
            answers: true,
            ..Self::new(key, RESPONDER, port, stream, first, cx.now)
        }
    }

    /// Answers the SYN, with the other host's sequence number if it has come.
    pub(super) fn answer(
        &mut self,
        config: &Arc<Config>,
        answered: Option<&Answered>,
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
            _ if self.taken > 0 => PassiveFastOpen::Take,
            Some(cookie) => PassiveFastOpen::Offer(cookie),
            None => PassiveFastOpen::Ignore,
        };
        self.leg = Some(Socket::accept(&opening, syn, fast, cx));
    }

    /// The other side has an answer.
    pub(super) fn on_answer(
        &mut self,
        config: &Arc<Config>,
        answered: &Answered,
        cx: &mut Ctx<'_>,
    ) {
        self.awaits = false;
        self.credit = self.credit.max(answered.credit);
        if self.syn.is_some() {
            self.taken = answered.taken.into();
            self.sent = self.taken;
            self.answer(config, Some(answered), cx);
        }
    }

    /// Has the other side still to say what has become of the host's SYN?
    pub(super) fn awaits_answer(&self) -> bool {
        self.awaits
    }

    /// The streams that it has, and where.
    pub(super) fn streams(&self) -> impl Iterator<Item = (usize, u32)> + use<P> {
        [Some((self.trunk, self.stream)), self.alias]
            .into_iter()
            .flatten()
    }

    /// Lets no end be confirmed before the other side has.
    pub(super) fn hold_close(&mut self, close: Answer, cx: &mut Ctx<'_>) {
        if let Some(leg) = &mut self.leg {
            leg.act(cx, |tcp, _| tcp.set_holds_close(close == Answer::EndToEnd));
        }
    }

    /// A packet of the host. Consumes it.
    pub(super) fn on_packet(&mut self, packet: PacketRef, cx: &mut Ctx<'_>) {
        let Some(leg) = &mut self.leg else {
            cx.packets.release(packet);
            return;
        };
        self.touched = cx.now;
        if let Some(pushed) = pushed_offset(leg.connection(), cx.packets.get(packet)) {
            self.pushed = self.pushed.max(pushed);
        }
        leg.on_packet(packet, cx);
    }

    /// The next bytes of the other host's stream. False: they are more than may come.
    #[must_use]
    pub(super) fn on_data(&mut self, push: bool, bytes: &[u8], cx: &mut Ctx<'_>) -> bool {
        let length = bytes.len() as u64;
        if self.finished || length > self.offered - self.arrived {
            return false;
        }
        if !P::KEEPS_BYTES {
            self.checked += 1;
            self.mismatches += u64::from(filler::first_difference(self.arrived, bytes).is_some());
        }
        self.touched = cx.now;
        self.arrived += length;
        let Some(leg) = &mut self.leg else {
            // Nobody sends before they were asked.
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
        debug_assert_eq!(written, length, "what was offered finds room");
        written == length
    }

    /// The other side takes more.
    pub(super) fn on_credit(&mut self, offset: u64) {
        self.credit = self.credit.max(offset);
    }

    /// The other host has sent all it will.
    pub(super) fn on_end(&mut self, now: Time) {
        self.finished = true;
        self.touched = now;
    }

    /// The other host has confirmed the end of this one's stream.
    pub(super) fn on_confirm(&mut self, now: Time) {
        self.confirmed = true;
        self.touched = now;
    }

    /// What has become of opening it: the responding side's to say.
    pub(super) fn progress(&mut self) -> Opened {
        let Some(leg) = &mut self.leg else {
            return Opened::Waits;
        };
        if self.side == OPENER || !self.answers {
            return Opened::Waits;
        }
        if leg.state() == State::Closed {
            return Opened::Failed(if leg.take_events().has(Events::RESET) {
                Reason::Refused
            } else {
                Reason::Unreachable
            });
        }
        if leg.state().is_synchronized() {
            return Opened::Answered;
        }
        Opened::Waits
    }

    /// Passes on what has ended. False: the leg has come to an end other than by both sides' closing.
    #[must_use]
    pub(super) fn work(&mut self, cx: &mut Ctx<'_>) -> bool {
        let Some(leg) = &mut self.leg else {
            return true;
        };
        let _ = leg.take_events();
        let tcp = leg.connection();
        if leg.state() == State::Closed && !(tcp.is_close_confirmed() && tcp.is_peer_done()) {
            return false;
        }
        // What went with the other gateway's SYN need not go again. The leg may have taken less of it, for
        // want of window: the rest of it comes again.
        if self.side == OPENER && self.taken > 0 {
            self.taken -= leg.read(self.taken, cx);
        }
        // (A connection that is closed while it opens, with nothing written, is given up: the other side
        // is to hear that there was one.)
        if self.finished && leg.state() != State::SynSent {
            // Does nothing the second time.
            leg.close(cx);
        }
        let tcp = leg.connection();
        if self.confirms == Confirms::NotYet && tcp.is_close_confirmed() {
            self.confirms = Confirms::Now;
        }
        if tcp.is_peer_done() {
            let ended = *self.ended.get_or_insert(cx.now);
            if self.confirmed || cx.now.since(ended) >= LONGEST_HOLD {
                leg.act(cx, bentpipe_tcp::Connection::confirm_close);
            }
        }
        true
    }

    /// Tells the host of a window that has grown.
    pub(super) fn offer(&mut self, cx: &mut Ctx<'_>) {
        if let Some(leg) = &mut self.leg {
            leg.act(cx, bentpipe_tcp::Connection::offer_window);
        }
    }

    /// Has it something to say besides data?
    pub(super) fn has_word(&self) -> bool {
        self.opens
            || (self.answers
                && self
                    .leg
                    .as_ref()
                    .is_some_and(|leg| leg.state().is_synchronized()))
            || (!self.is_opening() && self.offered > self.told)
            || (self.confirms == Confirms::Now && !self.is_opening())
    }

    /// The other side knows nothing of it yet, or not whether it was answered.
    fn is_opening(&self) -> bool {
        self.opens || self.answers
    }

    /// Has it data that may go, or an end?
    pub(super) fn has_data(&self) -> bool {
        let Some(leg) = &self.leg else {
            return false;
        };
        if self.is_opening() || (self.side == OPENER && self.taken > 0) {
            return false;
        }
        let tcp = leg.connection();
        (leg.readable() > 0 && self.credit > self.sent)
            || (leg.readable() == 0 && tcp.is_peer_done() && !self.end_sent)
    }

    /// Says what there is to say, besides data.
    pub(super) fn speak(&mut self, out: &mut Vec<u8>, cx: &Ctx<'_>) {
        if self.opens {
            self.opens = false;
            self.told = self.offered;
            // It was answered already, early: then there is no SYN any more, and nothing came on it.
            self.say_open(out, cx);
        }
        let Some(leg) = &self.leg else {
            return;
        };
        if self.answers && leg.state().is_synchronized() {
            self.answers = false;
            self.told = self.offered;
            let tcp = leg.connection();
            let answer = Frame::Answer(Answered {
                sequence: tcp.peer_initial_sequence().unwrap_or_default(),
                credit: self.offered,
                taken: self.taken as u16,
                cookie: tcp.offered_cookie(),
            });
            frame::write(out, self.stream, &answer);
        }
        if self.is_opening() {
            return;
        }
        if self.offered > self.told {
            self.told = self.offered;
            frame::write(out, self.stream, &Frame::Credit(self.offered));
        }
        if self.confirms == Confirms::Now {
            self.confirms = Confirms::Told;
            frame::write(out, self.stream, &Frame::Confirm);
        }
    }

    fn say_open(&self, out: &mut Vec<u8>, cx: &Ctx<'_>) {
        let mut filled = [0; MOST_ON_SYN];
        let open = match (self.syn, &self.leg) {
            (Some(syn), _) => {
                let record = cx.packets.get(syn);
                let fast_open = cx.packets.syn_options(syn).fast_open;
                let length = usize::from(record.payload_length);
                let text = match cx.packets.payload(syn) {
                    // It has none to send again.
                    _ if fast_open.is_none_or(|option| option.cookie().is_empty()) => &[],
                    Some(text) => &text[..length.min(MOST_ON_SYN)],
                    None => {
                        let text = &mut filled[..length.min(MOST_ON_SYN)];
                        filler::fill(0, text);
                        &*text
                    }
                };
                Open {
                    source: record.source,
                    destination: record.destination,
                    ip: cx.packets.ip(syn),
                    sequence: record.sequence,
                    credit: self.offered,
                    fast_open,
                    text,
                }
            }
            (None, Some(leg)) => {
                let tcp = leg.connection();
                Open {
                    source: tcp.remote(),
                    destination: tcp.local(),
                    ip: ip_of(&self.key),
                    sequence: self.syn_sequence,
                    credit: self.offered,
                    fast_open: None,
                    text: &[],
                }
            }
            (None, None) => return,
        };
        frame::write(out, self.stream, &Frame::Open(open));
    }

    /// Reads up to `room` bytes, of what stands in front of them too, from the host's stream into a frame;
    /// its end, if that is all. Returns whether nothing is to wait for more.
    pub(super) fn send(&mut self, room: usize, out: &mut Vec<u8>, cx: &mut Ctx<'_>) -> bool {
        let Some(leg) = &mut self.leg else {
            return false;
        };
        let all = leg.connection().is_peer_done();
        let mut at_once = false;
        let room = room.saturating_sub(DATA_HEAD).min(MOST_DATA) as u64;
        let length = leg.readable().min(self.credit - self.sent).min(room);
        if length > 0 {
            let begins = leg.connection().delivered_offset();
            let mut text = [0; MOST_DATA];
            let text = &mut text[..length as usize];
            let read = leg.read_bytes(text, cx) as u64;
            debug_assert_eq!(read, length);
            self.sent += length;
            let ends = begins + length;
            let push =
                (begins < self.pushed && self.pushed <= ends) || (all && leg.readable() == 0);
            at_once = push;
            let bytes = &*text;
            frame::write(out, self.stream, &Frame::Data { push, bytes });
        }
        if all && leg.readable() == 0 && !self.end_sent {
            self.end_sent = true;
            frame::write(out, self.stream, &Frame::End);
            at_once = true;
        }
        // What stops here stops for want of credit: what there was is not to wait for more.
        at_once || self.credit == self.sent
    }

    /// Bytes of a stream: promised room for, and held.
    pub(super) fn count(&self, stream: usize) -> (u64, u64) {
        let Some(leg) = &self.leg else {
            // What is to be offered to the host, and what was to the other side.
            return (self.first, 0);
        };
        if leg.state() == State::Closed && !(leg.connection().is_peer_done() && leg.readable() > 0)
        {
            return (0, 0);
        }
        let tcp = leg.connection();
        if stream == TO_HOST {
            let held = self.arrived.saturating_sub(tcp.acknowledged_offset());
            let ends = if self.finished {
                self.arrived
            } else {
                self.offered
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

    /// Limits what the host may be promised, in bytes.
    pub(super) fn limit(&mut self, allowed: u64, cx: &mut Ctx<'_>) {
        let Some(leg) = &mut self.leg else {
            return;
        };
        // As between two legs: a window that grows with what comes keeps up with slow start, and who says
        // little is promised little.
        let earned = self.first + 2 * leg.connection().received_offset();
        let limit = self.sent + allowed.min(earned.max(self.promised[FROM_HOST]));
        leg.act(cx, |tcp, _| tcp.set_window_limit(limit));
    }

    /// Gives the other side as much credit as there may be, in bytes, if that is worth telling.
    pub(super) fn give_credit(&mut self, allowed: u64) {
        let Some(leg) = &self.leg else {
            return;
        };
        if self.finished || leg.state() == State::Closed {
            return;
        }
        let earned = self.first + 2 * self.arrived;
        let window = allowed.min(earned.max(self.promised[TO_HOST]));
        let offered = leg.connection().acknowledged_offset() + window;
        // A credit is worth telling when it is a good part of the window (RFC 9293 section 3.8.6.2.2), or
        // when there was none.
        let more = offered.saturating_sub(self.offered);
        if more > 0 && (more >= window / 4 || self.offered == self.arrived) {
            self.offered = offered;
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

    /// Has the other side heard all there was?
    fn is_told(&self) -> bool {
        self.end_sent && self.finished && self.confirms == Confirms::Told
    }

    /// Is nothing left of it?
    pub(super) fn is_gone(&self) -> bool {
        let closed = |leg: &Socket<P>| leg.state() == State::Closed;
        self.is_told() && self.leg.as_ref().is_some_and(closed)
    }

    /// Is nothing left of it but TIME-WAIT?
    pub(super) fn is_over(&self) -> bool {
        let over = |leg: &Socket<P>| matches!(leg.state(), State::Closed | State::TimeWait);
        self.is_told() && self.leg.as_ref().is_some_and(over)
    }

    /// Is this SYN one of a new connection, between the ends of one that is over (RFC 6191 section 2)?
    pub(super) fn is_followed_by(&self, sequence: Seq) -> bool {
        let Some(leg) = &self.leg else {
            return true;
        };
        let tcp = leg.connection();
        let end = (tcp.received_offset() as u32).wrapping_add(1);
        tcp.peer_initial_sequence()
            .is_none_or(|initial| sequence.after(initial + end))
    }

    /// The same of a SYN of the other host.
    pub(super) fn is_followed_beyond(&self, sequence: Seq) -> bool {
        let Some(leg) = &self.leg else {
            return true;
        };
        let tcp = leg.connection();
        let end = (tcp.written_offset() as u32).wrapping_add(1);
        sequence.after(tcp.initial_sequence() + end)
    }

    /// When it next wants to run without a packet.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        let leg = self.leg.as_ref()?;
        match self.ended.filter(|_| leg.connection().is_close_held()) {
            Some(ended) => {
                let at = ended + LONGEST_HOLD;
                Some(leg.next_deadline().map_or(at, |deadline| deadline.min(at)))
            }
            None => leg.next_deadline(),
        }
    }

    /// A deadline has come.
    pub(super) fn on_deadline(&mut self, cx: &mut Ctx<'_>) {
        if let Some(leg) = &mut self.leg
            && leg.next_deadline().is_some_and(|at| at <= cx.now)
        {
            leg.on_deadline(cx);
        }
    }
}

/// The real addresses of a key, source first.
pub(super) fn ip_of(key: &FlowKey) -> Option<(std::net::IpAddr, std::net::IpAddr)> {
    use bentpipe_types::HostAddress::Ip;
    match (key.source.host, key.destination.host) {
        (Ip(source), Ip(destination)) => Some((source, destination)),
        _ => None,
    }
}
