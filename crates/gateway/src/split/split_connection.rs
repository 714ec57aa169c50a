//! A split connection: two TCP connections ("legs"), back to back.

use std::sync::Arc;

use bentpipe_tcp::{
    ActiveFastOpen, Config, Connection, Opening, PassiveFastOpen, Payload, RealHeader, Socket,
    Source, State, relay, relay_more, reset_reply,
};
use bentpipe_types::{Ctx, Flags, FlowKey, IpFields, Packet, PacketRef, Port, Seq, Span, Time};
use serde::{Deserialize, Serialize};

use super::host_secret::{HostSecret, timestamp_offset};
use super::memory_budget::MemoryBudget;
use super::path_memory::{MIN_BYTES_CARRIED, PathMemory};
use super::{Confirmation, Settings};
use crate::icmp::IcmpReport;

/// Index of the leg towards the host that opened the connection.
pub(super) const OPENER: usize = 0;
/// Index of the leg towards the host that answered.
pub(super) const RESPONDER: usize = 1;

/// Limit of rounds in one call, each of which may make further progress possible.
const MAX_ROUNDS: usize = 8;

/// Minimum of a stream's buffer limit: two initial windows.
const MIN_BUFFER: u64 = 128 << 10;
/// Shortest time over which the bytes delivered are measured.
const MIN_MEASUREMENT: Span = Span::from_millis(10);
/// Round trip of a host before it was measured.
const UNKNOWN_RTT: Span = Span::from_millis(100);

/// Longest time for which the ACK of a FIN is withheld. A Linux host whose application is gone
/// retransmits a FIN 8 times (tcp_orphan_retries), which takes at least 102 s. It then drops the
/// connection, and would reset whatever still arrives.
pub(super) const MAX_FIN_HOLD: Span = Span::from_secs(60);

/// A stream through the gateway, from one leg to the other.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Stream {
    /// Offset of the sender's latest PSH.
    push_offset: u64,
    /// Time at which the sender's FIN arrived.
    fin_received_at: Option<Time>,
    /// Bytes promised, as last counted.
    pub(super) promised: u64,
    /// Bytes reserved, as last counted.
    pub(super) reserved: u64,
    /// Bytes held, as last counted.
    pub(super) held: u64,
    /// Bytes that the receiver acknowledged in a round trip of the sender, as last measured.
    delivered_per_rtt: u64,
    /// Time and number of bytes acknowledged at the start of the present measurement.
    measured_from: (Time, u64),
    /// IP header fields of the sender's latest packet, for the packets that carry the stream on.
    fields: IpFields,
}

/// A split connection.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SplitConnection<P> {
    /// Key of the packets from the host that opened it.
    pub(super) key: FlowKey,
    pub(super) legs: [Option<Socket<P>>; 2],
    /// Port of each leg.
    pub(super) ports: [Port; 2],
    /// The SYN that opened it, until it is answered.
    #[serde(skip)]
    pub(super) syn: Option<PacketRef>,
    pub(super) syn_sequence: Seq,
    /// Largest congestion window over the facing link, if `warm_path` is set.
    pub(super) largest_window: u64,
    /// Bytes to carry over the facing link before its congestion state is shared again.
    pub(super) next_learning_offset: u64,
    /// Initial receive window of each leg.
    pub(super) initial_window: u64,
    /// Bytes of the SYN's data that were sent with the gateway's SYN, and that the opener's leg has
    /// yet to skip.
    syn_data_to_skip: u64,
    /// Whether there were any.
    syn_had_data: bool,
    /// The streams: `streams[leg]` arrives at that leg.
    pub(super) streams: [Stream; 2],
    /// Time of the SYN.
    pub(super) opened_at: Time,
    /// Time of the last packet.
    pub(super) last_activity_at: Time,
    /// Whether it is counted as half-open.
    pub(super) is_half_open: bool,
    /// Whether only TIME-WAIT is left.
    pub(super) has_ended: bool,
    /// Whether one side was reset because the other had failed.
    pub(super) aborted: bool,
}

/// Outcome of opening the leg to the responder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ResponderOutcome {
    /// None yet.
    Pending,
    /// The responder has answered, and the SYN was answered.
    AnswerFrame,
    /// The responder has refused, and the SYN was refused.
    Refused,
    /// The responder does not answer.
    Unreachable,
}

/// Next step for a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NextStep {
    /// Run its timers at this time.
    RunAt(Option<Time>),
    /// Mark it as ended: only TIME-WAIT is left.
    MarkEnded,
    /// Remove it: nothing is left.
    Remove,
}

/// Returns the stream offset up to which a packet probes for delivery at once (PSH).
#[inline]
pub(super) fn pushed_offset(tcp: &Connection, record: &Packet) -> Option<u64> {
    if !record.flags.has(Flags::PSH) || record.payload_length == 0 {
        return None;
    }
    // A sequence number before the stream's first has an offset of nearly 2^64.
    let end = tcp
        .offset_of(record.sequence)
        .wrapping_add(u64::from(record.payload_length));
    // Data beyond the window is not part of the stream.
    (end <= tcp.offered_offset()).then_some(end)
}

/// Returns true if the packet is a keep-alive probe (RFC 9293 section 3.8.4). The leg answers it,
/// and the other leg probes its own host. Otherwise a host that missed the RST of a connection
/// would be told for ever that it is open.
#[inline]
fn is_keep_alive_probe(tcp: &Connection, record: &Packet) -> bool {
    record.payload_length <= 1
        && record.flags == Flags::ACK
        && tcp.offset_of(record.sequence).wrapping_add(1) == tcp.received_offset()
}

/// Returns the Fast Open request of a SYN (RFC 7413), as far as a gateway can serve it.
fn fast_open(syn: PacketRef, cx: &Ctx<'_>) -> ActiveFastOpen {
    let option = cx.packets.syn_options(syn).fast_open;
    let length = cx.packets.get(syn).payload_length;
    ActiveFastOpen {
        // RFC 7413 section 4.2.2: data without a cookie is not accepted; the host retransmits it.
        room: if option.is_some_and(|option| !option.cookie().is_empty()) {
            length
        } else {
            0
        },
        bytes: 0,
        option,
    }
}

impl<P: Payload> SplitConnection<P> {
    /// Opens the leg to the responder. `syn` is kept until it is answered.
    pub(super) fn open(
        key: FlowKey,
        syn: PacketRef,
        ports: [Port; 2],
        config: &Arc<Config>,
        first: u64,
        secret: Option<HostSecret>,
        cx: &mut Ctx<'_>,
    ) -> Self {
        let record = *cx.packets.get(syn);
        let opening = Opening {
            config,
            // To the responder, the gateway takes the place of the host that opened the connection,
            local: record.source,
            remote: record.destination,
            egress: ports[RESPONDER],
            // with its sequence numbers. So an ICMP error about the gateway's SYN also makes sense
            // to that host.
            initial_sequence: record.sequence,
        };
        let timestamp = record.timestamps().map(|(value, _)| value);
        let fields = cx.packets.ip_fields(syn).unwrap_or_default();
        let header = RealHeader {
            ip: cx.packets.ip(syn),
            fields,
            timestamp_offset: timestamp_offset(timestamp, secret, &key, config, cx.now),
        };
        let fast = fast_open(syn, cx);
        let text: Option<Vec<u8>> = (fast.room > 0)
            .then(|| cx.packets.payload(syn).map(<[u8]>::to_vec))
            .flatten();
        let source = match &text {
            Some(bytes) => Source::Bytes(bytes),
            None => Source::Filler(fast.room.into()),
        };
        let (leg, syn_text) = Socket::connect_as(&opening, header, fast, source, cx);
        Self {
            key,
            legs: [None, Some(leg)],
            ports,
            syn: Some(syn),
            syn_sequence: record.sequence,
            largest_window: 0,
            next_learning_offset: MIN_BYTES_CARRIED,
            initial_window: first,
            syn_data_to_skip: syn_text,
            syn_had_data: syn_text > 0,
            streams: [
                Stream {
                    fields,
                    ..Stream::default()
                },
                Stream::default(),
            ],
            opened_at: cx.now,
            last_activity_at: cx.now,
            is_half_open: true,
            has_ended: false,
            aborted: false,
        }
    }

    /// Answers the SYN, with the responder's sequence number if that is known.
    pub(super) fn answer(
        &mut self,
        config: &Arc<Config>,
        secret: Option<HostSecret>,
        cx: &mut Ctx<'_>,
    ) {
        let (Some(syn), Some(responder)) = (self.syn.take(), &mut self.legs[RESPONDER]) else {
            return;
        };
        let record = *cx.packets.get(syn);
        let initial_sequence = responder
            .connection()
            .peer_initial_sequence()
            .unwrap_or_else(|| match secret {
                Some(secret) => secret.sequence(&self.key.reversed(), cx.now),
                None => Seq::new(cx.random.bits() as u32),
            });
        let timestamp = responder.connection().peer_timestamp();
        let back = self.key.reversed();
        let header = RealHeader {
            ip: None,
            fields: self.streams[RESPONDER].fields,
            timestamp_offset: timestamp_offset(timestamp, secret, &back, config, cx.now),
        };
        let opening = Opening {
            config,
            local: record.destination,
            remote: record.source,
            egress: self.ports[OPENER],
            initial_sequence,
        };
        let fast = match responder.connection().offered_cookie() {
            _ if self.syn_had_data => PassiveFastOpen::Accept,
            Some(cookie) => PassiveFastOpen::Offer(cookie),
            None => PassiveFastOpen::Ignore,
        };
        self.legs[OPENER] = Some(Socket::accept_as(&opening, header, syn, fast, cx));
        self.skip_syn_data(cx);
    }

    /// Skips the data that was sent with the gateway's SYN. The opener's leg may have accepted less
    /// of it, for want of window; the host then retransmits the rest.
    fn skip_syn_data(&mut self, cx: &mut Ctx<'_>) {
        if self.syn_data_to_skip > 0
            && let Some(opener) = &mut self.legs[OPENER]
        {
            self.syn_data_to_skip -= opener.read(self.syn_data_to_skip, cx);
        }
    }

    /// With end-to-end confirmation, withholds the ACK of each host's FIN until the other host has
    /// acknowledged it.
    pub(super) fn hold_fins(&mut self, close: Confirmation, cx: &mut Ctx<'_>) {
        for leg in self.legs.iter_mut().flatten() {
            leg.act(cx, |tcp, _| {
                tcp.set_holds_close(close == Confirmation::EndToEnd)
            });
        }
    }

    /// Processes a packet for one of the legs, and consumes it.
    #[inline]
    pub(super) fn on_packet(&mut self, side: usize, packet: PacketRef, cx: &mut Ctx<'_>) {
        if P::KEEPS_BYTES {
            self.carry_ip_fields(side, packet, cx);
        }
        let Some(leg) = &mut self.legs[side] else {
            cx.packets.release(packet);
            return;
        };
        self.last_activity_at = cx.now;
        if let Some(pushed) = pushed_offset(leg.connection(), cx.packets.get(packet)) {
            self.streams[side].push_offset = self.streams[side].push_offset.max(pushed);
        }
        let probes = is_keep_alive_probe(leg.connection(), cx.packets.get(packet));
        leg.on_packet(packet, cx);
        if probes && let Some(other) = &mut self.legs[1 - side] {
            other.act(cx, Connection::send_keep_alive_probe_if_idle);
        }
    }

    /// Has the other leg's packets carry the traffic class and flow label of this packet, unless it
    /// is outside the window, and so possibly forged. The hop limit is that of the SYN or its
    /// answer, less one hop.
    fn carry_ip_fields(&mut self, side: usize, packet: PacketRef, cx: &Ctx<'_>) {
        let (Some(leg), Some(fields)) = (&self.legs[side], cx.packets.ip_fields(packet)) else {
            return;
        };
        let tcp = leg.connection();
        let record = cx.packets.get(packet);
        let carried = if leg.state() == State::SynSent {
            record.flags.has(Flags::SYN).then_some(IpFields {
                hop_limit: fields.hop_limit.saturating_sub(1).max(1),
                ..fields
            })
        } else {
            let offset = tcp.offset_of(record.sequence);
            let window = tcp.received_offset().saturating_sub(1)..=tcp.offered_offset();
            window.contains(&offset).then_some(IpFields {
                hop_limit: self.streams[side].fields.hop_limit,
                ..fields
            })
        };
        if let Some(carried) = carried.filter(|carried| *carried != self.streams[side].fields) {
            self.streams[side].fields = carried;
            if let Some(other) = &mut self.legs[1 - side] {
                other.set_traffic_class(carried);
            }
        }
    }

    /// Processes an ICMP error about a segment of one of the legs.
    pub(super) fn on_icmp(&mut self, side: usize, report: &IcmpReport, cx: &mut Ctx<'_>) {
        if let Some(leg) = &mut self.legs[side] {
            leg.on_icmp(report.error, report.sequence, cx);
        }
    }

    /// Answers or refuses the SYN if the responder has done so. Returns the outcome.
    pub(super) fn answer_syn(
        &mut self,
        config: &Arc<Config>,
        secret: Option<HostSecret>,
        cx: &mut Ctx<'_>,
    ) -> ResponderOutcome {
        let (Some(syn), Some(responder)) = (self.syn, &mut self.legs[RESPONDER]) else {
            return ResponderOutcome::AnswerFrame;
        };
        if responder.state() == State::Closed {
            self.syn = None;
            let events = responder.take_events();
            if events.has(bentpipe_tcp::Events::RESET) {
                // Answer as the other host would: with a RST that acknowledges the SYN.
                reset_reply(syn, self.ports[OPENER], cx);
                return ResponderOutcome::Refused;
            }
            cx.packets.release(syn);
            return ResponderOutcome::Unreachable;
        }
        if responder.state().is_synchronized() {
            self.answer(config, secret, cx);
            return ResponderOutcome::AnswerFrame;
        }
        ResponderOutcome::Pending
    }

    /// Moves data and FINs from each leg to the other, as far as possible.
    fn move_all(&mut self, cx: &mut Ctx<'_>) {
        for _ in 0..MAX_ROUNDS {
            let mut news = false;
            for leg in self.legs.iter_mut().flatten() {
                news |= !leg.take_events().is_empty();
            }
            if self.propagate_failure(cx) {
                return;
            }
            let moved = self.move_stream(OPENER, cx) | self.move_stream(RESPONDER, cx);
            if !moved && !news {
                return;
            }
        }
    }

    /// Resets the other leg if one was closed other than by both hosts' FINs, and the other host
    /// can still be told. Returns true if so.
    fn propagate_failure(&mut self, cx: &mut Ctx<'_>) -> bool {
        // If both hosts have sent their FIN, the rest of the data is still delivered. Its
        // receiver's own FIN is acknowledged, so that it waits for nothing else.
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

    /// Moves the stream that arrives at leg `from` to the other leg. Returns true if any data was
    /// moved.
    fn move_stream(&mut self, from: usize, cx: &mut Ctx<'_>) -> bool {
        if from == OPENER {
            self.skip_syn_data(cx);
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
            let pushed = self.streams[from].push_offset;
            let all = source.connection().is_peer_done();
            // A PSH of the sender is passed on. Without one, less than a segment waits for more
            // data, because the legs' segment sizes differ.
            moved = if all || (begins < pushed && pushed <= ends) {
                relay(source, sink, u64::MAX, cx) > 0
            } else {
                relay_more(source, sink, u64::MAX, cx) > 0
            };
        }
        if source.connection().is_peer_done() {
            // A leg that is closed in SYN-SENT, with nothing written, would be dropped. The host
            // has to see that there was a connection.
            if source.readable() == 0 && sink.state() != State::SynSent {
                // Closing it again has no effect.
                sink.close(cx);
            }
            let ended = *self.streams[from].fin_received_at.get_or_insert(cx.now);
            let late = cx.now.since(ended) >= MAX_FIN_HOLD;
            if late || sink.connection().is_close_confirmed() {
                source.act(cx, bentpipe_tcp::Connection::confirm_close);
            }
        }
        moved
    }

    /// Returns the bytes promised and held for the stream that arrives at leg `from`.
    #[inline]
    fn promised_and_held(&self, from: usize) -> (u64, u64) {
        let Some(source) = &self.legs[from] else {
            // The initial window of the leg that is yet to be opened.
            return (
                if self.syn.is_some() {
                    self.initial_window
                } else {
                    0
                },
                0,
            );
        };
        let sink = self.legs[1 - from].as_ref();
        if source.state() == State::Closed && sink.is_none_or(|sink| sink.state() == State::Closed)
        {
            return (0, 0);
        }
        let tcp = source.connection();
        let done = match sink {
            // A closed leg sends nothing more, and holds nothing.
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

    /// Number of bytes that have arrived at leg `from`.
    #[inline]
    fn received(&self, from: usize) -> u64 {
        (self.legs[from].as_ref()).map_or(0, |source| {
            let tcp = source.connection();
            tcp.received_offset() + tcp.out_of_order()
        })
    }

    /// Returns true if the budget has room for the payload of a packet that arrives at leg `side`.
    pub(super) fn has_memory_for(
        &self,
        side: usize,
        record: &Packet,
        budget: &MemoryBudget,
    ) -> bool {
        let Some(leg) = &self.legs[side] else {
            return true;
        };
        let tcp = leg.connection();
        let in_order = tcp.offset_of(record.sequence) <= tcp.received_offset();
        budget.accepts(
            self.streams[side].held,
            record.payload_length.into(),
            in_order,
        )
    }

    /// Gives up the reservations of a connection that is idle: it holds nothing.
    pub(super) fn release_reservations(&mut self, budget: &mut MemoryBudget) {
        for stream in &mut self.streams {
            budget.change_stream((0, 0), (stream.reserved, 0), (0, 0));
            stream.reserved = 0;
        }
    }

    /// Returns true if one of the hosts has yet to confirm that it opens the connection.
    pub(super) fn is_opening(&self) -> bool {
        self.syn.is_some()
            || (self.legs.iter().flatten())
                .any(|leg| matches!(leg.state(), State::SynSent | State::SynReceived))
    }

    /// Returns the bytes that the stream arriving at leg `from` needs, so that neither leg waits
    /// for the other:
    ///
    /// * twice the congestion window of the leg that sends them on, as in Linux's
    ///   tcp_sndbuf_expand;
    /// * four times what was delivered in a round trip of the sender, whose rate may double in the
    ///   next one (receive buffer autotuning, as in Linux's tcp_rcv_space_adjust);
    /// * and a minimum, for short bursts.
    fn needed(&mut self, from: usize, now: Time) -> u64 {
        let (Some(source), Some(sink)) = (&self.legs[from], &self.legs[1 - from]) else {
            return MIN_BUFFER;
        };
        let delivered = sink.connection().acknowledged_offset();
        let round_trip = source.connection().smoothed_rtt();
        let round_trip = round_trip.unwrap_or(UNKNOWN_RTT).max(MIN_MEASUREMENT);
        let stream = &mut self.streams[from];
        let (start, before) = stream.measured_from;
        let elapsed = now.since(start);
        if elapsed >= round_trip {
            let rate = (delivered - before) as f64 / elapsed.as_secs_f64();
            stream.delivered_per_rtt = (rate * round_trip.as_secs_f64()) as u64;
            stream.measured_from = (now, delivered);
        }
        MIN_BUFFER + 2 * sink.connection().congestion_window() + 4 * stream.delivered_per_rtt
    }

    /// Limits the window of leg `from` so that at most `allowed` bytes are promised.
    #[inline]
    fn limit_window(&mut self, from: usize, allowed: u64, cx: &mut Ctx<'_>) {
        let done = (self.legs[1 - from].as_ref())
            .map_or(0, |sink| sink.connection().acknowledged_offset());
        let (first, promised) = (self.initial_window, self.streams[from].promised);
        if let Some(source) = &mut self.legs[from] {
            // A limit that grows with the bytes received keeps pace with slow start, which at most
            // doubles the flight size per round trip. A host that sends little is promised little.
            let earned = first + 2 * source.connection().received_offset();
            let allowed = allowed.min(earned.max(promised));
            source.act(cx, |tcp, _| tcp.set_window_limit(done + allowed));
        }
    }

    /// Updates the window limits from the memory that is left now. Called before anything else is
    /// done with the connection.
    #[inline]
    pub(super) fn update_window_limits(&mut self, budget: &MemoryBudget, cx: &mut Ctx<'_>) {
        // Each stream may take at most half of what is left, so both together never take more.
        for from in [OPENER, RESPONDER] {
            let mut allowed = budget.allowed(self.streams[from].promised);
            if budget.limits_streams {
                allowed = allowed.min(self.needed(from, cx.now));
            }
            self.limit_window(from, allowed, cx);
        }
    }

    /// Advances the connection as far as possible, and updates its memory accounting. Called after
    /// anything was done with it.
    #[inline]
    pub(super) fn advance_and_account(
        &mut self,
        settings: &Settings,
        budget: &mut MemoryBudget,
        paths: &mut PathMemory,
        cx: &mut Ctx<'_>,
    ) -> NextStep {
        if self.syn.is_none() {
            self.move_all(cx);
            self.send_window_updates(cx);
        }
        if settings.warm_path {
            self.learn_window(settings.facing, paths);
        }
        for from in [OPENER, RESPONDER] {
            let (promised, held) = self.promised_and_held(from);
            // A host that has sent little sends little more before that is acknowledged.
            let reserved = promised.min(held + 2 * self.received(from));
            let stream = &mut self.streams[from];
            budget.change_stream(
                (stream.promised, promised),
                (stream.reserved, reserved),
                (stream.held, held),
            );
            (stream.promised, stream.reserved, stream.held) = (promised, reserved, held);
        }
        // Most connections hold nothing most of the time.
        if P::KEEPS_BYTES && self.streams.iter().all(|stream| stream.held == 0) {
            for leg in self.legs.iter_mut().flatten() {
                leg.shrink();
            }
        }
        self.next_step(settings)
    }

    /// Returns what to do next.
    #[inline]
    pub(super) fn next_step(&self, settings: &Settings) -> NextStep {
        if !self.has_ended && self.only_time_wait_left() {
            return NextStep::MarkEnded;
        }
        if self.is_gone() {
            return NextStep::Remove;
        }
        let idle = (!self.has_ended).then(|| self.last_activity_at + settings.idle_timeout);
        NextStep::RunAt(match (self.next_deadline(), idle) {
            (Some(deadline), Some(idle)) => Some(deadline.min(idle)),
            (deadline, idle) => deadline.or(idle),
        })
    }

    /// Sends window updates to both hosts, where the window has grown enough.
    fn send_window_updates(&mut self, cx: &mut Ctx<'_>) {
        for leg in self.legs.iter_mut().flatten() {
            leg.act(cx, bentpipe_tcp::Connection::offer_window);
        }
    }

    /// Tracks the largest congestion window of the leg over the facing link, and shares it each
    /// time the bytes carried have doubled.
    fn learn_window(&mut self, facing: Port, paths: &mut PathMemory) {
        for (leg, port) in self.legs.iter().zip(self.ports) {
            if let Some(leg) = leg.as_ref().filter(|_| port == facing) {
                let tcp = leg.connection();
                self.largest_window = self.largest_window.max(tcp.congestion_window());
                let carried = tcp.acknowledged_offset();
                if carried >= self.next_learning_offset {
                    self.next_learning_offset = carried.saturating_mul(2);
                    paths.learn(tcp, self.largest_window);
                }
            }
        }
    }

    /// Resets both legs.
    pub(super) fn abort(&mut self, cx: &mut Ctx<'_>) {
        for leg in self.legs.iter_mut().flatten() {
            leg.abort(cx);
        }
    }

    /// Returns true if nothing is left of the connection.
    pub(super) fn is_gone(&self) -> bool {
        self.syn.is_none()
            && self
                .legs
                .iter()
                .flatten()
                .all(|leg| leg.state() == State::Closed)
    }

    /// Returns true if nothing but TIME-WAIT is left.
    pub(super) fn only_time_wait_left(&self) -> bool {
        self.syn.is_none()
            && [OPENER, RESPONDER]
                .iter()
                .all(|side| self.leg_has_ended(*side))
    }

    /// Returns true if the leg on this side is closed or in TIME-WAIT.
    pub(super) fn leg_has_ended(&self, side: usize) -> bool {
        (self.legs[side].as_ref())
            .is_none_or(|leg| matches!(leg.state(), State::Closed | State::TimeWait))
    }

    /// Returns true if nothing is in flight at either leg and no data is held.
    pub(super) fn is_quiescent(&self) -> bool {
        self.syn.is_none()
            && (self.legs.iter().flatten()).all(|leg| leg.connection().is_quiescent())
            && self.streams.iter().all(|stream| stream.held == 0)
    }

    /// Returns true if this SYN opens a new connection between the endpoints of this one.
    /// RFC 6191 section 2: its sequence number must be larger than the last one of this connection.
    pub(super) fn is_replaced_by(&self, side: usize, sequence: Seq) -> bool {
        let initial = match (&self.legs[side], side) {
            (Some(leg), _) => leg.connection().peer_initial_sequence(),
            (None, _) => None,
        };
        let received = self.legs[side]
            .as_ref()
            .map_or(0, |leg| leg.connection().received_offset());
        // SYN and FIN take one sequence number each.
        initial.is_none_or(|initial| sequence.after(initial + (received as u32).wrapping_add(1)))
    }

    /// Time of the next timer.
    #[inline]
    pub(super) fn next_deadline(&self) -> Option<Time> {
        let deadline = |side: usize| {
            let leg = self.legs[side].as_ref()?;
            let ended = self.streams[side].fin_received_at;
            match ended.filter(|_| leg.connection().is_close_held()) {
                Some(ended) => {
                    let at = ended + MAX_FIN_HOLD;
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

    /// Runs the timers that have expired.
    pub(super) fn on_deadline(&mut self, cx: &mut Ctx<'_>) {
        for leg in self.legs.iter_mut().flatten() {
            if leg.next_deadline().is_some_and(|at| at <= cx.now) {
                leg.on_deadline(cx);
            }
        }
    }
}
