//! Two endpoints and a path between them.

use bentpipe_tcp::{
    ActiveFastOpen, Connection, Events, Opening, PassiveFastOpen, PathLimit, State, reset_reply,
};
use bentpipe_types::{
    Address, Ctx, Endpoint, Flags, IcmpError, PacketRef, Port, RandomStream, Seq, Span, Time, World,
};

use super::capture::{Capture, Seen};
use super::case::{Case, Kind, Stall, least_mtu};
use super::checks::{check, owes};
use super::dice::Dice;
use super::path::{Complaint, Path};
use super::{Counts, Ending, Failure};

const A: usize = 0;
const B: usize = 1;

/// More events are too much work for any case.
const MOST_EVENTS: u64 = 1_000_000;
/// More packets under way are too much memory.
const MOST_PACKETS: usize = 50_000;
/// So many calls of one end at one time, at the deadlines it names, are a loop without an end.
const MOST_AT_ONCE: u64 = 1_000;
/// How often an application looks for what it can do, while it can.
const TICK: Span = Span::from_millis(50);

pub(super) struct Pair<'a> {
    case: Case,
    world: World,
    path: Path,
    ends: [Option<Connection>; 2],
    initial: [Seq; 2],
    /// What other connections are told.
    elsewhere: Dice,
    events: [Events; 2],
    written: [u64; 2],
    tick: Time,
    counts: Counts,
    at_once: u64,
    capture: Option<&'a mut Capture>,
}

fn endpoint(side: usize) -> Endpoint {
    Endpoint {
        address: Address(side as u16 + 1),
        port: [40_000, 80][side],
    }
}

impl<'a> Pair<'a> {
    pub(super) fn new(seed: u64, capture: Option<&'a mut Capture>) -> Self {
        let case = Case::new(seed);
        let mut dice = Dice::new(seed, "initial sequence numbers");
        // A's wrap soon.
        let initial = [
            Seq::new(dice.bits() as u32 | 0xffff_f000),
            Seq::new(dice.bits() as u32),
        ];
        let mut pair = Self {
            path: Path::new(&case, seed),
            case,
            world: World::new(RandomStream::new(seed, "hostile", "connections")),
            ends: [None, None],
            initial,
            elsewhere: Dice::new(seed, "elsewhere"),
            events: [Events::NONE; 2],
            written: [0; 2],
            tick: Time::ZERO,
            counts: Counts::default(),
            at_once: 0,
            capture,
        };
        pair.connect(A);
        if pair.case.both {
            pair.connect(B);
        }
        pair
    }

    fn connect(&mut self, side: usize) {
        let config = self.case.configs[side].clone().into();
        let initial = self.initial[side];
        let (local, remote) = (endpoint(side), endpoint(1 - side));
        let opening = Opening {
            config: &config,
            local,
            remote,
            egress: Port(0),
            initial_sequence: initial,
        };
        let mut fast = ActiveFastOpen::default();
        if let Some((asks, _)) = self.case.fast_open.filter(|_| side == A) {
            fast = asks;
            fast.bytes = fast.bytes.min(self.case.applications[side].to_write);
        }
        let (tcp, taken) = Connection::connect_fast(&opening, fast, &mut self.world.cx());
        self.written[side] = taken;
        self.add(side, tcp);
    }

    fn add(&mut self, side: usize, mut tcp: Connection) {
        tcp.set_sink(self.case.applications[side].sink);
        self.ends[side] = Some(tcp);
        self.carry(side);
    }

    /// Does something with one end.
    fn with<T: Default>(
        &mut self,
        side: usize,
        act: impl FnOnce(&mut Connection, &mut Ctx<'_>) -> T,
    ) -> T {
        let Some(mut tcp) = self.ends[side].take() else {
            return T::default();
        };
        let result = act(&mut tcp, &mut self.world.cx());
        self.events[side] |= tcp.take_events();
        self.ends[side] = Some(tcp);
        self.carry(side);
        result
    }

    /// Hands what one end has sent to the path.
    fn carry(&mut self, side: usize) {
        let mut outbox = std::mem::take(&mut self.world.outbox);
        for (_, packet) in outbox.drain(..) {
            self.counts.packets += 1;
            if let Some(capture) = &mut self.capture {
                capture.record(
                    &self.world.packets,
                    packet,
                    side,
                    Seen::Leaving,
                    self.world.now,
                );
            }
            self.path
                .send(side, packet, &mut self.world.packets, self.world.now);
        }
        self.world.outbox = outbox;
    }

    fn arrives(&mut self, to: usize, packet: PacketRef) {
        if let Some(capture) = &mut self.capture {
            capture.record(
                &self.world.packets,
                packet,
                to,
                Seen::Arriving,
                self.world.now,
            );
        }
        if self.ends[to].is_some() {
            self.with(to, |tcp, cx| tcp.on_packet(packet, cx));
            return;
        }
        let flags = self.world.packets.get(packet).flags;
        if !flags.has(Flags::SYN) || flags.has(Flags::ACK.with(Flags::RST)) {
            reset_reply(packet, Port(0), &mut self.world.cx());
            self.carry(to);
            return;
        }
        let config = self.case.configs[to].clone().into();
        let (local, remote) = (endpoint(to), endpoint(1 - to));
        let initial = self.initial[to];
        let opening = Opening {
            config: &config,
            local,
            remote,
            egress: Port(0),
            initial_sequence: initial,
        };
        let fast = self
            .case
            .fast_open
            .map_or(PassiveFastOpen::Ignore, |(_, answer)| answer);
        let tcp = Connection::accept_fast(&opening, packet, fast, &mut self.world.cx());
        self.add(to, tcp);
        if self.case.applications[to].sink {
            // What came on the SYN is there before anybody could say that it is read at once.
            self.with(to, |tcp, cx| tcp.read(u64::MAX, cx));
        }
    }

    /// Lets the applications do what they can. Can one go on with something later?
    fn act(&mut self) -> bool {
        let mut busy = false;
        for side in [A, B] {
            let application = self.case.applications[side].clone();
            let Some(tcp) = &self.ends[side] else {
                continue;
            };
            let left = application.to_write - self.written[side];
            let opened = tcp.state().is_synchronized();
            if left > 0 {
                let chunk = left.min(application.chunk);
                if tcp.writable() > 0 {
                    self.written[side] += self.with(side, |tcp, cx| tcp.write(chunk, cx));
                }
                if self.written[side] == application.to_write {
                    self.with(side, |tcp, cx| tcp.close(cx));
                }
            } else if opened {
                self.with(side, |tcp, cx| tcp.close(cx));
            }
            let (from, to) = application.asleep;
            let awake = self.world.now < from || self.world.now >= to;
            if !application.sink && awake {
                self.with(side, |tcp, cx| tcp.read(application.read_at_most, cx));
            }
            let left = application.to_write - self.written[side];
            if let Some(tcp) = &self.ends[side] {
                let reads = !application.sink && tcp.readable() > 0 && to < Time::LAST;
                let writes = left > 0 && tcp.writable() > 0;
                let closes = left == 0 && tcp.state() == State::Established;
                busy |= reads || writes || closes;
            }
        }
        busy
    }

    /// The next thing that happens. `None`: nothing will, or the case is over.
    fn step(&mut self, busy: bool) -> Option<()> {
        let deadline = |side: usize| self.ends[side].as_ref().and_then(Connection::next_deadline);
        let deadlines = [deadline(A), deadline(B)];
        let arrival = self.path.next_arrival();
        let tick = busy.then_some(self.tick);
        let complaint = self.path.next_complaint();
        let next = [arrival, deadlines[A], deadlines[B], tick, complaint]
            .into_iter()
            .flatten()
            .min()?;
        if next > self.case.end {
            return None;
        }
        self.counts.events += 1;
        self.at_once = if next > self.world.now {
            0
        } else {
            self.at_once + 1
        };
        self.world.now = self.world.now.max(next);
        if complaint == Some(next) {
            let Complaint { to, error, quoted } = self.path.complaint()?;
            self.at_once = 0;
            // Another connection between the same hosts may have been told first.
            if let IcmpError::TooBig { mtu } = error
                && self.elsewhere.coin()
            {
                let mtu = mtu.max(least_mtu(self.case.configs[to].ip_version));
                let until = self.world.now + self.elsewhere.millis(600_000);
                let limit = PathLimit { mtu, until };
                self.with(to, |tcp, _| tcp.limit_path(limit));
            }
            self.with(to, |tcp, cx| tcp.on_icmp(error, quoted.sequence, cx));
            return Some(());
        }
        if arrival == Some(next) {
            let (to, packet) = self.path.arrive()?;
            self.at_once = 0;
            self.arrives(to, packet);
            return Some(());
        }
        for side in [A, B] {
            if deadlines[side] == Some(next) {
                self.with(side, |tcp, cx| tcp.on_deadline(cx));
            }
        }
        if tick == Some(next) {
            self.tick = self.world.now + TICK;
        }
        Some(())
    }

    fn check(&self) -> Result<(), String> {
        for side in [A, B] {
            if let Some(tcp) = &self.ends[side] {
                let most = self.case.configs[side].most_kept();
                check(tcp, most, self.world.now).map_err(|what| self.about(side, &what))?;
                if tcp.delivered_offset() > self.written[1 - side] {
                    return Err(self.about(side, "it has more than was written"));
                }
            }
        }
        if self.world.packets.held() > MOST_PACKETS {
            return Err(format!("{} packets", self.world.packets.held()));
        }
        if self.counts.events > MOST_EVENTS {
            return Err(format!(
                "{} events by {:?}",
                self.counts.events, self.world.now
            ));
        }
        if self.at_once > MOST_AT_ONCE {
            return Err(format!(
                "it wants to run again and again at {:?}",
                self.world.now
            ));
        }
        Ok(())
    }

    fn about(&self, side: usize, what: &str) -> String {
        format!(
            "{}: {what}, at {:?}\n{:?}\n{:?}",
            ["A", "B"][side],
            self.world.now,
            self.ends[side],
            self.case
        )
    }

    /// Runs the case.
    pub(super) fn run(mut self) -> Result<Counts, Failure> {
        let kind = self.case.kind;
        let result = self.drive().and_then(|()| self.judge());
        let Pair {
            mut world,
            mut path,
            mut counts,
            ..
        } = self;
        let packets = &mut world.packets;
        path.clear(packets);
        counts.undetected = path.undetected;
        let ending = result.map_err(|what| Failure { kind, what })?;
        if packets.held() > 0 {
            let what = format!("{} packets lost or kept", packets.held());
            return Err(Failure { kind, what });
        }
        counts.ending = Some((kind, ending));
        Ok(counts)
    }

    fn drive(&mut self) -> Result<(), String> {
        loop {
            let busy = self.act();
            self.check()?;
            let closed = |side: usize| {
                let tcp = self.ends[side].as_ref();
                tcp.is_some_and(|tcp| tcp.state() == State::Closed && tcp.readable() == 0)
            };
            if closed(A) && closed(B) || self.step(busy).is_none() {
                return Ok(());
            }
        }
    }

    /// What has become of it, if that is right.
    fn judge(&self) -> Result<Ending, String> {
        let errors = Events::RESET | Events::TIMED_OUT | Events::UNREACHABLE;
        let failed = [A, B].map(|side| self.events[side].has(errors));
        let whole = |side: usize| {
            let to_write = self.case.applications[side].to_write;
            let (Some(tcp), Some(peer)) = (&self.ends[side], &self.ends[1 - side]) else {
                return false;
            };
            tcp.state() == State::Closed
                && tcp.written_offset() == to_write
                // (A FIN that lies about what has come is answered all the same, and its sender gone
                // before it can say better.)
                && (tcp.acknowledged_offset() == to_write || self.case.kind == Kind::Lies)
                && peer.delivered_offset() == to_write
                && peer.statistics().bytes_delivered == to_write
        };
        let ending = if whole(A) && whole(B) && !failed[A] && !failed[B] {
            Ending::Exact
        } else if failed[A] || failed[B] {
            Ending::Error
        } else {
            Ending::Waiting
        };
        match self.case.kind {
            Kind::Path | Kind::Lies => {
                if ending != Ending::Exact {
                    let side = usize::from(whole(A));
                    let peer = format!("{ending:?}; its peer {:?}", self.ends[1 - side]);
                    return Err(self.about(side, &peer));
                }
            }
            Kind::Stall(Stall::DeadPath) => {
                for side in [A, B] {
                    if self.ends[side].as_ref().is_some_and(owes) {
                        return Err(self.about(side, "it hasn't given up"));
                    }
                }
            }
            Kind::Fraud | Kind::Stall(_) => {}
        }
        Ok(ending)
    }
}
