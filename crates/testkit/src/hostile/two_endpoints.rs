//! Two endpoints and a path between them.

use bentpipe_tcp::PathLimit;
use bentpipe_types::{IcmpError, PacketRef, RandomStream, Time, World};

use super::capture::{Capture, Seen};
use super::case::{Case, Kind, Stall, least_mtu};
use super::dice::Dice;
use super::hosts::{A, B, Hosts, TICK};
use super::path::{IcmpInTransit, Path};
use super::work_bounds::{Bounds, Work};
use super::{CaseOutcome, Counts, Failure};

const BOUNDS: Bounds = Bounds {
    events: 1_000_000,
    packets: 50_000,
    calls_at_one_time: 1_000,
};

pub(super) struct Pair<'a> {
    case: Case,
    world: World,
    path: Path,
    hosts: Hosts,
    /// Random stream for the errors that other connections receive.
    elsewhere: Dice,
    tick: Time,
    work: Work,
    capture: Option<&'a mut Capture>,
}

impl<'a> Pair<'a> {
    pub(super) fn new(seed: u64, capture: Option<&'a mut Capture>) -> Self {
        let case = Case::new(seed);
        let mut pair = Self {
            path: Path::new(&case, seed),
            case,
            world: World::new(RandomStream::new(seed, "hostile", "connections")),
            hosts: Hosts::new(seed),
            elsewhere: Dice::new(seed, "elsewhere"),
            tick: Time::ZERO,
            work: Work::new(BOUNDS),
            capture,
        };
        pair.connect(A);
        if pair.case.both {
            pair.connect(B);
        }
        pair
    }

    fn connect(&mut self, side: usize) {
        self.hosts.connect(side, &self.case, &mut self.world);
        self.carry(side);
    }

    /// Passes the packets that one end has sent to the path.
    fn carry(&mut self, side: usize) {
        let mut outbox = std::mem::take(&mut self.world.outbox);
        let (packets, now) = (&mut self.world.packets, self.world.now);
        for (_, packet) in outbox.drain(..) {
            self.work.counts.packets += 1;
            if let Some(capture) = &mut self.capture {
                capture.record(packets, packet, side, Seen::Leaving, now);
            }
            self.path.send(side, packet, packets, now);
        }
        self.world.outbox = outbox;
    }

    fn arrives(&mut self, to: usize, packet: PacketRef) {
        if let Some(capture) = &mut self.capture {
            let packets = &self.world.packets;
            capture.record(packets, packet, to, Seen::Arriving, self.world.now);
        }
        self.hosts.receive(to, packet, &self.case, &mut self.world);
        self.carry(to);
    }

    fn complains(&mut self, next_icmp_error: IcmpInTransit) {
        let IcmpInTransit { to, error, quoted } = next_icmp_error;
        // Another connection between the same hosts may receive the error first.
        if let IcmpError::TooBig { mtu } = error
            && self.elsewhere.coin()
        {
            let mtu = mtu.max(least_mtu(self.case.configs[to].ip_version));
            let until = self.world.now + self.elsewhere.millis(600_000);
            let limit = PathLimit { mtu, until };
            self.hosts
                .with(to, &mut self.world, |tcp, _| tcp.limit_path(limit));
            self.carry(to);
        }
        self.hosts.with(to, &mut self.world, |tcp, cx| {
            tcp.on_icmp(error, quoted.sequence, cx);
        });
        self.carry(to);
    }

    /// Runs the applications. Returns whether one has more to do later.
    fn act(&mut self) -> bool {
        let mut busy = false;
        for side in [A, B] {
            busy |= self.hosts.act(side, &self.case, &mut self.world);
            self.carry(side);
        }
        busy
    }

    /// Processes the next event. Returns `None` if there is none or the case is over.
    fn step(&mut self, busy: bool) -> Option<()> {
        let deadlines = self.hosts.deadlines();
        let arrival = self.path.next_arrival();
        let tick = busy.then_some(self.tick);
        let next_icmp_error = self.path.next_complaint();
        let next = [arrival, deadlines[A], deadlines[B], tick, next_icmp_error]
            .into_iter()
            .flatten()
            .min()?;
        if next > self.case.end {
            return None;
        }
        self.work.event(next, &mut self.world);
        if next_icmp_error == Some(next) {
            let next_icmp_error = self.path.next_icmp_error()?;
            self.work.came();
            self.complains(next_icmp_error);
            return Some(());
        }
        if arrival == Some(next) {
            let (to, packet) = self.path.arrive()?;
            self.work.came();
            self.arrives(to, packet);
            return Some(());
        }
        for side in [A, B] {
            if deadlines[side] == Some(next) {
                self.hosts
                    .with(side, &mut self.world, |tcp, cx| tcp.on_deadline(cx));
                self.carry(side);
            }
        }
        if tick == Some(next) {
            self.tick = self.world.now + TICK;
        }
        Some(())
    }

    fn check(&self) -> Result<(), String> {
        for side in [A, B] {
            self.hosts
                .check(side, &self.case, self.world.now, true)
                .map_err(|what| self.about(side, &what))?;
        }
        self.work
            .check(&self.world)
            .map_err(|what| self.about(A, &what))
    }

    fn about(&self, side: usize, what: &str) -> String {
        format!(
            "{}: {what}, at {:?}\n{:?}\n{:?}",
            ["A", "B"][side],
            self.world.now,
            self.hosts.connection(side),
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
            work,
            ..
        } = self;
        let mut counts = work.counts;
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
            if self.hosts.have_closed() || self.step(busy).is_none() {
                return Ok(());
            }
        }
    }

    /// Returns the outcome, if it is a permitted one.
    fn judge(&self) -> Result<CaseOutcome, String> {
        let ending = self.hosts.ending(&self.case);
        match self.case.kind {
            Kind::Path | Kind::Lies => {
                if ending != CaseOutcome::Exact {
                    let side = usize::from(self.hosts.is_whole(A, &self.case));
                    let peer = self.hosts.connection(1 - side);
                    return Err(self.about(side, &format!("{ending:?}; its peer {peer:?}")));
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
