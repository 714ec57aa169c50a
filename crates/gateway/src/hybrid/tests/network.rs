//! A test network: host, gateway and server, with a path on each side.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use bentpipe_tcp::{
    ActiveFastOpen, Config, CongestionControlKind, Connection, Events, Opening, PassiveFastOpen,
    RecoveryKind, State, reset_reply,
};
use bentpipe_types::{
    Address, Agent, Ctx, Endpoint, Flags, IcmpError, Packet, PacketRef, Port, RandomStream, Routes,
    Seq, Span, Time, World,
};

use super::super::{Hybrid, Recovery, Settings};

/// Index of the hybrid host.
pub(super) const HOST: usize = 0;
/// Index of the server.
pub(super) const SERVER: usize = 1;
/// Port that faces the host.
pub(super) const FACING: Port = Port(0);

pub(super) fn endpoint(side: usize) -> Endpoint {
    Endpoint {
        address: Address(side as u16 + 1),
        port: [40_000, 80][side],
    }
}

/// Returns TCP's loss recovery for a gateway. Without a congestion control there is no congestion
/// window.
pub(super) fn tcp(recovery: RecoveryKind, rule: Option<CongestionControlKind>) -> Recovery {
    Recovery::Tcp {
        congestion_window: rule.is_some(),
        config: Box::new(Config {
            recovery,
            congestion_control: rule.unwrap_or_default(),
            ..Config::default()
        }),
    }
}

/// Effect of a path on packets. Probabilities are per packet.
#[derive(Clone, Debug)]
pub(super) struct Path {
    pub(super) delay: Span,
    /// Additional delay up to this, drawn for each packet, which reorders them.
    pub(super) jitter: Span,
    pub(super) loss: f64,
    pub(super) duplication: f64,
    /// Probability of an additional copy with a header field changed at random.
    pub(super) corruption: f64,
}

impl Path {
    pub(super) fn of(milliseconds: u64) -> Self {
        Self {
            delay: Span::from_millis(milliseconds),
            jitter: Span::ZERO,
            loss: 0.0,
            duplication: 0.0,
            corruption: 0.0,
        }
    }
}

/// How the host misbehaves, while the paths are hostile.
#[derive(Clone, Debug, Default)]
pub(super) struct Misbehaviour {
    /// One in this many segments has a smaller window, or a zero window.
    pub(super) shrinks: f64,
    /// It acknowledges data that it does not have, or that was never sent.
    pub(super) lies: f64,
    /// Time from which on it is gone.
    pub(super) vanishes: Option<Time>,
    /// Bytes that it reads at a time, and how often, if it does not read at once.
    pub(super) reads: Option<(u64, Span)>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Arrival {
    order: Reverse<(Time, u64)>,
    // `HOST`, `SERVER` or the gateway.
    to: usize,
    packet: u32,
}

pub(super) const GATEWAY: usize = 2;

/// A segment, for the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) at: Time,
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) packet: Packet,
    /// The host's window as the gateway knew it.
    pub(super) host_window: Option<u64>,
}

pub(super) type Filter = Box<dyn FnMut(usize, usize, &Packet) -> bool>;

pub(super) struct Net {
    pub(super) world: World,
    pub(super) gateway: Hybrid,
    pub(super) ends: [Option<Connection>; 2],
    pub(super) configs: [Config; 2],
    pub(super) initial: [Seq; 2],
    /// The paths between host and gateway, and between gateway and server.
    pub(super) paths: [Path; 2],
    /// Longest packet, in bytes, that a router behind the gateway forwards towards the host. It
    /// reports longer ones, unless it is `silent`.
    pub(super) mtu: Option<u32>,
    pub(super) silent: bool,
    pub(super) misbehaviour: Misbehaviour,
    /// Time from which on everything is clean.
    pub(super) until: Time,
    pub(super) events: [Events; 2],
    /// Bytes that each end has yet to write, and whether it closes then.
    pub(super) to_write: [u64; 2],
    pub(super) closes: [bool; 2],
    closed: [bool; 2],
    /// Whether the FIN was acknowledged, and with it everything before.
    drained: [bool; 2],
    next_read: Time,
    arrivals: BinaryHeap<Arrival>,
    slots: Vec<Option<PacketRef>>,
    sent: u64,
    pub(super) log: Option<Vec<Seen>>,
    /// Filter of the packets that arrive: (from, to, packet).
    pub(super) filter: Filter,
    pub(super) bound: u64,
    /// Data that the opening end puts on its SYN, and how the other end handles it.
    pub(super) fast_open: Option<(ActiveFastOpen, PassiveFastOpen)>,
}

impl Net {
    pub(super) fn new(settings: Settings, host: &Config, server: &Config, seed: u64) -> Self {
        let mut world = World::new(RandomStream::new(seed, "network", "hostility"));
        let initial = [
            Seq::new(world.random.bits() as u32 | 0xffff_f000),
            Seq::new(world.random.bits() as u32 | 0xffff_0000),
        ];
        let bound = settings.store();
        let mut gateway = Hybrid::new(Settings {
            facing: vec![FACING],
            ..settings
        });
        let mut routes = Routes::new(Address(0), 2, 3);
        routes.add(endpoint(HOST).address, FACING);
        routes.add(endpoint(SERVER).address, Port(1));
        gateway.routes(routes);
        Self {
            world,
            gateway,
            ends: [None, None],
            configs: [host.clone(), server.clone()],
            initial,
            paths: [Path::of(250), Path::of(20)],
            mtu: None,
            silent: false,
            misbehaviour: Misbehaviour::default(),
            until: Time::LAST,
            events: [Events::NONE; 2],
            to_write: [0; 2],
            closes: [true; 2],
            closed: [false; 2],
            drained: [false; 2],
            next_read: Time::ZERO,
            arrivals: BinaryHeap::new(),
            slots: Vec::new(),
            sent: 0,
            log: None,
            filter: Box::new(|_, _, _| true),
            bound,
            fast_open: None,
        }
    }

    /// Opens the connection from this end.
    pub(super) fn connect(&mut self, side: usize) {
        let config = self.configs[side].clone().into();
        let opening = self.opening(side, &config);
        let mut fast = self
            .fast_open
            .map_or_else(ActiveFastOpen::default, |(asks, _)| asks);
        fast.bytes = fast.bytes.min(self.to_write[side]);
        let (mut connection, taken) =
            Connection::connect_fast(&opening, fast, &mut self.world.cx());
        self.to_write[side] -= taken;
        connection.set_sink(self.sinks(side));
        self.ends[side] = Some(connection);
        self.after(side);
    }

    fn opening<'c>(&self, side: usize, config: &'c Arc<Config>) -> Opening<'c> {
        Opening {
            config,
            local: endpoint(side),
            remote: endpoint(1 - side),
            egress: Port(0),
            initial_sequence: self.initial[side],
        }
    }

    fn sinks(&self, side: usize) -> bool {
        side != HOST || self.misbehaviour.reads.is_none()
    }

    pub(super) fn end(&self, side: usize) -> &Connection {
        self.ends[side].as_ref().expect("opened")
    }

    pub(super) fn with<R>(
        &mut self,
        side: usize,
        action: impl FnOnce(&mut Connection, &mut Ctx<'_>) -> R,
    ) -> R {
        let mut connection = self.ends[side].take().expect("opened");
        let result = action(&mut connection, &mut self.world.cx());
        self.ends[side] = Some(connection);
        self.after(side);
        result
    }

    fn after(&mut self, side: usize) {
        if let Some(connection) = &mut self.ends[side] {
            let events = connection.take_events();
            self.events[side] |= events;
            self.drained[side] |= self.closed[side] && events.has(Events::DRAINED);
        }
        let outbox = std::mem::take(&mut self.world.outbox);
        for &(_, packet) in &outbox {
            if side == HOST {
                self.misbehave(packet);
            }
            self.send(side, GATEWAY, packet);
        }
        self.world.outbox = outbox;
        self.world.outbox.clear();
    }

    fn misbehave(&mut self, packet: PacketRef) {
        let (shrinks, lies) = (self.misbehaviour.shrinks, self.misbehaviour.lies);
        if self.world.now >= self.until {
            return;
        }
        let random = &mut self.world.random;
        let bits = random.bits();
        let record = self.world.packets.get_mut(packet);
        if record.flags.has(Flags::SYN.with(Flags::RST)) {
            return;
        }
        if shrinks > 0.0 && random.happens(shrinks) {
            record.window = if bits & 3 == 0 {
                0
            } else {
                record.window.saturating_sub(bits as u16)
            };
        }
        if lies > 0.0 && random.happens(lies) {
            record.acknowledgment += (bits >> 32) as u32 % 20_000;
        }
    }

    fn gateway_has_run(&mut self) {
        let outbox = std::mem::take(&mut self.world.outbox);
        for &(port, packet) in &outbox {
            let to = if port == FACING { HOST } else { SERVER };
            self.send(GATEWAY, to, packet);
        }
        self.world.outbox = outbox;
        self.world.outbox.clear();
        let totals = &self.gateway.totals;
        assert!(
            totals.connection_maximum <= self.bound + 1,
            "{} held of one connection",
            totals.connection_maximum
        );
        let held = self.gateway.holdings();
        let under_way = self.arrivals.len() as u64;
        assert_eq!(self.world.packets.held() as u64, held.packets + under_way);
    }

    fn send(&mut self, from: usize, to: usize, packet: PacketRef) {
        let record = *self.world.packets.get(packet);
        if let Some(log) = &mut self.log {
            log.push(Seen {
                at: self.world.now,
                from,
                to,
                packet: record,
                host_window: self.gateway.relay().map(|relay| relay.host_window),
            });
        }
        if let Some(mtu) = self.mtu.filter(|_| to == HOST)
            && record.length().get() > u64::from(mtu)
        {
            self.world.packets.release(packet);
            if self.silent {
                return;
            }
            let router = Address(9);
            if let Some(word) = Packet::icmp_error(router, &record, IcmpError::TooBig { mtu }) {
                let word = self.world.packets.insert(word);
                self.send(HOST, GATEWAY, word);
            }
            return;
        }
        let side = if from == HOST || to == HOST {
            HOST
        } else {
            SERVER
        };
        let path = self.paths[side].clone();
        let hostile = self.world.now < self.until;
        let gone = from == HOST && self.is_gone();
        let lost = gone
            || hostile && self.world.random.happens(path.loss)
            || !(self.filter)(from, to, &record);
        if hostile
            && record.is_tcp()
            && path.corruption > 0.0
            && self.world.random.happens(path.corruption)
        {
            let copy = self.world.packets.duplicate(packet);
            self.corrupt(copy);
            self.enqueue(to, copy, &path);
        }
        if hostile && path.duplication > 0.0 && self.world.random.happens(path.duplication) {
            let copy = self.world.packets.duplicate(packet);
            self.enqueue(to, copy, &path);
        }
        if lost {
            self.world.packets.release(packet);
        } else {
            self.enqueue(to, packet, &path);
        }
    }

    fn is_gone(&self) -> bool {
        let vanishes = self.misbehaviour.vanishes;
        vanishes.is_some_and(|at| self.world.now >= at)
    }

    fn enqueue(&mut self, to: usize, packet: PacketRef, path: &Path) {
        let jitter = if self.world.now < self.until {
            (path.jitter.as_nanos() as f64 * self.world.random.uniform()) as u64
        } else {
            0
        };
        let at = self.world.now + path.delay + Span::from_nanos(jitter);
        let slot = match self.slots.iter().position(Option::is_none) {
            Some(slot) if slot < 64 => slot,
            _ => {
                self.slots.push(None);
                self.slots.len() - 1
            }
        };
        self.slots[slot] = Some(packet);
        self.sent += 1;
        self.arrivals.push(Arrival {
            order: Reverse((at, self.sent)),
            to,
            packet: slot as u32,
        });
    }

    /// Changes a header field such that it stays harmless. Payload and sequence number still match,
    /// nothing is acknowledged falsely, and no end is told falsely that the connection is over.
    /// (`lies` does those.)
    fn corrupt(&mut self, packet: PacketRef) {
        let random = &mut self.world.random;
        let choice = random.bits() % 4;
        let bits = random.bits();
        let near = (bits >> 32) as u32 % 8000;
        let record = self.world.packets.get_mut(packet);
        // The acknowledgment number of a RST may mean nothing; with other flags it would be false.
        if record.flags.has(Flags::SYN) || record.flags.has(Flags::RST) {
            return;
        }
        record.flags = Flags(record.flags.0 & !(Flags::FIN.0 | Flags::RST.0));
        match choice {
            0 => {
                // Not ahead within the window: the window of such a segment would be the latest for
                // ever, for any TCP (RFC 9293 section 3.10.7.4, step 5).
                let by = if bits & 1 == 0 { 1 << 31 } else { near };
                record.payload_length = 0;
                record.sequence = record.sequence - by - 1;
            }
            // The gateway forwards the change, and both paths may make one: both together are not
            // false either.
            1 => record.acknowledgment = record.acknowledgment + (1 << 30) + near,
            2 => record.window = bits as u16,
            _ => {
                record.flags = Flags(bits as u8 & !(Flags::RST.0 | Flags::FIN.0));
                record.payload_length = 0;
            }
        }
    }

    /// Runs the applications.
    fn apply(&mut self) {
        for side in [HOST, SERVER] {
            let Some(connection) = &self.ends[side] else {
                continue;
            };
            if side == HOST && self.is_gone() {
                continue;
            }
            let established = !matches!(
                connection.state(),
                State::SynSent | State::SynReceived | State::Closed
            );
            if !established {
                continue;
            }
            if self.to_write[side] > 0 && connection.writable() > 0 {
                let bytes = self.to_write[side];
                let written = self.with(side, |tcp, cx| tcp.write(bytes, cx));
                self.to_write[side] -= written;
            }
            if self.to_write[side] == 0 && self.closes[side] && !self.closed[side] {
                self.closed[side] = true;
                self.with(side, |tcp, cx| tcp.close(cx));
            }
        }
    }

    /// Processes the next event, if it is before `end`.
    pub(super) fn step(&mut self, end: Time) -> bool {
        self.apply();
        let arrival = self.arrivals.peek().map(|arrival| arrival.order.0.0);
        let deadline = |side: usize| {
            let gone = side == HOST && self.is_gone();
            (self.ends[side].as_ref())
                .filter(|_| !gone)
                .and_then(Connection::next_deadline)
        };
        let deadlines = [deadline(HOST), deadline(SERVER)];
        let gateway = self.gateway.next_deadline();
        let reads = self.misbehaviour.reads.filter(|_| {
            !self.is_gone()
                && self.ends[HOST]
                    .as_ref()
                    .is_some_and(|tcp| tcp.readable() > 0)
        });
        let read = reads.map(|_| self.next_read.max(self.world.now));
        let Some(next) = [arrival, deadlines[0], deadlines[1], gateway, read]
            .into_iter()
            .flatten()
            .min()
            .filter(|next| *next <= end)
        else {
            return false;
        };
        self.world.now = self.world.now.max(next);
        if arrival == Some(next) {
            let arrival = self.arrivals.pop().expect("peeked");
            let packet = self.slots[arrival.packet as usize].take().expect("there");
            self.arrives(arrival.to, packet);
        } else if gateway == Some(next) {
            self.gateway.on_deadline(&mut self.world.cx());
            self.gateway_has_run();
        } else if let Some((bytes, every)) = reads.filter(|_| read == Some(next)) {
            self.next_read = next + every;
            self.with(HOST, |tcp, cx| tcp.read(bytes, cx));
        } else {
            for (side, deadline) in deadlines.into_iter().enumerate() {
                if deadline == Some(next) {
                    self.with(side, |tcp, cx| tcp.on_deadline(cx));
                }
            }
        }
        true
    }

    /// Shuts the gateway down.
    pub(super) fn retire(&mut self) {
        self.gateway.retire(&mut self.world.cx());
        self.gateway_has_run();
    }

    /// A packet that neither end has sent arrives at the gateway.
    pub(super) fn arrives_at_gateway(&mut self, packet: Packet) {
        let reference = self.world.packets.insert(packet);
        self.arrives(GATEWAY, reference);
    }

    fn arrives(&mut self, to: usize, packet: PacketRef) {
        if to == GATEWAY {
            let source = self.world.packets.get(packet).source;
            let from = if source == endpoint(HOST) {
                FACING
            } else {
                Port(1)
            };
            self.gateway.on_packet(from, packet, &mut self.world.cx());
            self.gateway_has_run();
            return;
        }
        if to == HOST && self.is_gone() {
            self.world.packets.release(packet);
            return;
        }
        if let Some(quote) = self.world.packets.get(packet).icmp_quote() {
            self.world.packets.release(packet);
            if self.ends[to].is_some() {
                self.with(to, |tcp, cx| tcp.on_icmp(quote.error, quote.sequence, cx));
            }
            return;
        }
        if self.ends[to].is_some() {
            self.with(to, |tcp, cx| tcp.on_packet(packet, cx));
            return;
        }
        let flags = self.world.packets.get(packet).flags;
        if !flags.has(Flags::SYN) || flags.has(Flags::ACK.with(Flags::RST)) {
            reset_reply(packet, Port(0), &mut self.world.cx());
            self.after(to);
            return;
        }
        let config = self.configs[to].clone().into();
        let opening = self.opening(to, &config);
        let fast = (self.fast_open).map_or(PassiveFastOpen::Ignore, |(_, answer)| answer);
        let mut connection = Connection::accept_fast(&opening, packet, fast, &mut self.world.cx());
        connection.set_sink(self.sinks(to));
        if self.sinks(to) {
            // Data on the SYN arrives before the socket can be told to read at once.
            connection.read(u64::MAX, &mut self.world.cx());
        }
        self.ends[to] = Some(connection);
        self.after(to);
    }

    /// Runs until `end`, or until no event is left.
    pub(super) fn run_until(&mut self, end: Time) {
        while self.step(end) {}
        self.world.now = self.world.now.max(end);
    }

    pub(super) fn run(&mut self, span: Span) {
        self.run_until(self.world.now + span);
    }

    /// Describes the state of everything.
    pub(super) fn describe(&self) -> String {
        let end = |side: usize| {
            let tcp = self.ends[side].as_ref();
            tcp.map(|tcp| {
                format!(
                    "{:?}, {:?}, written {} acknowledged {} delivered {}",
                    tcp.state(),
                    tcp.next_deadline(),
                    tcp.written_offset(),
                    tcp.acknowledged_offset(),
                    tcp.delivered_offset(),
                )
            })
        };
        let log = self.log.as_deref().unwrap_or_default();
        let sent: String = log[log.len().saturating_sub(200)..]
            .iter()
            .map(|s| format!("{:?} {} > {} {:?}\n", s.at, s.from, s.to, s.packet))
            .collect();
        format!(
            "{sent}at {:?}: host {:?}\nserver {:?}\n{:#?}\nnext {:?}, {:#?}",
            self.world.now,
            end(HOST),
            end(SERVER),
            self.gateway.totals,
            self.gateway.next_deadline(),
            self.gateway.relay(),
        )
    }

    /// Bytes that an end has read.
    pub(super) fn delivered(&self, side: usize) -> u64 {
        let tcp = self.ends[side].as_ref();
        tcp.map_or(0, |tcp| tcp.delivered_offset() + tcp.readable())
    }

    /// Returns true if this end's FIN was acknowledged.
    pub(super) fn is_closed_well(&self, side: usize) -> bool {
        self.drained[side]
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        while let Some(arrival) = self.arrivals.pop() {
            let packet = self.slots[arrival.packet as usize].take().expect("there");
            self.world.packets.release(packet);
        }
        let held = self.gateway.holdings().packets;
        assert_eq!(
            self.world.packets.held() as u64,
            held,
            "packets lost or kept"
        );
    }
}
