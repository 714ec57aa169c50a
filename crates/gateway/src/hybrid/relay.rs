//! An established connection: the state of both ends, and the timers.
//!
//! Positions are sequence numbers of the server's stream, extended to 64 bits and counted from its
//! SYN, which is 0, as in `bentpipe_tcp`.

mod host_path_mtu;

use std::net::IpAddr;

use bentpipe_tcp::{Observed, Sender, TIMESTAMPS_LENGTH};
use bentpipe_types::{
    Endpoint, Flags, IpVersion, Packet, PacketRef, SackBlock, SackBlocks, Seq, Span, Time,
};

use super::context::HybridContext;
use super::handshake::{End, NegotiatedOptions, OpenedConnection};
use super::segment_store::SegmentStore;
use super::settings::{Anticipation, Settings};
use super::side::Side;
use host_path_mtu::{BlackHoleDetection, HostPathMtu};

pub(super) use host_path_mtu::{Part, copy};

/// Time without outstanding data after which the sender's state is dropped, with all that it has
/// learnt of the path, to free its memory.
const SENDER_IDLE_LIFETIME: Span = Span::from_secs(10);

/// Length of a SACK option in bytes: two of padding, two of header, and eight per block.
pub(super) fn sack_length(blocks: &SackBlocks) -> u8 {
    match blocks.as_slice().len() {
        0 => 0,
        count => 4 + 8 * count as u8,
    }
}

/// State of an established connection: both ends, the stored segments and the timers.
#[derive(Debug)]
pub(super) struct Relay {
    pub(super) host: Endpoint,
    pub(super) server: Endpoint,
    pub(super) ip: Option<(IpAddr, IpAddr)>,
    pub(super) version: IpVersion,
    pub(super) negotiated: NegotiatedOptions,

    // The server's stream.
    /// RCV.NXT: everything before it is stored, or acknowledged by the host. The FIN is included
    /// once it is in order.
    pub(super) receive_next: u64,
    /// Position of the server's FIN, once it is in order.
    pub(super) fin: Option<u64>,
    /// Right edge of the window offered to the server. Invariant: it never moves back.
    pub(super) window_edge: u64,
    /// Acknowledgment number last sent to the server, as a position.
    pub(super) acknowledged_to_server: u64,
    /// Time at which a delayed ACK is sent to the server.
    pub(super) acknowledge_at: Time,
    /// Position up to which the host has acknowledged.
    pub(super) acknowledged: u64,
    pub(super) store: SegmentStore,
    /// Sender state towards the host, while there is data to send.
    pub(super) sender: Option<Box<Sender>>,
    /// Path MTU towards the host, if it is smaller than the server's segments.
    pub(super) path_mtu: Option<Box<HostPathMtu>>,
    /// Detection of a black hole, where no router reports the path MTU.
    pub(super) black_hole: BlackHoleDetection,
    /// Positions to retransmit because they were sent into a closed window, or while short segments
    /// were tried.
    pub(super) resend_positions: Option<(u64, u64)>,
    pub(super) probe_at: Time,
    pub(super) probe_wait: Span,

    // Latest values of the fields that every segment of the server has.
    pub(super) server_acknowledgment: Seq,
    pub(super) server_window: u16,
    pub(super) server_sequence: Seq,
    pub(super) server_window_maximum: u64,
    /// The server's latest timestamp, and the host's one that it echoes.
    pub(super) server_timestamp: (u32, u32),
    /// TS.Recent (RFC 7323 section 4.3), echoed in ACKs to the server.
    pub(super) timestamp_recent: u32,

    // State of the host's direction.
    /// Sequence number after the last one that the host has sent.
    pub(super) host_next: Seq,
    pub(super) host_timestamp: u32,
    /// Sequence number after the host's FIN.
    pub(super) host_fin: Option<Seq>,
    pub(super) host_window: u64,
    host_window_sequence: Seq,

    /// Time of the last new acknowledgment from the host, or at which the first outstanding segment
    /// was sent.
    pub(super) progress_at: Time,
    pub(super) host_heard_at: Time,
    /// Number of the host's next ACKs that are forwarded to the server although they acknowledge
    /// nothing new.
    expected_answers: u8,
    pub(super) closed_by_reset: Option<bool>,
}

impl Relay {
    /// Returns the state of a connection. The host has acknowledged everything before
    /// `acknowledged`.
    pub(super) fn new(
        opened: &OpenedConnection,
        acknowledged: u64,
        context: &mut HybridContext,
    ) -> Self {
        let now = context.cx.now;
        let [host, server] = opened.ends;
        let negotiated = &opened.negotiated;
        // RFC 7323 section 5 (PAWS): a timestamp that is older than the peer's latest makes a
        // segment unacceptable. So the gateway's own segments start with the timestamps of the
        // SYNs.
        let clock = |end: &End| end.syn.and_then(|syn| syn.timestamps).unwrap_or((0, 0));
        Self {
            host: opened.host,
            server: opened.server,
            ip: opened.ip,
            version: opened.version,
            negotiated: *negotiated,
            receive_next: acknowledged,
            fin: None,
            // At most the window of the host's SYN.
            window_edge: acknowledged + negotiated.window.min(u64::from(u16::MAX)),
            acknowledged_to_server: acknowledged,
            acknowledge_at: Time::NEVER,
            acknowledged,
            store: SegmentStore::default(),
            sender: None,
            path_mtu: None,
            black_hole: BlackHoleDetection::default(),
            resend_positions: None,
            probe_at: Time::NEVER,
            probe_wait: Span::ZERO,
            server_acknowledgment: host.syn.map_or(host.next, |syn| syn.initial + 1),
            server_window: 0,
            server_sequence: negotiated.initial,
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
            expected_answers: 0,
            closed_by_reset: None,
        }
        .with_forwarded_data(server.next)
    }

    // The server may have sent data before both ends were established (RFC 7413). That data was
    // forwarded, and the server retransmits what the host does not acknowledge.
    fn with_forwarded_data(mut self, server_next: Seq) -> Self {
        let passed = server_next.distance_from(self.wire(self.receive_next));
        if passed > 0 {
            self.window_edge = self.window_edge.max(self.receive_next + passed as u64);
        }
        self
    }

    /// Returns `None` while the connection is open; otherwise whether it ended by a RST from the
    /// server or the gateway.
    pub(super) fn ended(&self) -> Option<bool> {
        self.closed_by_reset
    }

    /// Returns the sequence number of a position.
    #[inline]
    pub(super) fn wire(&self, position: u64) -> Seq {
        self.negotiated.initial + position as u32
    }

    /// Returns true if no data of the server is stored.
    pub(super) fn holds_nothing(&self) -> bool {
        self.store.is_empty()
    }

    /// Forwards the host's next ACK to the server, whatever it says.
    pub(super) fn expect_answer(&mut self) {
        self.expected_answers = self.expected_answers.saturating_add(1).min(4);
    }

    pub(super) fn take_expected_answer(&mut self) -> bool {
        let expected = self.expected_answers > 0;
        self.expected_answers = self.expected_answers.saturating_sub(1);
        expected
    }

    /// Returns what the connection holds, as (bytes, packets).
    pub(super) fn held(&self) -> (u64, u64) {
        (self.store.total(), self.store.segments() as u64)
    }

    /// Returns the position to acknowledge to the server: everything received, but not a FIN that
    /// the host has not acknowledged. So a successful close means that the host has received
    /// everything.
    pub(super) fn acknowledgment(&self) -> u64 {
        match self.fin {
            Some(fin) if self.acknowledged <= fin => self.receive_next.min(fin),
            _ => self.receive_next,
        }
    }

    /// Returns the bytes after RCV.NXT for which there is buffer space.
    fn free_space(&self, context: &HybridContext) -> u64 {
        let own = context.settings.store().saturating_sub(self.store.bytes());
        let all = context.settings.memory.saturating_sub(context.totals.bytes);
        if self.store.segments() >= context.settings.segments() {
            return 0;
        }
        own.min(all).min(self.negotiated.window)
    }

    /// RFC 9293 section 3.8.6.2.2 (silly window avoidance): smallest step of the right window edge.
    fn minimum_edge_step(&self) -> u64 {
        (self.negotiated.window / 2)
            .min(u64::from(self.negotiated.segment))
            .max(1)
    }

    /// Returns the window field of a packet to the server for this right edge.
    fn window_field_for(&self, edge: u64) -> u64 {
        let offer = edge.saturating_sub(self.acknowledgment()) >> self.negotiated.announced_shift;
        offer.min(u64::from(u16::MAX))
    }

    /// Returns the farthest right edge that could be offered, rounded to the unit of the window
    /// field.
    fn farthest_edge(&self, context: &HybridContext) -> u64 {
        let field = self.window_field_for(self.receive_next + self.free_space(context));
        self.acknowledgment() + (field << self.negotiated.announced_shift)
    }

    /// Advances the right edge if possible, and returns the window field of a packet to the server.
    pub(super) fn window_field(&mut self, context: &HybridContext) -> u16 {
        let possible = self.farthest_edge(context);
        if possible >= self.window_edge + self.minimum_edge_step() {
            self.window_edge = possible;
        }
        self.window_field_for(self.window_edge) as u16
    }

    /// Returns true if an ACK would tell the server something new.
    pub(super) fn has_update_for_server(&self, context: &HybridContext) -> bool {
        if self.acknowledgment() > self.acknowledged_to_server {
            return true;
        }
        let now = self.window_edge.saturating_sub(self.receive_next);
        let possible = self
            .farthest_edge(context)
            .saturating_sub(self.receive_next);
        possible >= now + self.minimum_edge_step() && possible >= 2 * now
    }

    /// Sets the acknowledgment, window, SACK blocks and timestamp of a packet to the server.
    /// `repeated` is a range received twice, for a D-SACK block.
    pub(super) fn set_acknowledgment_fields(
        &mut self,
        reference: PacketRef,
        repeated: Option<SackBlock>,
        context: &mut HybridContext,
    ) {
        let acknowledgment = self.acknowledgment();
        let window = self.window_field(context);
        let (wire, recent) = (self.wire(acknowledgment), self.timestamp_recent);
        let packets = &mut *context.cx.packets;
        let old = packets.sack_blocks(reference);
        let bare = packets.get(reference).payload_length == 0;
        let blocks: SackBlocks = if self.negotiated.sack && bare {
            let most = if self.negotiated.timestamps { 3 } else { 4 };
            let ahead = most - usize::from(repeated.is_some());
            let ahead = self.store.blocks(self.negotiated.initial, ahead);
            repeated.into_iter().chain(ahead).collect()
        } else {
            SackBlocks::default()
        };
        if old != blocks {
            packets.set_sack_blocks(reference, &blocks);
        }
        let packet = packets.get_mut(reference);
        // The host's own SACK blocks are about segments of the gateway, not of the server.
        packet.header_length = packet.header_length - sack_length(&old) + sack_length(&blocks);
        packet.acknowledgment = wire;
        packet.window = window;
        if let Some((value, _)) = packet.timestamps() {
            packet.set_timestamps(value, recent);
        }
        self.acknowledged_to_server = acknowledgment;
        self.acknowledge_at = Time::NEVER;
    }

    /// Sends the server an ACK on behalf of the host.
    pub(super) fn acknowledge(&mut self, context: &mut HybridContext) {
        self.acknowledge_with(None, context);
    }

    /// Acknowledges a duplicate segment with a D-SACK block (RFC 2883). RFC 8985 section 7: a
    /// server sends its last segment again (tail loss probe) if no ACK arrives within two round
    /// trips, and a delayed ACK of the gateway may take longer. Without the D-SACK block, the
    /// server would take this for a loss.
    pub(super) fn acknowledge_duplicate(&mut self, packet: &Packet, context: &mut HybridContext) {
        let repeated = SackBlock {
            start: packet.sequence,
            end: packet.sequence + packet.sequence_length(),
        };
        self.acknowledge_with(Some(repeated), context);
    }

    fn acknowledge_with(&mut self, repeated: Option<SackBlock>, context: &mut HybridContext) {
        let mut packet = Packet::new(self.host, self.server, self.version);
        packet.flags = Flags::ACK;
        packet.sequence = self.host_next;
        if self.negotiated.timestamps {
            packet.header_length += TIMESTAMPS_LENGTH;
            packet.set_timestamps(self.host_timestamp, 0);
        }
        let reference = context.cx.packets.insert(packet);
        if let Some(ip) = self.ip {
            context.cx.packets.set_ip(reference, ip);
        }
        self.set_acknowledgment_fields(reference, repeated, context);
        context.totals.acknowledgments += 1;
        context
            .cx
            .emit(context.totals.port(Side::Server), reference);
    }

    /// Sends a packet without data to the host, with the latest fields of the server.
    pub(super) fn to_host(&self, position: u64, flags: Flags, context: &mut HybridContext) {
        let mut packet = Packet::new(self.server, self.host, self.version);
        packet.flags = flags;
        packet.sequence = self.wire(position);
        packet.acknowledgment = self.server_acknowledgment;
        packet.window = self.server_window;
        if self.negotiated.timestamps {
            packet.header_length += TIMESTAMPS_LENGTH;
            packet.set_timestamps(self.server_timestamp.0, self.server_timestamp.1);
        }
        let ip = self.ip.map(|(host, server)| (server, host));
        context.totals.emit(packet, ip, Side::Host, context.cx);
    }

    /// Returns the sender state towards the host, and creates it if need be.
    pub(super) fn sender(&mut self, context: &HybridContext) -> &mut Sender {
        let (negotiated, acknowledged, window) =
            (&self.negotiated, self.acknowledged, self.host_window);
        let segment = self.segment();
        self.sender.get_or_insert_with(|| {
            let observed = Observed {
                initial: negotiated.initial,
                position: acknowledged,
                window,
                window_shift: negotiated.host_shift,
                segment,
                sack: negotiated.sack,
            };
            Box::new(Sender::observed(context.sender, &observed, context.cx.now))
        })
    }

    /// Returns the next position that was never sent.
    pub(super) fn unsent(&self) -> u64 {
        self.sender
            .as_ref()
            .map_or(self.acknowledged, |sender| sender.highest())
    }

    /// Returns the position up to which data may be sent: the host's window, and what is
    /// anticipated of it.
    pub(super) fn send_limit(&self, anticipation: Anticipation) -> u64 {
        match (self.host_window, anticipation) {
            (0, _) => self.acknowledged,
            (_, Anticipation::Unlimited) => u64::MAX,
            (window, Anticipation::Strict) => self.acknowledged + window,
            (window, Anticipation::Factor(factor)) => {
                self.acknowledged + (window as f64 * factor.max(1.0)) as u64
            }
        }
    }

    /// Updates the host's window. RFC 9293 section 3.10.7.4, step 5: not from a segment that is
    /// older than the one last used.
    pub(super) fn update_host_window(&mut self, packet: &Packet, advances: bool, now: Time) {
        // A sequence number beyond what the host has sent is not used either. A single forged
        // segment would otherwise fix the window for ever.
        let timely = self.host_window_sequence.at_or_before(packet.sequence)
            && packet.sequence.at_or_before(self.host_next);
        if !advances && !timely {
            return;
        }
        let before = self.host_window;
        self.host_window = u64::from(packet.window) << self.negotiated.host_shift;
        if timely {
            self.host_window_sequence = packet.sequence;
        }
        if before == 0 && self.host_window > 0 {
            // Data sent into the closed window was dropped.
            self.resend_positions =
                (self.unsent() > self.acknowledged).then(|| (self.acknowledged, self.unsent()));
            self.progress_at = now;
            self.probe_at = Time::NEVER;
            self.probe_wait = Span::ZERO;
        }
    }

    /// Resets both ends, because one of them does not answer any more.
    pub(super) fn give_up(&mut self, context: &mut HybridContext) {
        let mut packet = Packet::new(self.host, self.server, self.version);
        packet.flags = Flags::RST.with(Flags::ACK);
        packet.sequence = self.server_acknowledgment;
        packet.acknowledgment = self.wire(self.acknowledgment());
        context
            .totals
            .emit(packet, self.ip, Side::Server, context.cx);
        let reset = Flags::RST.with(Flags::ACK);
        self.reset_at_host_acknowledgment(reset, context);
        self.to_host(self.unsent(), reset, context);
        context.totals.given_up += 1;
        self.closed_by_reset = Some(true);
    }

    /// Sends a RST at the position that the host has acknowledged, before the RST at the end of all
    /// data sent.
    ///
    /// RFC 5961 section 3.2: a host accepts a RST only at exactly the next sequence number that it
    /// expects. That is the end of all data sent, unless some of it was lost or met a closed
    /// window. A RST ahead of it would need a challenge ACK, which Linux limits to one in half a
    /// second (tcp_invalid_ratelimit). A host that only receives would then never learn that the
    /// connection has ended. If more data has arrived there, this first RST is old and has no
    /// effect.
    pub(super) fn reset_at_host_acknowledgment(
        &mut self,
        reset: Flags,
        context: &mut HybridContext,
    ) {
        if self.acknowledged < self.unsent() {
            self.to_host(self.acknowledged, reset, context);
        }
    }

    /// Releases all stored segments.
    pub(super) fn clear(&mut self, context: &mut HybridContext) {
        let before = self.held();
        self.store.clear(context.cx.packets);
        self.sender = None;
        context.totals.record_held(before, self.held());
    }

    pub(super) fn on_deadline(&mut self, context: &mut HybridContext) {
        let now = context.cx.now;
        if self.acknowledge_at <= now {
            self.acknowledge(context);
        }
        if self.give_up_at(context.settings) <= now {
            self.give_up(context);
            return;
        }
        if self.probe_at <= now {
            self.probe(context);
        }
        self.sender_deadline(context);
        if self.sender_expires_at() <= now {
            self.sender = None;
        }
    }

    /// Time at which the sender's state is dropped, if nothing is sent until then.
    fn sender_expires_at(&self) -> Time {
        match &self.sender {
            Some(sender) if sender.is_idle() && self.store.is_empty() => {
                self.progress_at + SENDER_IDLE_LIFETIME
            }
            _ => Time::NEVER,
        }
    }

    /// Time at which the host is given up. A host with a closed window has to answer probes; any
    /// other has to acknowledge data.
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
            .min(self.sender_expires_at())
    }
}

impl Relay {
    /// Bytes of memory besides its own size.
    pub(super) fn allocated(&self) -> usize {
        let sender = self
            .sender
            .as_ref()
            .map_or(0, |sender| size_of::<Sender>() + sender.allocated());
        let narrow = self
            .path_mtu
            .as_ref()
            .map_or(0, |_| size_of::<HostPathMtu>());
        self.store.allocated() + sender + narrow
    }
}
