//! The host itself: an agent.

mod agent;
mod arriving;
mod fetch;
mod queries;

use std::collections::BTreeMap;

use bentpipe_tcp::State;
use bentpipe_types::{Address, Ctx, RandomStream};
use rustc_hash::FxHashMap;

use crate::account::Account;
use crate::socket_context::{NONE, SocketContext};
use crate::table::{AddressOf, Sockets, Timer};
use crate::{
    Application, ApplicationId, ConnectionKeys, InitialSequences, Listener, Member, Ports, Taker,
};

pub use agent::{HOST_GAUGES, PROCESSED_HOST_GAUGES};

/// Limits on a host's connections. The memory of its buffers is bounded by `connections` times the
/// send and receive buffers of its configuration.
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

/// Counters of a host.
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
/// Generic over where payload lives: `Host<Ranges>` in a simulation, `Host<Rings>` for real
/// packets.
#[repr(C)]
pub struct Host<P: ConnectionKeys> {
    sockets: Sockets<P>,
    applications: Vec<Option<Box<dyn Application<P>>>>,
    free: Vec<u32>,
    listeners: FxHashMap<u16, Listener<P>>,
    /// First ports of the ranges that applications open connections from, with the last and whose.
    openers: BTreeMap<u16, (u16, ApplicationId)>,
    limits: Limits,
    counters: Counters,
}

/// Limit of the rounds in which applications react to each other after one packet or deadline. The
/// rest follows right after.
const ROUNDS: u32 = 16;
/// Limit of the deadlines handled in one call. The others stay due.
const BATCH: u32 = 1 << 16;

impl<P: ConnectionKeys> Default for Host<P> {
    fn default() -> Self {
        Self::new(Limits::NONE, InitialSequences::PerApplication)
    }
}

impl<P: ConnectionKeys> Host<P> {
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
        let deadline = application.progress().next;
        let account = Account::new(member, transient, application.speaks_first());
        let id = match self.free.pop() {
            Some(index) => {
                self.sockets.accounts[index as usize] = account;
                self.applications[index as usize] = Some(application);
                ApplicationId(index)
            }
            None => {
                // Most hosts of a large network have one application; a vector begins with room for
                // four.
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

    /// Sets the real addresses of nodes, by which connections are identified in both directions.
    pub fn set_addresses(&mut self, of: AddressOf) {
        self.sockets.addresses = Some(of);
    }

    /// Processes an event later the longer the host has been idle, by nanoseconds. This decides the
    /// order of simultaneous events (`waking.rs`).
    pub fn sleep_when_idle(&mut self) {
        self.sockets.waking = Some(Box::default());
    }

    /// Draws the wake-up delays of packets and of applications from measured distributions
    /// (`waking.rs`), in place of the fixed ones of [`sleep_when_idle`](Self::sleep_when_idle).
    pub fn draw_wake_ups(&mut self, packets: RandomStream, applications: RandomStream) {
        let waking = self.sockets.waking.get_or_insert_default();
        waking.draw(packets, applications);
    }

    /// Takes connections to `port`.
    pub fn listen(&mut self, port: u16, listener: Listener<P>) {
        // RFC 9293 section 3.9.1.1: connections of the port, in any state, are not affected.
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

    /// Lets `act` work at an application's api, from outside of it.
    pub fn at_desk<R>(
        &mut self,
        application: ApplicationId,
        cx: &mut Ctx<'_>,
        act: impl FnOnce(&mut SocketContext<'_, '_, P>) -> R,
    ) -> R {
        let result = act(&mut SocketContext {
            sockets: &mut self.sockets,
            me: application,
            current: NONE,
            cx,
        });
        self.look_at_touched(ROUNDS, cx);
        result
    }

    /// Lets the application see what is new, and notes when the connection next wants to run.
    #[inline(never)]
    fn settle(&mut self, place: u32, cx: &mut Ctx<'_>) {
        let Some(slot) = self.sockets.at_mut(place) else {
            return;
        };
        let has_news = slot.socket.has_events() || slot.waits_for_text();
        if has_news && !self.sockets.wakes_first(place, cx.now) && self.tell(place, cx) {
            self.look_at_touched(ROUNDS, cx);
        }
        // Also where it was others that its application did something to.
        self.sockets.arm(place);
    }

    /// Lets the application, which is awake by now, see what is new.
    fn settle_awake(&mut self, place: u32, cx: &mut Ctx<'_>) {
        self.sockets.touched.push(place);
        self.look_at_touched(ROUNDS, cx);
    }

    /// Tells a connection's application its news. Is there more to look at, there or elsewhere?
    #[inline(always)]
    fn tell(&mut self, place: u32, cx: &mut Ctx<'_>) -> bool {
        let Some(slot) = self.sockets.at_mut(place) else {
            return false;
        };
        let mut events = slot.socket.take_events();
        let owner = slot.owner;
        let is_early = slot.is_early();
        if slot.half_open {
            self.sockets.note_handshake(place);
        }
        if is_early {
            events = self.sockets.news_of_early(place, events, cx.now);
        }
        let id = self.sockets.id_of(place);
        if let Some(application) = self.applications[owner.0 as usize].as_deref_mut() {
            let mut api = SocketContext {
                sockets: &mut self.sockets,
                me: owner,
                current: place,
                cx,
            };
            application.on_events(id, events, &mut api);
            if let Some(at) = application.progress().next {
                self.sockets.arm_at(Timer::Application(owner), at);
            }
        }
        if is_early {
            self.sockets.launch(place, cx);
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

    /// Notifies applications of events at their connections, until there are none or for so many
    /// rounds.
    fn look_at_touched(&mut self, mut rounds: u32, cx: &mut Ctx<'_>) {
        while let Some(place) = self.sockets.touched.pop() {
            let Some(slot) = self.sockets.at_mut(place) else {
                continue;
            };
            if !slot.socket.has_events() && !slot.waits_for_text() {
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
        if let Some(at) = application.and_then(|application| application.progress().next) {
            self.sockets.arm_at(Timer::Application(id), at);
        }
    }

    /// An application's entry has come up.
    fn run_application(&mut self, id: ApplicationId, cx: &mut Ctx<'_>) {
        self.acted(cx.now);
        let Some(application) = self.applications[id.0 as usize].as_deref_mut() else {
            return;
        };
        let starts = self.sockets.accounts[id.0 as usize].member.starts;
        if starts.is_some_and(|at| at <= cx.now) {
            self.sockets.accounts[id.0 as usize].member.starts = None;
            application.start(&mut SocketContext {
                sockets: &mut self.sockets,
                me: id,
                current: NONE,
                cx,
            });
        } else if let Some(at) = starts {
            self.sockets.arm_at(Timer::Application(id), at);
        }
        if application.progress().next.is_some_and(|at| at <= cx.now) {
            application.on_deadline(&mut SocketContext {
                sockets: &mut self.sockets,
                me: id,
                current: NONE,
                cx,
            });
        }
        if let Some(at) = application.progress().next {
            self.sockets.arm_at(Timer::Application(id), at);
        }
        self.look_at_touched(ROUNDS, cx);
    }
}

#[cfg(test)]
mod tests;
