//! A tracked connection: how it opens (gaid1998 section 4.3) and closes.

use std::net::IpAddr;

use bentpipe_types::{
    Ctx, Endpoint, Flags, FlowKey, IpVersion, Packet, PacketRef, Span, SynOptions, Time,
};

use super::context::HybridContext;
use super::handshake::{End, NegotiatedOptions, OpenedConnection, Syn};
use super::relay::Relay;
use super::settings::Settings;
use super::side::Side;

/// RFC 7323 section 2.3: a larger shift is taken as this.
const MAXIMUM_SHIFT: u8 = 14;
/// RFC 9293 section 3.7.1: the MSS if the peer announces none.
const DEFAULT_MSS: u16 = 536;
/// Limit of the duration of a handshake.
const HANDSHAKE_LIMIT: Span = Span::from_secs(180);

/// Phase of a connection.
#[derive(Debug)]
pub(super) enum Phase {
    /// At least one end is not established: everything is forwarded.
    Opening,
    /// Both ends are established: the gateway acknowledges for the host.
    Open(Box<Relay>),
    /// Everything is forwarded, with one exception. After a RST from the server, ACKs of the host
    /// are answered with a RST, as the first one may be lost.
    Closed { reset: bool, since: Time },
}

/// A tracked connection.
#[derive(Debug)]
pub(super) struct TrackedConnection {
    /// Key of packets from the host to the server.
    pub(super) key: FlowKey,
    pub(super) host: Endpoint,
    pub(super) server: Endpoint,
    pub(super) ip: Option<(IpAddr, IpAddr)>,
    pub(super) version: IpVersion,
    pub(super) ends: [End; 2],
    pub(super) phase: Phase,
    pub(super) last_packet_at: Time,
    /// Window scale announced to the server for the host's windows.
    announced_shift: u8,
}

/// Outcome of processing a packet.
pub(super) enum Verdict {
    /// It is forwarded, as it is now.
    Forward,
    /// The gateway keeps or drops it.
    Consume,
}

impl TrackedConnection {
    /// Starts to track the connection that a SYN opens.
    pub(super) fn new(key: FlowKey, side: Side, reference: PacketRef, cx: &Ctx<'_>) -> Self {
        let packet = cx.packets.get(reference);
        let ip = cx.packets.ip(reference);
        let (host, server, ip) = match side {
            Side::Host => (packet.source, packet.destination, ip),
            Side::Server => (
                packet.destination,
                packet.source,
                ip.map(|(source, destination)| (destination, source)),
            ),
        };
        Self {
            key,
            host,
            server,
            ip,
            version: packet.ip_version(),
            ends: [End::default(); 2],
            phase: Phase::Opening,
            last_packet_at: cx.now,
            announced_shift: 0,
        }
    }

    fn end(&self, side: Side) -> &End {
        &self.ends[side as usize]
    }

    /// Returns the shift of the host's own windows, and the shift announced to the server. Both are
    /// 0 if an end does not scale windows.
    pub(super) fn shifts(&self) -> (u8, u8) {
        match (self.end(Side::Host).syn, self.end(Side::Server).syn) {
            (
                Some(Syn {
                    shift: Some(host), ..
                }),
                Some(Syn { shift: Some(_), .. }),
            ) => (host, self.announced_shift),
            _ => (0, 0),
        }
    }

    /// Processes a packet of the connection.
    pub(super) fn on_packet(
        &mut self,
        side: Side,
        reference: PacketRef,
        context: &mut HybridContext,
    ) -> Verdict {
        self.last_packet_at = context.cx.now;
        let packet = *context.cx.packets.get(reference);
        if packet.flags.has(Flags::SYN) {
            return self.on_syn(side, reference, &packet, context);
        }
        match &mut self.phase {
            Phase::Opening => self.on_packet_while_opening(side, reference, &packet, context),
            Phase::Open(_) => self.on_packet_while_open(side, reference, &packet, context),
            Phase::Closed { reset, .. } => {
                if *reset && side == Side::Host && packet.flags.has(Flags::ACK) {
                    self.reset_again(reference, &packet, context);
                    return Verdict::Consume;
                }
                self.rescale_window(side, reference, context);
                Verdict::Forward
            }
        }
    }

    fn on_packet_while_open(
        &mut self,
        side: Side,
        reference: PacketRef,
        packet: &Packet,
        context: &mut HybridContext,
    ) -> Verdict {
        let Phase::Open(relay) = &mut self.phase else {
            return Verdict::Forward;
        };
        let verdict = match side {
            Side::Server => relay.on_server_packet(reference, packet, context),
            Side::Host => relay.on_host_packet(reference, packet, context),
        };
        if let Some(reset) = relay.ended() {
            relay.clear(context);
            let since = context.cx.now;
            self.phase = Phase::Closed { reset, since };
            context.totals.open -= 1;
        }
        verdict
    }

    /// Processes a SYN, which is forwarded. In the host's SYN, the window scale is raised so that
    /// larger windows can be announced, and the MSS is reduced to what the path to the host takes.
    fn on_syn(
        &mut self,
        side: Side,
        reference: PacketRef,
        packet: &Packet,
        context: &mut HybridContext,
    ) -> Verdict {
        let mut options = context.cx.packets.syn_options(reference);
        if side == Side::Host
            && let Some(mss) = &mut options.maximum_segment_size
        {
            *mss = context.settings.mss(*mss, self.version);
        }
        let known = self.end(side).syn.map(|syn| syn.initial);
        if !matches!(self.phase, Phase::Open(_))
            && packet.flags.has(Flags::ACK)
            && self.acknowledged_by(side, packet).is_none()
        {
            // RFC 9293 section 3.10.7.3: a SYN that acknowledges anything but the receiver's SYN is
            // not acceptable.
            return Verdict::Forward;
        }
        match self.phase {
            Phase::Open(ref mut relay) => {
                // The host answers old and forged SYNs as well. Its answer is for the server.
                relay.expect_answer();
                if known != Some(packet.sequence) {
                    return Verdict::Forward;
                }
            }
            Phase::Closed { .. } => {
                // A new connection between the same endpoints.
                self.ends = [End::default(); 2];
                self.phase = Phase::Opening;
            }
            Phase::Opening if known.is_some_and(|initial| initial != packet.sequence) => {
                if self.end(side.other()).acknowledged > 0 {
                    // This end's first SYN has been acknowledged. RFC 5961 section 4.2: the other
                    // end answers a different SYN with a challenge ACK. If the SYN is genuine, a
                    // RST precedes its retransmission.
                    return Verdict::Forward;
                }
                self.ends[side as usize] = End::default();
                // The other end's acknowledgment was of the earlier SYN.
                let other = &mut self.ends[side.other() as usize];
                (other.established, other.acknowledged) = (false, 0);
            }
            Phase::Opening => {}
        }
        if matches!(self.phase, Phase::Opening) {
            let again = self.end(side).syn.is_some();
            self.ends[side as usize].syn = Some(Syn {
                initial: packet.sequence,
                window: packet.window,
                mss: options.maximum_segment_size,
                shift: options.window_scale.map(|shift| shift.min(MAXIMUM_SHIFT)),
                sack: options.sack_permitted,
                timestamps: packet.timestamps(),
            });
            let end = &mut self.ends[side as usize];
            // A retransmitted SYN may carry less data.
            if !again || packet.sequence_end().after(end.next) {
                end.next = packet.sequence_end();
            }
        }
        if side == Side::Host {
            self.rewrite_syn(reference, &mut options, context);
        }
        if matches!(self.phase, Phase::Opening) {
            self.note_acknowledgment(side, packet);
        }
        Verdict::Forward
    }

    fn rewrite_syn(
        &mut self,
        reference: PacketRef,
        options: &mut SynOptions,
        context: &mut HybridContext,
    ) {
        if let Some(shift) = options.window_scale {
            let announced = context.settings.shift(shift.min(MAXIMUM_SHIFT));
            self.announced_shift = announced;
            options.window_scale = Some(announced);
        }
        if *options != context.cx.packets.syn_options(reference) {
            context.cx.packets.set_syn_options(reference, *options);
        }
        // The window is at most the gateway's own.
        let window = context.settings.window().min(u64::from(u16::MAX)) as u16;
        let packet = context.cx.packets.get_mut(reference);
        packet.window = packet.window.min(window);
    }

    /// Returns the position up to which this packet acknowledges the other end's stream, SYN
    /// included; `None` if it acknowledges nothing that was sent.
    fn acknowledged_by(&self, side: Side, packet: &Packet) -> Option<u32> {
        let other = self.end(side.other());
        let first = other.syn.filter(|_| packet.flags.has(Flags::ACK))?.initial + 1;
        let after = packet.acknowledgment.distance_from(first);
        let sent = other.next.distance_from(first);
        (0..=sent).contains(&after).then(|| after as u32 + 1)
    }

    fn note_acknowledgment(&mut self, side: Side, packet: &Packet) {
        if let Some(has) = self.acknowledged_by(side, packet) {
            let end = &mut self.ends[side as usize];
            end.established = true;
            end.acknowledged = end.acknowledged.max(has);
        }
    }

    /// Returns true if the other end will accept this RST, while the connection opens.
    ///
    /// RFC 9293 section 3.10.7.3: in SYN-SENT, a RST is acceptable if it acknowledges the SYN.
    /// RFC 5961 section 3.2: later, its sequence number must be the next one expected. Other RSTs
    /// are answers to stray segments, and the connection goes on.
    fn is_reset_acceptable(&self, side: Side, reset: &Packet) -> bool {
        let Some(syn) = self.end(side).syn else {
            return self.acknowledged_by(side, reset).is_some();
        };
        let other = self.end(side.other());
        let expected = syn.initial + other.acknowledged.max(1);
        expected.at_or_before(reset.sequence) && reset.sequence.at_or_before(self.end(side).next)
            || !other.established && self.acknowledged_by(side, reset).is_some()
    }

    /// Processes a packet other than a SYN while the connection opens.
    fn on_packet_while_opening(
        &mut self,
        side: Side,
        reference: PacketRef,
        packet: &Packet,
        context: &mut HybridContext,
    ) -> Verdict {
        if packet.flags.has(Flags::RST) {
            self.rescale_window(side, reference, context);
            if !self.is_reset_acceptable(side, packet) {
                return Verdict::Forward;
            }
            let since = context.cx.now;
            self.phase = Phase::Closed {
                reset: false,
                since,
            };
            return Verdict::Forward;
        }
        self.note_acknowledgment(side, packet);
        let [host, server] = self.ends;
        if let (Some(host_syn), Some(server_syn)) = (host.syn, server.syn)
            && host.established
            && server.established
        {
            let negotiated = self.negotiate(&host_syn, &server_syn, context.settings);
            // The relay starts at the position that the host has acknowledged. The server
            // retransmits whatever was forwarded before and was lost.
            let opened = OpenedConnection {
                host: self.host,
                server: self.server,
                ip: self.ip,
                version: self.version,
                ends: self.ends,
                negotiated,
            };
            let mut relay = Relay::new(&opened, u64::from(host.acknowledged), context);
            if side == Side::Host {
                // The last ACK of the handshake acknowledges nothing new, but a server that sends
                // first waits for it.
                relay.expect_answer();
            }
            self.phase = Phase::Open(Box::new(relay));
            context.totals.open += 1;
            context.totals.tracked += 1;
            return self.on_packet_while_open(side, reference, packet, context);
        }
        let end = &mut self.ends[side as usize];
        if packet.sequence_end().after(end.next) {
            end.next = packet.sequence_end();
        }
        self.rescale_window(side, reference, context);
        Verdict::Forward
    }

    fn negotiate(&self, host: &Syn, server: &Syn, settings: &Settings) -> NegotiatedOptions {
        let (host_shift, announced_shift) = self.shifts();
        let timestamps = host.timestamps.is_some() && server.timestamps.is_some();
        let options = if timestamps { 12 } else { 0 };
        let mss = |syn: &Syn| syn.mss.unwrap_or(DEFAULT_MSS);
        let segment = mss(host).min(mss(server)).saturating_sub(options).max(1);
        NegotiatedOptions {
            initial: server.initial,
            host_shift,
            announced_shift,
            server_shift: match (host.shift, server.shift) {
                (Some(_), Some(shift)) => shift,
                _ => 0,
            },
            timestamps,
            sack: host.sack && server.sack,
            segment: u32::from(segment),
            window: settings.window(),
        }
    }

    /// Converts the window of a forwarded packet to the unit announced to the server.
    fn rescale_window(&self, side: Side, reference: PacketRef, context: &mut HybridContext) {
        let (host, announced) = self.shifts();
        if side == Side::Host && host != announced {
            let packet = context.cx.packets.get_mut(reference);
            let window = (u32::from(packet.window) << host) >> announced;
            packet.window = window.min(u32::from(u16::MAX)) as u16;
        }
    }

    /// Resets a host that has not received the server's RST.
    fn reset_again(&self, reference: PacketRef, packet: &Packet, context: &mut HybridContext) {
        context.cx.packets.release(reference);
        if packet.flags.has(Flags::RST) {
            return;
        }
        let mut reset = Packet::new(self.server, self.host, self.version);
        reset.sequence = packet.acknowledgment;
        reset.flags = Flags::RST;
        let ip = self.ip.map(|(host, server)| (server, host));
        context.totals.emit(reset, ip, Side::Host, context.cx);
    }

    /// Runs the timers that have expired.
    pub(super) fn on_deadline(&mut self, context: &mut HybridContext) {
        let Phase::Open(relay) = &mut self.phase else {
            return;
        };
        relay.on_deadline(context);
        if let Some(reset) = relay.ended() {
            relay.clear(context);
            let since = context.cx.now;
            self.phase = Phase::Closed { reset, since };
            context.totals.open -= 1;
        }
    }

    /// Time of the next timer.
    pub(super) fn next_deadline(&self, settings: &Settings) -> Time {
        let forgotten = self.expires_at(settings);
        match &self.phase {
            Phase::Open(relay) => relay.next_deadline(settings).min(forgotten),
            _ => forgotten,
        }
    }

    /// Time at which the connection is removed, if no packet arrives until then.
    pub(super) fn expires_at(&self, settings: &Settings) -> Time {
        match &self.phase {
            Phase::Opening => self.last_packet_at + HANDSHAKE_LIMIT,
            Phase::Open(_) => self.last_packet_at + settings.idle,
            Phase::Closed { since, .. } => self.last_packet_at.max(*since) + settings.linger,
        }
    }

    /// Removes the connection. If data is held, or the server was announced another window scale
    /// than the host's, it cannot go on without the gateway, and both ends are reset.
    pub(super) fn close(&mut self, context: &mut HybridContext) {
        let (host, announced) = self.shifts();
        if let Phase::Open(relay) = &mut self.phase {
            if host != announced || !relay.holds_nothing() {
                relay.give_up(context);
            }
            relay.clear(context);
            context.totals.open -= 1;
        }
        self.phase = Phase::Closed {
            reset: false,
            since: context.cx.now,
        };
    }
}
