//! One connection as the gateway knows it: how it opens (section 4.3), what became of it.

use std::net::IpAddr;
use std::sync::Arc;

use bentpipe_types::{
    Ctx, Endpoint, Flags, FlowKey, IpVersion, Packet, PacketRef, Seq, Span, SynOptions, Time,
};

use super::relay::Relay;
use super::settings::Settings;
use super::totals::Totals;

/// RFC 7323 section 2.3: a larger shift is taken as this.
const MAXIMUM_SHIFT: u8 = 14;
/// RFC 9293 section 3.7.1: payload of a full segment, where nothing is said.
const DEFAULT_MSS: u16 = 536;
/// How long a handshake may take.
const OPENING: Span = Span::from_secs(180);

/// All that a connection of the gateway touches besides itself.
pub(super) struct Hall<'a, 'c> {
    pub(super) settings: &'a Settings,
    pub(super) sender: &'a Arc<bentpipe_tcp::Config>,
    pub(super) totals: &'a mut Totals,
    pub(super) cx: &'a mut Ctx<'c>,
}

/// Which end a packet came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    Host,
    Server,
}

impl Side {
    const fn other(self) -> Self {
        match self {
            Self::Host => Self::Server,
            Self::Server => Self::Host,
        }
    }
}

/// What an end's SYN said.
#[derive(Clone, Copy, Debug)]
pub(super) struct Syn {
    pub(super) initial: Seq,
    /// The window: never scaled (RFC 7323 section 2.2).
    pub(super) window: u16,
    pub(super) mss: Option<u16>,
    pub(super) shift: Option<u8>,
    pub(super) sack: bool,
    /// Its timestamp, and what it echoes.
    pub(super) timestamps: Option<(u32, u32)>,
}

/// One end, while the connection opens: the paper's SYN_RECEIVED and CONNECTION_ESTAB.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct End {
    pub(super) syn: Option<Syn>,
    pub(super) established: bool,
    /// After the last sequence number that it has sent.
    pub(super) next: Seq,
    /// What it has said that it has of the other's stream: the SYN, and text that came with it (RFC
    /// 7413). A position, 0 before it has said anything.
    pub(super) has: u32,
}

/// Where a connection stands.
#[derive(Debug)]
pub(super) enum Phase {
    /// Not both ends are established: everything passes.
    Opening,
    /// Both are: the gateway answers for the host.
    Open(Box<Relay>),
    /// Over: everything passes, except that to a host whose server has reset it, until it knows.
    Over { reset: bool, since: Time },
}

/// One connection.
#[derive(Debug)]
pub(super) struct Tracked {
    /// From the host to the server.
    pub(super) key: FlowKey,
    pub(super) host: Endpoint,
    pub(super) server: Endpoint,
    pub(super) ip: Option<(IpAddr, IpAddr)>,
    pub(super) version: IpVersion,
    pub(super) ends: [End; 2],
    pub(super) phase: Phase,
    pub(super) heard_at: Time,
    /// The shift that the server was told the host's windows have.
    told_shift: u8,
}

/// What becomes of a packet.
pub(super) enum Fate {
    /// It goes on, as it is now.
    Passes,
    /// It was taken in.
    Taken,
}

impl Tracked {
    /// The connection that `packet`, a SYN, may open.
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
            heard_at: cx.now,
            told_shift: 0,
        }
    }

    fn end(&self, side: Side) -> &End {
        &self.ends[side as usize]
    }

    /// The shift of the host's own windows, and the one that the server was told; 0 where either end
    /// does no scaling.
    pub(super) fn shifts(&self) -> (u8, u8) {
        match (self.end(Side::Host).syn, self.end(Side::Server).syn) {
            (
                Some(Syn {
                    shift: Some(host), ..
                }),
                Some(Syn { shift: Some(_), .. }),
            ) => (host, self.told_shift),
            _ => (0, 0),
        }
    }

    /// A packet of the connection.
    pub(super) fn on_packet(&mut self, side: Side, reference: PacketRef, hall: &mut Hall) -> Fate {
        self.heard_at = hall.cx.now;
        let packet = *hall.cx.packets.get(reference);
        if packet.flags.has(Flags::SYN) {
            return self.syn(side, reference, &packet, hall);
        }
        match &mut self.phase {
            Phase::Opening => self.opening(side, reference, &packet, hall),
            Phase::Open(_) => self.open(side, reference, &packet, hall),
            Phase::Over { reset, .. } => {
                if *reset && side == Side::Host && packet.flags.has(Flags::ACK) {
                    self.reset_again(reference, &packet, hall);
                    return Fate::Taken;
                }
                self.translate_window(side, reference, hall);
                Fate::Passes
            }
        }
    }

    fn open(&mut self, side: Side, reference: PacketRef, packet: &Packet, hall: &mut Hall) -> Fate {
        let Phase::Open(relay) = &mut self.phase else {
            return Fate::Passes;
        };
        let fate = match side {
            Side::Server => relay.take_from_server(reference, packet, hall),
            Side::Host => relay.take_from_host(reference, packet, hall),
        };
        if let Some(reset) = relay.ended() {
            relay.clear(hall);
            let since = hall.cx.now;
            self.phase = Phase::Over { reset, since };
            hall.totals.open -= 1;
        }
        fate
    }

    /// A SYN: it passes, with a window scale that lets the server be told of a larger window, and no larger segments
    /// than go on to the host.
    fn syn(&mut self, side: Side, reference: PacketRef, packet: &Packet, hall: &mut Hall) -> Fate {
        let mut options = hall.cx.packets.syn_options(reference);
        if side == Side::Host
            && let Some(mss) = &mut options.maximum_segment_size
        {
            *mss = hall.settings.mss(*mss, self.version);
        }
        let known = self.end(side).syn.map(|syn| syn.initial);
        if !matches!(self.phase, Phase::Open(_))
            && packet.flags.has(Flags::ACK)
            && self.acknowledged_by(side, packet).is_none()
        {
            // No end takes one that acknowledges another SYN than its own (RFC 9293 section 3.10.7.3).
            return Fate::Passes;
        }
        match self.phase {
            Phase::Open(ref mut relay) => {
                // What the host answers to it, to old SYNs and to forged ones, is for the server.
                relay.expect_answer();
                if known != Some(packet.sequence) {
                    return Fate::Passes;
                }
            }
            Phase::Over { .. } => {
                // A new connection in an old one's place.
                self.ends = [End::default(); 2];
                self.phase = Phase::Opening;
            }
            Phase::Opening if known.is_some_and(|initial| initial != packet.sequence) => {
                if self.end(side.other()).has > 0 {
                    // Its SYN has been answered. The other end challenges another one (RFC 5961 section
                    // 4.2), and if it was meant, a RST comes first.
                    return Fate::Passes;
                }
                self.ends[side as usize] = End::default();
                // What the other end has acknowledged was another SYN.
                let other = &mut self.ends[side.other() as usize];
                (other.established, other.has) = (false, 0);
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
            // (One that goes again may have less text with it.)
            if !again || packet.sequence_end().after(end.next) {
                end.next = packet.sequence_end();
            }
        }
        if side == Side::Host {
            self.rewrite_syn(reference, &mut options, hall);
        }
        if matches!(self.phase, Phase::Opening) {
            self.note_acknowledgment(side, packet);
        }
        Fate::Passes
    }

    fn rewrite_syn(&mut self, reference: PacketRef, options: &mut SynOptions, hall: &mut Hall) {
        if let Some(shift) = options.window_scale {
            let told = hall.settings.shift(shift.min(MAXIMUM_SHIFT));
            self.told_shift = told;
            options.window_scale = Some(told);
        }
        if *options != hall.cx.packets.syn_options(reference) {
            hall.cx.packets.set_syn_options(reference, *options);
        }
        // No more than the gateway will take.
        let window = hall.settings.window().min(u64::from(u16::MAX)) as u16;
        let packet = hall.cx.packets.get_mut(reference);
        packet.window = packet.window.min(window);
    }

    /// How much of the other end's stream this packet acknowledges, its SYN included; `None` if it
    /// acknowledges nothing that the other end has sent.
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
            end.has = end.has.max(has);
        }
    }

    /// Will the other end believe this RST, before both ends are known to be established? One that waits
    /// for an answer to its SYN believes who acknowledges that (RFC 9293 section 3.10.7.3), one that has
    /// the SYN a sequence number that it expects (RFC 5961 section 3.2). Others are answers to what went
    /// astray: the connection goes on.
    fn is_believed(&self, side: Side, reset: &Packet) -> bool {
        let Some(syn) = self.end(side).syn else {
            return self.acknowledged_by(side, reset).is_some();
        };
        let other = self.end(side.other());
        let expected = syn.initial + other.has.max(1);
        expected.at_or_before(reset.sequence) && reset.sequence.at_or_before(self.end(side).next)
            || !other.established && self.acknowledged_by(side, reset).is_some()
    }

    /// Before both ends are established.
    fn opening(
        &mut self,
        side: Side,
        reference: PacketRef,
        packet: &Packet,
        hall: &mut Hall,
    ) -> Fate {
        if packet.flags.has(Flags::RST) {
            self.translate_window(side, reference, hall);
            if !self.is_believed(side, packet) {
                return Fate::Passes;
            }
            let since = hall.cx.now;
            self.phase = Phase::Over {
                reset: false,
                since,
            };
            return Fate::Passes;
        }
        self.note_acknowledgment(side, packet);
        let [host, server] = self.ends;
        if let (Some(host_syn), Some(server_syn)) = (host.syn, server.syn)
            && host.established
            && server.established
        {
            let agreed = self.agree(&host_syn, &server_syn, hall.settings);
            // What of the server's stream the host has said it has. What passed before and is lost,
            // the server will send again.
            let mut relay = Relay::new(self, &agreed, u64::from(host.has), hall);
            if side == Side::Host {
                // The last step of the handshake says nothing new, and a server that speaks first waits for it.
                relay.expect_answer();
            }
            self.phase = Phase::Open(Box::new(relay));
            hall.totals.open += 1;
            hall.totals.tracked += 1;
            return self.open(side, reference, packet, hall);
        }
        let end = &mut self.ends[side as usize];
        if packet.sequence_end().after(end.next) {
            end.next = packet.sequence_end();
        }
        self.translate_window(side, reference, hall);
        Fate::Passes
    }

    fn agree(&self, host: &Syn, server: &Syn, settings: &Settings) -> Agreed {
        let (host_shift, told_shift) = self.shifts();
        let timestamps = host.timestamps.is_some() && server.timestamps.is_some();
        let options = if timestamps { 12 } else { 0 };
        let mss = |syn: &Syn| syn.mss.unwrap_or(DEFAULT_MSS);
        let segment = mss(host).min(mss(server)).saturating_sub(options).max(1);
        Agreed {
            initial: server.initial,
            host_shift,
            told_shift,
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

    /// The window of a packet that passes, in the unit that the server was told.
    fn translate_window(&self, side: Side, reference: PacketRef, hall: &mut Hall) {
        let (host, told) = self.shifts();
        if side == Side::Host && host != told {
            let packet = hall.cx.packets.get_mut(reference);
            let window = (u32::from(packet.window) << host) >> told;
            packet.window = window.min(u32::from(u16::MAX)) as u16;
        }
    }

    /// The server has reset the connection, and the host doesn't know.
    fn reset_again(&self, reference: PacketRef, packet: &Packet, hall: &mut Hall) {
        hall.cx.packets.release(reference);
        if packet.flags.has(Flags::RST) {
            return;
        }
        let mut reset = Packet::new(self.server, self.host, self.version);
        reset.sequence = packet.acknowledgment;
        reset.flags = Flags::RST;
        let ip = self.ip.map(|(host, server)| (server, host));
        hall.totals.emit(reset, ip, Side::Host, hall.cx);
    }

    /// A deadline may have come.
    pub(super) fn on_deadline(&mut self, hall: &mut Hall) {
        let Phase::Open(relay) = &mut self.phase else {
            return;
        };
        relay.on_deadline(hall);
        if let Some(reset) = relay.ended() {
            relay.clear(hall);
            let since = hall.cx.now;
            self.phase = Phase::Over { reset, since };
            hall.totals.open -= 1;
        }
    }

    /// When somebody has to look at it.
    pub(super) fn next_deadline(&self, settings: &Settings) -> Time {
        let forgotten = self.forgotten_at(settings);
        match &self.phase {
            Phase::Open(relay) => relay.next_deadline(settings).min(forgotten),
            _ => forgotten,
        }
    }

    /// When it is forgotten, if nothing is heard of it until then.
    pub(super) fn forgotten_at(&self, settings: &Settings) -> Time {
        match &self.phase {
            Phase::Opening => self.heard_at + OPENING,
            Phase::Open(_) => self.heard_at + settings.idle,
            Phase::Over { since, .. } => self.heard_at.max(*since) + settings.linger,
        }
    }

    /// It is forgotten. Where the server was told of another window scale, the rest would be
    /// misunderstood: both ends are told that it is over.
    pub(super) fn forget(&mut self, hall: &mut Hall) {
        let (host, told) = self.shifts();
        if let Phase::Open(relay) = &mut self.phase {
            if host != told || !relay.is_settled() {
                relay.give_up(hall);
            }
            relay.clear(hall);
            hall.totals.open -= 1;
        }
        self.phase = Phase::Over {
            reset: false,
            since: hall.cx.now,
        };
    }
}

/// What both SYNs have said together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Agreed {
    /// The server's ISS.
    pub(super) initial: Seq,
    pub(super) host_shift: u8,
    pub(super) told_shift: u8,
    /// Of the server's own windows.
    pub(super) server_shift: u8,
    pub(super) timestamps: bool,
    pub(super) sack: bool,
    pub(super) segment: u32,
    /// The most that the server is offered.
    pub(super) window: u64,
}
