//! The host itself: an agent.

mod fetch;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bentpipe_tcp::{Connection, Opening, PassiveFastOpen, Socket, State, Statistics, reset_reply};
use bentpipe_types::{
    Address, Agent, Ctx, DropReason, Echo, Endpoint, Flags, Gauge, Holdings, IcmpError, PacketRef,
    Port, Routes, Seq, Span, StreamCheck, Time,
};
use rustc_hash::FxHashMap;

use crate::account::Account;
use crate::datagram::UDP;
use crate::desk::{Desk, NONE};
use crate::table::{AddressOf, Sockets, Timer};
use crate::{
    Application, ApplicationId, Arrival, Datagram, InitialSequences, Listener, Member, Ports,
    Realm, Remote, Report, SocketId, Taker,
};

pub use fetch::Step;

/// What a host may keep for others. The memory of its buffers is bounded by `connections` times the
/// send and receive buffers that its connections are configured with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Connections in any state, TIME-WAIT included.
    pub connections: usize,
    /// Of them, those in SYN-RECEIVED.
    pub half_open: usize,
}

impl Limits {
    /// For a simulation, where nobody attacks.
    pub const NONE: Self = Self {
        connections: usize::MAX,
        half_open: usize::MAX,
    };
}

impl Default for Limits {
    /// For a real host.
    fn default() -> Self {
        Self {
            connections: 4096,
            half_open: 256,
        }
    }
}

/// What a host has counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Segments that no connection takes, answered with a RST.
    pub no_connection: u64,
    /// SYNs for which there was no room in the table of connections.
    pub table_full: u64,
    /// SYNs while as many connections as may be were half open.
    pub half_open_full: u64,
}

/// A host with any number of connections and applications.
///
/// Generic over where payload lives: `Host<Ranges>` in a simulation, `Host<Rings>` where packets are
/// real.
#[repr(C)]
pub struct Host<P: Realm> {
    sockets: Sockets<P>,
    applications: Vec<Option<Box<dyn Application<P>>>>,
    free: Vec<u32>,
    listeners: FxHashMap<u16, Listener<P>>,
    /// First ports of the ranges that applications open connections from, with the last and whose.
    openers: BTreeMap<u16, (u16, ApplicationId)>,
    limits: Limits,
    counters: Counters,
}

/// How often one packet or deadline may make applications cause news for each other at once; what is
/// left is looked at right after.
const ROUNDS: u32 = 16;
/// Deadlines handled in one call; what is left is due still.
const BATCH: u32 = 1 << 16;

impl<P: Realm> Default for Host<P> {
    fn default() -> Self {
        Self::new(Limits::NONE, InitialSequences::PerApplication)
    }
}

impl<P: Realm> Host<P> {
    /// A host without applications.
    #[must_use]
    pub fn new(limits: Limits, sequences: InitialSequences) -> Self {
        let mut sockets = Sockets::new();
        sockets.sequences = sequences;
        sockets.most = limits.connections;
        Self {
            sockets,
            applications: Vec::new(),
            free: Vec::new(),
            listeners: FxHashMap::default(),
            openers: BTreeMap::new(),
            limits,
            counters: Counters::default(),
        }
    }

    /// Adds an application.
    pub fn add(&mut self, member: Member, application: Box<dyn Application<P>>) -> ApplicationId {
        self.insert(member, application, false)
    }

    fn insert(
        &mut self,
        member: Member,
        application: Box<dyn Application<P>>,
        transient: bool,
    ) -> ApplicationId {
        let starts = member.starts;
        let ports = member.ports;
        let deadline = application.standing().next;
        let account = Account::new(member, transient);
        let id = match self.free.pop() {
            Some(index) => {
                self.sockets.accounts[index as usize] = account;
                self.applications[index as usize] = Some(application);
                ApplicationId(index)
            }
            None => {
                // Most hosts of a large network have one, and a vector would begin with room for four.
                if self.applications.is_empty() {
                    self.sockets.accounts.reserve_exact(1);
                    self.applications.reserve_exact(1);
                }
                self.sockets.accounts.push(account);
                self.applications.push(Some(application));
                ApplicationId((self.applications.len() - 1) as u32)
            }
        };
        let (first, last) = ports.bounds();
        if (first, last) != Ports::default().bounds() {
            self.openers.insert(first, (last, id));
        }
        let timer = Timer::Application(id);
        self.sockets.deadlines.reserve(timer.number());
        for at in starts.into_iter().chain(deadline) {
            self.sockets.arm_at(timer, at);
        }
        id
    }

    /// Nodes have real addresses, and connections that are opened are told apart by them, as those that
    /// come are.
    pub fn set_addresses(&mut self, of: AddressOf) {
        self.sockets.addresses = Some(of);
    }

    /// Takes connections to `port`.
    pub fn listen(&mut self, port: u16, listener: Listener<P>) {
        self.listeners.insert(port, listener);
    }

    /// Takes the connections to `port` from those ports of a node for this application. Others' go
    /// on being refused, or taken by theirs.
    pub fn expect(&mut self, port: u16, from: Address, ports: Ports, application: ApplicationId) {
        let (first, last) = ports.bounds();
        let none = || Listener::new(Taker::Expected(BTreeMap::new()));
        let listener = self.listeners.entry(port).or_insert_with(none);
        if let Taker::Expected(ranges) = &mut listener.taker {
            let before = ranges.insert((from, first), (last, application));
            debug_assert!(before.is_none(), "two flows with the same ends");
        }
    }

    /// The listener of a port, if there is one.
    pub fn listener_mut(&mut self, port: u16) -> Option<&mut Listener<P>> {
        self.listeners.get_mut(&port)
    }

    /// Takes no more connections to `port`.
    pub fn unlisten(&mut self, port: u16) {
        self.listeners.remove(&port);
    }

    /// Lets `act` work at an application's desk, from outside of it.
    pub fn at_desk<R>(
        &mut self,
        application: ApplicationId,
        cx: &mut Ctx<'_>,
        act: impl FnOnce(&mut Desk<'_, '_, P>) -> R,
    ) -> R {
        let result = act(&mut Desk {
            sockets: &mut self.sockets,
            me: application,
            current: NONE,
            cx,
        });
        self.look_at_touched(ROUNDS, cx);
        result
    }

    /// A connection; `None` when it is gone.
    #[must_use]
    pub fn socket(&self, id: SocketId) -> Option<&Socket<P>> {
        Some(&self.sockets.named(id)?.socket)
    }

    /// The connection that stands for an application: its latest, if any is open, or the last that
    /// was.
    #[must_use]
    pub fn connection(&self, application: ApplicationId) -> Option<&Connection> {
        self.sockets.of(application)
    }

    /// What all connections of an application have counted; `None` before the first.
    #[must_use]
    pub fn statistics(&self, application: ApplicationId) -> Option<Statistics> {
        let account = self.account(application)?;
        if account.opened == 0 {
            return None;
        }
        let mut statistics = account.totals.as_deref().cloned().unwrap_or_default();
        let open = account.sockets.iter().filter_map(|at| self.sockets.at(*at));
        let connections = open.map(|slot| slot.socket.connection());
        for connection in account.retired.as_deref().into_iter().chain(connections) {
            statistics.add(connection.statistics());
        }
        Some(statistics)
    }

    /// Bytes delivered to an application: in order over all of its connections, and in datagrams.
    #[must_use]
    pub fn delivered(&self, application: ApplicationId) -> u64 {
        let Some(account) = self.account(application) else {
            return 0;
        };
        let datagrams = self.datagram_bytes(application);
        let open = account.sockets.iter().filter_map(|at| self.sockets.at(*at));
        let connections = open.map(|slot| slot.socket.connection());
        let delivered = |connection: &Connection| connection.statistics().bytes_delivered;
        let retired = account.retired.as_deref().into_iter().chain(connections);
        let before = (account.totals.as_deref()).map_or(0, |totals| totals.bytes_delivered);
        datagrams + before + retired.map(delivered).sum::<u64>()
    }

    /// Bytes delivered to an application in datagrams.
    #[must_use]
    pub fn datagram_bytes(&self, application: ApplicationId) -> u64 {
        let application = self.applications.get(application.0 as usize);
        let application = application.and_then(|application| application.as_deref());
        application.map_or(0, Application::datagram_bytes)
    }

    /// The time that an application measured last.
    #[must_use]
    pub fn latest(&self, application: ApplicationId) -> Option<Span> {
        let application = self.applications.get(application.0 as usize)?;
        application.as_deref()?.standing().latest
    }

    /// Connections of an application that are open.
    pub fn connections_of(&self, application: ApplicationId) -> impl Iterator<Item = &Connection> {
        let account = self.account(application);
        let places = account.into_iter().flat_map(|account| &account.sockets);
        places
            .filter_map(|at| self.sockets.at(*at))
            .map(|slot| slot.socket.connection())
    }

    /// What an application tells of itself by now.
    #[must_use]
    pub fn report(&self, application: ApplicationId, now: Time) -> Option<Report> {
        let application = self.applications.get(application.0 as usize)?.as_deref()?;
        Some(application.told(now))
    }

    /// Has this application nothing more to do of its own accord: it has begun, has no deadline, and
    /// no connection of its waits for anything but the end of TIME-WAIT?
    #[must_use]
    pub fn is_over(&self, id: ApplicationId) -> bool {
        let Some(account) = self.account(id) else {
            return true;
        };
        let application = self.applications[id.0 as usize].as_deref();
        account.member.starts.is_none()
            && application.is_none_or(|application| application.standing().next.is_none())
            && account.sockets.iter().all(|place| {
                self.sockets.at(*place).is_none_or(|slot| {
                    slot.socket.next_deadline().is_none() || slot.socket.state() == State::TimeWait
                })
            })
    }

    /// Does all that its applications learn of others come in packets?
    #[must_use]
    pub fn keeps_to_packets(&self) -> bool {
        let known = |listener: &Listener<P>| !matches!(listener.taker, Taker::Each(..));
        (self.applications.iter().flatten()).all(|each| each.keeps_to_packets())
            && self.listeners.values().all(known)
    }

    /// Connections in any state.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.sockets.open
    }

    /// Connections ever, opened or taken.
    #[must_use]
    pub fn opened(&self) -> u64 {
        self.sockets.opened
    }

    /// Bytes of memory that connections' payload takes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.sockets.all().map(|slot| slot.socket.memory()).sum()
    }

    /// What it has counted.
    #[must_use]
    pub fn counted(&self) -> &Counters {
        &self.counters
    }

    fn account(&self, application: ApplicationId) -> Option<&Account> {
        self.sockets.accounts.get(application.0 as usize)
    }

    /// A SYN for which there is no connection. Returns its place.
    fn accept(&mut self, syn: PacketRef, cx: &mut Ctx<'_>) -> Option<u32> {
        let record = *cx.packets.get(syn);
        let ip = cx.packets.ip(syn).map(|(theirs, ours)| (ours, theirs));
        let remote = Remote {
            endpoint: record.source,
            ip,
        };
        let port = record.destination.port;
        let known = self.listeners.get(&port)?.taker.known(remote);
        if known.is_none() && !matches!(self.listeners.get(&port)?.taker, Taker::Each(..)) {
            return None;
        }
        let refused = if self.sockets.half_open >= self.limits.half_open {
            Some(&mut self.counters.half_open_full)
        } else if self.sockets.is_full() {
            Some(&mut self.counters.table_full)
        } else {
            None
        };
        if let Some(counter) = refused {
            *counter += 1;
            cx.discard(syn, DropReason::TableFull);
            return Some(NONE);
        }
        let egress = self.sockets.routes.port_towards(record.source.address)?;
        let owner = match known {
            Some(owner) => owner,
            None => {
                let Taker::Each(config, make) = &mut self.listeners.get_mut(&port)?.taker else {
                    return None;
                };
                let (config, application) = (Arc::clone(config), make(remote));
                self.insert(Member::new(config), application, true)
            }
        };
        let policy = self.listeners.get_mut(&port)?.fast_open.as_mut();
        let fast_open = policy.map_or(PassiveFastOpen::Ignore, |policy| {
            let option = cx.packets.syn_options(syn).fast_open;
            policy(record.payload_length, option)
        });
        let local = Endpoint {
            address: self.sockets.routes.here(),
            port,
        };
        let sockets = &mut self.sockets;
        let member = &mut sockets.accounts[owner.0 as usize].member;
        let mut config = std::borrow::Cow::Borrowed(&member.config);
        if config.ip_version != record.ip_version() {
            Arc::make_mut(config.to_mut()).ip_version = record.ip_version();
        }
        let ends = [local, record.source];
        let initial_sequence = sockets
            .sequences
            .next(&mut member.sequences, ends, ip, cx.now);
        let opening = Opening {
            config: &config,
            local,
            remote: record.source,
            egress,
            initial_sequence,
        };
        let mut socket = Socket::accept(&opening, syn, fast_open, cx);
        let there = P::destination(record.source.address, ip);
        if let Some(limit) = sockets.paths.to(there, record.ip_version(), cx.now) {
            socket.limit_path(limit);
        }
        let key = P::key_of(port, record.source, ip);
        let id = sockets.add(socket, key, owner);
        let mut desk = Desk {
            sockets,
            me: owner,
            current: NONE,
            cx,
        };
        if let Some(application) = self.applications[owner.0 as usize].as_deref_mut() {
            application.on_accept(id, &mut desk);
        }
        self.arm_application(owner);
        Some(id.place)
    }

    /// A packet that is no segment: one of UDP may be for an application.
    #[inline(never)]
    fn on_datagram(&mut self, packet: PacketRef, cx: &mut Ctx<'_>) {
        let record = *cx.packets.get(packet);
        if record.is_corrupt() {
            cx.discard(packet, DropReason::Checksum);
            return;
        }
        if let Some(quote) = record.icmp_quote() {
            cx.packets.release(packet);
            let remote = Remote::from(quote.destination);
            self.on_icmp(quote.source.port, remote, quote.error, quote.sequence, cx);
            return;
        }
        let echo = record.echo_kind();
        if echo == Some(Echo::Request) {
            self.answer(packet, cx);
            return;
        }
        let remote = Remote::from(record.source);
        let port = record.destination.port;
        let listening = self.listeners.get(&port);
        let listening = listening.filter(|_| echo.is_none());
        let opener = || {
            let (_, (last, owner)) = self.openers.range(..=port).next_back()?;
            (port <= *last).then_some(*owner)
        };
        let owner = listening
            .and_then(|listener| listener.taker.known(remote))
            .or_else(opener)
            .filter(|_| record.protocol() == UDP || echo.is_some());
        let Some(owner) = owner else {
            cx.discard(packet, DropReason::NoConnection);
            return;
        };
        let arrival = Arrival {
            from: record.source,
            to: port,
            datagram: Datagram::read(packet, cx.packets),
        };
        cx.packets.release(packet);
        if let Some(application) = self.applications[owner.0 as usize].as_deref_mut() {
            let mut desk = Desk {
                sockets: &mut self.sockets,
                me: owner,
                current: NONE,
                cx,
            };
            application.on_datagram(arrival, &mut desk);
            self.arm_application(owner);
        }
        self.look_at_touched(ROUNDS, cx);
    }

    /// RFC 1122 section 3.2.2.6: every host answers an echo request, whoever sent it.
    fn answer(&mut self, request: PacketRef, cx: &mut Ctx<'_>) {
        let record = *cx.packets.get(request);
        let datagram = Datagram::read(request, cx.packets);
        cx.packets.release(request);
        let (source, destination) = (record.destination, record.source);
        if let Some(egress) = self.sockets.routes.port_towards(destination.address) {
            let version = record.ip_version();
            let packets = &mut *cx.packets;
            let reply = datagram.insert_echo(Echo::Reply, source, destination, version, packets);
            cx.emit(egress, reply);
        }
    }

    /// An ICMP error has come about a segment that some connection may have sent, from `local_port` to
    /// `remote`. Where packets are real, whoever gets them reads it.
    pub fn on_icmp(
        &mut self,
        local_port: u16,
        remote: Remote,
        error: IcmpError,
        sequence: Seq,
        cx: &mut Ctx<'_>,
    ) {
        let key = P::key_of(local_port, remote.endpoint, remote.ip);
        if let Some(place) = self.sockets.find(key)
            && let Some(slot) = self.sockets.at_mut(place)
        {
            let version = slot.socket.connection().ip_version();
            if let Some(limit) = slot.socket.on_icmp(error, sequence, cx) {
                self.sockets.limit_path(remote, version, limit, cx.now);
            }
            self.settle(place, cx);
        }
    }

    /// A segment of no connection.
    #[inline(never)]
    fn on_stranger(&mut self, from: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        let flags = cx.packets.get(packet).flags;
        let opens = flags.has(Flags::SYN) && !flags.has(Flags::ACK.with(Flags::RST));
        match opens.then(|| self.accept(packet, cx)).flatten() {
            Some(place) => {
                self.settle(place, cx);
                self.look_at_touched(ROUNDS, cx);
            }
            None => self.refuse(from, packet, cx),
        }
    }

    /// A packet that no open connection takes: RFC 9293 section 3.10.7.1.
    fn refuse(&mut self, from: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        self.counters.no_connection += 1;
        cx.discards.count(DropReason::NoConnection);
        reset_reply(packet, from, cx);
    }

    /// Lets the application see what is new, and notes when the connection next wants to run.
    #[inline(never)]
    fn settle(&mut self, place: u32, cx: &mut Ctx<'_>) {
        let Some(slot) = self.sockets.at_mut(place) else {
            return;
        };
        if slot.socket.has_events() && self.tell(place, cx) {
            self.look_at_touched(ROUNDS, cx);
            return;
        }
        self.sockets.arm(place);
    }

    /// Tells a connection's application its news. Is there more to look at, there or elsewhere?
    #[inline(always)]
    fn tell(&mut self, place: u32, cx: &mut Ctx<'_>) -> bool {
        let Some(slot) = self.sockets.at_mut(place) else {
            return false;
        };
        let events = slot.socket.take_events();
        let owner = slot.owner;
        if slot.half_open {
            self.sockets.note_handshake(place);
        }
        let id = self.sockets.id_of(place);
        if let Some(application) = self.applications[owner.0 as usize].as_deref_mut() {
            let mut desk = Desk {
                sockets: &mut self.sockets,
                me: owner,
                current: place,
                cx,
            };
            application.on_events(id, events, &mut desk);
            if let Some(at) = application.standing().next {
                self.sockets.arm_at(Timer::Application(owner), at);
            }
        }
        let is_done = self
            .sockets
            .at(place)
            .is_none_or(|slot| !slot.socket.has_events() && slot.socket.state() != State::Closed);
        if !is_done {
            self.sockets.touched.push(place);
        }
        !self.sockets.touched.is_empty()
    }

    /// Tells applications the news of connections at which something has happened, until there is no
    /// more, or for so many rounds.
    fn look_at_touched(&mut self, mut rounds: u32, cx: &mut Ctx<'_>) {
        while let Some(place) = self.sockets.touched.pop() {
            let Some(slot) = self.sockets.at_mut(place) else {
                continue;
            };
            if !slot.socket.has_events() {
                if slot.socket.state() == State::Closed {
                    self.close(place);
                } else {
                    self.sockets.arm(place);
                }
                continue;
            }
            if rounds == 0 {
                // Not lost: it is looked at as soon as anything else is.
                self.sockets.arm_at(Timer::Socket(place), cx.now);
                continue;
            }
            rounds -= 1;
            self.tell(place, cx);
            self.sockets.arm(place);
        }
    }

    /// A connection is over, and its application has been told.
    fn close(&mut self, place: u32) {
        let Some(slot) = self.sockets.at(place) else {
            return;
        };
        let owner = slot.owner;
        self.sockets.remove(place);
        let account = &self.sockets.accounts[owner.0 as usize];
        if account.transient && account.sockets.is_empty() {
            self.applications[owner.0 as usize] = None;
            let timer = Timer::Application(owner).number();
            self.sockets.deadlines.disarm(timer);
            self.free.push(owner.0);
        }
    }

    fn arm_application(&mut self, id: ApplicationId) {
        let application = self.applications[id.0 as usize].as_deref();
        if let Some(at) = application.and_then(|application| application.standing().next) {
            self.sockets.arm_at(Timer::Application(id), at);
        }
    }

    /// An application's entry has come up.
    fn run_application(&mut self, id: ApplicationId, cx: &mut Ctx<'_>) {
        let Some(application) = self.applications[id.0 as usize].as_deref_mut() else {
            return;
        };
        let starts = self.sockets.accounts[id.0 as usize].member.starts;
        if starts.is_some_and(|at| at <= cx.now) {
            self.sockets.accounts[id.0 as usize].member.starts = None;
            application.start(&mut Desk {
                sockets: &mut self.sockets,
                me: id,
                current: NONE,
                cx,
            });
        } else if let Some(at) = starts {
            self.sockets.arm_at(Timer::Application(id), at);
        }
        if application.standing().next.is_some_and(|at| at <= cx.now) {
            application.on_deadline(&mut Desk {
                sockets: &mut self.sockets,
                me: id,
                current: NONE,
                cx,
            });
        }
        if let Some(at) = application.standing().next {
            self.sockets.arm_at(Timer::Application(id), at);
        }
        self.look_at_touched(ROUNDS, cx);
    }
}

/// What probes may look at.
const GAUGES: [Gauge; 2] = [
    Gauge {
        name: "connections",
        unit: "connections",
    },
    Gauge {
        name: "buffered",
        unit: "B",
    },
];

impl<P: Realm> Agent for Host<P> {
    fn routes(&mut self, routes: Routes) {
        self.sockets.routes = routes;
    }

    // (Into the loop that tells a host many packets: whatever it calls there is fewer lines of code that a packet fetches.)
    #[inline(always)]
    fn on_packet(&mut self, from: Port, packet: PacketRef, cx: &mut Ctx<'_>) {
        if !cx.packets.get(packet).is_tcp() {
            self.on_datagram(packet, cx);
            return;
        }
        let key = P::key(cx.packets, packet);
        if let Some(place) = self.sockets.find(key)
            && let Some(slot) = self.sockets.at_mut(place)
        {
            slot.socket.on_packet(packet, cx);
            if slot.socket.has_events() {
                self.settle(place, cx);
            } else if let Some(at) = slot.socket.next_deadline_before(slot.armed) {
                slot.armed = at;
                self.sockets.arm_at(Timer::Socket(place), at);
            }
            return;
        }
        self.on_stranger(from, packet, cx);
    }

    fn on_deadline(&mut self, cx: &mut Ctx<'_>) {
        for _ in 0..BATCH {
            let Some(number) = self.sockets.deadlines.due(cx.now) else {
                return;
            };
            match Timer::of(number) {
                Timer::Application(id) => self.run_application(id, cx),
                Timer::Socket(place) => {
                    let Some(slot) = self.sockets.at_mut(place) else {
                        continue;
                    };
                    slot.armed = Time::NEVER;
                    let deadline = slot.socket.next_deadline();
                    if deadline.is_some_and(|deadline| deadline <= cx.now) {
                        slot.socket.on_deadline(cx);
                    }
                    self.settle(place, cx);
                    self.fetch_next_due();
                }
            }
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        self.sockets.deadlines.next()
    }

    fn holdings(&self) -> Holdings {
        Holdings {
            packets: 0,
            bytes: self.sockets.all().map(|slot| slot.socket.buffered()).sum(),
        }
    }

    fn counters(&self, visit: &mut dyn FnMut(&str, u64)) {
        visit("connections_opened", self.sockets.opened);
        visit("no_connection", self.counters.no_connection);
        visit("table_full", self.counters.table_full);
        visit("half_open_full", self.counters.half_open_full);
    }

    fn gauges(&self) -> &'static [Gauge] {
        &GAUGES
    }

    fn gauge(&self, index: usize) -> f64 {
        match index {
            0 => self.sockets.open as f64,
            1 => self.holdings().bytes as f64,
            _ => f64::NAN,
        }
    }

    fn stream_check(&self) -> StreamCheck {
        let mut check = StreamCheck::default();
        let mut add = |other: StreamCheck| {
            check.ranges += other.ranges;
            check.mismatches += other.mismatches;
        };
        for account in &self.sockets.accounts {
            if let Some(totals) = &account.totals {
                add(Account::check_of(totals));
            }
            if let Some(retired) = &account.retired {
                add(Account::check_of(retired.statistics()));
            }
        }
        for slot in self.sockets.all() {
            add(slot.socket.stream_check());
        }
        check
    }

    fn is_quiet(&self) -> bool {
        (0..self.applications.len()).all(|index| self.is_over(ApplicationId(index as u32)))
    }
}

impl<P: Realm> fmt::Debug for Host<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("connections", &self.sockets.open)
            .field("applications", &self.applications.len())
            .field("listeners", &self.listeners.keys())
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
