//! One connection that is split: two connections, back to back.

use std::sync::Arc;

use bentpipe_tcp::{
    ActiveFastOpen, Config, Connection, Opening, PassiveFastOpen, Payload, Socket, Source, State,
    relay, relay_more, reset_reply,
};
use bentpipe_types::{Ctx, Flags, FlowKey, Packet, PacketRef, Port, Seq, Span, Time};
use serde::{Deserialize, Serialize};

use super::budget::Budget;
use super::paths::{LEAST_CARRIED, PathMemory};
use super::{Answer, Settings};
use crate::icmp::Complaint;

/// Which of the two: the leg towards the side that opened the connection,
pub(super) const OPENER: usize = 0;
/// or towards the side that answers.
pub(super) const RESPONDER: usize = 1;

/// How often one call looks again whether what it did lets more be done.
const ROUNDS: usize = 8;

/// The end of a stream is confirmed after this long in any case. A Linux host whose application is
/// gone sends a FIN 8 times (tcp_orphan_retries), which takes 102 s at least, and then forgets the
/// connection; what still came of it would be reset.
pub(super) const LONGEST_HOLD: Span = Span::from_secs(60);

/// A stream through the gateway, from one leg to the other.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Stream {
    /// Where the sender said that what it had sent is to be delivered at once (PSH).
    pushed: u64,
    /// When its end had come.
    ended: Option<Time>,
    /// Bytes that have room promised, as they were last counted.
    pub(super) promised: u64,
    /// Bytes that are held, as they were last counted.
    pub(super) held: u64,
}

/// A connection that is split.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Pair<P> {
    /// Of the packets of the side that opened it.
    pub(super) key: FlowKey,
    pub(super) legs: [Option<Socket<P>>; 2],
    /// Where each leg's packets go.
    pub(super) ports: [Port; 2],
    /// The SYN that opened it, until it is answered.
    #[serde(skip)]
    pub(super) syn: Option<PacketRef>,
    pub(super) syn_sequence: Seq,
    /// The widest that the congestion window over the link was, where that is wanted.
    pub(super) widest: u64,
    /// Bytes that it has to have carried over the link before others are told again what it has learnt.
    pub(super) lesson: u64,
    /// What each leg offers at first.
    pub(super) first: u64,
    /// Bytes of its text that have gone on with our own SYN, and that its leg has still to read past.
    ahead: u64,
    /// There were some.
    fast: bool,
    /// What each begins at: `streams[leg]` comes in at that leg.
    pub(super) streams: [Stream; 2],
    /// When a packet last came.
    pub(super) touched: Time,
    /// Nothing more will come of it but what TIME-WAIT is for.
    pub(super) over: bool,
    /// One side was reset because of the other.
    pub(super) aborted: bool,
}

/// What has become of a connection that is being opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Opened {
    /// Nothing yet.
    Waits,
    /// The other side has answered, and so has the gateway.
    Answered,
    /// The other side has refused, and so has the gateway.
    Refused,
    /// The other side doesn't answer.
    Unreachable,
}

/// What is to be done with a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    /// It is to be looked at then.
    At(Option<Time>),
    /// Nothing more will come of it but what TIME-WAIT is for, and nobody was told yet.
    Over,
    /// There is nothing left of it.
    Gone,
}

/// Up to where in its stream a sender says, with this packet, that what it has sent is to be delivered at
/// once.
#[inline]
pub(super) fn pushed_offset(tcp: &Connection, record: &Packet) -> Option<u64> {
    if !record.flags.has(Flags::PSH) || record.payload_length == 0 {
        return None;
    }
    // What begins before the stream has an offset of nearly 2^64.
    let end = tcp
        .offset_of(record.sequence)
        .wrapping_add(u64::from(record.payload_length));
    // Beyond the window it is no part of the stream.
    (end <= tcp.offered_offset()).then_some(end)
}

/// Does a host ask, as keep-alive does (RFC 9293 section 3.8.4), whether the other is still there? The leg answers; and the other
/// one asks further on. Else who was told of the end by a RST that got lost would be told for ever that it goes on.
#[inline]
fn is_question(tcp: &Connection, record: &Packet) -> bool {
    record.payload_length <= 1
        && record.flags == Flags::ACK
        && tcp.offset_of(record.sequence).wrapping_add(1) == tcp.received_offset()
}

/// What a SYN wants of Fast Open (RFC 7413), as far as it can be had through a gateway.
fn fast_open(syn: PacketRef, cx: &Ctx<'_>) -> ActiveFastOpen {
    let option = cx.packets.syn_options(syn).fast_open;
    let length = cx.packets.get(syn).payload_length;
    ActiveFastOpen {
        // Text without a cookie isn't Fast Open's: it comes again.
        room: if option.is_some_and(|option| !option.cookie().is_empty()) {
            length
        } else {
            0
        },
        bytes: 0,
        option,
    }
}

impl<P: Payload> Pair<P> {
    /// Opens the leg towards the other side. `syn` stays with the pair until it is answered.
    pub(super) fn open(
        key: FlowKey,
        syn: PacketRef,
        ports: [Port; 2],
        config: &Arc<Config>,
        first: u64,
        cx: &mut Ctx<'_>,
    ) -> Self {
        let record = *cx.packets.get(syn);
        let opening = Opening {
            config,
            // To the other side the gateway is the one that opened,
            local: record.source,
            remote: record.destination,
            egress: ports[RESPONDER],
            // down to the sequence numbers: an ICMP error that quotes our SYN speaks of one that the
            // host knows.
            initial_sequence: record.sequence,
        };
        let ip = cx.packets.ip(syn);
        let fast = fast_open(syn, cx);
        let text: Option<Vec<u8>> = (fast.room > 0)
            .then(|| cx.packets.payload(syn).map(<[u8]>::to_vec))
            .flatten();
        let source = match &text {
            Some(bytes) => Source::Bytes(bytes),
            None => Source::Filler(fast.room.into()),
        };
        let (leg, syn_text) = Socket::connect_fast(&opening, ip, fast, source, cx);
        Self {
            key,
            legs: [None, Some(leg)],
            ports,
            syn: Some(syn),
            syn_sequence: record.sequence,
            widest: 0,
            lesson: LEAST_CARRIED,
            first,
            ahead: syn_text,
            fast: syn_text > 0,
            streams: [Stream::default(); 2],
            touched: cx.now,
            over: false,
            aborted: false,
        }
    }

    /// Answers the SYN: with the sequence number of the other side's, if it has come.
    pub(super) fn answer(&mut self, config: &Arc<Config>, cx: &mut Ctx<'_>) {
        let (Some(syn), Some(responder)) = (self.syn.take(), &mut self.legs[RESPONDER]) else {
            return;
        };
        let record = *cx.packets.get(syn);
        let initial_sequence = responder
            .connection()
            .peer_initial_sequence()
            .unwrap_or_else(|| Seq::new(cx.random.bits() as u32));
        let opening = Opening {
            config,
            local: record.destination,
            remote: record.source,
            egress: self.ports[OPENER],
            initial_sequence,
        };
        let fast = match responder.connection().offered_cookie() {
            _ if self.fast => PassiveFastOpen::Take,
            Some(cookie) => PassiveFastOpen::Offer(cookie),
            None => PassiveFastOpen::Ignore,
        };
        self.legs[OPENER] = Some(Socket::accept(&opening, syn, fast, cx));
        self.pass_over(cx);
    }

    /// What went with our SYN is the responder's leg's already. The opener's leg may have taken less of
    /// it, for want of window: the rest of it comes again.
    fn pass_over(&mut self, cx: &mut Ctx<'_>) {
        if self.ahead > 0
            && let Some(opener) = &mut self.legs[OPENER]
        {
            self.ahead -= opener.read(self.ahead, cx);
        }
    }

    /// Lets neither end of a stream be confirmed before the other side has.
    pub(super) fn hold_closes(&mut self, close: Answer, cx: &mut Ctx<'_>) {
        for leg in self.legs.iter_mut().flatten() {
            leg.act(cx, |tcp, _| tcp.set_holds_close(close == Answer::EndToEnd));
        }
    }

    /// A packet has come for one of the legs. Consumes it.
    #[inline]
    pub(super) fn on_packet(&mut self, side: usize, packet: PacketRef, cx: &mut Ctx<'_>) {
        let Some(leg) = &mut self.legs[side] else {
            cx.packets.release(packet);
            return;
        };
        self.touched = cx.now;
        if let Some(pushed) = pushed_offset(leg.connection(), cx.packets.get(packet)) {
            self.streams[side].pushed = self.streams[side].pushed.max(pushed);
        }
        let asks = is_question(leg.connection(), cx.packets.get(packet));
        leg.on_packet(packet, cx);
        if asks && let Some(other) = &mut self.legs[1 - side] {
            other.act(cx, Connection::ask);
        }
    }

    /// Something is said of a segment of one of the legs.
    pub(super) fn on_icmp(&mut self, side: usize, said: &Complaint, cx: &mut Ctx<'_>) {
        if let Some(leg) = &mut self.legs[side] {
            leg.on_icmp(said.error, said.sequence, cx);
        }
    }

    /// What has become of opening it; the SYN is answered, or refused, accordingly.
    pub(super) fn opened(&mut self, config: &Arc<Config>, cx: &mut Ctx<'_>) -> Opened {
        let (Some(syn), Some(responder)) = (self.syn, &mut self.legs[RESPONDER]) else {
            return Opened::Answered;
        };
        if responder.state() == State::Closed {
            self.syn = None;
            let events = responder.take_events();
            if events.has(bentpipe_tcp::Events::RESET) {
                // As the other side would have: the RST acknowledges the SYN.
                reset_reply(syn, self.ports[OPENER], cx);
                return Opened::Refused;
            }
            cx.packets.release(syn);
            return Opened::Unreachable;
        }
        if responder.state().is_synchronized() {
            self.answer(config, cx);
            return Opened::Answered;
        }
        Opened::Waits
    }

    /// Does all that can be done: moves what has arrived, passes on what has ended.
    fn work(&mut self, cx: &mut Ctx<'_>) {
        for _ in 0..ROUNDS {
            let mut news = false;
            for leg in self.legs.iter_mut().flatten() {
                news |= !leg.take_events().is_empty();
            }
            if self.pass_on_failure(cx) {
                return;
            }
            let moved = self.carry(OPENER, cx) | self.carry(RESPONDER, cx);
            if !moved && !news {
                return;
            }
        }
    }

    /// A leg that has come to an end other than by both sides' closing takes the other with it, if that one's host can still
    /// be told. Has it?
    fn pass_on_failure(&mut self, cx: &mut Ctx<'_>) -> bool {
        // What had come to its end in full is still to be delivered: to a host whose own close is confirmed, so that it
        // waits for nothing else.
        let goes_on = |pair: &Self| {
            (pair.legs.iter().flatten()).all(|leg| {
                let tcp = leg.connection();
                tcp.is_peer_done() && !tcp.is_close_held()
            })
        };
        for side in [OPENER, RESPONDER] {
            let failed = self.legs[side].as_ref().is_some_and(|leg| {
                let tcp = leg.connection();
                leg.state() == State::Closed && !(tcp.is_close_confirmed() && tcp.is_peer_done())
            });
            if failed && !goes_on(self) {
                if let Some(other) = &mut self.legs[1 - side]
                    && other.state() != State::Closed
                {
                    other.abort(cx);
                    self.aborted = true;
                }
                return true;
            }
        }
        false
    }

    /// Carries the stream that comes in at one leg to the other. Has anything moved?
    fn carry(&mut self, from: usize, cx: &mut Ctx<'_>) -> bool {
        if from == OPENER {
            self.pass_over(cx);
        }
        let [opener, responder] = &mut self.legs;
        let (Some(opener), Some(responder)) = (opener, responder) else {
            return false;
        };
        let (source, sink) = if from == OPENER {
            (opener, responder)
        } else {
            (responder, opener)
        };
        let mut moved = false;
        if source.readable() > 0 {
            let begins = source.connection().delivered_offset();
            let ends = source.connection().received_offset();
            let pushed = self.streams[from].pushed;
            let all = source.connection().is_peer_done();
            // The sender's PSH goes on as such. Without, what is less than a segment waits for what
            // comes next: the two legs' segments are not of one size.
            moved = if all || (begins < pushed && pushed <= ends) {
                relay(source, sink, u64::MAX, cx) > 0
            } else {
                relay_more(source, sink, u64::MAX, cx) > 0
            };
        }
        if source.connection().is_peer_done() {
            // (A connection that is closed while it opens, with nothing written, is given up: the
            // other side is to hear that there was one.)
            if source.readable() == 0 && sink.state() != State::SynSent {
                // Does nothing the second time.
                sink.close(cx);
            }
            let ended = *self.streams[from].ended.get_or_insert(cx.now);
            let late = cx.now.since(ended) >= LONGEST_HOLD;
            if late || sink.connection().is_close_confirmed() {
                source.act(cx, bentpipe_tcp::Connection::confirm_close);
            }
        }
        moved
    }

    /// Bytes of the stream that comes in at one leg: promised room for, and held.
    #[inline]
    fn count(&self, from: usize) -> (u64, u64) {
        let Some(source) = &self.legs[from] else {
            // What the leg will offer that is still to be made.
            return (if self.syn.is_some() { self.first } else { 0 }, 0);
        };
        let sink = self.legs[1 - from].as_ref();
        if source.state() == State::Closed && sink.is_none_or(|sink| sink.state() == State::Closed)
        {
            return (0, 0);
        }
        let tcp = source.connection();
        let done = match sink {
            // What it can't send any more, it holds no more.
            Some(sink) if sink.state() == State::Closed => tcp.received_offset(),
            Some(sink) => sink.connection().acknowledged_offset(),
            None => 0,
        };
        let in_order = tcp.received_offset().saturating_sub(done);
        if source.state() == State::Closed || tcp.is_peer_done() {
            return (in_order, in_order);
        }
        let promised = tcp.offered_offset().saturating_sub(done);
        (promised, in_order + tcp.out_of_order())
    }

    /// Limits what the stream that comes in at one leg may be promised, in bytes.
    #[inline]
    fn limit(&mut self, from: usize, allowed: u64, cx: &mut Ctx<'_>) {
        let done = (self.legs[1 - from].as_ref())
            .map_or(0, |sink| sink.connection().acknowledged_offset());
        let (first, promised) = (self.first, self.streams[from].promised);
        if let Some(source) = &mut self.legs[from] {
            // A window that grows with what comes keeps up with slow start, which at most doubles
            // what is under way; and who says little is promised little.
            let earned = first + 2 * source.connection().received_offset();
            let allowed = allowed.min(earned.max(promised));
            source.act(cx, |tcp, _| tcp.set_window_limit(done + allowed));
        }
    }

    /// Before anything is done with it: so much may be promised to its streams from now on.
    #[inline]
    pub(super) fn allow(&mut self, budget: &Budget, cx: &mut Ctx<'_>) {
        // Both at once may not take more than is left: each has half of it at most.
        for from in [OPENER, RESPONDER] {
            let allowed = budget.allowed(self.streams[from].promised);
            self.limit(from, allowed, cx);
        }
    }

    /// After something was done with it: does what it can, and counts what it holds.
    #[inline]
    pub(super) fn go_on(
        &mut self,
        settings: &Settings,
        budget: &mut Budget,
        paths: &mut PathMemory,
        cx: &mut Ctx<'_>,
    ) -> Next {
        if self.syn.is_none() {
            self.work(cx);
            self.offer(cx);
        }
        if settings.warm_path {
            self.note_window(settings.facing, paths);
        }
        for from in [OPENER, RESPONDER] {
            let (promised, held) = self.count(from);
            let stream = &mut self.streams[from];
            budget.change((stream.promised, promised), (stream.held, held));
            (stream.promised, stream.held) = (promised, held);
        }
        self.next(settings)
    }

    /// What is to be done with it.
    #[inline]
    pub(super) fn next(&self, settings: &Settings) -> Next {
        if !self.over && self.is_over() {
            return Next::Over;
        }
        if self.is_gone() {
            return Next::Gone;
        }
        let idle = (!self.over).then(|| self.touched + settings.idle_timeout);
        Next::At(match (self.next_deadline(), idle) {
            (Some(deadline), Some(idle)) => Some(deadline.min(idle)),
            (deadline, idle) => deadline.or(idle),
        })
    }

    /// Tells both sides of windows that have grown.
    fn offer(&mut self, cx: &mut Ctx<'_>) {
        for leg in self.legs.iter_mut().flatten() {
            leg.act(cx, bentpipe_tcp::Connection::offer_window);
        }
    }

    /// Remembers how wide the congestion window is of the leg that goes out there, and tells of it when
    /// twice as much has been carried as when it was last told.
    fn note_window(&mut self, facing: Port, paths: &mut PathMemory) {
        for (leg, port) in self.legs.iter().zip(self.ports) {
            if let Some(leg) = leg.as_ref().filter(|_| port == facing) {
                let tcp = leg.connection();
                self.widest = self.widest.max(tcp.congestion_window());
                let carried = tcp.acknowledged_offset();
                if carried >= self.lesson {
                    self.lesson = carried.saturating_mul(2);
                    paths.learn(tcp, self.widest);
                }
            }
        }
    }

    /// Resets both sides.
    pub(super) fn abort(&mut self, cx: &mut Ctx<'_>) {
        for leg in self.legs.iter_mut().flatten() {
            leg.abort(cx);
        }
    }

    /// Is nothing left of it?
    pub(super) fn is_gone(&self) -> bool {
        self.syn.is_none()
            && self
                .legs
                .iter()
                .flatten()
                .all(|leg| leg.state() == State::Closed)
    }

    /// Is nothing left of it but TIME-WAIT?
    pub(super) fn is_over(&self) -> bool {
        self.syn.is_none() && [OPENER, RESPONDER].iter().all(|side| self.has_ended(*side))
    }

    /// Is there nothing more to hear from, or to say to, the host at this leg?
    pub(super) fn has_ended(&self, side: usize) -> bool {
        (self.legs[side].as_ref())
            .is_none_or(|leg| matches!(leg.state(), State::Closed | State::TimeWait))
    }

    /// Is nothing under way at either leg, and nothing held for either?
    pub(super) fn is_at_rest(&self) -> bool {
        self.syn.is_none()
            && (self.legs.iter().flatten()).all(|leg| leg.connection().is_at_rest())
            && self.streams.iter().all(|stream| stream.held == 0)
    }

    /// Is this SYN one of a new connection, between the ends of one that is over? RFC 6191 section
    /// 2: the sequence number has gone on.
    pub(super) fn is_followed_by(&self, side: usize, sequence: Seq) -> bool {
        let initial = match (&self.legs[side], side) {
            (Some(leg), _) => leg.connection().peer_initial_sequence(),
            (None, _) => None,
        };
        let received = self.legs[side]
            .as_ref()
            .map_or(0, |leg| leg.connection().received_offset());
        // SYN and FIN have a number each.
        initial.is_none_or(|initial| sequence.after(initial + (received as u32).wrapping_add(1)))
    }

    /// When it next wants to run without a packet.
    #[inline]
    pub(super) fn next_deadline(&self) -> Option<Time> {
        let deadline = |side: usize| {
            let leg = self.legs[side].as_ref()?;
            let ended = self.streams[side].ended;
            match ended.filter(|_| leg.connection().is_close_held()) {
                Some(ended) => {
                    let at = ended + LONGEST_HOLD;
                    Some(leg.next_deadline().map_or(at, |deadline| deadline.min(at)))
                }
                None => leg.next_deadline(),
            }
        };
        match (deadline(OPENER), deadline(RESPONDER)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// A deadline has come.
    pub(super) fn on_deadline(&mut self, cx: &mut Ctx<'_>) {
        for leg in self.legs.iter_mut().flatten() {
            if leg.next_deadline().is_some_and(|at| at <= cx.now) {
                leg.on_deadline(cx);
            }
        }
    }
}
