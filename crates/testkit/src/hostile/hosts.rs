//! The two hosts of a case: their connections and applications. The caller transports their
//! packets, which it takes from the world's outbox after each call.

use std::sync::Arc;

use bentpipe_tcp::{
    ActiveFastOpen, Config, Connection, Events, Opening, PassiveFastOpen, State, reset_reply,
};
use bentpipe_types::{Address, Ctx, Endpoint, Flags, PacketRef, Port, Seq, Span, Time, World};

use super::CaseOutcome;
use super::case::{Case, Kind};
use super::checks::{check_state, check_stream, has_pending_work};
use super::dice::Dice;

/// The host that connects.
pub(super) const A: usize = 0;
/// The host that is called, or calls at the same time.
pub(super) const B: usize = 1;

/// Interval at which an active application runs.
pub(super) const TICK: Span = Span::from_millis(50);

pub(super) fn endpoint(side: usize) -> Endpoint {
    Endpoint {
        address: Address(side as u16 + 1),
        port: [40_000, 80][side],
    }
}

pub(super) struct Hosts {
    connections: [Option<Connection>; 2],
    initial: [Seq; 2],
    events: [Events; 2],
    written: [u64; 2],
}

impl Hosts {
    pub(super) fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed, "initial sequence numbers");
        // A's sequence numbers wrap soon.
        let initial = [
            Seq::new(dice.bits() as u32 | 0xffff_f000),
            Seq::new(dice.bits() as u32),
        ];
        Self {
            connections: [None, None],
            initial,
            events: [Events::NONE; 2],
            written: [0; 2],
        }
    }

    pub(super) fn connection(&self, side: usize) -> Option<&Connection> {
        self.connections[side].as_ref()
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

    pub(super) fn connect(&mut self, side: usize, case: &Case, world: &mut World) {
        let config = case.configs[side].clone().into();
        let mut fast = ActiveFastOpen::default();
        if let Some((asks, _)) = case.fast_open.filter(|_| side == A) {
            fast = asks;
            fast.bytes = fast.bytes.min(case.applications[side].to_write);
        }
        let opening = self.opening(side, &config);
        let (mut tcp, taken) = Connection::connect_fast(&opening, fast, &mut world.cx());
        tcp.set_sink(case.applications[side].sink);
        self.written[side] = taken;
        self.connections[side] = Some(tcp);
    }

    /// Passes a packet to a host's connection, or to its listener if it has none yet.
    pub(super) fn receive(
        &mut self,
        side: usize,
        packet: PacketRef,
        case: &Case,
        world: &mut World,
    ) {
        if self.connections[side].is_some() {
            self.with(side, world, |tcp, cx| tcp.on_packet(packet, cx));
            return;
        }
        let flags = world.packets.get(packet).flags;
        if !flags.has(Flags::SYN) || flags.has(Flags::ACK.with(Flags::RST)) {
            reset_reply(packet, Port(0), &mut world.cx());
            return;
        }
        let config = case.configs[side].clone().into();
        let opening = self.opening(side, &config);
        let fast = case
            .fast_open
            .map_or(PassiveFastOpen::Ignore, |(_, answer)| answer);
        let mut tcp = Connection::accept_fast(&opening, packet, fast, &mut world.cx());
        let sink = case.applications[side].sink;
        tcp.set_sink(sink);
        self.connections[side] = Some(tcp);
        if sink {
            // Data on the SYN arrive before the application can enable immediate reading.
            self.with(side, world, |tcp, cx| tcp.read(u64::MAX, cx));
        }
    }

    /// Calls a function with a connection, if it exists.
    pub(super) fn with<T: Default>(
        &mut self,
        side: usize,
        world: &mut World,
        act: impl FnOnce(&mut Connection, &mut Ctx<'_>) -> T,
    ) -> T {
        let Some(tcp) = &mut self.connections[side] else {
            return T::default();
        };
        let result = act(tcp, &mut world.cx());
        self.events[side] |= tcp.take_events();
        result
    }

    /// Runs an application. Returns whether it has more to do later.
    pub(super) fn act(&mut self, side: usize, case: &Case, world: &mut World) -> bool {
        let application = &case.applications[side];
        let written = self.written[side];
        let awake = world.now < application.asleep.0 || world.now >= application.asleep.1;
        let wakes = application.asleep.1 < Time::LAST;
        let (written, busy) = self.with(side, world, |tcp, cx| {
            let mut written = written;
            let left = application.to_write - written;
            let opened = tcp.state().is_synchronized();
            if left > 0 {
                if tcp.writable() > 0 {
                    written += tcp.write(left.min(application.chunk), cx);
                }
                if written == application.to_write {
                    tcp.close(cx);
                }
            } else if opened {
                tcp.close(cx);
            }
            if !application.sink && awake {
                tcp.read(application.read_at_most, cx);
            }
            let left = application.to_write - written;
            let reads = !application.sink && tcp.readable() > 0 && wakes;
            let writes = left > 0 && tcp.writable() > 0;
            let closes = left == 0 && tcp.state() == State::Established;
            (written, reads || writes || closes)
        });
        self.written[side] = self.written[side].max(written);
        busy
    }

    pub(super) fn deadlines(&self) -> [Option<Time>; 2] {
        [A, B].map(|side| self.connections[side].as_ref()?.next_deadline())
    }

    /// Whether both connections are closed and both applications have read everything.
    pub(super) fn have_closed(&self) -> bool {
        self.connections.iter().all(|tcp| {
            tcp.as_ref()
                .is_some_and(|tcp| tcp.state() == State::Closed && tcp.readable() == 0)
        })
    }

    /// Returns the first violated invariant. With `in_place`, data must match their sequence
    /// numbers.
    pub(super) fn check(
        &self,
        side: usize,
        case: &Case,
        now: Time,
        in_place: bool,
    ) -> Result<(), String> {
        let Some(tcp) = &self.connections[side] else {
            return Ok(());
        };
        if in_place {
            check_stream(tcp)?;
        }
        check_state(tcp, case.configs[side].maximum_stored(), now)?;
        if tcp.delivered_offset() > self.written[1 - side] {
            return Err("it has more than was written".to_owned());
        }
        Ok(())
    }

    /// Whether everything that this side wrote arrived exactly, and both ends confirmed it.
    pub(super) fn is_whole(&self, side: usize, case: &Case) -> bool {
        let to_write = case.applications[side].to_write;
        let (Some(tcp), Some(peer)) = (&self.connections[side], &self.connections[1 - side]) else {
            return false;
        };
        tcp.state() == State::Closed
            && tcp.written_offset() == to_write
            // A FIN that lies about received data is answered as well, and its sender is gone
            // before it can correct that.
            && (tcp.acknowledged_offset() == to_write || case.kind == Kind::Lies)
            && peer.delivered_offset() == to_write
            && peer.statistics().bytes_delivered == to_write
    }

    pub(super) fn ending(&self, case: &Case) -> CaseOutcome {
        let errors = Events::RESET | Events::TIMED_OUT | Events::UNREACHABLE;
        if self.events.iter().any(|events| events.has(errors)) {
            CaseOutcome::Error
        } else if self.is_whole(A, case) && self.is_whole(B, case) {
            CaseOutcome::Exact
        } else {
            CaseOutcome::Waiting
        }
    }

    /// Iterates over hosts that still expect something from their peers or have unsent data.
    pub(super) fn hosts_with_pending_work(&self) -> impl Iterator<Item = usize> {
        let has_pending_work = |side: &usize| {
            self.connections[*side]
                .as_ref()
                .is_some_and(has_pending_work)
        };
        [A, B].into_iter().filter(has_pending_work)
    }
}
