//! Two endpoints with split gateways between them.

use bentpipe_gateway::VolatileAgent;
use bentpipe_gateway::split::{Confirmation, Multiplexing, Processing, Settings, Split};
use bentpipe_tcp::{Config, Connection, Ranges};
use bentpipe_types::{
    Address, Agent, Packet, PacketRef, Port, RandomStream, Routes, Span, Time, World,
};

use super::capture::{Capture, Seen};
use super::case::{Case, Kind, Stall, detects_small_mtu, least_mtu};
use super::dice::Dice;
use super::hosts::{A, B, Hosts, TICK, endpoint};
use super::path::{IcmpInTransit, Path};
use super::settings::{MAXIMUM_RTO, config};
use super::work_bounds::{Bounds, Work};
use super::{CaseOutcome, Counts, Failure};

const BOUNDS: Bounds = Bounds {
    events: 3_000_000,
    packets: 100_000,
    calls_at_one_time: 2_000,
};

/// Source address of ICMP errors.
const ROUTER: Address = Address(20);

struct Gateway {
    split: Split<Ranges>,
    memory: u64,
    settings: Settings,
}

/// A time in which packets that gateways send in their own names are lost, as if one of them
/// started late or a filter were in the path.
struct Silence {
    of: [bool; 2],
    until: Time,
}

impl Silence {
    fn draw(seed: u64) -> Self {
        let dice = &mut Dice::new(seed, "silence");
        let of = dice.pick(&[
            [false; 2],
            [false; 2],
            [true; 2],
            [true, false],
            [false, true],
        ]);
        let until = Time::ZERO + Span::from_millis(dice.between(500, 12_000));
        Self { of, until }
    }

    /// Whether this packet is lost.
    fn swallows(&self, packet: &Packet, now: Time) -> bool {
        let of = |which: usize| packet.source.address == Address(10 + which as u16);
        now < self.until && [0, 1].into_iter().any(|which| self.of[which] && of(which))
    }
}

/// A gateway that stops and restarts.
#[derive(Clone, Copy, Debug)]
struct Death {
    of: usize,
    at: Time,
    back: Time,
    /// Whether its machine keeps forwarding packets.
    forwards: bool,
}

impl Death {
    fn draw(seed: u64) -> Vec<Self> {
        let dice = &mut Dice::new(seed, "deaths");
        let mut at = Time::ZERO;
        (0..dice.between(1, 3))
            .map(|_| {
                at += dice.millis(15_000);
                let died = at;
                at += if dice.coin() {
                    dice.millis(1_000)
                } else {
                    dice.millis(100_000)
                };
                Self {
                    of: dice.below(2) as usize,
                    at: died,
                    back: at,
                    forwards: dice.coin(),
                }
            })
            .collect()
    }
}

/// Hosts, gateways and the paths between them: node 0 is A, the last is B.
pub(super) struct Chain<'a> {
    case: Case,
    world: World,
    hops: Vec<Path>,
    gateways: Vec<Gateway>,
    silence: Silence,
    /// Failures in order of time. Invariant: they do not overlap.
    deaths: Vec<Death>,
    restarting: bool,
    dead: Option<Death>,
    hosts: Hosts,
    tick: Time,
    work: Work,
    capture: Option<&'a mut Capture>,
}

fn settings(
    dice: &mut Dice,
    case: &Case,
    here: usize,
    facing: u16,
    multiplex: Option<usize>,
) -> Settings {
    let version = case.configs[0].ip_version;
    let answer = |dice: &mut Dice| {
        dice.pick(&[
            Confirmation::EndToEnd,
            Confirmation::EndToEnd,
            Confirmation::Early,
        ])
    };
    Settings {
        facing: Port(facing),
        facing_tcp: config(dice, version),
        host_tcp: config(dice, version),
        set_up: answer(dice),
        close: answer(dice),
        memory: if dice.coin() {
            dice.between(50_000, 400_000)
        } else {
            16 << 20
        },
        only: None,
        except: None,
        processing: dice.one_in(4).then(|| Processing {
            time: Span::from_micros(dice.between(1, 5_000)),
            queue_packets: dice.between(5, 200) as usize,
        }),
        warm_path: dice.coin(),
        idle_timeout: Span::from_secs(7_440),
        // The first gateway suspends idle connections early.
        suspend_after: Span::from_millis([50, 10_000][here.min(1)]),
        multiplex: multiplex.map(|connections| Multiplexing {
            peer: Address(11 - here as u16),
            connections,
            real: None,
        }),
        source_connections: None,
        rate_limits: Vec::new(),
        secret: None,
    }
}

/// Returns the TCP settings of a gateway's port.
fn leg(settings: &mut Settings, port: u16) -> &mut Config {
    if settings.facing == Port(port) {
        &mut settings.facing_tcp
    } else {
        &mut settings.host_tcp
    }
}

fn gateway(here: usize, settings: Settings) -> Gateway {
    let mut split = Split::new(settings.clone());
    let mut routes = Routes::new(Address(10 + here as u16), 2, 24);
    routes.add(endpoint(A).address, Port(0));
    routes.add(endpoint(B).address, Port(1));
    if settings.multiplex.is_some() {
        routes.add(Address(11 - here as u16), Port(1 - here as u16));
    }
    split.routes(routes);
    Gateway {
        split,
        memory: settings.memory,
        settings,
    }
}

impl<'a> Chain<'a> {
    /// Creates two gateways with persistent connections that fail.
    pub(super) fn restarting(seed: u64, capture: Option<&'a mut Capture>) -> Self {
        let mut chain = Self::new(seed, true, capture);
        chain.deaths = Death::draw(seed);
        chain.restarting = true;
        chain
    }

    /// Creates the chain of a seed. With `multiplexed` there are two gateways with persistent
    /// connections.
    pub(super) fn new(seed: u64, multiplexed: bool, mut capture: Option<&'a mut Capture>) -> Self {
        let mut case = Case::new(seed);
        let dice = &mut Dice::new(seed, "gateways");
        let mut count = if dice.one_in(3) { 1 } else { 2 };
        let mut multiplex = None;
        if multiplexed {
            count = 2;
            multiplex = Some(dice.between(1, 3) as usize);
        }
        // In a live network each gateway has its own file.
        let numbers = &mut Dice::new(seed, "numbers");
        let second = numbers.one_in(4).then(|| numbers.between(1, 3) as usize);
        let alone = dice.below(2) as u16;
        let mut gateways: Vec<Settings> = (0..count)
            .map(|here| {
                // Two gateways face each other.
                let facing = if count == 1 { alone } else { 1 - here as u16 };
                let multiplex = multiplex.map(|first| match (here, second) {
                    (1, Some(second)) => second,
                    _ => first,
                });
                settings(dice, &case, here, facing, multiplex)
            })
            .collect();
        let dead = dice.below(count as u64 + 1) as usize;
        let hops = (0..=count)
            .map(|hop| {
                let mut part = case.clone();
                let other = Case::new(seed ^ ((hop as u64 + 1) << 48));
                // Each path has its own impairments, but all end at the same time.
                let until = case.network.until;
                part.network = other.network;
                part.network.until = until;
                // All paths have the same IP version.
                let least = least_mtu(case.configs[0].ip_version);
                part.network.mtu = part.network.mtu.max(least);
                // A node that accepts data on a SYN, B or a gateway, sends data before the
                // handshake is complete. With simultaneous open, an end answers segments.
                if case.fast_open.is_some() || case.both && case.kind != Kind::Fraud {
                    part.network.avoid_handshake_forgeries();
                }
                // On a path with a small MTU each end can detect it. The permitted forgeries depend
                // on how an end probes windows.
                for (end, at) in [
                    (0, hop.checked_sub(1)),
                    (1, Some(hop).filter(|hop| *hop < count)),
                ] {
                    let config = match at {
                        Some(here) => leg(&mut gateways[here], 1 - end as u16),
                        None => &mut case.configs[end],
                    };
                    if part.network.mtu < u32::MAX {
                        detects_small_mtu(dice, config, part.network.sends_icmp);
                    }
                    part.configs[end] = config.clone();
                }
                // A host lies to the gateway next to it.
                let beside = if case.liar == A { 0 } else { count };
                part.network.lies = if hop == beside {
                    case.network.lies
                } else {
                    0.0
                };
                let stays_ill = match case.kind {
                    Kind::Stall(Stall::DeadPath) => hop == dead,
                    Kind::Stall(Stall::ShutWindow) => hop == count,
                    _ => true,
                };
                if !stays_ill
                    || (part.network.lies == 0.0 && matches!(case.kind, Kind::Lies | Kind::Fraud))
                {
                    part.kind = Kind::Path;
                }
                Path::new(&part, seed ^ ((hop as u64 + 1) << 40))
            })
            .collect();
        let gateways = gateways.into_iter().enumerate();
        let gateways = gateways
            .map(|(here, settings)| gateway(here, settings))
            .collect();
        // Each part takes its time, and there are up to three.
        for application in &mut case.applications {
            application.to_write = application.to_write.min(60_000);
        }
        case.end += Span::from_secs(4_000);
        if let Some(capture) = &mut capture {
            let nodes: &[&str] = match count {
                1 => &["A", "gateway 0", "B"],
                _ => &["A", "gateway 0", "gateway 1", "B"],
            };
            // A capture that cannot be written is omitted.
            let _ = capture.name(nodes);
        }
        let mut chain = Self {
            world: World::new(RandomStream::new(seed, "hostile", "connections")),
            hops,
            gateways,
            silence: Silence::draw(seed),
            deaths: Vec::new(),
            restarting: false,
            dead: None,
            hosts: Hosts::new(seed),
            tick: Time::ZERO,
            work: Work::new(BOUNDS),
            capture,
            case,
        };
        chain.connect(A);
        if chain.case.both {
            chain.connect(B);
        }
        chain
    }

    fn connect(&mut self, side: usize) {
        self.hosts.connect(side, &self.case, &mut self.world);
        self.host_sends(side);
    }

    fn host_sends(&mut self, side: usize) {
        let node = if side == A {
            0
        } else {
            self.gateways.len() + 1
        };
        self.carry(node);
    }

    /// Passes the packets that one node has sent to its paths.
    fn carry(&mut self, node: usize) {
        let mut outbox = std::mem::take(&mut self.world.outbox);
        for (port, packet) in outbox.drain(..) {
            self.work.counts.packets += 1;
            if let Some(capture) = &mut self.capture {
                let packets = &self.world.packets;
                capture.record(packets, packet, node, Seen::Leaving, self.world.now);
            }
            // A gateway's port 0 is to the left; a host has only one port.
            let last = self.gateways.len() + 1;
            let left = node == last || node > 0 && port == Port(0);
            let (hop, end) = if left { (node - 1, 1) } else { (node, 0) };
            let (packets, now) = (&mut self.world.packets, self.world.now);
            if self.silence.swallows(packets.get(packet), now) {
                packets.release(packet);
                continue;
            }
            self.hops[hop].send(end, packet, packets, now);
        }
        self.world.outbox = outbox;
    }

    fn arrives(&mut self, hop: usize, end: usize, packet: PacketRef) {
        let node = hop + end;
        if let Some(capture) = &mut self.capture {
            let packets = &self.world.packets;
            capture.record(packets, packet, node, Seen::Arriving, self.world.now);
        }
        if node > 0 && node <= self.gateways.len() {
            // From the left it arrives at port 0, from the right at port 1.
            let from = Port(1 - end as u16);
            if let Some(dead) = self.dead.filter(|dead| dead.of == node - 1) {
                self.passes(dead, from, packet);
                return;
            }
            let gateway = &mut self.gateways[node - 1];
            gateway.split.on_packet(from, packet, &mut self.world.cx());
            self.carry(node);
            return;
        }
        let side = usize::from(node > 0);
        if let Some(quote) = self.world.packets.get(packet).icmp_quote() {
            self.world.packets.release(packet);
            self.hosts.with(side, &mut self.world, |tcp, cx| {
                tcp.on_icmp(quote.error, quote.sequence, cx);
            });
            self.host_sends(side);
            return;
        }
        self.hosts
            .receive(side, packet, &self.case, &mut self.world);
        self.host_sends(side);
    }

    /// Handles a packet at the machine of a stopped gateway.
    fn passes(&mut self, dead: Death, from: Port, packet: PacketRef) {
        let own = Address(10 + dead.of as u16);
        let to = self.world.packets.get(packet).destination.address;
        if dead.forwards && to != own {
            self.world.outbox.push((Port(1 - from.0), packet));
            self.carry(dead.of + 1);
        } else {
            self.world.packets.release(packet);
        }
    }

    /// Stops or restarts a gateway that is due. Returns the time of the next change.
    fn process_failures(&mut self) -> Option<Time> {
        let now = self.world.now;
        if self.dead.is_some_and(|dead| dead.back <= now) {
            self.dead = None;
        }
        if self.dead.is_none()
            && let Some(death) = self.deaths.first().copied().filter(|death| death.at <= now)
        {
            self.deaths.remove(0);
            self.gateways[death.of]
                .split
                .lose_power(&mut self.world.cx());
            self.dead = Some(death);
        }
        match self.dead {
            Some(dead) => Some(dead.back),
            None => self.deaths.first().map(|death| death.at),
        }
    }

    /// Whether this host accepted a SYN forged from another segment. In the stream that such a SYN
    /// opens the peer's data are out of place, and no TCP can detect it: a host in SYN-SENT has
    /// nothing to compare them with. Behind gateways the peer may already be in the middle of its
    /// stream, on a connection that a gateway has forgotten after a forged RST.
    fn accepted_forged_syn(&self, side: usize) -> bool {
        let tcp = self.hosts.connection(side);
        tcp.and_then(Connection::peer_initial_sequence)
            .is_some_and(|initial| self.hops.iter().any(|hop| hop.has_forged_syn(initial)))
    }

    /// Whether data at the gateways must match their sequence numbers. A forged SYN opens another
    /// connection in which they do not. A gateway that knows the connection ignores such a SYN; a
    /// restarted one accepts it while the peer is in the middle of its stream.
    fn payload_matches_sequence(&self) -> bool {
        let forged = self.restarting && self.hops.iter().any(Path::has_any_forged_syn);
        self.case.kind != Kind::Fraud && !forged
    }

    /// Runs the applications. Returns whether one has more to do later.
    fn act(&mut self) -> bool {
        let mut busy = false;
        for side in [A, B] {
            busy |= self.hosts.act(side, &self.case, &mut self.world);
            self.host_sends(side);
        }
        busy
    }

    /// Processes the next event. Returns `None` if there is none or the case is over.
    fn step(&mut self, busy: bool) -> Option<()> {
        let process_failures = self.process_failures();
        let hosts = self.hosts.deadlines();
        let dead = self.dead.map(|dead| dead.of);
        let gateways: Vec<_> = (self.gateways.iter().enumerate())
            .map(|(of, each)| each.split.next_deadline().filter(|_| dead != Some(of)))
            .collect();
        let arrivals: Vec<_> = self.hops.iter().map(Path::next_arrival).collect();
        let icmp_in_transit: Vec<_> = self.hops.iter().map(Path::next_complaint).collect();
        let tick = busy.then_some(self.tick);
        let all = arrivals
            .iter()
            .chain(&icmp_in_transit)
            .chain(&gateways)
            .chain(&hosts)
            .chain([&tick, &process_failures]);
        let next = all.flatten().min().copied()?;
        if next > self.case.end {
            return None;
        }
        self.work.event(next, &mut self.world);
        if let Some(hop) = icmp_in_transit.iter().position(|at| *at == Some(next)) {
            let IcmpInTransit { to, error, quoted } = self.hops[hop].next_icmp_error()?;
            self.work.came();
            if let Some(packet) = Packet::icmp_error(ROUTER, &quoted, error) {
                let packet = self.world.packets.insert(packet);
                self.arrives(hop, to, packet);
            }
            return Some(());
        }
        if let Some(hop) = arrivals.iter().position(|arrival| *arrival == Some(next)) {
            let (end, packet) = self.hops[hop].arrive()?;
            self.work.came();
            self.arrives(hop, end, packet);
            return Some(());
        }
        for side in [A, B] {
            if hosts[side] == Some(next) {
                self.hosts
                    .with(side, &mut self.world, |tcp, cx| tcp.on_deadline(cx));
                self.host_sends(side);
            }
        }
        for (index, deadline) in gateways.into_iter().enumerate() {
            if deadline == Some(next) {
                self.gateways[index].split.on_deadline(&mut self.world.cx());
                self.carry(index + 1);
            }
        }
        if tick == Some(next) {
            self.tick = self.world.now + TICK;
        }
        Some(())
    }

    fn check(&self) -> Result<(), String> {
        for side in [A, B] {
            let in_place = !self.accepted_forged_syn(side);
            self.hosts
                .check(side, &self.case, self.world.now, in_place)
                .map_err(|what| self.about(side, &what))?;
        }
        for (index, Gateway { split, memory, .. }) in self.gateways.iter().enumerate() {
            let held = split.holdings().bytes as f64;
            let promised = split.gauge(1);
            if held > promised || held > *memory as f64 {
                let what = format!("gateway {index} holds {held}, promised {promised} of {memory}");
                return Err(self.about(A, &what));
            }
            if self.payload_matches_sequence() && split.stream_check().mismatches > 0 {
                return Err(self.about(A, "a gateway was given bytes out of place"));
            }
        }
        self.work
            .check(&self.world)
            .map_err(|what| self.about(A, &what))
    }

    fn about(&self, side: usize, what: &str) -> String {
        let gateways: Vec<_> = (self.gateways.iter())
            .map(|gateway| format!("{:?}\n{:?}", gateway.settings, gateway.split))
            .collect();
        format!(
            "{}: {what}, at {:?}\n{:?}\n{:?}\n{:?}\n{}",
            ["A", "B"][side],
            self.world.now,
            self.hosts.connection(A),
            self.hosts.connection(B),
            self.case,
            gateways.join("\n")
        )
    }

    /// Runs the case.
    pub(super) fn run(mut self) -> Result<Counts, Failure> {
        let kind = self.case.kind;
        let result = self.drive().and_then(|()| self.judge());
        let Self {
            mut world,
            mut hops,
            gateways,
            work,
            ..
        } = self;
        let mut counts = work.counts;
        let packets = &mut world.packets;
        for hop in &mut hops {
            hop.clear(packets);
            counts.undetected += hop.undetected;
        }
        let ending = result.map_err(|what| Failure { kind, what })?;
        let kept: u64 = gateways
            .iter()
            .map(|gateway| gateway.split.holdings().packets)
            .sum();
        if packets.references() != kept {
            let what = format!("{} packets, of which {kept} are kept", packets.references());
            return Err(Failure { kind, what });
        }
        counts.ending = Some((kind, ending));
        Ok(counts)
    }

    fn drive(&mut self) -> Result<(), String> {
        loop {
            let busy = self.act();
            self.check()?;
            let forgotten =
                (self.gateways.iter()).all(|gateway| gateway.split.has_no_connections());
            // A persistent connection may have to retransmit.
            let holds = (self.gateways.iter()).any(|gateway| gateway.split.gauge(0) > 0.0);
            let idle = !holds && self.hops.iter().all(|hop| hop.next_arrival().is_none());
            if self.hosts.have_closed() && forgotten && idle || self.step(busy).is_none() {
                return Ok(());
            }
        }
    }

    /// Returns the outcome, if it is a permitted one.
    fn judge(&self) -> Result<CaseOutcome, String> {
        let ending = self.hosts.ending(&self.case);
        if self.restarting {
            // An end with outstanding data learns that its peer is gone. Next to a gateway that has
            // forgotten a connection, windows are read with another scale than they are sent with,
            // so a connection may continue at a few bytes per round trip.
            let patience =
                MAXIMUM_RTO * u64::from(self.case.configs[0].maximum_retransmissions + 1);
            let silent = |side: &usize| {
                let heard = self
                    .hosts
                    .connection(*side)
                    .map(Connection::last_received_at);
                heard.is_some_and(|at| self.world.now.since(at) > patience)
            };
            return match self.hosts.hosts_with_pending_work().find(silent) {
                Some(side)
                    if matches!(self.case.kind, Kind::Path | Kind::Stall(Stall::DeadPath)) =>
                {
                    Err(self.about(side, "it hasn't given up"))
                }
                _ => Ok(ending),
            };
        }
        match self.case.kind {
            Kind::Path | Kind::Lies => {
                if ending != CaseOutcome::Exact {
                    let side = usize::from(self.hosts.is_whole(A, &self.case));
                    return Err(self.about(side, &format!("{ending:?}")));
                }
                for gateway in &self.gateways {
                    // The reservation for persistent connections remains, empty.
                    let left = match gateway.settings.multiplex {
                        None => gateway.split.gauge(1),
                        Some(_) => gateway.split.gauge(0),
                    };
                    if !gateway.split.has_no_connections() || left > 0.0 {
                        return Err(self.about(A, "a gateway doesn't forget"));
                    }
                }
            }
            Kind::Stall(Stall::DeadPath) => {
                if let Some(side) = self.hosts.hosts_with_pending_work().next() {
                    return Err(self.about(side, "it hasn't given up"));
                }
            }
            Kind::Fraud | Kind::Stall(_) => {}
        }
        Ok(ending)
    }
}
