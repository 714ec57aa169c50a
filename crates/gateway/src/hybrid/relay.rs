//! An established connection: what the gateway knows of both ends, and what it owes them.
//!
//! Positions are sequence numbers of the server's stream, unwrapped to 64 bits and counted from its
//! SYN, which is 0: as in `bentpipe_tcp`.

use std::net::IpAddr;

use bentpipe_tcp::{Observed, Sender, TIMESTAMPS_LENGTH};
use bentpipe_types::{
    Endpoint, Flags, IpVersion, Packet, PacketRef, SackBlock, SackBlocks, Seq, Span, Time,
};

use super::narrow::{Doubt, Narrow};
use super::settings::{Anticipation, Settings};
use super::store::Store;
use super::tracked::{Agreed, End, Hall, Side, Tracked};

/// Nothing was outstanding for so long: what was learned of the path is forgotten, and its memory is
/// free.
const AT_REST: Span = Span::from_secs(10);

/// Bytes that a SACK option takes: two of padding, two of header, eight a block.
pub(super) fn sack_length(blocks: &SackBlocks) -> u8 {
    match blocks.as_slice().len() {
        0 => 0,
        count => 4 + 8 * count as u8,
    }
}

/// One established connection.
#[derive(Debug)]
pub(super) struct Relay {
    pub(super) host: Endpoint,
    pub(super) server: Endpoint,
    pub(super) ip: Option<(IpAddr, IpAddr)>,
    pub(super) version: IpVersion,
    pub(super) agreed: Agreed,

    // The server's stream.
    /// RCV.NXT: everything before is held, or the host has it. After the FIN, once that is in order.
    pub(super) next: u64,
    /// Where the server's FIN is, once it is in order.
    pub(super) fin: Option<u64>,
    /// The right edge of the window that the server was offered. It never moves back.
    pub(super) edge: u64,
    /// What the server was last told to be acknowledged.
    pub(super) told: u64,
    /// When that is to be told at the latest.
    pub(super) acknowledge_at: Time,
    /// What the host is known to have.
    pub(super) acknowledged: u64,
    pub(super) store: Store,
    /// The sender's half towards the host, while there is something to send.
    pub(super) sender: Option<Box<Sender>>,
    /// Where the way to the host takes less than the server sends.
    pub(super) narrow: Option<Box<Narrow>>,
    /// Whether it may be so, and nobody says it.
    pub(super) doubt: Doubt,
    /// Below this, and not acknowledged, segments go again: they met a closed window.
    pub(super) again: Option<(u64, u64)>,
    pub(super) probe_at: Time,
    pub(super) probe_wait: Span,

    // What the server says in every segment, the latest of it.
    pub(super) server_acknowledgment: Seq,
    pub(super) server_window: u16,
    pub(super) server_sequence: Seq,
    pub(super) server_window_maximum: u64,
    /// Its clock, the latest, and the host's as it echoes it.
    pub(super) server_timestamp: (u32, u32),
    /// RFC 7323's TS.Recent: what an acknowledgment to the server echoes.
    pub(super) timestamp_recent: u32,

    // What the host says.
    /// After the last sequence number that it has sent.
    pub(super) host_next: Seq,
    pub(super) host_timestamp: u32,
    /// After its FIN.
    pub(super) host_fin: Option<Seq>,
    pub(super) host_window: u64,
    host_window_sequence: Seq,

    /// When the host last acknowledged something new, or the first of what is outstanding left.
    pub(super) progress_at: Time,
    pub(super) host_heard_at: Time,
    /// So many of the host's acknowledgments are for the server, although they say nothing new.
    passes: u8,
    pub(super) over: Option<bool>,
}

impl Relay {
    /// Both ends of `tracked` are established; the host has everything before `acknowledged`.
    pub(super) fn new(
        tracked: &Tracked,
        agreed: &Agreed,
        acknowledged: u64,
        hall: &mut Hall,
    ) -> Self {
        let now = hall.cx.now;
        let [host, server] = tracked.ends;
        // The clocks begin where the SYNs have them: a timestamp before a peer's latest is old to it
        // (PAWS, RFC 7323 section 5), and so would be an acknowledgment or a segment that the gateway
        // makes with one.
        let clock = |end: &End| end.syn.and_then(|syn| syn.timestamps).unwrap_or((0, 0));
        Self {
            host: tracked.host,
            server: tracked.server,
            ip: tracked.ip,
            version: tracked.version,
            agreed: *agreed,
            next: acknowledged,
            fin: None,
            // The window of the host's SYN, at most.
            edge: acknowledged + agreed.window.min(u64::from(u16::MAX)),
            told: acknowledged,
            acknowledge_at: Time::NEVER,
            acknowledged,
            store: Store::default(),
            sender: None,
            narrow: None,
            doubt: Doubt::default(),
            again: None,
            probe_at: Time::NEVER,
            probe_wait: Span::ZERO,
            server_acknowledgment: host.syn.map_or(host.next, |syn| syn.initial + 1),
            server_window: 0,
            server_sequence: agreed.initial,
            server_window_maximum: u64::from(u16::MAX),
            server_timestamp: clock(&server),
            timestamp_recent: clock(&server).0,
            host_next: host.next,
            host_timestamp: clock(&host).0,
            host_fin: None,
            host_window: host.syn.map_or(0, |syn| u64::from(syn.window)),
            host_window_sequence: host.syn.map_or(host.next, |syn| syn.initial),
            progress_at: now,
            host_heard_at: now,
            passes: 0,
            over: None,
        }
        .with_what_passed(server.next)
    }

    // The server may have sent data before both ends were established (RFC 7413): it passed, and what
    // the host doesn't acknowledge of it the server sends again.
    fn with_what_passed(mut self, server_next: Seq) -> Self {
        let passed = server_next.distance_from(self.wire(self.next));
        if passed > 0 {
            self.edge = self.edge.max(self.next + passed as u64);
        }
        self
    }

    /// Is it over, and was it the server, or the gateway, that reset it?
    pub(super) fn ended(&self) -> Option<bool> {
        self.over
    }

    /// The sequence number of a position.
    #[inline]
    pub(super) fn wire(&self, position: u64) -> Seq {
        self.agreed.initial + position as u32
    }

    /// Does the host have everything that the server has sent?
    pub(super) fn is_settled(&self) -> bool {
        self.store.is_empty()
    }

    /// What the host answers next is for the server, whatever it is.
    pub(super) fn expect_answer(&mut self) {
        self.passes = self.passes.saturating_add(1).min(4);
    }

    pub(super) fn takes_answer(&mut self) -> bool {
        let expected = self.passes > 0;
        self.passes = self.passes.saturating_sub(1);
        expected
    }

    /// What the connection holds: (bytes, packets).
    pub(super) fn holds(&self) -> (u64, u64) {
        (self.store.total(), self.store.segments() as u64)
    }

    /// What may be acknowledged to the server: all that the gateway has, but not a FIN that the host
    /// has not acknowledged itself. A close that succeeds means that the host has everything.
    pub(super) fn acknowledgment(&self) -> u64 {
        match self.fin {
            Some(fin) if self.acknowledged <= fin => self.next.min(fin),
            _ => self.next,
        }
    }

    /// Bytes after RCV.NXT for which there is room.
    fn room(&self, hall: &Hall) -> u64 {
        let own = hall.settings.store().saturating_sub(self.store.bytes());
        let all = hall.settings.memory.saturating_sub(hall.totals.bytes);
        if self.store.segments() >= hall.settings.segments() {
            return 0;
        }
        own.min(all).min(self.agreed.window)
    }

    /// RFC 9293 section 3.8.6.2.2: how far the right edge moves at least.
    fn step(&self) -> u64 {
        (self.agreed.window / 2)
            .min(u64::from(self.agreed.segment))
            .max(1)
    }

    /// The window field of a packet to the server that offers up to there.
    fn field(&self, edge: u64) -> u64 {
        let offer = edge.saturating_sub(self.acknowledgment()) >> self.agreed.told_shift;
        offer.min(u64::from(u16::MAX))
    }

    /// The farthest right edge that could be offered, as the field can say it: what it cannot say is no step.
    fn possible(&self, hall: &Hall) -> u64 {
        let field = self.field(self.next + self.room(hall));
        self.acknowledgment() + (field << self.agreed.told_shift)
    }

    /// The window field of a packet to the server. Offers it.
    pub(super) fn window_field(&mut self, hall: &Hall) -> u16 {
        let possible = self.possible(hall);
        if possible >= self.edge + self.step() {
            self.edge = possible;
        }
        self.field(self.edge) as u16
    }

    /// Would a packet to the server say something new?
    pub(super) fn has_news(&self, hall: &Hall) -> bool {
        if self.acknowledgment() > self.told {
            return true;
        }
        let now = self.edge.saturating_sub(self.next);
        let possible = self.possible(hall).saturating_sub(self.next);
        possible >= now + self.step() && possible >= 2 * now
    }

    /// What every packet to the server says of the server's stream.
    /// `repeated`: what has come once more.
    pub(super) fn tell(
        &mut self,
        reference: PacketRef,
        repeated: Option<SackBlock>,
        hall: &mut Hall,
    ) {
        let acknowledgment = self.acknowledgment();
        let window = self.window_field(hall);
        let (wire, recent) = (self.wire(acknowledgment), self.timestamp_recent);
        let packets = &mut *hall.cx.packets;
        let old = packets.sack_blocks(reference);
        let bare = packets.get(reference).payload_length == 0;
        let blocks: SackBlocks = if self.agreed.sack && bare {
            let most = if self.agreed.timestamps { 3 } else { 4 };
            let ahead = most - usize::from(repeated.is_some());
            let ahead = self.store.blocks(self.agreed.initial, ahead);
            repeated.into_iter().chain(ahead).collect()
        } else {
            SackBlocks::default()
        };
        if old != blocks {
            packets.set_sack_blocks(reference, &blocks);
        }
        let packet = packets.get_mut(reference);
        // What the host has out of order is between it and the gateway.
        packet.header_length = packet.header_length - sack_length(&old) + sack_length(&blocks);
        packet.acknowledgment = wire;
        packet.window = window;
        if let Some((value, _)) = packet.timestamps() {
            packet.set_timestamps(value, recent);
        }
        self.told = acknowledgment;
        self.acknowledge_at = Time::NEVER;
    }

    /// Acknowledges to the server on behalf of the host.
    pub(super) fn acknowledge(&mut self, hall: &mut Hall) {
        self.acknowledge_with(None, hall);
    }

    /// Acknowledges what has come once more, and says so (RFC 2883). A server sends the last segment again when it was not
    /// acknowledged within two round trips to the gateway (RFC 8985 section 7), which may wait for longer than that; unless it
    /// hears that nothing was lost, it takes that for a loss.
    pub(super) fn acknowledge_again(&mut self, packet: &Packet, hall: &mut Hall) {
        let repeated = SackBlock {
            start: packet.sequence,
            end: packet.sequence + packet.sequence_length(),
        };
        self.acknowledge_with(Some(repeated), hall);
    }

    fn acknowledge_with(&mut self, repeated: Option<SackBlock>, hall: &mut Hall) {
        let mut packet = Packet::new(self.host, self.server, self.version);
        packet.flags = Flags::ACK;
        packet.sequence = self.host_next;
        if self.agreed.timestamps {
            packet.header_length += TIMESTAMPS_LENGTH;
            packet.set_timestamps(self.host_timestamp, 0);
        }
        let reference = hall.cx.packets.insert(packet);
        if let Some(ip) = self.ip {
            hall.cx.packets.set_ip(reference, ip);
        }
        self.tell(reference, repeated, hall);
        hall.totals.acknowledgments += 1;
        hall.cx.emit(hall.totals.port(Side::Server), reference);
    }

    /// A packet to the host, with what the server has last said.
    pub(super) fn to_host(&self, position: u64, flags: Flags, hall: &mut Hall) {
        let mut packet = Packet::new(self.server, self.host, self.version);
        packet.flags = flags;
        packet.sequence = self.wire(position);
        packet.acknowledgment = self.server_acknowledgment;
        packet.window = self.server_window;
        if self.agreed.timestamps {
            packet.header_length += TIMESTAMPS_LENGTH;
            packet.set_timestamps(self.server_timestamp.0, self.server_timestamp.1);
        }
        let ip = self.ip.map(|(host, server)| (server, host));
        hall.totals.emit(packet, ip, Side::Host, hall.cx);
    }

    /// The sender's half towards the host.
    pub(super) fn sender(&mut self, hall: &Hall) -> &mut Sender {
        let (agreed, acknowledged, window) = (&self.agreed, self.acknowledged, self.host_window);
        let segment = self.segment();
        self.sender.get_or_insert_with(|| {
            let observed = Observed {
                initial: agreed.initial,
                position: acknowledged,
                window,
                window_shift: agreed.host_shift,
                segment,
                sack: agreed.sack,
            };
            Box::new(Sender::observed(hall.sender, &observed, hall.cx.now))
        })
    }

    /// The next position to be sent for the first time.
    pub(super) fn unsent(&self) -> u64 {
        self.sender
            .as_ref()
            .map_or(self.acknowledged, |sender| sender.highest())
    }

    /// Up to where may be sent: the window, and what is anticipated of it.
    pub(super) fn limit(&self, anticipation: Anticipation) -> u64 {
        match (self.host_window, anticipation) {
            (0, _) => self.acknowledged,
            (_, Anticipation::Unlimited) => u64::MAX,
            (window, Anticipation::Strict) => self.acknowledged + window,
            (window, Anticipation::Factor(factor)) => {
                self.acknowledged + (window as f64 * factor.max(1.0)) as u64
            }
        }
    }

    /// The host's window, as this packet says it, unless it is older than the last that did (RFC 9293
    /// section 3.10.7.4 step 5).
    pub(super) fn update_host_window(&mut self, packet: &Packet, advances: bool, now: Time) {
        // Nor is it of text that the host has not sent: one false segment would fix the window for ever.
        let timely = self.host_window_sequence.at_or_before(packet.sequence)
            && packet.sequence.at_or_before(self.host_next);
        if !advances && !timely {
            return;
        }
        let before = self.host_window;
        self.host_window = u64::from(packet.window) << self.agreed.host_shift;
        if timely {
            self.host_window_sequence = packet.sequence;
        }
        if before == 0 && self.host_window > 0 {
            // What met the closed window is not there.
            self.again =
                (self.unsent() > self.acknowledged).then(|| (self.acknowledged, self.unsent()));
            self.progress_at = now;
            self.probe_at = Time::NEVER;
            self.probe_wait = Span::ZERO;
        }
    }

    /// Nobody answers any more: both ends are told that it is over.
    pub(super) fn give_up(&mut self, hall: &mut Hall) {
        let mut packet = Packet::new(self.host, self.server, self.version);
        packet.flags = Flags::RST.with(Flags::ACK);
        packet.sequence = self.server_acknowledgment;
        packet.acknowledgment = self.wire(self.acknowledgment());
        hall.totals.emit(packet, self.ip, Side::Server, hall.cx);
        let reset = Flags::RST.with(Flags::ACK);
        self.reset_where_the_host_stands(reset, hall);
        self.to_host(self.unsent(), reset, hall);
        hall.totals.given_up += 1;
        self.over = Some(true);
    }

    /// A host believes a RST at exactly what it expects (RFC 5961 section 3.2): after all that was sent, where this is not told
    /// to be. But if that is lost, or has met a window that was shut, it expects what it has acknowledged last; and it need
    /// not challenge what is ahead of that, when it has just said where it stands (in Linux half a second,
    /// tcp_invalid_ratelimit): who only listens would never hear of the end. So this one goes first. Where more has come, it is old.
    pub(super) fn reset_where_the_host_stands(&mut self, reset: Flags, hall: &mut Hall) {
        if self.acknowledged < self.unsent() {
            self.to_host(self.acknowledged, reset, hall);
        }
    }

    /// Lets go of everything held.
    pub(super) fn clear(&mut self, hall: &mut Hall) {
        let before = self.holds();
        self.store.clear(hall.cx.packets);
        self.sender = None;
        hall.totals.held(before, self.holds());
    }

    pub(super) fn on_deadline(&mut self, hall: &mut Hall) {
        let now = hall.cx.now;
        if self.acknowledge_at <= now {
            self.acknowledge(hall);
        }
        if self.give_up_at(hall.settings) <= now {
            self.give_up(hall);
            return;
        }
        if self.probe_at <= now {
            self.probe(hall);
        }
        self.sender_deadline(hall);
        if self.at_rest_at() <= now {
            self.sender = None;
        }
    }

    /// When the sender's half is dropped, if nothing is sent until then.
    fn at_rest_at(&self) -> Time {
        match &self.sender {
            Some(sender) if sender.is_idle() && self.store.is_empty() => self.progress_at + AT_REST,
            _ => Time::NEVER,
        }
    }

    /// A host that has a closed window and answers is there; another one has to make progress.
    fn give_up_at(&self, settings: &Settings) -> Time {
        if self.store.bytes() == 0 {
            return Time::NEVER;
        }
        let since = if self.host_window == 0 {
            self.host_heard_at
        } else {
            self.progress_at
        };
        since + settings.give_up
    }

    pub(super) fn next_deadline(&self, settings: &Settings) -> Time {
        let sender = self
            .sender
            .as_ref()
            .and_then(|sender| sender.next_deadline())
            .filter(|_| self.host_window > 0 && self.store.bytes() > 0)
            .unwrap_or(Time::NEVER);
        self.acknowledge_at
            .min(self.probe_at)
            .min(sender)
            .min(self.give_up_at(settings))
            .min(self.at_rest_at())
    }
}

impl Relay {
    /// Bytes of memory besides its own.
    pub(super) fn allocated(&self) -> usize {
        let sender = self
            .sender
            .as_ref()
            .map_or(0, |sender| size_of::<Sender>() + sender.allocated());
        let narrow = self.narrow.as_ref().map_or(0, |_| size_of::<Narrow>());
        self.store.allocated() + sender + narrow
    }
}
