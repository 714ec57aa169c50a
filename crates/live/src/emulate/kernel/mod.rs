//! Applications over the kernel's sockets: the same that a simulation has, each at a [`Desk`] that speaks to
//! Linux.
//!
//! One thread plays all openers of flows, one all servers: with a thread for each, a thousand flows were two
//! thousand threads, which took seconds to start and made packets three times as late.

mod account;
mod datagrams;
mod desk;
mod sockets;
mod table;

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bentpipe_host::{Application, Deadlines, Member, Ports, Report, World};
use bentpipe_tcp::Statistics;
use bentpipe_types::{Address, Span, Time};
use nix::sys::epoll::EpollFlags;

use super::host::Host;
use crate::Clock;
use crate::punctual::{Punctual, Rank};
pub(crate) use desk::Desk;
use table::Table;

/// No wait is longer before it is looked whether the run is over.
const PATIENCE: Span = Span::from_millis(50);

/// How often the kernel is asked whether everything has been acknowledged, where somebody waits for that.
const BETWEEN_QUESTIONS: Span = Span::from_millis(1);

/// What comes between two of them, at least: a question takes a fifth of it.
const QUESTION: Span = Span::from_micros(100);

/// The kernel's sockets, as the world of applications.
#[derive(Debug)]
pub(crate) enum Kernel {}

impl World for Kernel {
    type Desk<'a, 'c>
        = Desk<'a, 'c>
    where
        'c: 'a;
}

/// When everything ends, and who wants to know whether anything still happens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending<'a> {
    pub(crate) clock: Clock,
    pub(crate) end: Time,
    /// The run was broken off, or nothing happens any more.
    pub(crate) stopped: &'a AtomicBool,
}

impl Ending<'_> {
    fn is_over(&self) -> bool {
        self.clock.now() >= self.end || self.stopped.load(Ordering::Relaxed)
    }
}

/// Whether a player has anything to do, as others see it.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    /// Something goes on, or will.
    busy: AtomicBool,
    /// When it last did anything, in nanoseconds.
    last: AtomicU64,
}

impl Activity {
    pub(crate) fn new() -> Self {
        Self {
            busy: AtomicBool::new(true),
            last: AtomicU64::new(0),
        }
    }

    /// Since when nothing has happened, if nothing is to happen.
    pub(crate) fn idle_since(&self) -> Option<Time> {
        let idle = !self.busy.load(Ordering::Acquire);
        idle.then(|| Time::from_nanos(self.last.load(Ordering::Relaxed)))
    }
}

/// What came of an application.
#[derive(Clone, Debug, Default)]
pub(crate) struct Played {
    /// What its connections have counted, as far as the kernel tells; none before the first.
    pub(crate) statistics: Option<Statistics>,
    pub(crate) report: Report,
    pub(crate) datagram_bytes: u64,
    /// Times, and bytes that it had been delivered until then.
    pub(crate) curve: Vec<(Time, u64)>,
    /// Where the bytes of a connection first were not those that were sent.
    pub(crate) mismatch: Option<u64>,
    /// Datagrams that were made longer, to say what they have to.
    pub(crate) lengthened: u64,
}

/// An end of a flow that the kernel has.
pub(crate) struct End {
    /// Its host's place among the hosts.
    pub(crate) host: usize,
    /// Its host's congestion control, by name, and whether small segments are to go out at once.
    pub(crate) control: String,
    pub(crate) no_delay: bool,
    pub(crate) member: Member,
    pub(crate) application: Box<dyn Application<Kernel>>,
    /// The ports at which it is spoken to, and from where: a node and some of its ports.
    pub(crate) listens: Vec<u16>,
    pub(crate) peers: (Address, Ports),
    /// The channel that it hears, besides what is for its host.
    pub(crate) channel: Option<Address>,
}

/// Plays applications, all in the calling thread.
pub(crate) struct Player<'h> {
    applications: Vec<Box<dyn Application<Kernel>>>,
    table: Table<'h>,
    deadlines: Deadlines,
}

impl<'h> Player<'h> {
    /// With these ends. Servers listen from now on.
    pub(crate) fn new(
        hosts: &'h [Host],
        nodes: &'h BTreeMap<IpAddr, Address>,
        ends: Vec<End>,
    ) -> io::Result<Self> {
        let mut player = Self {
            applications: Vec::new(),
            table: Table::new(hosts, nodes)?,
            deadlines: Deadlines::default(),
        };
        for end in ends {
            let me = player.applications.len();
            player.deadlines.reserve(me as u32);
            if let Some(at) = end.member.starts {
                player.deadlines.arm(me as u32, at);
            }
            player.table.add(
                end.host,
                end.control,
                end.no_delay,
                end.member,
                &end.listens,
                end.peers,
                end.channel,
                end.application.speaks_first(),
            )?;
            player.applications.push(end.application);
        }
        Ok(player)
    }

    /// Plays until the end.
    pub(crate) fn play(&mut self, ending: Ending<'_>, activity: &Activity) -> io::Result<()> {
        let clock = ending.clock;
        let _punctual = Punctual::new(Rank::Applications);
        self.table.moved();
        let mut ready = Vec::new();
        while !ending.is_over() {
            let now = clock.now();
            self.table.now = now;
            while let Some(number) = self.deadlines.due(now) {
                activity.last.store(now.as_nanos(), Ordering::Relaxed);
                self.run(number as usize);
            }
            if self.table.asks_at.is_some_and(|at| at <= now) {
                self.table.ask_drained();
                self.settle();
            }
            if self.table.has_more() {
                self.table.write_on();
                self.settle();
            }
            activity.busy.store(self.is_busy(), Ordering::Release);
            let next = (self.deadlines.next().into_iter())
                .chain(self.table.asks_at)
                .fold(ending.end, Time::min);
            let span = if self.table.has_more() {
                Span::ZERO
            } else {
                clock.until(next).min(PATIENCE)
            };
            (self.table.poller).wait_for(span, |tag, what| ready.push((tag, what)))?;
            if ready.is_empty() {
                continue;
            }
            activity.busy.store(true, Ordering::Release);
            for (tag, what) in ready.drain(..) {
                self.table.now = clock.now();
                self.on_ready(tag, what);
            }
            let now = clock.now();
            activity.last.store(now.as_nanos(), Ordering::Relaxed);
        }
        self.table.now = clock.now().min(ending.end);
        Ok(())
    }

    /// What came of each, in their order; the connections that are left are cut.
    pub(crate) fn finish(mut self) -> Vec<Played> {
        let now = self.table.now;
        let accounts = self.table.finish();
        let told = accounts.into_iter().zip(&self.applications);
        told.map(|(mut played, application)| {
            played.report = application.told(now);
            played.datagram_bytes = application.datagram_bytes();
            played
        })
        .collect()
    }

    fn is_busy(&self) -> bool {
        // A deadline may be stale: they say themselves.
        let waits =
            |me: usize| self.table.starts(me) || self.applications[me].standing().next.is_some();
        self.table.is_busy() || (0..self.applications.len()).any(waits)
    }

    fn on_ready(&mut self, tag: u64, what: EpollFlags) {
        match table::Tag::of(tag) {
            table::Tag::Connection(place) => self.table.on_ready(place, what),
            table::Tag::Listener(index) => {
                while let Some((owner, socket)) = self.table.accept(index) {
                    let mut desk = Desk::new(&mut self.table, owner);
                    self.applications[owner].on_accept(socket, &mut desk);
                    self.arm(owner);
                }
            }
            table::Tag::Datagrams(index) => {
                // Others have their turn, too.
                for _ in 0..64 {
                    let Some(received) = self.table.receive(index) else {
                        break;
                    };
                    let Some((owner, arrival)) = received else {
                        continue;
                    };
                    let mut desk = Desk::new(&mut self.table, owner);
                    self.applications[owner].on_datagram(arrival, &mut desk);
                    self.arm(owner);
                }
            }
        }
        self.settle();
    }

    /// An application's time has come.
    fn run(&mut self, me: usize) {
        let now = self.table.now;
        let application = &mut self.applications[me];
        if self.table.takes_start(me, now) {
            application.start(&mut Desk::new(&mut self.table, me));
        }
        if application.standing().next.is_some_and(|at| at <= now) {
            application.on_deadline(&mut Desk::new(&mut self.table, me));
        }
        if let Some(at) = self.table.start_of(me) {
            self.deadlines.arm(me as u32, at);
        }
        self.arm(me);
        self.settle();
    }

    fn arm(&mut self, me: usize) {
        if let Some(at) = self.applications[me].standing().next {
            self.deadlines.arm(me as u32, at);
        }
    }

    /// Tells applications the news of their connections, until there is no more.
    fn settle(&mut self) {
        while let Some((owner, socket, events)) = self.table.news() {
            let mut desk = Desk::new(&mut self.table, owner);
            self.applications[owner].on_events(socket, events, &mut desk);
            self.arm(owner);
            self.table.told(socket, events);
        }
    }
}
